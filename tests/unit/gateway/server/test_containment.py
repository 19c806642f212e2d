"""A fault in a task of the gateway's ends what the task is about, and never the gateway."""

from __future__ import annotations

import ast
import errno
import socket
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from amqpgate.config import parse
from amqpgate.gateway.handshake.pending import PendingHandshakes
from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.observers.stats.rates import Rates
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.pool import registry as pool_registry
from amqpgate.gateway.pool.pool import Pool, PoolIdentity
from amqpgate.gateway.server import housekeeping
from amqpgate.gateway.server.memory_keeping import MemoryKeeping
from amqpgate.gateway.session import close_session, registry
from amqpgate.gateway.transport import listener
from amqpgate.gateway.transport.listener import ListeningSocket
from amqpgate.policy.loader import build
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import InProcess, eventually
from tests.unit.gateway.conftest import Stage

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: main, host: 127.0.0.1}]
"""
GATEWAY = Path(registry.__file__).parents[1]

#: Each task that is started, and what holds what it raises. Those of the gateway's own nurseries must be
#: held; others end with who waits for them.
TASKS = {
    # Without the data path there is no gateway.
    ("server/gateway.py", "drive"): "the pump: an exception in an upcall ends its session",
    ("server/gateway.py", "kept"): "itself; and each loop holds what its rounds raise: the tests below",
    ("session/registry.py", "contained"): "itself",
    ("pool/registry.py", "contained"): "itself",
    ("observers/mirror/registry.py", "_contained"): "itself",
    ("handshake/accept.py", "serving"): "its own try",
    ("session/registry.py", "farewells[0]"): "a fiber, and its own try",
    ("transport/fibers.py", "self._do"): "gives what is raised to its fiber",
    ("upstream/health_check.py", "_watch"): "its own try",
    # Those of a task that is one of the above.
    ("handshake/late_binding.py", "partial"): "the handshake's task",
    ("observers/mirror/pipe.py", "self._until_it_ends"): "the mirror's task",
}


def started() -> set[tuple[str, str]]:
    """Every call of start_soon below `gateway`: its file, and what is started."""
    found = set()
    for file in GATEWAY.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "start_soon":
                what = node.args[0].func if isinstance(node.args[0], ast.Call) else node.args[0]
                found.add((str(file.relative_to(GATEWAY)), ast.unparse(what)))
    return found


def test_every_task_is_known() -> None:
    """One that is new has to say here what holds its exceptions, and a test has to show it."""
    assert started() == set(TASKS)


def lives(stage: Stage) -> None:
    """The gateway takes one more client."""
    client, broker = stage.opened()
    client.publish(b"x", "k")
    assert broker.expect_content(amqp.BasicPublish).body == b"x"


class Fault(Exception):
    """What nobody expects."""


class Breaking:
    """Raises, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, *_: object, **__: object) -> object:
        self.times += 1
        raise Fault


@pytest.fixture
def breaking() -> Breaking:
    return Breaking()


@pytest.mark.parametrize(
    ("owner", "name"),
    [(housekeeping, "look"), (Rates, "forget"), (MemoryKeeping, "_has_ebbed")],
    ids=["the look", "what is forgotten", "memory"],
)
def test_housekeeping_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, breaking: Breaking, owner: object, name: str
) -> None:
    monkeypatch.setattr(housekeeping, "INTERVAL", 0.01)
    monkeypatch.setattr(owner, name, breaking)
    eventually(lambda: breaking.times > 2)
    lives(stage)


def test_a_session_that_cannot_be_left_ends_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, breaking: Breaking
) -> None:
    client, _ = stage.opened()
    monkeypatch.setattr(registry, "Parting", breaking)
    client.close()
    eventually(lambda: breaking.times == 1)
    lives(stage)


def test_a_connection_that_cannot_be_taken_in_is_closed_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, breaking: Breaking
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(PendingHandshakes, "enter", breaking)
        with stage.client() as client:
            client.expect_end()
    assert breaking.times == 1
    lives(stage)


def test_a_listening_socket_that_breaks_ends_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs it starts another one: one that only seems to listen helps nobody."""

    def breaks(_: ListeningSocket) -> tuple[socket.socket, str]:
        raise OSError(errno.EBADF, "broken")

    monkeypatch.setattr(listener, "take", breaks)
    running = InProcess(parse(SETTINGS, {}, file="amqpgate.yaml"))
    with pytest.raises(BaseExceptionGroup) as raised:  # noqa: PT012 - whichever of both comes to hear of it
        running.start()
        running.join()
    assert raised.group_contains(OSError, match="broken")


def test_an_order_to_close_that_fails_ends_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, breaking: Breaking
) -> None:
    stage.opened()
    monkeypatch.setattr(close_session.ForcedCloses, "run", breaking)
    gateway = stage.running.gateway
    (name,) = stage.running.call(lambda: list(gateway.sessions))
    stage.running.call(lambda: gateway.close_session(name, "why"))
    eventually(lambda: breaking.times == 1)
    lives(stage)


def test_taking_stock_of_other_policies_fails_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, breaking: Breaking
) -> None:
    stage.opened()
    monkeypatch.setattr(Selected, "take_stock", breaking)
    stage.running.call(lambda: stage.running.gateway.use(build([])))
    eventually(lambda: breaking.times == 1)
    lives(stage)


async def test_a_pool_that_cannot_be_looked_at_fails_alone(
    breaking: Breaking, autojump_clock: trio.testing.MockClock
) -> None:
    class Plan:
        is_empty = False

    class Broken:
        plan = Plan
        look = breaking

    pools = object.__new__(pool_registry.PoolRegistry)
    pools.pools = {cast("PoolIdentity", "one"): cast("Pool", Broken)}
    with trio.move_on_after(3.5 * pool_registry.INTERVAL):
        await pools.run()
    assert breaking.times == 3


async def test_windows_of_the_audit_are_closed_again(
    monkeypatch: pytest.MonkeyPatch, breaking: Breaking, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(AuditTrail, "close_window", breaking)
    trail = object.__new__(AuditTrail)
    trail.window = 1.0
    with trio.move_on_after(3.5):
        await trail.run()
    assert breaking.times == 3

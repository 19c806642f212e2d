"""Memory that runs out between accept and the end of a session costs that session, which counts no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.datapath import build
from amqpgate.gateway.handshake.accept import Acceptor
from amqpgate.gateway.handshake.pending import PendingHandshakes
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.server import assembly
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.teardown import Parting
from amqpgate.gateway.transport.fibers import Fibers
from amqpgate.telemetry.faults import FAULTS
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import Gone, Talker, Unexpected
from tests.unit.datapath.rig import ENGINES
from tests.unit.gateway.conftest import Stage


@pytest.fixture(params=ENGINES)
def stage(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, make_stage: Callable[..., Stage]
) -> Stage:
    """With either engine."""
    engine = ENGINES[request.param]
    monkeypatch.setattr(assembly, "Pump", engine.pump)
    monkeypatch.setattr(build, "RelayEndpoint", engine.endpoint("RelayEndpoint"))
    # Who is accepted late by that, and says nothing, is waited for so long.
    return make_stage(limits="handshakeTimeout: 3s")


@pytest.fixture
def fails_once(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """There is no memory for a call, once, before or behind what it does; the names of the calls."""

    def arrange(owner: object, name: str, *, behind: bool = False) -> list[str]:
        failed: list[str] = []
        do = getattr(owner, name)

        def poor(*args: object, **kwargs: object) -> object:
            if failed:
                return do(*args, **kwargs)
            failed.append(name)
            if behind:
                do(*args, **kwargs)
            raise MemoryError

        monkeypatch.setattr(owner, name, poor)
        return failed

    return arrange


def counted(stage: Stage) -> tuple[int, ...]:
    """Connections, pending handshakes (by source, too), sessions, fibers, and sockets in the pump."""
    gateway = stage.running.gateway
    pending = gateway.acceptor.context.pending

    def count() -> tuple[int, ...]:
        return (
            gateway.acceptor.connections.count,
            len(pending),
            sum(map(len, pending._by_source.values())),
            len(gateway.sessions),
            len(gateway.registry.fibers),
            len(gateway.pump),
            gateway.pump.counters.relays,
        )

    return stage.running.call(count)


#: Of a gateway that has nobody: one fiber accepts.
NOBODY = (0, 0, 0, 0, 1, 0, 0)


def goes_on(stage: Stage) -> None:
    """All are gone, and who comes is served."""
    eventually(lambda: counted(stage) == NOBODY)
    client, broker = stage.opened()
    client.publish(b"x", "k")
    assert broker.expect_content(amqp.BasicPublish).body == b"x"
    assert counted(stage) == (1, 0, 0, 1, 1, 2, 1)


def gone(client: Talker) -> None:
    client.expect_end()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (PendingHandshakes, "enter"),
        (PendingHandshakes, "awaits"),
        (Acceptor, "_serve"),
        (Fibers, "start_soon"),
        (Acceptor, "_receive"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_connection_is_accepted(
    stage: Stage, fails_once: Callable[..., list[str]], owner: object, name: str
) -> None:
    failed = fails_once(owner, name)
    gone(stage.client())
    assert failed
    goes_on(stage)


def test_a_session_does_not_begin(stage: Stage, fails_once: Callable[..., list[str]]) -> None:
    failed = fails_once(Session, "enter")
    with pytest.raises(Gone):
        stage.opened()
    assert failed == ["enter"]
    goes_on(stage)


def test_a_session_ends_as_it_begins(stage: Stage, fails_once: Callable[..., list[str]]) -> None:
    failed = fails_once(Session, "observe")
    with pytest.raises(Unexpected, match="amqpgate failed"):
        stage.opened()
    assert failed == ["observe"]
    goes_on(stage)


def test_who_looks_on_need_not_be_told(stage: Stage, fails_once: Callable[..., list[str]]) -> None:
    before = FAULTS.counts["metrics"]
    failed = fails_once(Selected, "count")
    client, broker = stage.opened()
    client.publish(b"x", "k")
    assert broker.expect_content(amqp.BasicPublish).body == b"x"
    assert (failed, FAULTS.counts["metrics"]) == (["count"], before + 1)
    client.close()
    broker.close()
    goes_on(stage)


@pytest.mark.parametrize(
    ("owner", "name", "behind"),
    [
        (Session, "left", False),
        (Session, "left", True),
        (Session, "release", False),
        (Parting, "begin", False),
        (Fibers, "start_soon", False),
    ],
)
def test_a_session_ends(
    stage: Stage, fails_once: Callable[..., list[str]], owner: object, name: str, behind: bool
) -> None:
    client, broker = stage.opened()
    failed = fails_once(owner, name, behind=behind)
    client.close()
    broker.close()
    eventually(lambda: failed == [name])
    goes_on(stage)

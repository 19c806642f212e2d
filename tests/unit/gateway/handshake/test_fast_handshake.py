"""Handshakes with a broker that is known: on the fast path, and from wherever they leave it.

The conversations of `test_passthrough` are played once more, with the same results.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import select
import socket
from collections import Counter
from collections.abc import Callable
from typing import cast

import pytest

from amqpgate.gateway.handshake.agreements import Agreements
from amqpgate.gateway.handshake.arrival import ClientArrival
from amqpgate.gateway.handshake.client_side import SAID
from amqpgate.gateway.handshake.fast_handshake import principal_of
from amqpgate.gateway.handshake.progress import Progress
from amqpgate.gateway.handshake.start_ok import Introduction
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.transport.caller import Caller
from amqpgate.policy import TlsIdentity
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import InProcess, eventually
from tests.support.talker import CAPABILITIES, Gone, Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.handshake import test_passthrough
from tests.unit.gateway.handshake.test_passthrough import CONVERSATION, OPEN, START_OK, TUNE
from tests.unit.gateway.memory import in_memory, uncollected
from tests.unit.gateway.papers import Papers

__all__ = ["uncollected"]

MakeStage = Callable[..., Stage]

#: Seconds after which nobody is dialled any more.
PATIENCE = 0.5


class ComesLater:
    """A broker that is dialled when the client has said its start-ok, and that says what it said before."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._talker: Talker | None = None

    def __getattr__(self, name: str) -> object:
        if self._talker is None:
            if select.select([self._stage.door.sock], [], [], PATIENCE)[0]:
                self._talker = self._stage.broker()
                self._talker.greet()
            else:
                # It is not dialled at all: it hears nothing.
                ours, theirs = socket.socketpair()
                theirs.close()
                self._talker = self._stage.guests.enter_context(Talker(ours))
        return getattr(self._talker, name)


def known(stage: Stage, **options: object) -> None:
    """The gateway has met the broker, the client and what both say."""
    client = stage.client(**options)
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.greet()
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 60))
    offered = client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(offered.channel_max, offered.frame_max, 60))
    broker.expect(amqp.ConnectionTuneOk)
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(amqp.ConnectionClose(200, "bye", 0, 0))
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    stage.running.wait_idle()


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages whose broker is known when a client comes."""

    met = set()

    def greeted(self: Stage, **options: object) -> tuple[Talker, Talker]:
        if self not in met:
            known(self, **options)
            met.add(self)
        client = self.client(**options)
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        return client, cast(Talker, ComesLater(self))

    outcomes = InProcess.outcomes

    def others(self: InProcess) -> dict[str, int]:
        """The first one was closed."""
        found = Counter(outcomes(self))
        found["closed"] -= 1
        return dict(+found)

    monkeypatch.setattr(Stage, "greeted", greeted)
    monkeypatch.setattr(InProcess, "outcomes", others)


for _name, _test in vars(test_passthrough).items():
    if _name.startswith("test_") and "greeted" in inspect.getsource(_test):
        globals()[_name] = _test


# -- what is like the one before is no conversation ----------------------------------------------------------


@pytest.fixture
def conversations(monkeypatch: pytest.MonkeyPatch) -> list[Progress | None]:
    """How far handshakes have come that became conversations, one after the other."""
    found: list[Progress | None] = []
    receive = ClientArrival.receive

    async def noted(
        self: ClientArrival, sock: socket.socket, progress: Progress | None = None
    ) -> Established:
        found.append(progress)
        return await receive(self, sock, progress)

    monkeypatch.setattr(ClientArrival, "receive", noted)
    return found


def stages(conversations: list[Progress | None]) -> list[str]:
    return [progress.stage.value for progress in conversations if progress is not None]


#: What is said until the connection is open, in turn.
USUAL = [step for step in CONVERSATION if step[1].NAME not in ("connection.secure", "connection.secure-ok")]


def play(client: Talker, broker: Talker) -> None:
    for who, method in USUAL:
        speaker, listener = (client, broker) if who == "client" else (broker, client)
        speaker.say(method)
        listener.expect(type(method))


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_login_like_the_one_before_is_stepped_through(
    make_stage: MakeStage, papers: Papers, conversations: list[Progress | None], is_tls: bool
) -> None:
    listener = f"tls: {{{papers.make('gateway', 'localhost')}}}" if is_tls else ""
    stage = make_stage(listener=listener)
    options: dict[str, object] = {"tls": papers.client_context()} if is_tls else {}
    client, broker = stage.greeted(**options)
    assert len(conversations) == 1
    play(client, broker)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    assert len(conversations) == 1
    (session,) = stage.running.gateway.sessions.values()
    assert (session.principal.user, session.principal.vhost) == ("guest", "/")
    assert session.facts.hears_cancels


ALL = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: all}
spec:
  subjects: [{user: guest}]
  rules: [{id: may, effect: allow, operations: [connection.open]}]
"""


def test_a_rule_that_lets_connections_open_is_asked_on_the_way(
    make_stage: MakeStage, conversations: list[Progress | None]
) -> None:
    stage = make_stage(policies=ALL)
    client, broker = stage.greeted()
    play(client, broker)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    assert len(conversations) == 1
    (session,) = stage.running.gateway.sessions.values()
    assert session.principal.user == "guest"
    decisions = stage.running.gateway.acceptor.context.policies.reports.decisions
    assert decisions.hits["AccessPolicy", "all", "may"].count == 2


@pytest.mark.parametrize("size", [1, 7, 11, 12, 40, -1])
def test_half_a_frame_is_for_the_conversation(
    stage: Stage, conversations: list[Progress | None], size: int
) -> None:
    client, broker = stage.greeted()
    frame = method_frame(0, START_OK)
    client.raw(frame[:size])
    eventually(lambda: len(conversations) == 2)
    client.raw(frame[size:])
    play_on(client, broker)
    assert stages(conversations)[1:] == ["started"]


def play_on(client: Talker, broker: Talker) -> None:
    """After start-ok."""
    broker.expect(amqp.ConnectionStartOk)
    broker.say(TUNE)
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 60))
    client.say(OPEN)
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)


def test_the_whole_half_of_a_client_at_once(stage: Stage, conversations: list[Progress | None]) -> None:
    client, broker = stage.greeted()
    said = START_OK, amqp.ConnectionTuneOk(2047, 131072, 60), OPEN
    client.raw(b"".join(method_frame(0, method) for method in said))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(TUNE)
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionTune)
    client.expect(amqp.ConnectionOpenOk)
    assert stages(conversations)[1:] == ["started"]


def test_who_speaks_out_of_turn_is_heard_in_turn(stage: Stage, conversations: list[Progress | None]) -> None:
    """What a client says while the broker is waited for, in pieces of its own."""
    client, broker = stage.greeted()
    client.say(START_OK)
    broker.expect(amqp.ConnectionStartOk)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 60))
    eventually(lambda: not watched(stage, client))
    broker.say(TUNE)
    broker.expect(amqp.ConnectionTuneOk)
    client.say(OPEN)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionTune)
    client.expect(amqp.ConnectionOpenOk)
    assert len(conversations) == 1


def watched(stage: Stage, client: Talker) -> bool:
    """Whether the gateway looks at what the client says now."""
    fibers = stage.running.gateway.registry.fibers
    return any(_peer(fd) == client.sock.getsockname() for fd in list(fibers.waiting))


def _peer(fd: int) -> object:
    with socket.socket(fileno=os.dup(fd)) as sock, contextlib.suppress(OSError):
        return sock.getpeername()
    return None


@pytest.mark.parametrize("step", range(len(USUAL)))
def test_a_drain_ends_it_at_every_step(stage: Stage, step: int) -> None:
    client, broker = stage.greeted()
    for who, method in USUAL[:step]:
        speaker, listener = (client, broker) if who == "client" else (broker, client)
        speaker.say(method)
        listener.expect(type(method))
    stage.running.call(stage.running.gateway.acceptor.context.pending.cancel)
    with pytest.raises(Gone):
        client.frame()
    if step:
        with pytest.raises(Gone):
            broker.frame()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"drained": 1}


@pytest.mark.parametrize("step", [0, 1, 3])
def test_the_whole_of_it_has_one_deadline(make_stage: MakeStage, step: int) -> None:
    stage = make_stage(limits="handshakeTimeout: 1s")
    client, broker = stage.greeted()
    for who, method in USUAL[:step]:
        speaker, listener = (client, broker) if who == "client" else (broker, client)
        speaker.say(method)
        listener.expect(type(method))
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"handshake_timeout": 1}


def test_a_broker_that_starts_otherwise_now(stage: Stage, conversations: list[Progress | None]) -> None:
    client, _ = stage.greeted()
    client.say(START_OK)
    broker = stage.broker()
    broker.greet(properties=Table.of({"product": "Other"}))
    play_on(client, broker)
    assert stages(conversations)[1:] == ["started"]


def test_a_broker_that_is_not_there_any_more(stage: Stage, conversations: list[Progress | None]) -> None:
    client, _ = stage.greeted()
    stage.door.close()
    client.say(START_OK)
    assert client.expect(amqp.ConnectionClose).reply_code == 320
    assert stages(conversations)[1:] == ["started"]
    client.say(amqp.ConnectionCloseOk())
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"upstream_unavailable": 1}


def test_want_of_memory_ends_one_connection(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    client, broker = stage.greeted()
    client.say(START_OK)
    broker.expect(amqp.ConnectionStartOk)

    def fail(*_: object) -> bool:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Agreements, "offer", fail)
        broker.say(TUNE)
        for talker in (client, broker):
            with pytest.raises(Gone):
                talker.frame()
        stage.running.wait_idle()
    assert stage.running.outcomes() == {"failed": 1}
    client, broker = stage.greeted()
    play(client, broker)


@pytest.mark.usefixtures("uncollected")
def test_what_a_handshake_was_that_broke_is_no_cycle(stage: Stage) -> None:
    """Python may not look for those for hours, and memory rises meanwhile."""
    stage.greeted()
    stage.client().reset()
    before = in_memory()["FastHandshake"]
    for _ in range(5):
        client, _ = stage.greeted()
        client.reset()
    eventually(lambda: in_memory()["FastHandshake"] - before < 2)


def test_who_comes_again_is_the_principal_that_is_known(stage: Stage) -> None:
    (path,) = stage.running.gateway.acceptor._fast.values()
    said, other = (
        Introduction(Table(()), SAID.of(Table.of({"product": name})), b"") for name in ("one", "other")
    )
    first = principal_of(path, Caller("1", "10.0.0.1:1"), "guest", "/", said)
    assert principal_of(path, Caller("2", "10.0.0.1:2"), "guest", "/", said) is first
    others = [
        principal_of(path, Caller("3", "10.0.0.2:1"), "guest", "/", said),
        principal_of(path, Caller("3", "10.0.0.1:1"), "admin", "/", said),
        principal_of(path, Caller("3", "10.0.0.1:1"), "guest", "vhost", said),
        principal_of(path, Caller("3", "10.0.0.1:1"), "guest", "/", other),
        principal_of(path, Caller("3", "10.0.0.1:1", TlsIdentity("CN=one")), "guest", "/", said),
    ]
    assert [(one.source, one.user, one.vhost, one.client, one.tls) for one in others] == [
        ("10.0.0.2", "guest", "/", {"product": "one"}, None),
        ("10.0.0.1", "admin", "/", {"product": "one"}, None),
        ("10.0.0.1", "guest", "vhost", {"product": "one"}, None),
        ("10.0.0.1", "guest", "/", {"product": "other"}, None),
        ("10.0.0.1", "guest", "/", {"product": "one"}, TlsIdentity("CN=one")),
    ]


def test_many_principals_take_bounded_memory(stage: Stage) -> None:
    (path,) = stage.running.gateway.acceptor._fast.values()
    said = Introduction(Table(()), SAID.of(Table(())), b"")
    for number in range(1000):
        principal_of(path, Caller("1", "10.0.0.1:1"), f"user{number}", "/", said)
        assert len(path.principals) <= 256

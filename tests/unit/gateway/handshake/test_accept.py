"""How many connections there are, and what becomes of those that are no sessions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from amqpgate.gateway.handshake import accept
from amqpgate.gateway.handshake.accept import TOO_MANY, Connections
from amqpgate.gateway.handshake.arrival import ClientArrival
from amqpgate.gateway.handshake.fast_handshake import FastHandshake
from amqpgate.gateway.handshake.pending import PendingHandshake
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.policy import SessionDeniedError
from amqpgate.wire.dialects import HEADER_0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import Gone
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import asks_for_its_vhost

MakeStage = Callable[..., Stage]


@pytest.fixture
def connections(stage: Stage) -> Connections:
    return stage.running.gateway.acceptor.connections


def is_empty(stage: Stage) -> bool:
    """Whether nobody is counted any more."""
    acceptor = stage.running.gateway.acceptor
    return (acceptor.connections.count, len(acceptor.context.pending)) == (0, 0)


def breaks(*_: object) -> None:
    raise ZeroDivisionError


def test_there_is_room_for_so_many(connections: Connections) -> None:
    few = Connections(2, connections.metrics)
    found = [few.has_room]
    for step in (few.begun, few.begun, lambda: few.ended("closed")):
        step()
        found.append(few.has_room)
    assert found == [True, True, False, True]


def test_sessions_are_counted_until_they_are_over(stage: Stage, connections: Connections) -> None:
    client, broker = stage.opened()
    other = stage.client()
    eventually(lambda: connections.count == 2)
    other.close()
    eventually(lambda: connections.count == 1)
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.close()
    eventually(lambda: is_empty(stage))
    assert sum(stage.running.outcomes().values()) == 2


def test_operators_hear_of_whom_there_is_no_room_for(
    make_stage: MakeStage, caplog: pytest.LogCaptureFixture
) -> None:
    stage = make_stage(limits="maxConnections: 1")
    stage.opened()
    with caplog.at_level("INFO"):
        stage.client().expect_end()
    assert [record.message.endswith(TOO_MANY) for record in caplog.records] == [True]
    assert stage.running.outcomes() == {"over_limit": 1}
    assert stage.running.gateway.acceptor.connections.count == 1


def test_one_that_cannot_begin_is_not_counted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept, "begin_fast", breaks)
    stage.client().expect_end()
    eventually(lambda: stage.running.outcomes() == {"failed": 1})
    assert is_empty(stage)


@pytest.mark.parametrize("step", [FastHandshake, ClientArrival])
def test_a_fault_ends_its_own_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: type
) -> None:
    """On the fast path, and where it goes on as a conversation: 0-9 is one from its header on."""
    with monkeypatch.context() as patch:
        patch.setattr(step, "_receive" if step is FastHandshake else "receive", breaks)
        client = stage.client()
        client.raw(HEADER_0_9)
        # Where the header was not read it is a reset.
        with contextlib.suppress(Gone):
            client.expect_end()
    eventually(lambda: stage.running.outcomes() == {"failed": 1})
    assert is_empty(stage)
    assert [record.exc_info is not None for record in caplog.records if "failed" in record.message] == [True]
    stage.opened()


def test_who_is_denied_at_the_last_moment_leaves_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise SessionDeniedError("its transforms contradict")

    monkeypatch.setattr(SessionRegistry, "establish", denied)
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"))
    asks_for_its_vhost(client, broker)
    broker.say(amqp.ConnectionOpenOk())
    broker.expect_end()
    eventually(lambda: stage.running.outcomes() == {"refused": 1})
    assert is_empty(stage)


def test_one_that_is_cancelled_as_it_becomes_a_session_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drain that comes between both has ended the handshakes, and then the sessions that there were."""
    leave = PendingHandshake.cancel
    pending = stage.running.gateway.acceptor.context.pending

    def cancel_first(registry: SessionRegistry, *args: object) -> object:
        for handshake in handshakes:
            leave(handshake)
        return establish(registry, *args)  # type: ignore[arg-type]

    establish, handshakes = SessionRegistry.establish, list[PendingHandshake]()
    enter = type(pending).enter

    def note(self: object, address: str | None) -> PendingHandshake | None:
        found = enter(pending, address)
        assert found is not None
        handshakes.append(found)
        return found

    monkeypatch.setattr(type(pending), "enter", note)
    monkeypatch.setattr(SessionRegistry, "establish", cancel_first)
    client, _ = stage.opened(channels=0)
    assert client.expect(amqp.ConnectionClose).reply_code == 320

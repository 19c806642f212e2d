"""Descriptors that a pump watches for guests, who may leave them to a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.datapath.build import make_relay
from amqpgate.datapath.engine import HandedOverSocket
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .rig import ENGINES, Rig, Witness, set_up

_FRAME_MAX = 4096
_MESSAGE = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"x", _FRAME_MAX)


@pytest.fixture(params=ENGINES)
def rig(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from set_up(Rig, request.param, monkeypatch, high=65536, low=1024, largest_frame=_FRAME_MAX)


@pytest.fixture
def told(rig: Rig) -> list[list[object]]:
    """The guests of each step that had any."""
    told: list[list[object]] = []
    rig.pump.serve_guests(told.append)
    return told


def test_guests_hear_of_their_descriptors_in_one_call(rig: Rig, told: list[list[object]]) -> None:
    (far, near), (other, its) = rig.pair(), rig.pair()
    rig.pump.lend(near.fileno(), "one")
    rig.pump.lend(its.fileno(), "other")
    rig.pump.step()
    assert told == []
    far.send(b"x")
    rig.pump.step()
    other.send(b"x")
    rig.pump.step()
    assert [sorted(map(str, guests)) for guests in told] == [["one"], ["one", "other"]]
    near.recv(1)
    rig.pump.lend(its.fileno(), None)
    rig.pump.step()
    assert len(told) == 2


def test_who_is_taken_out_twice_or_was_never_there_is_let_be(rig: Rig, told: list[list[object]]) -> None:
    _, near = rig.pair()
    rig.pump.lend(near.fileno(), None)
    rig.pump.lend(near.fileno(), "one")
    rig.pump.lend(near.fileno(), None)
    rig.pump.lend(near.fileno(), None)


def test_one_whose_socket_is_closed_may_be_followed_by_another(rig: Rig, told: list[list[object]]) -> None:
    far, near = rig.pair()
    number = near.fileno()
    rig.pump.lend(number, "one")
    near.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        rig.pump.lend(number, None)
    far, near = rig.pair()
    assert near.fileno() == number or far.fileno() == number, "the lowest that is free"
    rig.pump.lend(number, "another")
    (far if near.fileno() == number else near).send(b"x")
    rig.pump.step()
    assert told == [["another"]]


def test_a_session_has_the_sockets_of_a_guest_as_they_are_watched(rig: Rig, told: list[list[object]]) -> None:
    (client, near_client), (broker, near_broker) = rig.pair(), rig.pair()
    for sock in (near_client, near_broker):
        rig.pump.lend(sock.fileno(), "one")
    handler = Witness()
    handler.relay = relay = make_relay(
        handler,  # type: ignore[arg-type]
        HandedOverSocket(near_client, _FRAME_MAX, 0),
        HandedOverSocket(near_broker, _FRAME_MAX, 0),
        flows=None,
    )
    relay.channels.open(1)
    rig.pump.add(relay)
    # What the guest does as it ends does no harm.
    for sock in (near_client, near_broker):
        rig.pump.lend(sock.fileno(), None)
    assert rig.exchange(client, broker, _MESSAGE) == _MESSAGE
    client.close()
    rig.steps()
    assert [side for _, side in handler.ends] == [0]
    assert told == []
    assert len(rig.pump) == 0


def test_a_fault_of_a_guest_ends_no_session(rig: Rig) -> None:
    def fail(_: list[object]) -> None:
        raise ZeroDivisionError

    rig.pump.serve_guests(fail)
    far, near = rig.pair()
    rig.pump.lend(near.fileno(), "one")
    far.send(b"x")
    rig.pump.step()
    assert [type(failure) for failure in rig.failures] == [ZeroDivisionError]

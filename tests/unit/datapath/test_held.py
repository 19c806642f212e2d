"""Channels that are held, frames that come again, and a side that waits behind a frame, in both engines."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import attrs
import pytest

from amqpgate.datapath.build import make_relay
from amqpgate.datapath.engine import HandedOverSocket
from amqpgate.datapath.tables import HELD_NEXT, METHOD_NEXT, ScanResult, Side
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .rig import ENGINES, Rig, Witness, received, set_up

FRAME_MAX = 4096


@attrs.define(eq=False)
class Holder(Witness):
    """Keeps what is held, and has the side wait for so long behind each frame."""

    kept: bytearray = attrs.field(factory=bytearray)
    wait_behind: float = 0.0
    takes: bool = True

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        assert result is ScanResult.HELD
        self.upcalls.append((side, result, bytes(frame)))
        self.relay.endpoints[side].lane.ready_at = self.wait_behind
        if self.takes:
            self.kept += frame
        return not self.takes


@pytest.fixture(params=ENGINES)
def rig(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from set_up(
        Rig, request.param, monkeypatch, high=256 * 1024, low=64 * 1024, largest_frame=FRAME_MAX
    )


def session(rig: Rig) -> tuple[socket.socket, socket.socket, Holder]:
    client, near_client = rig.pair()
    broker, near_broker = rig.pair()
    handler = Holder()
    handler.relay = make_relay(
        handler,
        HandedOverSocket(near_client, FRAME_MAX, 0),
        HandedOverSocket(near_broker, FRAME_MAX, 0),
        flows=None,
    )
    for number in (1, 2):
        handler.relay.channels.open(number)
    rig.pump.add(handler.relay)
    return client, broker, handler


def message(number: int, body: bytes) -> bytes:
    return content_frames(number, amqp.BasicPublish(), amqp.BasicProperties(), body, FRAME_MAX)


@pytest.mark.parametrize("side", Side)
def test_a_channel_that_is_held_keeps_all_its_frames_and_no_others(rig: Rig, side: Side) -> None:
    ends = session(rig)
    handler, channels = ends[2], ends[2].relay.channels
    here, there = ends[side], ends[side.other]
    assert isinstance(here, socket.socket)
    assert isinstance(there, socket.socket)
    mine, others = delivery(side, 1, b"m" * 9000), delivery(side, 2, b"o" * 9000)
    channels.hold(side, 1)
    assert channels.due(side, 1) == HELD_NEXT
    assert rig.exchange(here, there, mine + others + mine) == others
    assert bytes(handler.kept) == mine + mine
    assert channels.messages(side, 1) == 0
    channels.let_go(side, 1)
    assert channels.due(side, 1) == METHOD_NEXT
    handler.relay.pump.feed(handler.relay, side, bytes(handler.kept))
    rig.steps()
    assert received(there) == mine + mine
    assert channels.messages(side, 1) == 2


def test_what_comes_again_comes_before_what_is_kept(rig: Rig) -> None:
    client, broker, handler = session(rig)
    first, second = message(1, b"1" * 9000), message(1, b"2" * 9000)
    client.send(second[:-5])
    rig.steps()
    before = received(broker)
    assert second.startswith(before)
    handler.relay.pump.feed(handler.relay, Side.CLIENT, message(2, b"x"))
    rig.steps()
    assert received(broker) == message(2, b"x")
    client.send(second[-5:] + first)
    rig.steps()
    assert before + received(broker) == second + first


def test_a_side_waits_behind_a_frame_that_has_been_dealt_with(rig: Rig) -> None:
    client, broker, handler = session(rig)
    handler.relay.channels.hold(Side.CLIENT, 1)
    handler.wait_behind = rig.clock.now + 5
    assert rig.exchange(client, broker, message(1, b"m") + message(2, b"o")) == b""
    assert len(handler.upcalls) == 1
    handler.wait_behind = 0.0
    handler.relay.pump.retry(handler.relay)
    rig.clock.now += 1
    rig.steps()
    assert received(broker) == message(2, b"o")
    assert bytes(handler.kept) == message(1, b"m")


def test_a_frame_that_is_held_may_be_looked_at_again(rig: Rig) -> None:
    client, broker, handler = session(rig)
    handler.relay.channels.hold(Side.CLIENT, 1)
    handler.wait_behind, handler.takes = rig.clock.now + 5, False
    assert rig.exchange(client, broker, message(1, b"m") + message(2, b"o")) == b""
    handler.wait_behind, handler.takes = 0.0, True
    handler.relay.pump.retry(handler.relay)
    rig.clock.now += 1
    rig.steps()
    assert bytes(handler.kept) == message(1, b"m")
    assert received(broker) == message(2, b"o")


def test_what_is_refused_or_closed_is_not_held_any_more(rig: Rig) -> None:
    _client, _broker, handler = session(rig)
    channels = handler.relay.channels
    channels.hold(Side.CLIENT, 1)
    channels.discard(1)
    assert channels.due(Side.CLIENT, 1) == METHOD_NEXT
    channels.hold(Side.CLIENT, 2)
    channels.close(2)
    channels.let_go(Side.CLIENT, 2)
    channels.open(2)
    assert channels.due(Side.CLIENT, 2) == METHOD_NEXT


def delivery(side: Side, number: int, body: bytes) -> bytes:
    method = amqp.BasicPublish() if side is Side.CLIENT else amqp.BasicDeliver()
    return content_frames(number, method, amqp.BasicProperties(), body, FRAME_MAX)

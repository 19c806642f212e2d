"""Conversations with a peer that is about to be left: what it hears, and what ends them."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.transport.conversation import (
    OWN_PROPERTIES,
    await_close_ok,
    invite,
    say_close,
)
from amqpgate.gateway.transport.method_stream import StreamClosedError
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.inprocess import PATIENCE
from tests.support.streams import stream_and_peer

CLOSE, CLOSE_OK = amqp.ConnectionClose(200, "bye"), amqp.ConnectionCloseOk()
WHY = ProtocolViolation(530, "not now", class_id=10, method_id=40)


async def test_who_is_to_be_refused_is_invited_first_and_promised_nothing() -> None:
    """Whatever it answers."""
    with stream_and_peer() as (client, peer), trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(invite, client)
            await wait_all_tasks_blocked()
            start = peer.expect(amqp.ConnectionStart)
            assert start.server_properties == OWN_PROPERTIES
            assert "capabilities" not in start.server_properties
            peer.say(amqp.ConnectionStartOk(mechanism="NONSENSE", response=b"\xff"))


async def test_a_close_is_said_and_its_answer_waited_for_behind_what_was_under_way() -> None:
    publish = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"x" * 100, 4096)
    with stream_and_peer() as (hop, peer), trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            over = trio.Event()

            async def close() -> None:
                await say_close(hop, WHY)
                over.set()

            nursery.start_soon(close)
            await wait_all_tasks_blocked()
            said = peer.expect(amqp.ConnectionClose)
            assert (said.reply_code, said.class_id, said.method_id) == (530, 10, 40)
            assert said.reply_text == "NOT_ALLOWED - not now"
            peer.raw(publish + encode_frame(8, 0, b""))
            # A close-ok of a channel, and a method that nobody knows, are no answers.
            peer.say(amqp.ConnectionCloseOk(), 1)
            peer.raw(encode_frame(1, 0, b"\0\xff\0\1"))
            # It closes as well, and is answered.
            peer.say(CLOSE)
            await wait_all_tasks_blocked()
            assert peer.expect(amqp.ConnectionCloseOk) == CLOSE_OK
            assert not over.is_set()
            peer.say(CLOSE_OK)
            await wait_all_tasks_blocked()
            # Nothing more comes; what is still under way to the gateway is read.
            assert peer.sock.recv(1) == b""
            peer.raw(publish)
            await wait_all_tasks_blocked()
            assert not over.is_set()
            peer.close()


@pytest.mark.parametrize(
    "said",
    [b"", b"\1\0\0\0\0\0\4abcdX", b"GET / HTTP/1.1\r\n\r\n", method_frame(0, CLOSE_OK)[:-1]],
    ids=["nothing", "no end of a frame", "no frame", "half an answer"],
)
async def test_a_peer_that_makes_no_sense_or_goes_is_waited_for_no_more(said: bytes) -> None:
    with stream_and_peer() as (hop, peer), trio.fail_after(PATIENCE):
        peer.raw(said)
        peer.close()
        await await_close_ok(hop)


async def test_a_peer_that_says_on_and_on_has_the_callers_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    autojump_clock.autojump_threshold = 0.05
    with stream_and_peer() as (hop, peer):
        peer.raw(method_frame(0, CLOSE) * 40)
        with trio.move_on_after(5) as patience:
            await await_close_ok(hop)
        assert patience.cancelled_caught
        for _ in range(40):
            peer.expect(amqp.ConnectionCloseOk)
        # Nothing of it was kept.
        assert not len(hop.decoder)


async def test_a_peer_that_is_gone_cannot_be_told() -> None:
    with stream_and_peer() as (hop, peer):
        peer.close()
        with pytest.raises(StreamClosedError):
            await say_close(hop, WHY)

"""Methods on a stream whose peer speaks another protocol, from its header on."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.transport import translated_socket
from amqpgate.gateway.transport.conversation import say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError, hand_over
from amqpgate.protocol.frames import FRAME_METHOD, encode_frame, method_frame
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.header import HEADER_SIZE
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.translators import (
    BROKEN,
    CREDIT,
    TICK,
    Answering,
    Asking,
    Reframing,
    Withholding,
    cut_records,
    record,
    records,
)

HEADER = b"TOYS\x00\x01\x02\x03"
START_OK = amqp.ConnectionStartOk(mechanism="PLAIN", locale="en_US")
SAID = records(method_frame(0, START_OK))


class Pair:
    """A stream, and the far end of its socket."""

    def __init__(self, near: socket.socket, far: trio.SocketStream) -> None:
        self.far = far
        self.stream = MethodStream(near, frame_max=131072, peer=Role.CLIENT)

    async def heard(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = await self.far.receive_some(size - len(data))
            assert piece
            data += piece
        return data


@contextlib.contextmanager
def pair(*, is_small: bool = False) -> Iterator[Pair]:
    far, near = socket.socketpair()
    if is_small:
        for sock in (far, near):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with far, near:
        far.setblocking(False)
        yield Pair(near, trio.SocketStream(trio.socket.from_stdlib_socket(far)))  # type: ignore[arg-type]


@pytest.mark.parametrize("reads", ["exactly", "header"])
async def test_what_came_with_the_header_is_translated_first(reads: str) -> None:
    with pair() as both:
        await both.far.send_all(HEADER + SAID[:10])
        if reads == "exactly":
            assert await both.stream.receive_exactly(HEADER_SIZE) == HEADER
        else:
            # A broker's answer: it comes through the decoder, and what is behind it is there already.
            while (header := both.stream.decoder.take(HEADER_SIZE)) is None:
                both.stream.decoder.feed(await both.stream.receive())
            assert header == HEADER
        both.stream.translate(Reframing())
        await both.far.send_all(SAID[10:] + SAID)
        assert await both.stream.next_method() == START_OK
        assert await both.stream.next_method() == START_OK
        tune = amqp.ConnectionTune(1, 4096, 0)
        await both.stream.send_method(tune)
        assert await both.heard(len(records(method_frame(0, tune)))) == records(method_frame(0, tune))


async def test_what_is_left_of_it_is_handed_over() -> None:
    with pair() as both:
        toy = Reframing()
        both.stream.translate(toy)
        await both.far.send_all(SAID + SAID + SAID[:-1])
        assert await both.stream.next_method() == START_OK
        handed = hand_over(both.stream, Tune(4096, 1, 10))
        assert handed.sock is both.stream.sock
        assert handed.rest == method_frame(0, START_OK)
        assert handed.sock.fileno() == both.stream.inner.fileno()
        await both.far.send_all(SAID[-1:])
        assert both.stream.translated is not None
        assert both.stream.translated.recv(1000) == method_frame(0, START_OK)


async def test_answers_of_the_translator_leave_while_the_peer_is_waited_for() -> None:
    """Though the peer does not read them at first."""
    with pair(is_small=True) as both:
        both.stream.translate(Answering())
        count = 3000
        async with trio.open_nursery() as nursery:

            async def talk() -> None:
                await both.far.send_all(SAID * count)
                for number in range(1, count + 1):
                    tick = record(TICK, 0, number.to_bytes(4, "big"))
                    assert await both.heard(len(tick)) == tick
                nursery.cancel_scope.cancel()

            nursery.start_soon(talk)
            for _ in range(count):
                assert await both.stream.next_method() == START_OK
            await both.stream.next_method()


async def test_a_send_is_over_when_the_kernel_has_all_of_it() -> None:
    with pair(is_small=True) as both:
        both.stream.translate(Reframing())
        frames = encode_frame(3, 1, b"b" * 100_000) * 5
        async with trio.open_nursery() as nursery:
            nursery.start_soon(both.stream.send, frames)
            await trio.testing.wait_all_tasks_blocked()
            assert both.stream.translated is not None
            assert both.stream.translated.unsent > 0
            assert await both.heard(len(records(frames))) == records(frames)
        assert both.stream.translated.unsent == 0


async def test_what_is_said_at_the_end_is_given_whether_it_is_wanted_or_not() -> None:
    with pair() as both:
        toy = Withholding()
        both.stream.translate(toy)
        frames = encode_frame(3, 1, b"b" * 1000) * 100
        await both.stream.send(frames)
        await both.stream.send_method(amqp.ConnectionClose(320, "bye"))
        assert not toy.wants_frames
        await both.far.send_all(record(CREDIT, 0, (101).to_bytes(4, "big")))
        close = method_frame(0, amqp.ConnectionClose(320, "bye"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(both.stream.next_frame)
            said = cut_records(await both.heard(len(records(frames + close))))
            nursery.cancel_scope.cancel()
        assert len(said) == 101
        assert isinstance(decode_method(said[-1][2]), amqp.ConnectionClose)


async def test_a_peer_that_is_not_heard_before_it_is_answered_is_not_waited_for() -> None:
    with pair() as both:
        both.stream.translate(Asking())
        await both.far.send_all(records(method_frame(1, amqp.QueueDeclare(queue="q"))) + SAID)
        assert (await both.stream.next_frame()).type == FRAME_METHOD
        with pytest.raises(StreamClosedError, match="before the peer is heard"):
            await both.stream.next_frame()


async def test_violations_and_ends_are_those_of_any_stream() -> None:
    with pair() as both:
        both.stream.translate(Reframing())
        await both.far.send_all(SAID + record(BROKEN))
        assert await both.stream.next_method() == START_OK
        for _ in range(2):
            with pytest.raises(ProtocolViolation, match="a broken record"):
                await both.stream.next_method()
    with pair() as both:
        both.stream.translate(Reframing())
        await both.far.send_all(SAID)
        await both.far.send_eof()
        assert await both.stream.next_method() == START_OK
        assert await both.stream.receive() == b""
        with pytest.raises(StreamClosedError):
            await both.stream.next_method()
    with pair() as both:
        both.stream.translate(Reframing())
        await both.far.aclose()
        with pytest.raises(StreamClosedError):
            await both.stream.send(method_frame(0, START_OK))


@pytest.mark.parametrize("is_broken", [False, True])
async def test_a_farewell_is_heard_and_the_peer_read_to_its_end(is_broken: bool) -> None:
    """Also where it is told of what it did: what it says then is not understood any more."""
    with pair(is_small=True) as both:
        toy = Reframing()
        both.stream.translate(toy)
        over = trio.Event()

        async def close() -> None:
            await say_close(both.stream, ProtocolViolation(503, "a broken record"))
            over.set()

        async with trio.open_nursery() as nursery:
            if is_broken:
                await both.far.send_all(record(BROKEN))
                with pytest.raises(ProtocolViolation):
                    await both.stream.next_method()
            nursery.start_soon(close)
            wanted = records(method_frame(0, amqp.ConnectionClose(503, "COMMAND_INVALID - a broken record")))
            assert await both.heard(len(wanted)) == wanted
            await both.far.send_all(records(method_frame(0, amqp.ConnectionCloseOk())) + SAID * 1000)
            assert await both.far.receive_some(1) == b""
            assert not over.is_set()
            await both.far.send_eof()
        assert over.is_set()
        assert toy.events == ["gateway ended"]


async def test_nothing_is_said_to_a_peer_that_does_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing more is read of it then."""
    monkeypatch.setattr(translated_socket, "MOST_UNSENT", 1000)
    with pair(is_small=True) as both:
        both.stream.translate(Answering())
        async with trio.open_nursery() as nursery:

            async def hear() -> None:
                while True:
                    await both.stream.next_method()

            nursery.start_soon(both.far.send_all, SAID * 20_000)
            nursery.start_soon(hear)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert both.stream.translated is not None
            assert 1000 < both.stream.translated.unsent < 10_000
            nursery.cancel_scope.cancel()

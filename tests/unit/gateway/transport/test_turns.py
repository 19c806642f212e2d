"""A peer that sends faster than it is read: others have their turn, and deadlines hold."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import trio

from amqpgate.gateway.transport.conversation import await_close_ok
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.protocol.frames import FRAME_HEARTBEAT, HEARTBEAT
from amqpgate.protocol.methods import Role
from tests.support.translators import Reframing, record

Reads = Callable[[MethodStream], Awaitable[object]]


class Endless:
    """A socket that always has something to read, for which nobody has to wait."""

    def __init__(self, said: bytes = HEARTBEAT) -> None:
        self.said = said
        self.reads = 0

    def gettimeout(self) -> float:
        return 0.0

    def shutdown(self, _: int) -> None: ...

    def recv(self, limit: int) -> bytes:
        self.reads += 1
        assert self.reads < 1000, "nobody else has had a turn"
        return self.said[:limit]


def stream(peer: Endless) -> MethodStream:
    return MethodStream(cast(socket.socket, peer), frame_max=4096, peer=Role.CLIENT)


@pytest.mark.parametrize(
    "reads",
    [MethodStream.next_method, await_close_ok, MethodStream.linger],
    ids=["handshake", "close", "linger"],
)
@pytest.mark.parametrize("is_translated", [False, True], ids=["plain", "translated"])
async def test_others_have_their_turn_and_a_deadline_ends_it(reads: Reads, is_translated: bool) -> None:
    """Heartbeats are passed over in a handshake, and anything is behind a close."""
    hop = stream(Endless(record(FRAME_HEARTBEAT) * 1000 if is_translated else HEARTBEAT))
    if is_translated:
        hop.translate(Reframing())
    with trio.CancelScope() as deadline:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reads, hop)
            for _ in range(10):
                await trio.lowlevel.checkpoint()
            deadline.cancel()
    assert deadline.cancelled_caught


async def test_what_comes_in_two_pieces_is_read_without_a_turn_of_others() -> None:
    """No handshake waits for others more often than for its peer."""
    peer, turns = Endless(), []

    async def others() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            turns.append(peer.reads)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        await trio.lowlevel.checkpoint()
        turns.clear()
        assert await stream(peer).receive_exactly(2 * len(HEARTBEAT)) == 2 * HEARTBEAT
        nursery.cancel_scope.cancel()
    assert (peer.reads, turns) == (2, [])

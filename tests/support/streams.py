"""A method stream of the gateway's, whose peer is the test."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import trio

from amqpgate.bridge import interpreter_for
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.protocol.methods import Role
from amqpgate.wire.dialects import Dialect
from tests.support.talker import Talker


@contextlib.contextmanager
def stream_and_peer(
    *, frame_max: int = 4096, peer: Role = Role.CLIENT, dialect: Dialect | None = None
) -> Iterator[tuple[MethodStream, Talker]]:
    """Both ends of a pair of sockets. What the peer says is small, so that it need not wait."""
    ours, theirs = socket.socketpair()
    interpreter = None if dialect is None else interpreter_for(dialect)
    stream = MethodStream(ours, frame_max=frame_max, peer=peer, interpreter=interpreter)
    talker = Talker(theirs)
    if dialect is not None:
        talker.dialect = dialect
    with contextlib.closing(stream), talker:
        yield stream, talker


async def rest_of(talker: Talker) -> bytes:
    """All that the peer hears until the end, in a thread."""

    def read() -> bytes:
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := talker.sock.recv(65536):
                data += piece
        return data

    return await trio.to_thread.run_sync(read)

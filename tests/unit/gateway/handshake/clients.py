"""The gateway's half of a handshake, whose client is a socket and has said its start-ok."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from amqpgate.gateway.handshake.client_side import ClientHandshake
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.policy import TlsIdentity
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.talker import CAPABILITIES
from tests.unit.gateway.conftest import Stage

T = TypeVar("T")


@contextlib.contextmanager
def client_of(
    stage: Stage,
    *,
    listener: str = "main",
    mechanism: str = "PLAIN",
    properties: Table = CAPABILITIES,
    tls: TlsIdentity | None = None,
) -> Iterator[ClientHandshake]:
    """Bob, whose password is right."""
    context = stage.running.gateway.acceptor.context
    (its,) = [one for one in context.settings.listeners if one.name == listener]
    near, far = socket.socketpair()
    with near, far:
        hop = MethodStream(near, frame_max=4096, peer=Role.CLIENT)
        pending = context.pending.enter("10.0.0.7")
        assert pending is not None
        client = ClientHandshake(context, Caller("s", "10.0.0.7:5", tls), its, hop, pending)
        start_ok = amqp.ConnectionStartOk(properties, mechanism, b"\0bob\0right", "en_US")
        client.resume(ConnectionState.GREETED, start_ok, None)
        try:
            yield client
        finally:
            context.pending.leave(pending)


@contextlib.contextmanager
def asking(stage: Stage, question: Callable[[], Awaitable[T]]) -> Iterator[list[T]]:
    """The gateway asks meanwhile; its answer is there at the end of the block."""
    answers: list[T] = []
    thread = threading.Thread(target=lambda: answers.append(stage.running.ask(question)))
    thread.start()
    try:
        yield answers
    finally:
        thread.join(20)

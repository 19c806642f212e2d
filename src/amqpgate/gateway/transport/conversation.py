"""Short conversations with one peer that is about to be left."""

from __future__ import annotations

import contextlib
from typing import Final

from amqpgate import __version__
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: Of a gateway that knows nothing of its broker: what a server should say of itself (AMQP 0-9-1,
#: connection.start), but for capabilities, which would be promises.
OWN_PROPERTIES: Final = Table.of(
    {
        "product": "amqpgate",
        "version": __version__,
        "platform": "Python",
        "copyright": "Copyright the amqpgate authors",
        "information": "Licensed under the Apache License, Version 2.0",
    }
)


async def invite(client: MethodStream) -> None:
    """Start a conversation, only to be able to refuse it: AMQP has no close before start.

    No credentials are judged; whatever they are, the answer is the same.
    """
    start = amqp.ConnectionStart(0, 9, OWN_PROPERTIES, b"PLAIN AMQPLAIN EXTERNAL", b"en_US")
    await client.send_method(start)
    await client.next_method()


async def say_close(hop: MethodStream, why: ProtocolViolation) -> None:
    """Send connection.close, wait for the answer, and close. Deadlines are the caller's."""
    await hop.send_method(
        amqp.ConnectionClose(
            reply_code=why.code,
            reply_text=why.reply_text,
            class_id=why.class_id,
            method_id=why.method_id,
        )
    )
    await await_close_ok(hop)
    await hop.linger()


async def await_close_ok(hop: MethodStream) -> None:
    """Read on, past what was under way, until the peer answers our close or closes its socket."""
    with contextlib.suppress(StreamClosedError, ProtocolViolation):
        while True:
            frame = await hop.next_frame()
            if frame.type != amqp.FRAME_METHOD or frame.channel:
                continue
            with contextlib.suppress(ProtocolViolation):
                method = hop.interpreter.to_canonical(frame.payload, hop.peer)
                if isinstance(method, amqp.ConnectionCloseOk):
                    return
                if isinstance(method, amqp.ConnectionClose):
                    await hop.send_method(amqp.ConnectionCloseOk())

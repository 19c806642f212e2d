"""The trace context that the gateway puts into a publish."""

from __future__ import annotations

from typing import Final

import attrs
from opentelemetry.trace import SpanContext

from amqpgate.protocol.frames import encode_frame
from amqpgate.telemetry.tracing.context import headers_of
from amqpgate.wire.codec import decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table

#: Bytes that a trace context adds to a content header: name, type, length and value; and an empty table.
ADDED: Final = 12 + 1 + 4 + 55 + 4


def injected(frames: bytes, context: SpanContext) -> bytes:
    """A publish's method and header frames, with a trace context among the headers; all else stays."""
    at = header_at(frames)
    header = decode_header(frames[at + 7 : -1])
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    entries = (properties.headers or EMPTY_TABLE).entries
    more = tuple((name, Field("S", value)) for name, value in headers_of(context).items())
    properties = attrs.evolve(properties, headers=Table(entries + more))
    channel = int.from_bytes(frames[at + 1 : at + 3], "big")
    payload = encode_header(attrs.evolve(header, properties=properties))
    return frames[:at] + encode_frame(amqp.FRAME_HEADER, channel, payload)


def header_at(frames: bytes) -> int:
    """Where the header frame begins, behind the method's."""
    return 8 + int.from_bytes(frames[3:7], "big")

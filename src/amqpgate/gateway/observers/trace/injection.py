"""The trace context that the gateway puts into a publish."""

from __future__ import annotations

from typing import Final

from opentelemetry.trace import SpanContext

from amqpgate.protocol.frames import FRAME_OVERHEAD
from amqpgate.telemetry.tracing.context import headers_of

#: Bytes that a trace context adds to a content header: name, type, length and value; and an empty table.
ADDED: Final = 12 + 1 + 4 + 55 + 4
#: Bytes of a content header frame before its property flags: the frame's, and class, weight and body size.
_BEFORE_FLAGS: Final = 7 + 2 + 2 + 8
#: Of the first byte of the flags: content type and content encoding, which stand before the headers.
_TEXTS: Final = (0x80, 0x40)
_HEADERS: Final = 0x20


def injected(frames: bytes, context: SpanContext) -> bytes:
    """A publish's method and header frames, with a trace context among the headers; all else stays.

    The properties are known to be well-formed.
    """
    entries = b"".join(_entry(name, value) for name, value in headers_of(context).items())
    at = header_at(frames)
    flags = at + _BEFORE_FLAGS
    place = flags + 2
    for text in _TEXTS:
        if frames[flags] & text:
            place += 1 + frames[place]
    begins = ends = place
    if frames[flags] & _HEADERS:
        begins += 4
        ends = begins + int.from_bytes(frames[place:begins], "big")
    rest = b"".join(
        (
            frames[at + 7 : flags],
            bytes((frames[flags] | _HEADERS,)),
            frames[flags + 1 : place],
            (ends - begins + len(entries)).to_bytes(4, "big"),
            frames[begins:ends],
            entries,
            frames[ends:],
        )
    )
    size = len(rest) - (FRAME_OVERHEAD - 7)
    return b"".join((frames[: at + 3], size.to_bytes(4, "big"), rest))


def _entry(name: str, value: str) -> bytes:
    """One of a table, whose value is a long string."""
    text = value.encode()
    return bytes((len(name),)) + name.encode() + b"S" + len(text).to_bytes(4, "big") + text


def header_at(frames: bytes) -> int:
    """Where the header frame begins, behind the method's."""
    return 8 + int.from_bytes(frames[3:7], "big")

"""Whether a message carries a trace context (W3C Trace Context), and whether its trace is surely not sampled.

The plain twin; the compiled one is in ``_trace_context.pxi``.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from amqpgate.datapath.framing import CONTENT, CONTENT_MIN
from amqpgate.datapath.header_rules import AskedHeader, message_of

TRACEPARENT: Final = b"traceparent"
#: Its length and its name, as a table has it.
_NEEDLE: Final = bytes([len(TRACEPARENT)]) + TRACEPARENT
#: Of the first byte of the property flags.
_HEADERS: Final = 1 << 5
_UNSAMPLED: Final = re.compile(
    rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f][02468ace]", re.DOTALL
)


class Carried(IntEnum):
    """What a content header has."""

    NONE = 0
    #: A context whose trace is surely not sampled.
    UNSAMPLED = 1
    #: One whose trace may be, or something that looks like one.
    MAYBE_SAMPLED = 2


def carried(header: bytes) -> Carried:
    """What a content header carries, as payload of its frame."""
    has_headers = header[CONTENT.size] & _HEADERS if len(header) >= CONTENT_MIN else 0
    if not has_headers or _NEEDLE not in header[CONTENT_MIN:]:
        return Carried.NONE
    message: AskedHeader | None = message_of(header)
    if message is None:
        return Carried.MAYBE_SAMPLED
    for name, letter, begin, end in message.entries(0):
        if name == TRACEPARENT:
            # The first of several counts.
            if letter == ord("S") and _UNSAMPLED.fullmatch(header, begin, end):
                return Carried.UNSAMPLED
            break
    return Carried.MAYBE_SAMPLED

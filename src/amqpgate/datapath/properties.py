"""Whether RabbitMQ can decode the properties of a message, without decoding them (section 4.2.6.1).

It ends the connection with 541 where it cannot. The rules are its dialect's (``wire.dialects``), and tables
may nest as deep as ``wire.table_codec`` reads them.
"""

from __future__ import annotations

from typing import Final

from amqpgate.datapath.tables import NESTED
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Kind

Buffer = bytes | bytearray | memoryview

#: Octets of a field value after its letter; below zero: the value begins with its length.
_SIZES: Final[dict[Kind, int]] = {
    Kind.VOID: 0,
    Kind.BOOL: 1,
    Kind.INT8: 1,
    Kind.UINT8: 1,
    Kind.INT16: 2,
    Kind.UINT16: 2,
    Kind.INT32: 4,
    Kind.UINT32: 4,
    Kind.FLOAT: 4,
    Kind.DECIMAL: 5,
    Kind.INT64: 8,
    Kind.UINT64: 8,
    Kind.DOUBLE: 8,
    Kind.TIMESTAMP: 8,
    Kind.LONGSTR: -1,
    Kind.BYTES: -1,
    Kind.ARRAY: -2,
    Kind.TABLE: -3,
}
#: Octets, and what tells a NaN or an infinity: all bits of the exponent are set. By letter.
VALUES: Final[dict[int, tuple[int, int]]] = {
    ord(letter): (_SIZES[kind], {Kind.FLOAT: 0x7F80, Kind.DOUBLE: 0x7FF0}.get(kind, 0))
    for letter, kind in RABBITMQ_0_9_1.decodes.items()
}
_ARRAY: Final = _SIZES[Kind.ARRAY]
_TABLE: Final = _SIZES[Kind.TABLE]

_SHORT_STRING: Final = -1
_HEADERS: Final = -2
#: Of each property flag, the highest first: octets, a short string, or the table. The last two are not read.
PROPERTIES: Final = (-1, -1, -2, 1, 1, -1, -1, -1, -1, 8, -1, -1, -1, -1)


def are_properties(buf: Buffer, at: int, end: int) -> bool:
    """Whether ``buf[at:end]`` are property flags and the properties that they announce, and nothing more."""
    flags = int.from_bytes(buf[at : at + 2], "big")
    at += 2
    for bit, size in enumerate(PROPERTIES):
        if not flags & 0x8000 >> bit:
            continue
        if size == _SHORT_STRING:
            at += 1 + buf[at] if at < end else 1
        elif size == _HEADERS:
            at = _table_end(buf, at, end)
        else:
            at += size
        if at > end:
            return False
    return at == end


def _table_end(buf: Buffer, at: int, end: int) -> int:
    """Where the field table at ``at`` ends; beyond ``end`` where it is none."""
    bad = end + 1
    #: What is open: where it ends, and whether its values have names. The table itself is the first.
    opened: list[tuple[int, bool]] = []
    stop, named = end, True
    size = _TABLE
    while True:
        if size < 0:
            if stop - at < 4:
                return bad
            length = int.from_bytes(buf[at : at + 4], "big")
            at += 4
            if length > stop - at:
                return bad
            if size in (_ARRAY, _TABLE):
                if len(opened) == NESTED:
                    return bad
                opened.append((stop, named))
                stop, named = at + length, size == _TABLE
            else:
                at += length
        else:
            at += size
            if at > stop:
                return bad
        while at == stop:
            stop, named = opened.pop()
            if not opened:
                return at
        if named:
            at += 1 + buf[at]
        if at >= stop or buf[at] not in VALUES:
            return bad
        size, exponent = VALUES[buf[at]]
        at += 1
        if exponent and stop - at >= 2 and int.from_bytes(buf[at : at + 2], "big") & exponent == exponent:
            return bad

"""Whether RabbitMQ can decode the properties of a message, without decoding them (section 4.2.6.1).

It ends the connection with 541 where it cannot. The rules are its dialect's (``wire.dialects``), and tables
may nest as deep as ``wire.table_codec`` reads them.
"""

from __future__ import annotations

from typing import Final

from amqpgate.datapath.tables import NESTED
from amqpgate.wire.dialects import RABBITMQ_0_9_1, FieldKind

Buffer = bytes | bytearray | memoryview

#: Bytes of a field value after its letter; below zero: the value begins with its length.
_SIZES: Final[dict[FieldKind, int]] = {
    FieldKind.VOID: 0,
    FieldKind.BOOL: 1,
    FieldKind.INT8: 1,
    FieldKind.UINT8: 1,
    FieldKind.INT16: 2,
    FieldKind.UINT16: 2,
    FieldKind.INT32: 4,
    FieldKind.UINT32: 4,
    FieldKind.FLOAT: 4,
    FieldKind.DECIMAL: 5,
    FieldKind.INT64: 8,
    FieldKind.UINT64: 8,
    FieldKind.DOUBLE: 8,
    FieldKind.TIMESTAMP: 8,
    FieldKind.LONGSTR: -1,
    FieldKind.BYTES: -1,
    FieldKind.ARRAY: -2,
    FieldKind.TABLE: -3,
}
#: Bytes, and what tells a NaN or an infinity: all bits of the exponent are set. By letter.
VALUES: Final[dict[int, tuple[int, int]]] = {
    ord(letter): (_SIZES[kind], {FieldKind.FLOAT: 0x7F80, FieldKind.DOUBLE: 0x7FF0}.get(kind, 0))
    for letter, kind in RABBITMQ_0_9_1.decodes.items()
}
_ARRAY: Final = _SIZES[FieldKind.ARRAY]
_TABLE: Final = _SIZES[FieldKind.TABLE]

_SHORT_STRING: Final = -1
_HEADERS: Final = -2
#: Of each property flag, the highest first: bytes, a short string, or the table. The last two are not read.
PROPERTIES: Final = (-1, -1, -2, 1, 1, -1, -1, -1, -1, 8, -1, -1, -1, -1)

#: Property flags that no version has.
NO_PROPERTIES: Final = 3


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

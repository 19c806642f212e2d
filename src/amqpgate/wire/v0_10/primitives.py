"""Numbers and bytes at a position in a segment (AMQP 0-10, "Types").

Every reader takes ``(buf, pos, end)`` and gives ``(value, new_pos)``. It looks at no byte at or after ``end``
(which must not exceed ``len(buf)``) and copies nothing before the length has been checked.

Error handling
    Input that ends too early: :class:`ProtocolViolation` 503, for the frame around it was whole.
    Values that do not fit on the wire: :class:`ValueError` from the writers of bytes, :class:`struct.error`
    from those of numbers.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from amqpgate.errors import ProtocolViolation

UINT8: Final = Struct(">B")
UINT16: Final = Struct(">H")
UINT32: Final = Struct(">I")
UINT64: Final = Struct(">Q")


def malformed(what: str) -> ProtocolViolation:
    """What is wrong inside of a control, a command or a header; ``codec`` adds of which."""
    return ProtocolViolation(503, what)


def cut_short() -> ProtocolViolation:
    """A value that ends before it is whole."""
    return malformed("a value is cut short")


def unknown_flags() -> ProtocolViolation:
    """A packing flag of no field."""
    return malformed("a packing flag of no field is set")


def left_over() -> ProtocolViolation:
    """Bytes behind the last field."""
    return malformed("there are bytes behind the last field")


def get_uint16(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Two bytes, network order."""
    if pos + 2 > end:
        raise cut_short()
    return buf[pos] << 8 | buf[pos + 1], pos + 2


def get_uint32(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Four bytes, network order."""
    if pos + 4 > end:
        raise cut_short()
    value: int = UINT32.unpack_from(buf, pos)[0]
    return value, pos + 4


def get_uuid(buf: bytes, pos: int, end: int) -> tuple[bytes, int]:
    """Sixteen bytes."""
    stop = pos + 16
    if stop > end:
        raise cut_short()
    return buf[pos:stop], stop


def get_extent16(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Where what has a size of two bytes begins and ends."""
    start = pos + 2
    if start > end:
        raise cut_short()
    stop = start + (buf[pos] << 8 | buf[pos + 1])
    if stop > end:
        raise cut_short()
    return start, stop


def get_extent32(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Where what has a size of four bytes begins and ends."""
    start = pos + 4
    if start > end:
        raise cut_short()
    stop: int = start + UINT32.unpack_from(buf, pos)[0]
    if stop > end:
        raise cut_short()
    return start, stop


def get_vbin16(buf: bytes, pos: int, end: int) -> tuple[bytes, int]:
    """A length of two bytes and that many bytes of anything."""
    start, stop = get_extent16(buf, pos, end)
    return buf[start:stop], stop


def get_vbin32(buf: bytes, pos: int, end: int) -> tuple[bytes, int]:
    """A length of four bytes and that many bytes of anything."""
    start, stop = get_extent32(buf, pos, end)
    return buf[start:stop], stop


def put_uuid(value: bytes) -> bytes:
    """:class:`ValueError` unless there are sixteen bytes."""
    if len(value) != 16:
        raise ValueError(f"a uuid has 16 bytes, not {len(value)}")
    return value


def put_vbin8(value: bytes) -> bytes:
    """:class:`ValueError` for more than 255 bytes."""
    if len(value) > 0xFF:
        raise ValueError(f"a field of this type holds 255 bytes, not {len(value)}")
    return bytes((len(value),)) + value


def put_vbin16(value: bytes) -> bytes:
    """:class:`ValueError` for more than 65535 bytes."""
    if len(value) > 0xFFFF:
        raise ValueError(f"a field of this type holds 65535 bytes, not {len(value)}")
    return UINT16.pack(len(value)) + value


def put_vbin32(value: bytes) -> bytes:
    """A length of four bytes and the bytes."""
    return UINT32.pack(len(value)) + value

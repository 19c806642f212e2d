"""Integers and strings at a position in a buffer (AMQP 0-9-1, section 4.2.5 "AMQP Data Fields").

Every reader takes ``(buf, pos, end)`` and gives ``(value, new_pos)``. It looks at no byte at or after
``end`` (which must not exceed ``len(buf)``) and copies nothing before the length has been checked.

Error handling
    Input that ends too early or is no UTF-8: :class:`ProtocolViolation` 501, as RabbitMQ answers.
    Values that do not fit on the wire: :class:`ValueError` from the string writers,
    :class:`struct.error` from the integer ones.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

from amqpgate.errors import ProtocolViolation

Buffer: TypeAlias = bytes | bytearray | memoryview

SHORT: Final = Struct(">H")
LONG: Final = Struct(">I")
LONGLONG: Final = Struct(">Q")

#: The text of a payload that does not match its method; ``codec`` adds which method, and how long it is.
CANNOT_DECODE: Final = "cannot decode"

#: What RabbitMQ says of a short string that is no UTF-8 (``rabbit_binary_parser:assert_utf8``).
MALFORMED_UTF8: Final = "Malformed UTF-8 in shortstr"


def cannot_decode() -> ProtocolViolation:
    """The violation for arguments that are too short, too long or lie about a length."""
    return ProtocolViolation(501, CANNOT_DECODE)


def get_octet(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """One unsigned byte."""
    if pos >= end:
        raise cannot_decode()
    return buf[pos], pos + 1


def get_longlong(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Unsigned 64 bits, network order; timestamps too (seconds since 1970, section 4.2.5.4)."""
    if pos + 8 > end:
        raise cannot_decode()
    value: int = LONGLONG.unpack_from(buf, pos)[0]
    return value, pos + 8


def get_shortstr(buf: Buffer, pos: int, end: int) -> tuple[str, int]:
    """A length byte and that many bytes of UTF-8.

    Strictly UTF-8: surrogates and code points past U+10FFFF are refused, which RabbitMQ lets pass.
    """
    if pos >= end:
        raise cannot_decode()
    start = pos + 1
    stop = start + buf[pos]
    if stop > end:
        raise cannot_decode()
    try:
        return str(buf[start:stop], "utf-8"), stop
    except UnicodeDecodeError:
        raise ProtocolViolation(501, MALFORMED_UTF8) from None


def get_shortstr_lenient(buf: Buffer, pos: int, end: int) -> tuple[str, int]:
    """A short string where RabbitMQ does not look at the bytes: those of content methods and properties.

    Bytes that are no UTF-8 become lone surrogates (PEP 383) and are written back as they were.
    """
    if pos >= end:
        raise cannot_decode()
    start = pos + 1
    stop = start + buf[pos]
    if stop > end:
        raise cannot_decode()
    return str(buf[start:stop], "utf-8", "surrogateescape"), stop


def get_longstr(buf: Buffer, pos: int, end: int) -> tuple[bytes, int]:
    """A 32-bit length and that many bytes of anything."""
    if pos + 4 > end:
        raise cannot_decode()
    start = pos + 4
    stop: int = start + LONG.unpack_from(buf, pos)[0]
    if stop > end:
        raise cannot_decode()
    return bytes(buf[start:stop]), stop


def put_shortstr(value: str) -> bytes:
    """The bytes of a short string; :class:`ValueError` if it takes more than 255 of them."""
    encoded = value.encode("utf-8", "surrogateescape")
    if len(encoded) > 255:
        raise ValueError(f"a short string holds 255 bytes, not {len(encoded)}")
    return bytes((len(encoded),)) + encoded


def put_longstr(value: bytes) -> bytes:
    """The bytes of a long string."""
    return LONG.pack(len(value)) + value

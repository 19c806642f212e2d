"""The header segment of a transfer, straight to the payload of a content header of 0-9-1.

Says what ``properties.to_canonical`` says, in a third of the time, of headers such as nearly all are. Of all
others it says nothing: those with a reply-to, or anything malformed, go the long way.

Made to be read; where it was compiled, ``_codec`` serves (see ``build``).
"""

from __future__ import annotations

import struct
from math import isfinite
from struct import Struct
from typing import Final, NamedTuple

from amqpgate.bridge.v0_10.no_local import PUBLISHER_HEADER
from amqpgate.bridge.v0_10.properties import (
    CORRELATION_ID_HEADER,
    MESSAGE_ID_HEADER,
    TYPE_HEADER,
)
from amqpgate.bridge.v0_10.reply_to import EXCHANGE_HEADER
from amqpgate.bridge.v0_10.tables import TEXT_BY_NAME
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_9_1 import BasicPublish
from amqpgate.wire.generated.v0_10_types import TypeCode

_DELIVERY: Final = amqp10.DeliveryProperties.CLASS_CODE << 8 | amqp10.DeliveryProperties.CODE
_MESSAGE: Final = amqp10.MessageProperties.CLASS_CODE << 8 | amqp10.MessageProperties.CODE

#: Packing flags of the delivery properties.
_IMMEDIATE: Final = 1 << 1
_REDELIVERED: Final = 1 << 2
_PRIORITY: Final = 1 << 3
_DELIVERY_MODE: Final = 1 << 4
_TTL: Final = 1 << 5
_TIMESTAMP: Final = 1 << 6
_EXPIRATION: Final = 1 << 7
_EXCHANGE: Final = 1 << 8
_ROUTING_KEY: Final = 1 << 9
#: resume-id, resume-ttl, and flags of no field.
_RARE_DELIVERY: Final = 0xFC00

#: And of the message properties.
_CONTENT_LENGTH: Final = 1 << 0
_MESSAGE_ID: Final = 1 << 1
_CORRELATION_ID: Final = 1 << 2
_CONTENT_TYPE: Final = 1 << 4
_CONTENT_ENCODING: Final = 1 << 5
_USER_ID: Final = 1 << 6
_APP_ID: Final = 1 << 7
_HEADERS: Final = 1 << 8
#: reply-to, and flags of no field.
_RARE_MESSAGE: Final = 0xFE08

_UINT32: Final = Struct(">I")
_UINT64: Final = Struct(">Q")
_DOUBLE: Final = Struct(">d")
_HEAD: Final = Struct(">HHQH")
_STRUCT: Final = Struct(">IBBBB")

#: Values that are the same bytes in a field table: its letter, and their bytes.
SAME: Final[dict[int, tuple[bytes, int]]] = {
    TypeCode.INT8: (b"b", 1),
    TypeCode.UINT8: (b"B", 1),
    TypeCode.INT16: (b"s", 2),
    TypeCode.UINT16: (b"u", 2),
    TypeCode.INT32: (b"I", 4),
    TypeCode.UINT32: (b"i", 4),
    TypeCode.INT64: (b"l", 8),
    TypeCode.DATETIME: (b"T", 8),
    TypeCode.VOID: (b"V", 0),
}
#: Strings: their letter, and the bytes of their length.
STRINGS: Final[dict[int, tuple[bytes, int]]] = {
    TypeCode.STR8: (b"S", 1),
    TypeCode.STR16: (b"S", 2),
    TypeCode.VBIN8: (b"x", 1),
    TypeCode.VBIN16: (b"x", 2),
    TypeCode.VBIN32: (b"x", 4),
}
#: Names of headers that are no headers in 0-9-1, or whose value is text whatever it says.
APART: Final = frozenset(
    name.encode()
    for name in (
        CORRELATION_ID_HEADER,
        EXCHANGE_HEADER,
        MESSAGE_ID_HEADER,
        PUBLISHER_HEADER,
        TYPE_HEADER,
        *TEXT_BY_NAME,
    )
)
SUBJECT: Final = b"qpid.subject"
_MODES: Final = (1, 2)
MOST_SECONDS: Final = 10**11


class QuickHeader(NamedTuple):
    """What a header says."""

    #: The payload of the content header, of a body of no bytes.
    payload: bytes
    routing_key: bytes
    exchange: bytes
    redelivered: bool
    immediate: bool


class _Rare(Exception):
    """Something that is not to be seen to here."""


def delivery_part(header: bytes) -> bytes:
    """Of a header the delivery properties alone, as a header; all of it, if it is not as it should be."""
    pos, end = 0, len(header)
    found = b""
    while pos + _STRUCT.size <= end:
        size, class_code, code, _, _ = _STRUCT.unpack_from(header, pos)
        stop = pos + 4 + size
        if stop > end:
            return header
        if class_code << 8 | code == _DELIVERY:
            if found:
                # With two of them there are two routing keys.
                return header
            found = header[pos:stop]
        pos = stop
    return header if pos != end else found


def quick_header(header: bytes, login: bytes | None = None) -> QuickHeader | None:
    """What it says; None: that is for the long way. ``login`` is as in ``properties.to_canonical``."""
    try:
        return _read(header, login)
    except (_Rare, IndexError, ValueError, struct.error):
        return None


def _read(header: bytes, login: bytes | None) -> QuickHeader:
    pos, end = 0, len(header)
    seen = 0
    flags, first, delivery_part, last = 0, b"", b"", b""
    expiration = message_id = timestamp = b""
    routing_key = exchange = b""
    redelivered = immediate = False
    mode = priority = b""
    correlation = user = app = b""
    while pos < end:
        size, class_code, code, low, high = _STRUCT.unpack_from(header, pos)
        stop = pos + 4 + size
        kind, packing = class_code << 8 | code, low | high << 8
        pos += _STRUCT.size
        if stop > end or seen & (1 << code):
            raise _Rare
        seen |= 1 << code
        if kind == _DELIVERY and not packing & _RARE_DELIVERY:
            immediate, redelivered = packing & _IMMEDIATE > 0, packing & _REDELIVERED > 0
            if packing & _PRIORITY:
                priority = header[pos : pos + 1]
                flags |= 1 << 11
                pos += 1
            if packing & _DELIVERY_MODE:
                if header[pos] in _MODES:
                    mode = header[pos : pos + 1]
                    flags |= 1 << 12
                pos += 1
            if packing & _TTL:
                ttl = _UINT64.unpack_from(header, pos)[0]
                if ttl:
                    digits = str(ttl).encode()
                    expiration = bytes((len(digits),)) + digits
                    flags |= 1 << 8
                pos += 8
            if packing & _TIMESTAMP:
                seconds = _UINT64.unpack_from(header, pos)[0]
                timestamp = _UINT64.pack(seconds if seconds <= MOST_SECONDS else seconds // 1000)
                flags |= 1 << 6
                pos += 8
            if packing & _EXPIRATION:
                pos += 8
            if packing & _EXCHANGE:
                start = pos + 1
                pos = start + header[pos]
                exchange = header[start:pos]
            if packing & _ROUTING_KEY:
                start = pos + 1
                pos = start + header[pos]
                routing_key = header[start:pos]
        elif kind == _MESSAGE and not packing & _RARE_MESSAGE:
            if packing & _CONTENT_LENGTH:
                pos += 8
            if packing & _MESSAGE_ID:
                text = header[pos : pos + 16].hex()
                message_id = b"$" + b"-".join(
                    (
                        text[:8].encode(),
                        text[8:12].encode(),
                        text[12:16].encode(),
                        text[16:20].encode(),
                        text[20:].encode(),
                    )
                )
                flags |= 1 << 7
                pos += 16
            if packing & _CORRELATION_ID:
                correlation, pos = _short(header, pos)
                flags |= 1 << 10
            if packing & _CONTENT_TYPE:
                start, pos = pos, pos + 1 + header[pos]
                first = header[start:pos]
                flags |= 1 << 15
            if packing & _CONTENT_ENCODING:
                start, pos = pos, pos + 1 + header[pos]
                first += header[start:pos]
                flags |= 1 << 14
            if packing & _USER_ID:
                user, pos = _short(header, pos)
                flags |= 1 << 4
                if login is not None and user[1:] != login:
                    # It is left out, but for the realm of the one that it is.
                    if user.startswith(login + b"@", 1):
                        user = bytes((len(login),)) + login
                    else:
                        user = b""
                        flags ^= 1 << 4
            if packing & _APP_ID:
                app, pos = _short(header, pos)
                flags |= 1 << 3
            if packing & _HEADERS:
                delivery_part, pos = _table(header, pos, stop)
                flags |= 1 << 13
        else:
            raise _Rare
        if pos != stop:
            raise _Rare
    last = b"".join(
        (first, delivery_part, mode, priority, correlation, expiration, message_id, timestamp, user, app)
    )
    payload = _HEAD.pack(BasicPublish.CLASS_ID, 0, 0, flags) + last
    return QuickHeader(payload, routing_key, exchange, redelivered, immediate)


def _short(header: bytes, pos: int) -> tuple[bytes, int]:
    """What has a length of two bytes, with one of one byte."""
    if header[pos]:
        raise _Rare
    stop = pos + 2 + header[pos + 1]
    return header[pos + 1 : stop], stop


def _table(header: bytes, pos: int, end: int) -> tuple[bytes, int]:
    """A map as a field table, and where it ends."""
    size = _UINT32.unpack_from(header, pos)[0]
    pos += 4
    stop = pos + size
    if stop > end or not size:
        raise _Rare
    count = _UINT32.unpack_from(header, pos)[0]
    pos += 4
    parts = [b""]
    names = set()
    for _ in range(count):
        start = pos
        pos += 1 + header[pos]
        name = header[start:pos]
        code = header[pos]
        pos += 1
        same = SAME.get(code)
        if same is not None:
            letter, width = same
            parts += (name, letter, header[pos : pos + width])
            pos += width
        elif code in STRINGS:
            letter, width = STRINGS[code]
            start = pos + width
            length = int.from_bytes(header[pos:start], "big")
            pos = start + length
            parts += (name, letter, _UINT32.pack(length), header[start:pos])
        elif code == TypeCode.BOOLEAN:
            parts += (name, b"t\1" if header[pos] else b"t\0")
            pos += 1
        elif code == TypeCode.DOUBLE and isfinite(_DOUBLE.unpack_from(header, pos)[0]):
            parts += (name, b"d", header[pos : pos + 8])
            pos += 8
        else:
            raise _Rare
        if pos > stop or (name[1:] in APART and not (name[1:] == SUBJECT and code == TypeCode.STR16)):
            raise _Rare
        names.add(name)
    if pos != stop or len(names) != count:
        raise _Rare
    table = b"".join(parts)
    return _UINT32.pack(len(table)) + table, stop

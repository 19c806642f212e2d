"""Payloads of method and header frames to objects and back (AMQP 0-9-1, sections 2.3.5.1 and 2.3.5.2).

Error handling
    All that comes from the wire and is wrong raises :class:`~amqpgate.errors.ProtocolViolation`, with
    class and method ids where they are known; the channel is the caller's to add.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from struct import Struct
from types import ModuleType
from typing import Final

from amqpgate.errors import ProtocolViolation, UnsupportedVersionError
from amqpgate.values import frozen
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect, version_name
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.primitives import CANNOT_DECODE, Buffer

_IDS: Final = Struct(">I")
_HEADER: Final = Struct(">HHQ")

#: Methods of which each connection says the same: tune, tune-ok, open, open-ok and close-ok of class
#: connection, open, open-ok and close-ok of class channel. There is no login in them.
_REPEATED: Final = frozenset(
    {0x000A001E, 0x000A001F, 0x000A0028, 0x000A0029, 0x000A0033, 0x0014000A, 0x0014000B, 0x00140029}
)
#: Start of class connection: a broker says the same to each connection.
_START: Final = 0x000A000A
#: Bytes of the longest that is kept as what it was decoded to, and how many are: peers choose them.
_LONGEST_REPEATED: Final = 64
_LONGEST_START: Final = 1024
_MOST_REPEATED: Final = 64
_KNOWN: Final[dict[tuple[bytes, Dialect], Method]] = {}


@frozen
class ContentHeader:
    """What a header frame says: the class, the size of the body in bytes, the properties."""

    class_id: int
    body_size: int
    properties: Properties


@cache
def methods(dialect: Dialect) -> Mapping[int, type[Method]]:
    """INDEX to class for every method that the dialect knows: the standard's and its extensions'.

    Raises `UnsupportedVersionError` for a version without a generated module.
    """
    known: Mapping[int, type[Method]] = _module(dialect).METHODS
    return {
        index: cls for index, cls in known.items() if not cls.EXTENSION or cls.EXTENSION in dialect.extensions
    }


@cache
def properties(dialect: Dialect) -> Mapping[int, type[Properties]]:
    """Class id to properties class. Raises as `methods` does."""
    known: Mapping[int, type[Properties]] = _module(dialect).PROPERTIES
    return known


def _module(dialect: Dialect) -> ModuleType:
    # A version is imported by those who meet it: each takes a tenth of a second.
    name = version_name(dialect.version)
    try:
        return import_module(f"amqpgate.wire.generated.v{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        raise UnsupportedVersionError(f"there are no methods of AMQP {name}") from error


def is_repeated(payload: bytes) -> bool:
    """Whether connections say the same again and again: then what it was decoded to is kept."""
    index, size = int.from_bytes(payload[:4], "big"), len(payload)
    return (index in _REPEATED and size <= _LONGEST_REPEATED) or (index == _START and size <= _LONGEST_START)


def decode_method(payload: Buffer, dialect: Dialect = RABBITMQ_0_9_1) -> Method:
    """The method in the payload of a method frame.

    501 if the arguments are not those of the method, 540 if there is no such method in the dialect,
    541 and 506 for tables (see ``table_codec``).
    """
    end = len(payload)
    if end < 4:
        raise _unknown_frame(1, payload)
    index: int = _IDS.unpack_from(payload)[0]
    key: tuple[bytes, Dialect] | None = None
    if (index in _REPEATED and end <= _LONGEST_REPEATED) or (index == _START and end <= _LONGEST_START):
        key = bytes(payload), dialect
        known = _KNOWN.get(key)
        if known is not None:
            return known
    cls = methods(dialect).get(index)
    if cls is None:
        class_id, method_id = index >> 16, index & 0xFFFF
        raise ProtocolViolation(
            540, f"unknown method {{{class_id},{method_id}}}", class_id=class_id, method_id=method_id
        )
    try:
        method = cls.decode(payload, 4, end, dialect)
    except ProtocolViolation as violation:
        text = violation.text
        if text == CANNOT_DECODE:
            # Not what they are, as RabbitMQ has it: they may be a login.
            text = f"{CANNOT_DECODE} the {end - 4} bytes of arguments of '{cls.NAME}'"
        raise ProtocolViolation(
            violation.code, text, class_id=cls.CLASS_ID, method_id=cls.METHOD_ID
        ) from None
    if key is not None:
        if len(_KNOWN) >= _MOST_REPEATED:
            _KNOWN.clear()
        _KNOWN[key] = method
    return method


def _unknown_frame(frame_type: int, payload: Buffer) -> ProtocolViolation:
    return ProtocolViolation(501, f"type {frame_type}, {len(payload)} bytes: unknown_frame")


def decode_header(payload: Buffer, dialect: Dialect = RABBITMQ_0_9_1) -> ContentHeader:
    """What the payload of a header frame says.

    501 if it is shorter than a header, 505 if its class has no content or its weight is not 0, 541 if
    the properties do not parse.
    """
    end = len(payload)
    if end < 12:
        raise _unknown_frame(2, payload)
    class_id, weight, body_size = _HEADER.unpack_from(payload)
    cls = properties(dialect).get(class_id)
    if weight != 0:
        text = f"expected content header for class {class_id}, got non content header frame instead"
        raise ProtocolViolation(505, text, class_id=class_id)
    if cls is None:
        text = f"expected content header, got one for class {class_id} instead"
        raise ProtocolViolation(505, text, class_id=class_id)
    try:
        return ContentHeader(class_id, body_size, cls.decode(payload, 12, end, dialect))
    except ProtocolViolation as violation:
        if violation.code == 501:
            raise ProtocolViolation(541, "malformed content properties", class_id=class_id) from None
        raise ProtocolViolation(violation.code, violation.text, class_id=class_id) from None


def encode_header(header: ContentHeader, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
    """The payload of a header frame."""
    return _HEADER.pack(header.class_id, 0, header.body_size) + header.properties.encode(dialect)

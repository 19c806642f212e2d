"""Field table values as RabbitMQ compares and prints them: as Erlang terms."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from typing import Final

from amqpgate.wire.tables import Field, Table

#: What RabbitMQ calls the type of each tag (rabbit_binary_parser).
TYPE_NAMES: Final = {
    "S": "longstr",
    "T": "timestamp",
    "b": "byte",
    "B": "unsignedbyte",
    "s": "short",
    "u": "unsignedshort",
    "I": "signedint",
    "i": "unsignedint",
    "d": "double",
    "f": "float",
    "l": "long",
    "L": "long",
    "t": "bool",
    "D": "decimal",
    "F": "table",
    "A": "array",
    "x": "binary",
    "V": "void",
}

#: Tags that RabbitMQ takes where an argument must be an integer.
INTEGERS: Final = frozenset("bBsuIilL")
_FLOATS: Final = frozenset("fd")


def type_name(field: Field) -> str:
    """``signedint`` and the like."""
    return TYPE_NAMES[field.tag]


def type_class(field: Field) -> str:
    """Types that count as the same when a declaration is compared with an earlier one."""
    if field.tag in INTEGERS or field.tag == "D":
        return "int"
    return "float" if field.tag in _FLOATS else type_name(field)


def comparable(field: Field) -> Hashable:
    """A value that is equal to another one's exactly if ``==`` holds between them in Erlang.

    Types do not matter by themselves: 1 equals 1.0, text equals bytes; but no number equals a boolean.
    """
    value = field.value
    if field.tag == "t":
        return ("atom", bool(value))
    if value is None:
        return ("atom", None)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, Table):
        return tuple((name, type_name(entry), comparable(entry)) for name, entry in value)
    if isinstance(value, tuple):
        return tuple((type_name(item), comparable(item)) for item in value)
    return value


def printed(field: Field) -> str:
    """The value alone: text as it is, anything else as Erlang writes it."""
    value = field.value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else _term(field)


def _term(field: Field) -> str:
    value = field.value
    if field.tag == "t":
        return "true" if value else "false"
    if value is None:
        return "undefined"
    if isinstance(value, str | bytes):
        return f'<<"{printed(field)}">>'
    if isinstance(value, Decimal):
        places, digits = _decimal(value)
        return f"{{{places},{digits}}}"
    if isinstance(value, Table):
        return "[" + ",".join(f'{{<<"{name}">>,{type_name(e)},{_term(e)}}}' for name, e in value) + "]"
    if isinstance(value, tuple):
        return "[" + ",".join(f"{{{type_name(item)},{_term(item)}}}" for item in value) + "]"
    return repr(value)


def _decimal(value: Decimal) -> tuple[int, int]:
    """Decimal places and the number without its point, as on the wire."""
    _sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return -exponent, int("".join(map(str, digits)) or "0")

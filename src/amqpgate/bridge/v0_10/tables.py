"""Maps of 0-10 and field tables of 0-9-1, by the types of their values.

===================================  =======================  ============================================
0-10                                 0-9-1                    back
===================================  =======================  ============================================
int8 to int32, uint8 to uint32       ``b s I B u i``          the same
int64                                ``l``                    the same
uint64                               ``l`` below 2^63; else   int64; str16
                                     its digits, ``S``
float, double                        ``f d``                  the same
float, double: infinite, no number   542, or its text ``S``   a double of any value comes as it is
boolean, bit                         ``t``                    boolean
datetime, in seconds                 ``T``                    the same
dec32, dec64                         ``D`` from 0 to 2^32-1;  dec32 if it fits, else dec64; str16
                                     else its text ``S``
char, char-utf32, uuid               ``S``                    str16
str8, str16 of any alphabet          ``S``                    str16; vbin32 if longer, or not UTF-8
map, void                            ``F V``                  the same
list, array                          ``A``                    list
all others                           ``x``                    vbin32
===================================  =======================  ============================================

Two names hold text whatever the type of their value (`TEXT_BY_NAME`): Qpid's C++ clients write text as
vbin16. Other such values stay bytes: an exchange of type headers compares the types, too.

Names are bytes in 0-10, and come out as they were though they are no UTF-8. Where a name stands twice Qpid
goes by the last value, and RabbitMQ, like all who judge a :class:`Table`, by the first. So each name comes
out once, with the value that counts where it came from: nobody judges another one than the one that is
acted on.
"""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from amqpgate.wire.v0_10.types import EMPTY_MAP, Array, Content, Map, Value

#: Names in the headers of messages whose values are text, be they bytes.
TEXT_BY_NAME: Final = frozenset({"qpid.subject", "x-jms-type"})

#: Letters of integers; a ``datetime`` is one, too.
_LETTERS: Final[Mapping[int, str]] = {
    TypeCode.INT8: "b",
    TypeCode.UINT8: "B",
    TypeCode.INT16: "s",
    TypeCode.UINT16: "u",
    TypeCode.INT32: "I",
    TypeCode.UINT32: "i",
    TypeCode.INT64: "l",
    TypeCode.DATETIME: "T",
}
#: Strings by how they are encoded. ISO 8859-15 has a letter for each byte.
_UTF_8: Final = frozenset({TypeCode.STR8, TypeCode.STR16})
_ENCODINGS: Final[Mapping[int, str]] = {
    TypeCode.CHAR: "iso8859-15",
    TypeCode.STR8_LATIN: "iso8859-15",
    TypeCode.STR16_LATIN: "iso8859-15",
    TypeCode.STR8_UTF16: "utf-16",
    TypeCode.STR16_UTF16: "utf-16",
    TypeCode.CHAR_UTF32: "utf-32-be",
}
#: UTF-16 may say in which order its bytes are; otherwise they are in that of the network.
_BYTE_ORDERS: Final = (BOM_UTF16_BE, BOM_UTF16_LE)
_NO_NUMBERS: Final = frozenset({TypeCode.FLOAT, TypeCode.DOUBLE})

#: Codes of integers by their letters, and what they hold.
_INTEGERS: Final[Mapping[str, tuple[TypeCode, range]]] = {
    "b": (TypeCode.INT8, range(-(2**7), 2**7)),
    "B": (TypeCode.UINT8, range(2**8)),
    "s": (TypeCode.INT16, range(-(2**15), 2**15)),
    "U": (TypeCode.INT16, range(-(2**15), 2**15)),
    "u": (TypeCode.UINT16, range(2**16)),
    "I": (TypeCode.INT32, range(-(2**31), 2**31)),
    "i": (TypeCode.UINT32, range(2**32)),
    "T": (TypeCode.DATETIME, range(2**64)),
}
#: Of all other integers.
_INT64: Final = range(-(2**63), 2**63)
_UINT64: Final = range(2**64)
_UINT32: Final = range(2**32)
_INT32: Final = range(-(2**31), 2**31)
_MOST_STR16: Final = 65_535

_TRUE: Final = Field("t", True)
_FALSE: Final = Field("t", False)
_VOID: Final = Field("V", None)


def to_table(value: Map | None, *, lenient: bool = False) -> Table:
    """The field table of a map; an absent one is empty. See `fields_of`."""
    return EMPTY_TABLE if value is None else Table(tuple(fields_of(value, lenient=lenient).items()))


def fields_of(value: Map, *, lenient: bool = False) -> dict[str, Field]:
    """The fields of a map, by name; of a name that stands twice the last value, in the first one's place.

    Violation 542 for a float that is infinite or no number, which RabbitMQ has no type for: it would end the
    connection. With ``lenient`` it is text, so that what a broker delivers does not fail.
    """
    return {
        str(key, "utf-8", "surrogateescape"): field_of(one.code, one.value, lenient=lenient)
        if key not in _KEYS_OF_TEXT
        else _text_by_name(one, lenient=lenient)
        for key, one in dict(value.entries).items()
    }


_KEYS_OF_TEXT: Final = frozenset(name.encode() for name in TEXT_BY_NAME)


def text_field(data: bytes) -> Field:
    """A long string."""
    try:
        return Field("S", data.decode())
    except UnicodeDecodeError:
        return Field("S", data)


def _text_by_name(one: Value, *, lenient: bool) -> Field:
    field = field_of(one.code, one.value, lenient=lenient)
    return text_field(field.value) if isinstance(field.value, bytes) else field


def field_of(code: int, value: Content, *, lenient: bool = False) -> Field:
    """The field of one value, as the module's table says. Errors as for `fields_of`."""
    if isinstance(value, bytes):
        return text_field(value) if code in _UTF_8 else _of_bytes(code, value, lenient=lenient)
    if isinstance(value, int):
        letter = _LETTERS.get(code)
        if letter is not None:
            return Field(letter, value)
        if code == TypeCode.UINT64:
            return Field("l", value) if value in _INT64 else Field("S", str(value))
        return _TRUE if value else _FALSE
    if isinstance(value, float):
        if not isfinite(value):
            return _no_number(str(value), lenient=lenient)
        return Field("f" if code == TypeCode.FLOAT else "d", value)
    if isinstance(value, Map):
        return Field("F", to_table(value, lenient=lenient))
    if isinstance(value, tuple):
        return Field("A", tuple([field_of(one.code, one.value, lenient=lenient) for one in value]))
    if isinstance(value, Array):
        return Field("A", tuple([field_of(value.code, item, lenient=lenient) for item in value.items]))
    if isinstance(value, Decimal):
        return Field("D", value) if _mantissa(value) in _UINT32 else Field("S", str(value))
    return _VOID


def _of_bytes(code: int, value: bytes, *, lenient: bool) -> Field:
    if code == TypeCode.UUID:
        return Field("S", uuid_text(value))
    if code in _NO_NUMBERS:
        return _no_number("nan", lenient=lenient)
    encoding = _ENCODINGS.get(code)
    if encoding is not None:
        if encoding == "utf-16" and not value.startswith(_BYTE_ORDERS):
            encoding = "utf-16-be"
        try:
            return Field("S", value.decode(encoding))
        except UnicodeDecodeError:
            pass
    return Field("x", value)


def _no_number(text: str, *, lenient: bool) -> Field:
    if not lenient:
        raise ProtocolViolation(542, f"a value that is no finite number ({text})")
    return Field("S", text)


def uuid_text(value: bytes) -> str:
    """The text of a uuid of 16 bytes, in lower case."""
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def from_table(table: Table) -> Map:
    """The map of a field table; of a name that stands twice the first value."""
    return map_of_fields(first_fields(table.entries)) if table.entries else EMPTY_MAP


def first_fields(entries: Iterable[tuple[str, Field]]) -> dict[str, Field]:
    """By name, the values that count."""
    fields: dict[str, Field] = {}
    for name, field in entries:
        fields.setdefault(name, field)
    return fields


def map_of_fields(fields: Mapping[str, Field]) -> Map:
    """The map of fields by name."""
    return Map(
        tuple([(name.encode("utf-8", "surrogateescape"), value_of(field)) for name, field in fields.items()])
    )


def value_of(field: Field) -> Value:
    """The value of one field, as the module's table says; a letter that means an integer of another width
    than its own becomes the smallest type of 64 bits that holds it."""
    value = field.value
    if isinstance(value, str | bytes):
        return string_value(value) if field.tag != "x" else Value(TypeCode.VBIN32, _encoded(value))
    if isinstance(value, bool) or field.tag == "t":
        return Value(TypeCode.BOOLEAN, bool(value))
    if isinstance(value, int):
        return _integer(field.tag, value)
    if isinstance(value, float):
        return Value(TypeCode.FLOAT if field.tag == "f" else TypeCode.DOUBLE, value)
    if isinstance(value, Table):
        return Value(TypeCode.MAP, from_table(value))
    if isinstance(value, tuple):
        return Value(TypeCode.LIST, tuple([value_of(item) for item in value]))
    if isinstance(value, Decimal):
        return _decimal(value)
    return Value(TypeCode.VOID, None)


def _encoded(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


def string_value(value: str | bytes) -> Value:
    """A string of UTF-8, or bytes if it is not, or too long."""
    try:
        data = value.encode() if isinstance(value, str) else value
        if isinstance(value, bytes):
            value.decode()
    except UnicodeError:
        return Value(TypeCode.VBIN32, _encoded(value))
    return Value(TypeCode.STR16 if len(data) <= _MOST_STR16 else TypeCode.VBIN32, data)


def _integer(letter: str, value: int) -> Value:
    known = _INTEGERS.get(letter)
    if known is not None and value in known[1]:
        return Value(known[0], value)
    if value in _INT64:
        return Value(TypeCode.INT64, value)
    return Value(TypeCode.UINT64, value) if value in _UINT64 else string_value(str(value))


def _decimal(value: Decimal) -> Value:
    mantissa = _mantissa(value)
    if mantissa is None or mantissa not in _INT64:
        return string_value(str(value))
    return Value(TypeCode.DEC32 if mantissa in _INT32 else TypeCode.DEC64, value)


def _mantissa(value: Decimal) -> int | None:
    """The number without its point; None if there are more than 255 places, or fewer than none."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not -255 <= exponent <= 0:
        return None
    number = int("".join(map(str, digits)))
    return -number if sign else number

"""Values whose types are on the wire: those of maps, lists and arrays (AMQP 0-10, "Types").

The code of a type says how wide its values are, so that one which nobody knows can be stepped over. It is
kept as bytes, and is the same bytes again. `TypeCode` has the codes of the standard.

What a value of a code is in Python
    =========================  =========================================================
    integers, ``datetime``     ``int``; a ``datetime`` is seconds since 1970
    ``float``, ``double``      ``float``; one that is no number stays the bytes that it came in
    ``boolean``                ``bool``, or the byte if it is neither 0 nor 1; any but 0 is true
    ``dec32``, ``dec64``       ``Decimal``
    ``void``, ``bit``          None, True
    ``map``, ``array``         :class:`Map`, :class:`Array`
    ``list``                   a tuple of :class:`Value`
    all others                 ``bytes``: strings, characters, uuids, structures, unknown codes
    =========================  =========================================================

Exception to "the same bytes": a map, list or array of no bytes at all, as Qpid's Python client writes None,
comes out as one of no entries.

Error handling
    :class:`ProtocolViolation` 503 for what is cut short, longer than what it says, or of no width; 506 for
    what is deeper than `DEPTH` or has more than `VALUES` values. A count is looked at before anything is
    kept.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from struct import Struct
from typing import Final, TypeAlias

from attrs import frozen

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.primitives import (
    UINT32,
    cut_short,
    get_extent16,
    get_extent32,
    malformed,
    put_vbin8,
    put_vbin16,
    put_vbin32,
)

#: Maps, lists and arrays within each other. Qpid's own messages have three.
DEPTH: Final = 32
#: Values in all of one map or array together: as many as in a table of AMQP 0-9-1 (``wire.table_codec``).
VALUES: Final = 16_384
#: Values of one array that take no byte each.
EMPTY_VALUES: Final = 256

Content: TypeAlias = "bool | int | float | bytes | Decimal | Map | Array | tuple[Value, ...] | None"


@frozen
class Value:
    """One typed value: the code of its type, and what the module says of it."""

    code: int
    value: Content


@frozen
class Map:
    """Keys and values in the order of the wire, with those that stand twice.

    Where a key stands twice Qpid's brokers and clients go by the last: whoever judges a map sees to that.
    """

    entries: tuple[tuple[bytes, Value], ...] = ()

    def get(self, key: bytes) -> Value | None:
        """The last value of that key."""
        for name, value in reversed(self.entries):
            if name == key:
                return value
        return None


@frozen
class Array:
    """Values of one type; each is what a :class:`Value` of that code would hold."""

    code: int
    items: tuple[Content, ...] = ()


EMPTY_MAP: Final = Map()
EMPTY_ARRAY: Final = Array(TypeCode.VOID)


class _Budget:
    """What may still be read of one map or array."""

    __slots__ = ("depth", "values")

    def __init__(self) -> None:
        self.depth = DEPTH
        self.values = VALUES

    def enter(self, count: int) -> None:
        self.depth -= 1
        self.values -= count
        if self.depth < 0:
            raise ProtocolViolation(506, f"values nested deeper than {DEPTH}")
        if self.values < 0:
            raise ProtocolViolation(506, f"more than {VALUES} values")

    def leave(self) -> None:
        self.depth += 1


_Reader: TypeAlias = Callable[[bytes, int, int, _Budget], tuple[Content, int]]


def get_map(buf: bytes, pos: int, end: int) -> tuple[Map, int]:
    """The map at ``pos`` and where it ends."""
    return _get_map(buf, pos, end, _Budget())


def get_array(buf: bytes, pos: int, end: int) -> tuple[Array, int]:
    """The array at ``pos`` and where it ends."""
    return _get_array(buf, pos, end, _Budget())


def _count(buf: bytes, start: int, stop: int, least: int) -> int:
    """How many entries there are, of at least so many bytes each."""
    if start + 4 > stop:
        raise cut_short()
    count: int = UINT32.unpack_from(buf, start)[0]
    if count * least > stop - start - 4:
        raise malformed(f"{count} values in {stop - start - 4} bytes")
    return count


def _get_map(buf: bytes, pos: int, end: int, budget: _Budget) -> tuple[Map, int]:
    pos, stop = get_extent32(buf, pos, end)
    if pos == stop:
        return EMPTY_MAP, stop
    count = _count(buf, pos, stop, 2)
    pos += 4
    budget.enter(count)
    entries: list[tuple[bytes, Value]] = []
    for _ in range(count):
        start = pos + 1
        if pos >= stop:
            raise cut_short()
        code_at = start + buf[pos]
        if code_at >= stop:
            raise cut_short()
        code = buf[code_at]
        value, pos = _READERS[code](buf, code_at + 1, stop, budget)
        entries.append((buf[start:code_at], Value(code, value)))
    budget.leave()
    if pos != stop:
        raise malformed("a map is longer than its entries")
    return Map(tuple(entries)), stop


def _get_list(buf: bytes, pos: int, end: int, budget: _Budget) -> tuple[tuple[Value, ...], int]:
    pos, stop = get_extent32(buf, pos, end)
    if pos == stop:
        return (), stop
    count = _count(buf, pos, stop, 1)
    pos += 4
    budget.enter(count)
    values: list[Value] = []
    for _ in range(count):
        if pos >= stop:
            raise cut_short()
        code = buf[pos]
        value, pos = _READERS[code](buf, pos + 1, stop, budget)
        values.append(Value(code, value))
    budget.leave()
    if pos != stop:
        raise malformed("a list is longer than its entries")
    return tuple(values), stop


def _get_array(buf: bytes, pos: int, end: int, budget: _Budget) -> tuple[Array, int]:
    pos, stop = get_extent32(buf, pos, end)
    if pos == stop:
        return EMPTY_ARRAY, stop
    code = buf[pos]
    takes_nothing = code >> 4 == 0xF
    count = _count(buf, pos + 1, stop, 0 if takes_nothing else 1)
    if takes_nothing and count > EMPTY_VALUES:
        raise ProtocolViolation(506, f"an array of more than {EMPTY_VALUES} values of no byte each")
    pos += 5
    budget.enter(count)
    read = _READERS[code]
    items: list[Content] = []
    for _ in range(count):
        item, pos = read(buf, pos, stop, budget)
        items.append(item)
    budget.leave()
    if pos != stop:
        raise malformed("an array is longer than its entries")
    return Array(code, tuple(items)), stop


def _get_void(_buf: bytes, pos: int, _end: int, _budget: _Budget) -> tuple[None, int]:
    return None, pos


def _get_bit(_buf: bytes, pos: int, _end: int, _budget: _Budget) -> tuple[bool, int]:
    return True, pos


def _get_boolean(buf: bytes, pos: int, end: int, _budget: _Budget) -> tuple[bool | int, int]:
    if pos >= end:
        raise cut_short()
    byte = buf[pos]
    return (byte if byte > 1 else byte == 1), pos + 1


def _fixed(width: int) -> _Reader:
    def read(buf: bytes, pos: int, end: int, _budget: _Budget) -> tuple[bytes, int]:
        stop = pos + width
        if stop > end:
            raise cut_short()
        return buf[pos:stop], stop

    return read


def _vbin8(buf: bytes, pos: int, end: int, _budget: _Budget) -> tuple[bytes, int]:
    if pos >= end:
        raise cut_short()
    start = pos + 1
    stop = start + buf[pos]
    if stop > end:
        raise cut_short()
    return buf[start:stop], stop


def _vbin16(buf: bytes, pos: int, end: int, _budget: _Budget) -> tuple[bytes, int]:
    start, stop = get_extent16(buf, pos, end)
    return buf[start:stop], stop


def _vbin32(buf: bytes, pos: int, end: int, _budget: _Budget) -> tuple[bytes, int]:
    start, stop = get_extent32(buf, pos, end)
    return buf[start:stop], stop


def _no_width(code: int) -> _Reader:
    def read(_buf: bytes, _pos: int, _end: int, _budget: _Budget) -> tuple[Content, int]:
        raise malformed(f"a value of type 0x{code:02x}, whose width nobody knows")

    return read


def _number(layout: Struct) -> _Reader:
    width = layout.size

    def read(buf: bytes, pos: int, end: int, _budget: _Budget) -> tuple[Content, int]:
        stop = pos + width
        if stop > end:
            raise cut_short()
        value: int | float = layout.unpack_from(buf, pos)[0]
        # What is no number differs from itself, and would not be the same bytes again.
        return (value if value == value else buf[pos:stop]), stop

    return read


def _decimal(layout: Struct) -> _Reader:
    width = layout.size

    def read(buf: bytes, pos: int, end: int, _budget: _Budget) -> tuple[Decimal, int]:
        stop = pos + width
        if stop > end:
            raise cut_short()
        places, mantissa = layout.unpack_from(buf, pos)
        digits = tuple([int(digit) for digit in str(abs(mantissa))])
        return Decimal((int(mantissa < 0), digits, -places)), stop

    return read


_NUMBERS: Final[dict[int, Struct]] = {
    TypeCode.INT8: Struct(">b"),
    TypeCode.UINT8: Struct(">B"),
    TypeCode.INT16: Struct(">h"),
    TypeCode.UINT16: Struct(">H"),
    TypeCode.INT32: Struct(">i"),
    TypeCode.UINT32: Struct(">I"),
    TypeCode.FLOAT: Struct(">f"),
    TypeCode.INT64: Struct(">q"),
    TypeCode.UINT64: Struct(">Q"),
    TypeCode.DOUBLE: Struct(">d"),
    TypeCode.DATETIME: Struct(">Q"),
}
_DECIMALS: Final[dict[int, Struct]] = {TypeCode.DEC32: Struct(">Bi"), TypeCode.DEC64: Struct(">Bq")}

#: By the upper half of the code: how wide a value is, or how wide the length before it.
_FIXED: Final = {0: 1, 1: 2, 2: 4, 3: 8, 4: 16, 5: 32, 6: 64, 7: 128, 0xC: 5, 0xD: 9, 0xF: 0}
_VARIABLE: Final[dict[int, _Reader]] = {8: _vbin8, 9: _vbin16, 0xA: _vbin32}


def _by_width(code: int) -> _Reader:
    half = code >> 4
    return _fixed(_FIXED[half]) if half in _FIXED else _VARIABLE.get(half) or _no_width(code)


#: By code.
_READERS: Final[list[_Reader]] = [_by_width(code) for code in range(256)]
for _code, _layout in _NUMBERS.items():
    _READERS[_code] = _number(_layout)
for _code, _layout in _DECIMALS.items():
    _READERS[_code] = _decimal(_layout)
_READERS[TypeCode.BOOLEAN] = _get_boolean
_READERS[TypeCode.VOID] = _get_void
_READERS[TypeCode.BIT] = _get_bit
_READERS[TypeCode.MAP] = _get_map
_READERS[TypeCode.LIST] = _get_list
_READERS[TypeCode.ARRAY] = _get_array


def put_map(value: Map) -> bytes:
    """The bytes of a map; :class:`ValueError` or :class:`struct.error` for what does not fit its type."""
    parts = [UINT32.pack(len(value.entries))]
    for key, one in value.entries:
        parts += (put_vbin8(key), bytes((one.code,)), _put(one.code, one.value))
    return put_vbin32(b"".join(parts))


def put_array(value: Array) -> bytes:
    """The bytes of an array. Errors as for a map."""
    parts = [bytes((value.code,)), UINT32.pack(len(value.items))]
    parts += [_put(value.code, item) for item in value.items]
    return put_vbin32(b"".join(parts))


def _put_list(values: tuple[Value, ...]) -> bytes:
    parts = [UINT32.pack(len(values))]
    for one in values:
        parts += (bytes((one.code,)), _put(one.code, one.value))
    return put_vbin32(b"".join(parts))


def _put(code: int, value: Content) -> bytes:
    """What follows the code."""
    if isinstance(value, bytes):
        half = code >> 4
        if half in _PUT_VARIABLE:
            return _PUT_VARIABLE[half](value)
        if _FIXED.get(half) == len(value):
            return value
    elif code in _NUMBERS and isinstance(value, int | float):
        return _NUMBERS[code].pack(value)
    elif code == TypeCode.BOOLEAN and isinstance(value, int):
        return bytes((value,))
    elif code in _DECIMALS and isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        if isinstance(exponent, int):
            number = int("".join(map(str, digits)))
            return _DECIMALS[code].pack(-exponent, -number if sign else number)
    elif code == TypeCode.MAP and isinstance(value, Map):
        return put_map(value)
    elif code == TypeCode.LIST and isinstance(value, tuple):
        return _put_list(value)
    elif code == TypeCode.ARRAY and isinstance(value, Array):
        return put_array(value)
    elif (code == TypeCode.VOID and value is None) or (code == TypeCode.BIT and value is True):
        return b""
    raise ValueError(f"{value!r} is no value of type 0x{code:02x}")


_PUT_VARIABLE: Final = {8: put_vbin8, 9: put_vbin16, 0xA: put_vbin32}

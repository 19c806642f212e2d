"""Field tables from and to bytes: iterative, linear, bounded (AMQP 0-9-1, section 4.2.5.5).

Error handling
    The table's own length does not fit its surroundings: 501, as for every other argument.
    Anything wrong inside it (unknown tag, a length that lies, a name cut short): 541, which is what
    RabbitMQ answers when its parser finds no clause. More than :class:`TableLimits` allows: 506.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache, lru_cache
from math import isfinite
from struct import Struct
from struct import error as struct_error
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.values import frozen
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect, FieldKind
from amqpgate.wire.mapping import nearest
from amqpgate.wire.primitives import LONG, Buffer, cannot_decode
from amqpgate.wire.tables import EMPTY_TABLE, Field, FieldValue, Table


@frozen
class TableLimits:
    """How much one table may ask for before any of it is kept.

    RabbitMQ bounds a table only by the frame that it comes in; these are far above what clients send and
    far below what hurts. ``depth`` counts tables and arrays within each other: 64 is more than x-death
    (4), and few enough for code that walks a table recursively. ``entries`` counts the values of all of
    them together: 16,384 keep a table at about 3 MB, where the void values of one frame of 128 KiB could
    take 11.
    """

    depth: int = 64
    entries: int = 16_384


DEFAULT_LIMITS: Final = TableLimits()

_FORMATS: Final[dict[FieldKind, Struct]] = {
    FieldKind.INT8: Struct(">b"),
    FieldKind.UINT8: Struct(">B"),
    FieldKind.INT16: Struct(">h"),
    FieldKind.UINT16: Struct(">H"),
    FieldKind.INT32: Struct(">i"),
    FieldKind.UINT32: Struct(">I"),
    FieldKind.INT64: Struct(">q"),
    FieldKind.UINT64: Struct(">Q"),
    FieldKind.TIMESTAMP: Struct(">Q"),
    FieldKind.FLOAT: Struct(">f"),
    FieldKind.DOUBLE: Struct(">d"),
    FieldKind.DECIMAL: Struct(">BI"),
    FieldKind.SIGNED_DECIMAL: Struct(">Bi"),
}
_FLOATS: Final = (FieldKind.FLOAT, FieldKind.DOUBLE)
_DECIMALS: Final = (FieldKind.DECIMAL, FieldKind.SIGNED_DECIMAL)
_BYTE_FIRST: Final = (FieldKind.BOOL, FieldKind.CHAR, FieldKind.SHORTSTR)
_INTEGERS: Final = frozenset(_FORMATS) - {*_FLOATS, *_DECIMALS}
# To look a member of an enum up takes Python 3.11 a Python-level detour each time.
_LONGSTR: Final = FieldKind.LONGSTR
_TABLE: Final = FieldKind.TABLE

_VOID: Final = Field("V", None)
_TRUE: Final = Field("t", True)
_FALSE: Final = Field("t", False)

#: Bytes of the longest table that is kept, and how many are: peers choose them, before they have logged in.
_LONGEST_KNOWN: Final = 1024
_MOST_KNOWN: Final = 64

#: An open table or array: what it holds so far, whether it is a table, where it ends, its own name.
_Open = tuple[list[tuple[str, Field]], bool, int, str]


@cache
def _kinds_by_byte(dialect: Dialect) -> dict[int, tuple[str, FieldKind, Struct | None]]:
    return {ord(tag): (tag, kind, _FORMATS.get(kind)) for tag, kind in dialect.decodes.items()}


def _malformed(what: str) -> ProtocolViolation:
    return ProtocolViolation(541, f"malformed field table: {what}")


def get_table(
    buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1, limits: TableLimits = DEFAULT_LIMITS
) -> tuple[Table, int]:
    """The table at ``pos`` and where it ends; see the module for the errors."""
    if pos + 4 > end:
        raise cannot_decode()
    start = pos + 4
    stop: int = start + LONG.unpack_from(buf, pos)[0]
    if stop > end:
        raise cannot_decode()
    if stop == start:
        return EMPTY_TABLE, stop
    return _get_entries(buf, start, stop, dialect, limits), stop


def get_known_table(buf: Buffer, pos: int, end: int, dialect: Dialect = RABBITMQ_0_9_1) -> tuple[Table, int]:
    """As `get_table`, for tables of which the same are said again and again: one that was read not long ago
    is not read again, and what it is encoded to is kept."""
    if pos + 4 <= end:
        stop: int = pos + 4 + LONG.unpack_from(buf, pos)[0]
        if stop <= end and stop - pos <= _LONGEST_KNOWN:
            try:
                return _known_table(bytes(buf[pos:stop]), dialect), stop
            except ProtocolViolation:
                pass  # read where it is, so that the error tells where
    return get_table(buf, pos, end, dialect)


@lru_cache(maxsize=_MOST_KNOWN)
def _known_table(encoded: bytes, dialect: Dialect) -> Table:
    return Table.known(get_table(encoded, 0, len(encoded), dialect)[0])


def _get_entries(buf: Buffer, pos: int, stop: int, dialect: Dialect, limits: TableLimits) -> Table:
    kinds = _kinds_by_byte(dialect)
    budget = limits.entries
    opened: list[_Open] = []
    entries: list[tuple[str, Field]] = []
    named = True
    while True:
        if pos == stop:
            if not opened:
                return Table(tuple(entries))
            field = Field("F", Table(tuple(entries))) if named else Field("A", tuple([f for _, f in entries]))
            entries, named, stop, name = opened.pop()
            entries.append((name, field))
            continue
        budget -= 1
        if budget < 0:
            raise ProtocolViolation(506, f"field table of more than {limits.entries} values")
        name = ""
        if named:
            name_end = pos + 1 + buf[pos]
            if name_end >= stop:
                raise _malformed("name cut short")
            # RabbitMQ takes any bytes for a name; they come back as they were.
            name = str(buf[pos + 1 : name_end], "utf-8", "surrogateescape")
            pos = name_end
        try:
            tag, kind, layout = kinds[buf[pos]]
        except KeyError:
            raise _malformed(f"value of an unknown type at byte {pos}") from None
        pos += 1
        if layout is not None:
            if pos + layout.size > stop:
                raise _malformed("value cut short")
            entries.append((name, _fixed(tag, kind, layout.unpack_from(buf, pos), dialect)))
            pos += layout.size
        elif kind is FieldKind.VOID:
            entries.append((name, _VOID))
        elif kind in _BYTE_FIRST:
            if pos >= stop:
                raise _malformed("value cut short")
            byte = buf[pos]
            pos += 1
            if kind is FieldKind.BOOL:
                entries.append((name, _FALSE if byte == 0 else _TRUE if byte == 1 else Field("t", byte)))
                continue
            if kind is FieldKind.CHAR:
                entries.append((name, Field(tag, chr(byte))))
                continue
            if pos + byte > stop:
                raise _malformed("value cut short")
            entries.append((name, Field(tag, str(buf[pos : pos + byte], "utf-8", "surrogateescape"))))
            pos += byte
        else:
            if pos + 4 > stop:
                raise _malformed("value cut short")
            start = pos + 4
            value_end: int = start + LONG.unpack_from(buf, pos)[0]
            if value_end > stop:
                raise _malformed("value cut short")
            if kind is FieldKind.LONGSTR:
                entries.append((name, Field(tag, _text(buf, start, value_end))))
                pos = value_end
            elif kind is FieldKind.BYTES:
                entries.append((name, Field(tag, bytes(buf[start:value_end]))))
                pos = value_end
            else:
                # This table is the first level, so one more may be opened while fewer than depth are.
                if len(opened) + 1 >= limits.depth:
                    raise ProtocolViolation(506, f"field table nested deeper than {limits.depth}")
                opened.append((entries, named, stop, name))
                entries, named, stop, pos = [], kind is FieldKind.TABLE, value_end, start


def _text(buf: Buffer, start: int, stop: int) -> str | bytes:
    encoded = buf[start:stop]
    try:
        return str(encoded, "utf-8")
    except UnicodeDecodeError:
        return bytes(encoded)


def _fixed(tag: str, kind: FieldKind, values: tuple[int | float, ...], dialect: Dialect) -> Field:
    value = values[0]
    if kind in _DECIMALS:
        number = int(values[1])
        digits = tuple([int(digit) for digit in str(abs(number))])
        return Field(tag, Decimal((int(number < 0), digits, -int(value))))
    if dialect.finite_floats and kind in _FLOATS and not isfinite(value):
        raise _malformed("a float that is no number")
    return Field(tag, value)


def put_table(table: Table, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
    """The bytes of ``table``, its length first; kept where it is a known one.

    Values of types that the dialect lacks, or that do not fit, become the nearest that it has (see
    ``mapping``). :class:`ValueError` for names longer than 255 bytes.
    """
    if table.encodings is not None:
        kept = table.encodings.get(dialect)
        if kept is None:
            kept = table.encodings[dialect] = _put_entries(table.entries, dialect)
        return kept
    if table.base is not None:
        first = put_table(table.base, dialect)
        more = _put_entries(table.entries[len(table.base.entries) :], dialect)
        return LONG.pack(len(first) + len(more) - 8) + first[4:] + more[4:]
    return _put_entries(table.entries, dialect)


def _put_entries(of_table: tuple[tuple[str, Field], ...], dialect: Dialect) -> bytes:
    if not of_table:
        return b"\x00\x00\x00\x00"
    out = bytearray(4)
    encodes = dialect.encodes
    # Each open table or array: what is left of it, whether it is a table, where its length goes.
    opened: list[tuple[Iterator[tuple[str, Field]], bool, int]] = [(iter(of_table), True, 0)]
    while opened:
        entries, named, length_at = opened[-1]
        for name, field in entries:
            if named:
                encoded = name.encode("utf-8", "surrogateescape")
                if len(encoded) > 255:
                    raise ValueError(f"a field name holds 255 bytes, not {len(encoded)}")
                out.append(len(encoded))
                out += encoded
            kind = encodes.get(field.tag)
            value = field.value
            # Most of what peers say of themselves.
            if kind is _LONGSTR and type(value) is str:
                encoded = value.encode("utf-8", "surrogateescape")
                out += field.tag.encode() + LONG.pack(len(encoded))
                out += encoded
                continue
            if kind is _TABLE and isinstance(value, Table):
                out += field.tag.encode() + b"\x00\x00\x00\x00"
                opened.append((iter(value.entries), True, len(out) - 4))
                break
            if kind is FieldKind.ARRAY and isinstance(value, tuple):
                out += field.tag.encode() + b"\x00\x00\x00\x00"
                opened.append((iter([("", item) for item in value]), False, len(out) - 4))
                break
            if kind is FieldKind.BOOL and type(value) is bool:
                scalar: bytes | None = b"\x01" if value else b"\x00"
            else:
                scalar = None if kind is None else _SCALARS[kind](value)
            if scalar is None:
                field = nearest(field, dialect)
                if isinstance(field.value, Table):
                    out += field.tag.encode() + b"\x00\x00\x00\x00"
                    opened.append((iter(field.value.entries), True, len(out) - 4))
                    break
                scalar = _SCALARS[encodes[field.tag]](field.value)
                if scalar is None:
                    raise ValueError(f"{field!r} fits no type of {dialect.name}")
            out += field.tag.encode()
            out += scalar
        else:
            LONG.pack_into(out, length_at, len(out) - length_at - 4)
            opened.pop()
    return bytes(out)


def _put_bool(value: FieldValue) -> bytes | None:
    return bytes((value,)) if isinstance(value, int) and 0 <= value <= 255 else None


def _put_number(kind: FieldKind) -> Callable[[FieldValue], bytes | None]:
    pack = _FORMATS[kind].pack
    wanted = float if kind in _FLOATS else int

    def put(value: FieldValue) -> bytes | None:
        if not isinstance(value, wanted) or isinstance(value, bool):
            return None
        try:
            return pack(value)
        except (struct_error, OverflowError):
            return None

    return put


def _put_decimal(kind: FieldKind) -> Callable[[FieldValue], bytes | None]:
    pack = _FORMATS[kind].pack

    def put(value: FieldValue) -> bytes | None:
        if not isinstance(value, Decimal):
            return None
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            return None
        number = int("".join(map(str, digits)))
        try:
            return pack(-exponent, -number if sign else number)
        except struct_error:
            return None

    return put


def _put_char(value: FieldValue) -> bytes | None:
    return (
        value.encode("latin-1") if isinstance(value, str) and len(value) == 1 and value < "\u0100" else None
    )


def _put_short(value: FieldValue) -> bytes | None:
    if not isinstance(value, str):
        return None
    encoded = value.encode("utf-8", "surrogateescape")
    return bytes((len(encoded),)) + encoded if len(encoded) < 256 else None


def _put_long(value: FieldValue) -> bytes | None:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return LONG.pack(len(value)) + value if isinstance(value, bytes) else None


def _put_bytes(value: FieldValue) -> bytes | None:
    return LONG.pack(len(value)) + value if isinstance(value, bytes) else None


def _put_void(value: FieldValue) -> bytes | None:
    return b"" if value is None else None


def _put_nothing(_value: FieldValue) -> bytes | None:
    return None


#: Bytes after the tag, or None for a value that is not of the kind or does not fit it.
_SCALARS: Final[dict[FieldKind, Callable[[FieldValue], bytes | None]]] = {
    FieldKind.BOOL: _put_bool,
    **{kind: _put_number(kind) for kind in (*_INTEGERS, *_FLOATS)},
    **{kind: _put_decimal(kind) for kind in _DECIMALS},
    FieldKind.CHAR: _put_char,
    FieldKind.SHORTSTR: _put_short,
    FieldKind.LONGSTR: _put_long,
    FieldKind.BYTES: _put_bytes,
    FieldKind.VOID: _put_void,
    FieldKind.TABLE: _put_nothing,
    FieldKind.ARRAY: _put_nothing,
}

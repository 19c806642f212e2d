"""The nearest type: what a value becomes for a peer that lacks its field table type.

Old clients decode five or six types (``LEGACY_CLIENT``); an unknown letter makes them drop the connection.
So a value whose letter the peer lacks, or whose letter means another kind there, or that does not fit
the kind, is changed by the first line of this table that the peer can take:

=================  ==================================================================
value              becomes
=================  ==================================================================
``bool``           ``t``; else the integer 0 or 1
integer            the smallest of ``I l L i u s b B U`` that holds it, in this order; else its digits
                   as text
float              ``d``; else ``f`` if that is exact; else its shortest text
decimal            ``D``; else ``d``, the nearest double; else its text
timestamp          ``T``; else as an integer
text, bytes       ``S``
table              ``F``; else its JSON text
array              ``A``; else a table with the names "0", "1", ...
void               ``V``; else empty text
=================  ==================================================================

Nothing is ever left out: names stay, order stays.
"""

from __future__ import annotations

import json
from decimal import Decimal
from struct import error as struct_error
from struct import pack, unpack
from typing import Final

from amqpgate.wire.dialects import Dialect, FieldKind
from amqpgate.wire.tables import Field, PlainValue, Table

#: Kind to the integers that it holds, in order of preference.
_INTEGERS: Final[tuple[tuple[str, FieldKind, int, int], ...]] = (
    ("I", FieldKind.INT32, -(2**31), 2**31 - 1),
    ("l", FieldKind.INT64, -(2**63), 2**63 - 1),
    ("L", FieldKind.INT64, -(2**63), 2**63 - 1),
    ("l", FieldKind.UINT64, 0, 2**64 - 1),
    ("i", FieldKind.UINT32, 0, 2**32 - 1),
    ("u", FieldKind.UINT16, 0, 2**16 - 1),
    ("s", FieldKind.INT16, -(2**15), 2**15 - 1),
    ("b", FieldKind.INT8, -(2**7), 2**7 - 1),
    ("B", FieldKind.UINT8, 0, 2**8 - 1),
    ("U", FieldKind.INT16, -(2**15), 2**15 - 1),
)


def nearest(field: Field, dialect: Dialect) -> Field:
    """``field`` as the dialect's ``encodes`` can carry it; every dialect has ``S``."""
    kinds = dialect.encodes
    value = field.value
    if isinstance(value, tuple):
        if kinds.get("A") is FieldKind.ARRAY:
            return Field("A", value)
        return nearest(Field("F", Table(tuple([(str(n), item) for n, item in enumerate(value)]))), dialect)
    if isinstance(value, Table):
        if kinds.get("F") is FieldKind.TABLE:
            return Field("F", value)
        return Field("S", json.dumps(value.to_python(), default=_json_text))
    if value is None:
        return Field("V", None) if kinds.get("V") is FieldKind.VOID else Field("S", "")
    if isinstance(value, str | bytes):
        return Field("S", value)
    if isinstance(value, float):
        return _nearest_float(value, dialect)
    if isinstance(value, Decimal):
        return _nearest_decimal(value, dialect)
    if isinstance(value, bool) or field.tag == "t":
        truth = bool(value)
        return (
            Field("t", truth) if kinds.get("t") is FieldKind.BOOL else _nearest_integer(int(truth), dialect)
        )
    if field.tag == "T" and kinds.get("T") is FieldKind.TIMESTAMP and 0 <= value < 2**64:
        return field
    return _nearest_integer(value, dialect)


def _nearest_integer(value: int, dialect: Dialect) -> Field:
    for tag, kind, low, high in _INTEGERS:
        if low <= value <= high and dialect.encodes.get(tag) is kind:
            return Field(tag, value)
    return Field("S", str(value))


def _nearest_float(value: float, dialect: Dialect) -> Field:
    if dialect.encodes.get("d") is FieldKind.DOUBLE:
        return Field("d", value)
    if dialect.encodes.get("f") is FieldKind.FLOAT:
        try:
            if unpack(">f", pack(">f", value))[0] == value:
                return Field("f", value)
        except (struct_error, OverflowError):
            pass
    return Field("S", repr(value))


def _nearest_decimal(value: Decimal, dialect: Dialect) -> Field:
    kind = dialect.encodes.get("D")
    sign, digits, exponent = value.as_tuple()
    if kind is not None and isinstance(exponent, int) and -255 <= exponent <= 0:
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        low, high = (0, 2**32 - 1) if kind is FieldKind.DECIMAL else (-(2**31), 2**31 - 1)
        if low <= number <= high:
            return Field("D", value)
    if dialect.encodes.get("d") is FieldKind.DOUBLE:
        return Field("d", float(value))
    return Field("S", str(value))


def _json_text(value: PlainValue) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)

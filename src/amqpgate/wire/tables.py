"""Field tables as values (AMQP 0-9-1, section 4.2.5.5 "Field Tables"); ``table_codec`` has the bytes.

A :class:`Table` is immutable, ordered and keeps duplicates; each :class:`Field` keeps the letter that it
had on the wire, so that what was decoded is encoded again to the same bytes. Where a name occurs twice
the first one counts, as the standard asks and as RabbitMQ's ``table_lookup`` does it: whoever judges a
table here judges what the broker will act on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, TypeAlias

from amqpgate.values import frozen

#: What a field holds: see :class:`Field`.
FieldValue: TypeAlias = "bool | int | float | str | bytes | Decimal | Table | tuple[Field, ...] | None"

#: What :meth:`Table.get` and :meth:`Table.to_python` give.
PlainValue: TypeAlias = (
    "bool | int | float | str | bytes | Decimal | datetime | dict[str, PlainValue] | list[PlainValue] | None"
)

_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
#: Types of values that are ordinary Python as they are.
_PLAIN: Final = frozenset({str, bool, float, bytes, Decimal, type(None)})
#: The letters of those that have one each.
_LETTERS: Final[dict[type, str]] = {str: "S", bool: "t", float: "d", bytes: "x", type(None): "V"}
#: The last second of the year 9999, which is where :class:`datetime` ends.
_LAST_SECOND: Final = 253_402_300_799


@frozen
class Field:
    """One typed value: its letter on the wire and what it holds.

    The value's type follows from the kind that the dialect gives to the letter: integers and timestamps
    are ``int`` (timestamps in seconds), floats ``float``, ``D`` is ``Decimal``, ``t`` is ``bool`` (or the
    byte itself if it is neither 0 nor 1), ``S`` is ``str`` if it is UTF-8 and ``bytes`` if not, ``x`` is
    ``bytes``, ``F`` a :class:`Table`, ``A`` a tuple of fields, ``V`` is ``None``.
    """

    tag: str
    value: FieldValue

    @property
    def plain(self) -> PlainValue:
        """The value as ordinary Python: tables as dicts, arrays as lists, timestamps as UTC datetimes.

        A timestamp past the year 9999 stays a number.
        """
        value = self.value
        if isinstance(value, Table):
            return value.to_python()
        if isinstance(value, tuple):
            return [item.plain for item in value]
        if isinstance(value, int):
            if self.tag == "t":
                return bool(value)
            if self.tag == "T" and 0 <= value <= _LAST_SECOND:
                return datetime.fromtimestamp(value, UTC)
        return value

    @classmethod
    def of(cls, value: object) -> Field:
        """The field that RabbitMQ's own clients would make of ``value``.

        str, bytes, bool, int, float, Decimal, datetime, None, mappings, lists and tuples, and fields and
        tables as they are. :class:`TypeError` for other types, :class:`ValueError` for integers past 64
        bits, for decimals that do not fit a byte of places and 32 bits, and for times before 1970.
        """
        letter = _LETTERS.get(type(value))
        if letter is not None:
            return cls(letter, value)  # type: ignore[arg-type]
        if isinstance(value, Table):
            return cls("F", value)
        field = _scalar_of(value)
        if field is not None:
            return field
        if isinstance(value, Mapping):
            return cls("F", Table.of(value))
        if isinstance(value, Sequence):
            return cls("A", tuple([cls.of(item) for item in value]))
        raise TypeError(f"no field table type for {type(value).__name__}")


def _scalar_of(value: object) -> Field | None:
    if isinstance(value, Field):
        return value
    if isinstance(value, str):
        return Field("S", value)
    if isinstance(value, bool):
        return Field("t", value)
    if isinstance(value, int):
        if value in _INT32:
            return Field("I", value)
        if value in _INT64:
            return Field("l", value)
        raise ValueError("no field table type holds more than 64 bits")
    if value is None:
        return Field("V", None)
    if isinstance(value, bytes | bytearray | memoryview):
        return Field("x", bytes(value))
    if isinstance(value, float):
        return Field("d", value)
    if isinstance(value, Decimal):
        return Field("D", _wire_decimal(value))
    if isinstance(value, datetime):
        seconds = int(value.timestamp())
        if seconds < 0:
            raise ValueError("a timestamp counts from 1970")
        return Field("T", seconds)
    return None


def _wire_decimal(value: Decimal) -> Decimal:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent < -255:
        raise ValueError(f"{value} is no AMQP decimal")
    if exponent > 0:
        digits, exponent = digits + (0,) * min(exponent, 11), 0
    if len(digits) > 10 or int("".join(map(str, digits))) >= 2**32 or sign:
        raise ValueError(f"{value} is no AMQP decimal")
    return Decimal((sign, digits, exponent))


class Table:
    """An immutable field table: names and fields in wire order, duplicates included."""

    __slots__ = ("_index", "_plain", "base", "encodings", "entries")

    entries: tuple[tuple[str, Field], ...]

    def __init__(
        self,
        entries: tuple[tuple[str, Field], ...] = (),
        base: Table | None = None,
        encodings: dict[object, bytes] | None = None,
    ) -> None:
        self.entries = entries
        self._index: dict[str, Field] | None = None
        self._plain: dict[str, PlainValue] | None = None
        #: A known table whose entries are the first of this one's; None: that is not known.
        self.base = base
        #: Of a known table, its bytes by the dialect; None: they are not kept.
        self.encodings = encodings

    @classmethod
    def known(cls, table: Table) -> Table:
        """The same table, of which what is made is kept: peers say it again and again."""
        return cls(table.entries, encodings={})

    @classmethod
    def of(cls, mapping: Mapping[str, object]) -> Table:
        """A table from Python values; see :meth:`Field.of` for the types and errors."""
        return cls(tuple([(name, Field.of(value)) for name, value in mapping.items()]))

    def field(self, name: str) -> Field | None:
        """The first field of that name, with its wire tag."""
        index = self._index
        if index is None:
            # Backwards, so that the first of several wins.
            index = self._index = dict(reversed(self.entries))
        return index.get(name)

    def get(self, name: str, default: PlainValue = None) -> PlainValue:
        """The first value of that name as ordinary Python, or ``default``."""
        field = self.field(name)
        if field is None:
            return default
        return field.value if type(field.value) in _PLAIN else field.plain  # type: ignore[return-value]

    def with_(self, name: str, value: object) -> Table:
        """A copy in which ``name`` has that value: in its old place, or at the end; never twice."""
        field = Field.of(value)
        entries: list[tuple[str, Field]] = []
        placed = False
        for entry in self.entries:
            if entry[0] != name:
                entries.append(entry)
            elif not placed:
                entries.append((name, field))
                placed = True
        if not placed:
            entries.append((name, field))
            return Table(tuple(entries), None if self.encodings is None else self)
        return Table(tuple(entries))

    def without(self, name: str) -> Table:
        """A copy without any entry of that name."""
        return Table(tuple([entry for entry in self.entries if entry[0] != name]))

    def to_python(self) -> dict[str, PlainValue]:
        """A dict of ordinary Python values; see :attr:`Field.plain`."""
        if self._plain is not None:
            return self._plain.copy()
        plain: dict[str, PlainValue] = {}
        for name, field in self.entries:
            if name not in plain:
                plain[name] = field.value if type(field.value) in _PLAIN else field.plain  # type: ignore[assignment]
        if self.encodings is not None:
            self._plain = plain.copy()
        return plain

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.field(name) is not None

    def __iter__(self) -> Iterator[tuple[str, Field]]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return self.entries == other.entries if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        return "Table({" + ", ".join(f"{n!r}: {f.tag}:{f.value!r}" for n, f in self.entries) + "})"


#: Shared by all who have none.
EMPTY_TABLE: Final = Table()

"""What waits, made into columns: a piece of one sort, small enough that the relay does not notice it."""

from __future__ import annotations

import itertools
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, Self, TypeAlias, overload

import attrs

from amqpgate.logs import without_passwords
from amqpgate.records import SCHEMA_VERSION, TABLES, EventKind, Origin, Sort
from amqpgate.telemetry.audit.messages import CONTENT, WaitingMessages
from amqpgate.telemetry.audit.rows import AuditRow, Columns, Sums
from amqpgate.values import frozen

#: Bytes that a row takes while it waits, and an event beside its texts.
ROW_BYTES: Final = 600
EVENT_BYTES: Final = 600

#: Records of one piece; of events, no more once they count so many bytes. Messages that were captured take
#: half of others' time each, since most of their columns are alike (`python -m tests.bench.looked`).
SIZE: Final = 256
MESSAGES: Final = 512
PIECE_BYTES: Final = 1 << 20

#: A column: whole numbers (``q``) or epoch seconds (``d``) as arrays, all else as lists.
Column: TypeAlias = "Sequence[object] | array[int] | array[float]"

#: In these words of others may be, and in words an address with a password.
_FREE = frozenset({"arguments", "client", "reason", "detail"})
_SURROGATE = re.compile("[\ud800-\udfff]")

_ORIGIN = tuple(field.name for field in attrs.fields(Origin))
_ROW = tuple(field.name for field in attrs.fields(AuditRow) if field.name != "origin")
#: What an event may say, and what stands there if it does not.
_EVENT = {
    field.name: field.default
    for field in attrs.fields(TABLES["events"])
    if field.name in Columns.__annotations__
}


class Repeated(Sequence[object]):
    """A column that says the same of each record."""

    __slots__ = ("_length", "value")

    def __init__(self, value: object, length: int) -> None:
        self.value, self._length = value, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> object: ...
    @overload
    def __getitem__(self, at: slice) -> Repeated: ...  # type: ignore[explicit-any]
    def __getitem__(self, at: int | slice) -> object:  # type: ignore[explicit-any]
        if isinstance(at, slice):
            return Repeated(self.value, len(range(*at.indices(self._length))))
        range(self._length)[at]  # or IndexError
        return self.value


@frozen(eq=False)
class Waiting:
    """An event as it was told."""

    origin: Origin | None
    kind: EventKind
    #: Epoch seconds.
    time: float
    columns: Columns
    #: What it counts in the queue.
    byte_count: int

    @property
    def count(self) -> int:
        """Records."""
        return 1


@attrs.define(eq=False)
class Piece:
    """Some records of one sort: every column of its table, all of the same length."""

    sort: Sort
    length: int
    columns: dict[str, Column]
    #: When the first one was, epoch seconds.
    begins: float
    #: What they count in the queue.
    byte_count: int

    def clean(self) -> bool:
        """Write bytes that were no UTF-8 as ``\\xff``; whether there were any."""
        found = False
        for name, column in self.columns.items():
            if isinstance(column, array) or not any(
                isinstance(value, str) and _SURROGATE.search(value) for value in column
            ):
                continue
            found = True
            self.columns[name] = [
                _SURROGATE.sub(_escaped, value) if isinstance(value, str) else value for value in column
            ]
        return found

    def halves(self) -> tuple[Self, Self]:
        """The same in two pieces."""
        middle, byte_count = self.length // 2, self.byte_count // 2
        first = {name: column[:middle] for name, column in self.columns.items()}
        rest = {name: column[middle:] for name, column in self.columns.items()}
        make = type(self)
        return (
            make(self.sort, middle, first, self.begins, byte_count),
            make(self.sort, self.length - middle, rest, self.begins, self.byte_count - byte_count),
        )


class Pieces:
    """Makes pieces, and numbers their records: ``GATEWAY-BOOT-1``, whatever their sort."""

    def __init__(self, gateway: str, boot: str) -> None:
        self._gateway, self._prefix = gateway, f"{gateway}-{boot}-"
        self._numbers = itertools.count(1)

    def of_events(self, waiting: Sequence[Waiting]) -> Piece:
        """One piece of events."""
        columns = self._common([event.origin for event in waiting])
        columns["time"] = array("d", [event.time for event in waiting])
        columns["kind"] = [event.kind for event in waiting]
        said = [event.columns for event in waiting]
        for name, default in _EVENT.items():
            columns[name] = _decent(name, [told.get(name, default) for told in said])
        byte_count = sum(event.byte_count for event in waiting)
        return Piece("events", len(waiting), columns, waiting[0].time, byte_count)

    def of_messages(self, waiting: Sequence[WaitingMessages]) -> Piece:
        """One piece of events, a message each."""
        messages = [message for some in waiting for message in some.messages]
        columns = self._numbered(len(messages))
        counts = [some.count for some in waiting]
        for name in _ORIGIN:
            columns[name] = _spread(_decent(name, [getattr(some.origin, name) for some in waiting]), counts)
        times = [array("d", [some.time]) * some.count for some in waiting]
        columns["time"] = array("d", itertools.chain.from_iterable(times))
        columns["kind"] = Repeated("message", len(messages))
        # Few kinds have many messages, whatever the order in which these came.
        places = {kind: place for place, kind in enumerate(dict.fromkeys(kind for kind, _, _ in messages))}
        order = [places[kind] for kind, _, _ in messages]
        for name, default in _EVENT.items():
            values = _decent(name, [kind.columns.get(name, default) for kind in places])
            columns[name] = (
                Repeated(values[0], len(order)) if _are_alike(values) else [values[place] for place in order]
            )
        contents = zip(*[kind.read(header, body) for kind, header, body in messages], strict=True)
        for name, content in zip(CONTENT, contents, strict=True):
            columns[name] = Repeated(content[0], len(content)) if _are_alike(content) else content
        byte_count = sum(some.byte_count for some in waiting)
        return Piece("events", len(messages), columns, waiting[0].time, byte_count)

    def of_usage(self, sums: Sums) -> Iterator[Piece]:
        """Pieces of a closed window, which is used up; the last rows come first.

        They are let go of piece by piece: many at once would stop everybody for milliseconds.
        """
        while sums.rows:
            end = len(sums.rows)
            part = slice(max(end - SIZE, 0), end)
            some = [sums.rows.popitem()[0] for _ in range(*part.indices(end))]
            some.reverse()
            columns = self._common([row.origin for row in some])
            for name in _ROW:
                columns[name] = _decent(name, [getattr(row, name) for row in some])
            columns["window_start"] = sums.starts[part]
            columns["window_end"] = array("d", [sums.end]) * len(some)
            columns["first"], columns["last"] = sums.first[part], sums.last[part]
            columns["requests"], columns["messages"] = sums.requests[part], sums.messages[part]
            columns["bytes"], columns["largest_body"] = sums.byte_count[part], sums.largest[part]
            yield Piece("usage", len(some), columns, sums.starts[part.start], ROW_BYTES * len(some))

    def _common(self, origins: Sequence[Origin | None]) -> dict[str, Column]:
        columns = self._numbered(len(origins))
        for name in _ORIGIN:
            columns[name] = _decent(name, [getattr(origin, name, None) for origin in origins])
        return columns

    def _numbered(self, count: int) -> dict[str, Column]:
        return {
            "record_id": [f"{self._prefix}{number}" for number in itertools.islice(self._numbers, count)],
            "schema_version": Repeated(SCHEMA_VERSION, count),
            "gateway": Repeated(self._gateway, count),
        }


def _spread(values: list[object], counts: Sequence[int]) -> Column:
    """A column that says each value so many times."""
    if _are_alike(values):
        return Repeated(values[0], sum(counts))
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


def _are_alike(values: Sequence[object]) -> bool:
    return values.count(values[0]) == len(values)


def _decent(name: str, values: list[object]) -> list[object]:
    """The same without passwords in addresses."""
    if name not in _FREE:
        return values
    return [without_passwords(value) if isinstance(value, str) else value for value in values]


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"

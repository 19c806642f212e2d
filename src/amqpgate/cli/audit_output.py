"""The answer of a job as a table for people, or as CSV or JSON lines for programs."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from amqpgate.logs import on_one_line
from amqpgate.values import frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: A table for people has no more rows.
MOST_ROWS = 200
#: What a spreadsheet would take for the beginning of a formula: at the beginning of a cell, in the letters of
#: Latin and of East Asian scripts; and wherever a cell begins for one that splits by other characters.
_FORMULA = re.compile(r"(^[\s\x00]*|[;,|\t\r\n\"'] *)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])")
#: So many texts and times are remembered in the form of an answer: they repeat from row to row.
_MOST_TOLD = 1 << 14
#: Values that no form has as they are, and those that all have so.
_CHANGED = (str, datetime)
_NUMBERS = frozenset((int, float, bool, type(None)))
_BARS = "▁▂▃▄▅▆▇█"


def write(frame: DataFrame, form: Literal["table", "csv", "json"], out: IO[str], zone: tzinfo = UTC) -> None:
    """All rows in the frame's order; for people no more than ``MOST_ROWS``.

    They are fetched part by part. Times are those of the zone. A list of numbers is a small plot for people.
    """
    from amqpgate.pipeline.frames import rows_of

    rows = rows_of(frame, MOST_ROWS + 1 if form == "table" else None)
    write_rows(frame.columns, (tuple(row.values()) for row in rows), form, out, zone)


def write_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    form: Literal["table", "csv", "json"],
    out: IO[str],
    zone: tzinfo = UTC,
) -> None:
    """Rows that are here already, in the same forms."""
    plain = lru_cache(_MOST_TOLD)(partial(_plain, zone=zone))
    rows = ([plain(value) if isinstance(value, _CHANGED) else value for value in row] for row in rows)
    if form == "table":
        shown = list(islice(rows, MOST_ROWS + 1))
        _print_table(names, shown[:MOST_ROWS], out)
        if len(shown) > MOST_ROWS:
            out.write(f"The first {MOST_ROWS} rows; --format csv has all.\n")
    elif form == "csv":
        table = csv.writer(_Lines(out), lineterminator="\r\n")
        table.writerow(names)
        text_cell = lru_cache(_MOST_TOLD)(_text_cell)

        def cell(value: object) -> object:
            return text_cell(value) if isinstance(value, str) else _cell(value)

        table.writerows([value if type(value) in _NUMBERS else cell(value) for value in row] for row in rows)
    else:
        for row in rows:
            told = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=_digits)
            out.write(told + "\n")


@contextmanager
def replaced(path: str | None) -> Iterator[IO[str]]:
    """A file that is there once it is whole, or standard output."""
    if path is None:
        yield sys.stdout
        return
    unfinished = Path(path).with_name(f"_{Path(path).name}.{os.getpid()}")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as out:
            yield out
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@frozen
class _Lines:
    """Rows of CSV with the ends of lines that other programs of a shell expect.

    Before Python 3.13 csv puts quotes only around those ends of lines that it writes itself, and a reader
    takes a carriage return without them for the end of a row.
    """

    out: IO[str]

    def write(self, row: str) -> int:
        return self.out.write(row[:-2] + "\n")


def _print_table(names: Sequence[str], rows: Sequence[Sequence[object]], out: IO[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, name in enumerate(names):
        numeric = any(isinstance(row[number], int | float | Decimal) for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_word(value)) for value in row))
    # Only a terminal has a width.
    Console(file=out, width=None if out.isatty() else 10_000).print(table)


def _plain(value: object, zone: tzinfo) -> str:
    """Times as text, with their zone. Text that no file can hold as text that it can."""
    if isinstance(value, str):
        # JSON may name half a character.
        return value.encode(errors="backslashreplace").decode()
    assert isinstance(value, datetime)
    return value.astimezone(zone).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _word(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case Decimal():
            return f"{value:,.4f}"
        case list():
            numbers = [each for each in value if isinstance(each, int)]
            return _plot(numbers) if numbers else ", ".join(map(_word, value))
        case None:
            return ""
        case _:
            # Clients choose names, and a terminal obeys control characters.
            return on_one_line(str(value))


def _plot(numbers: list[int]) -> str:
    most = max(numbers, default=0) or 1
    return "".join(" " if not each else _BARS[(len(_BARS) - 1) * each // most] for each in numbers)


def _digits(value: object) -> str:
    """Money as text, which is exact."""
    if not isinstance(value, Decimal):
        raise TypeError(f"{value!r} is no value of an answer")
    return f"{value:f}"


def _cell(value: object) -> object:
    if isinstance(value, Decimal):
        return _digits(value)
    text = " ".join(map(str, value)) if isinstance(value, list) else value
    return _text_cell(text) if isinstance(text, str) else text


def _text_cell(text: str) -> str:
    # Clients choose names.
    return _FORMULA.sub(lambda begins: f"{begins[1] or ''}'", text)

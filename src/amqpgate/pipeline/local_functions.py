"""PySpark's functions for DuckDB: SQLFrame's, and those of ours that it does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlframe.duckdb import functions as _theirs

if TYPE_CHECKING:
    from sqlframe.duckdb import Column, DuckDBDataFrame


def __getattr__(name: str) -> object:
    return getattr(_theirs, name)


def broadcast(frame: DuckDBDataFrame) -> DuckDBDataFrame:
    """The frame: there is one process."""
    return frame


def get(values: Column | str, place: Column) -> Column:
    """The element with that index, the first is 0; null where there is none."""
    return _theirs.call_function("list_extract", _column(values), place.cast("bigint") + 1)


def array(*columns: Column | str) -> Column:
    """A list of them; without any an empty one."""
    return _theirs.array(*columns) if columns else _theirs.expr("CAST([] AS BIGINT[])")


def collect_list(column: Column | str) -> Column:
    """All values that are not null, as Spark has them; DuckDB's own has null, too."""
    return _theirs.filter(_theirs.collect_list(column), lambda value: value.isNotNull())


def get_json_object(text: Column | str, path: str) -> Column:
    """What is there, as text; null where nothing is, or the text is no JSON."""
    return _theirs.when(
        _theirs.call_function("json_valid", _column(text)),
        _theirs.call_function(
            "json_extract_string", _column(text), _theirs.lit(re.sub(r"\['(.*?)'\]", r'."\1"', path))
        ),
    )


def unix_seconds(time: Column | str) -> Column:
    """Whole seconds since the epoch. SQLFrame's own are rounded."""
    return _theirs.call_function("epoch", _theirs.date_trunc("second", _column(time))).cast("bigint")


def array_repeat(value: Column, count: Column) -> Column:
    """So many times the value."""
    return _theirs.transform(_theirs.call_function("range", count.cast("bigint")), lambda _: value)


def pmod(value: Column, by: Column) -> Column:
    """The remainder, never negative."""
    return (value % by + by) % by


def sum(column: Column | str) -> Column:  # noqa: A001
    """Of whole numbers. DuckDB's own has 128 bits, and a number that large ends a plan of Spark's, too."""
    return _theirs.sum(column).cast("bigint")


def _column(value: Column | str) -> Column:
    return _theirs.col(value) if isinstance(value, str) else value

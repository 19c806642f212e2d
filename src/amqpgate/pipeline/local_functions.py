"""PySpark's functions as terms of DuckDB's SQL: those that plans use."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from amqpgate.pipeline.local_columns import (
    SqlCase,
    SqlColumn,
    Window,
    column_of,
    literal,
    name_of,
    quoted,
    value_of,
)

if TYPE_CHECKING:
    from amqpgate.pipeline.local_frames import SqlFrame

_numbers: Final = itertools.count()


def call_function(name: str, *columns: SqlColumn | str) -> SqlColumn:
    """A function of DuckDB's own."""
    return SqlColumn(f"{name}({', '.join(column_of(column).sql for column in columns)})")


class _Function(Protocol):
    def __call__(self, *columns: SqlColumn | str) -> SqlColumn: ...


def _of(name: str) -> _Function:
    return lambda *columns: call_function(name, *columns)


col, lit = column_of, value_of
coalesce, greatest, least = _of("coalesce"), _of("greatest"), _of("least")
min, max, avg, max_by = _of("min"), _of("max"), _of("avg"), _of("arg_max")  # noqa: A001
abs, sqrt, ln = _of("abs"), _of("sqrt"), _of("ln")  # noqa: A001
size, array_max, explode = _of("len"), _of("list_max"), _of("unnest")
unix_micros, row_number, sequence = _of("epoch_us"), _of("row_number"), _of("generate_series")


def expr(sql: str) -> SqlColumn:
    """A term as it is written."""
    return SqlColumn(sql)


def asc(column: SqlColumn | str) -> SqlColumn:
    """The smallest first, and null before it."""
    return SqlColumn(column_of(column).sql)


asc_nulls_first = asc


def desc(column: SqlColumn | str) -> SqlColumn:
    """The largest first, and null at the end."""
    return SqlColumn(column_of(column).sql, order="DESC NULLS LAST")


def desc_nulls_first(column: SqlColumn | str) -> SqlColumn:
    """The largest first, and null before it."""
    return SqlColumn(column_of(column).sql, order="DESC NULLS FIRST")


def when(condition: SqlColumn, value: object) -> SqlCase:
    """The value where the condition is true."""
    return SqlCase(f" WHEN {condition.sql} THEN {value_of(value).sql}")


def count(column: SqlColumn | str) -> SqlColumn:
    """Of rows, or of values that are not null."""
    return (
        SqlColumn("count(*)") if isinstance(column, str) and column == "*" else call_function("count", column)
    )


def count_distinct(column: SqlColumn | str) -> SqlColumn:
    """Of different values that are not null."""
    return SqlColumn(f"count(DISTINCT {column_of(column).sql})")


countDistinct = count_distinct  # noqa: N816 - PySpark has both


def sum(column: SqlColumn | str) -> SqlColumn:  # noqa: A001
    """Of whole numbers. DuckDB's own has 128 bits, and a number that large ends a plan of Spark's, too."""
    return call_function("sum", column).cast("bigint")


def floor(column: SqlColumn) -> SqlColumn:
    """The whole number below, as such."""
    return call_function("floor", column).cast("bigint")


def signum(column: SqlColumn) -> SqlColumn:
    """-1, 0 or 1, as a number with a point."""
    return call_function("sign", column).cast("double")


def pmod(value: SqlColumn, by: SqlColumn) -> SqlColumn:
    """The remainder, never negative."""
    return (value % by + by) % by


def unix_seconds(time: SqlColumn | str) -> SqlColumn:
    """Whole seconds since the epoch."""
    micros = f"epoch_us({column_of(time).sql})"
    # Division leads towards zero, and times before 1970 are negative.
    return SqlColumn(f"({micros} // 1000000 - CAST({micros} % 1000000 < 0 AS BIGINT))")


def timestamp_seconds(seconds: SqlColumn | str) -> SqlColumn:
    """The time so many seconds after the epoch."""
    return SqlColumn(f"make_timestamptz(CAST({column_of(seconds).sql} AS BIGINT) * 1000000)")


def struct(*columns: SqlColumn | str) -> SqlColumn:
    """A structure that has them by their names."""
    fields = (f"{quoted(name_of(one))} := {one.sql}" for one in map(column_of, columns))
    return SqlColumn(f"struct_pack({', '.join(fields)})")


def array(*columns: SqlColumn | str) -> SqlColumn:
    """A list of them; without any an empty one."""
    return call_function("list_value", *columns) if columns else SqlColumn("CAST([] AS BIGINT[])")


def array_repeat(value: SqlColumn, count: SqlColumn) -> SqlColumn:
    """So many times the value."""
    return SqlColumn(f"repeat([{value.sql}], {count.sql})")


def get(values: SqlColumn | str, place: SqlColumn) -> SqlColumn:
    """The element with that index, the first is 0; null where there is none."""
    return SqlColumn(f"list_extract({column_of(values).sql}, CAST({place.sql} AS BIGINT) + 1)")


def collect_list(column: SqlColumn | str) -> SqlColumn:
    """All values that are not null, as Spark has them; DuckDB's own has null, too."""
    value = column_of(column).sql
    return SqlColumn(f"coalesce(list({value}) FILTER ({value} IS NOT NULL), [])")


def sort_array(values: SqlColumn | str) -> SqlColumn:
    """The smallest first, and null before it."""
    return SqlColumn(f"list_sort({column_of(values).sql}, 'ASC', 'NULLS FIRST')")


def array_sort(values: SqlColumn | str) -> SqlColumn:
    """The smallest first, and null at the end."""
    return SqlColumn(f"list_sort({column_of(values).sql}, 'ASC', 'NULLS LAST')")


def transform(values: SqlColumn | str, function: Callable[[SqlColumn], SqlColumn]) -> SqlColumn:
    """What the function makes of each element."""
    each = f"each_{next(_numbers)}"
    return SqlColumn(
        f"list_transform({column_of(values).sql}, lambda {each}: {function(SqlColumn(each)).sql})"
    )


def array_join(values: SqlColumn | str, between: str) -> SqlColumn:
    """Its texts as one."""
    return SqlColumn(f"array_to_string({column_of(values).sql}, {literal(between)})")


def concat(*columns: SqlColumn | str) -> SqlColumn:
    """Texts or lists, one after the other; null where one is."""
    return SqlColumn(f"({' || '.join(column_of(column).sql for column in columns)})")


def concat_ws(between: str, *columns: SqlColumn | str) -> SqlColumn:
    """The texts that are not null, as one."""
    return call_function("concat_ws", value_of(between), *columns)


def split(text: SqlColumn | str, expression: str) -> SqlColumn:
    """What is between matches of a regular expression."""
    return SqlColumn(f"string_split_regex({column_of(text).sql}, {literal(expression)})")


def get_json_object(text: SqlColumn | str, path: str) -> SqlColumn:
    """What is there, as text; null where nothing is, or the text is no JSON."""
    said, place = column_of(text).sql, literal(re.sub(r"\['(.*?)'\]", r'."\1"', path))
    return SqlColumn(f"CASE WHEN json_valid({said}) THEN json_extract_string({said}, {place}) END")


def broadcast(frame: SqlFrame) -> SqlFrame:
    """The frame: there is one process."""
    return frame


__all__ = ["Window"]

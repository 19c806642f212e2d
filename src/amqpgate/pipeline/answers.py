"""The answer of a verb as an Arrow table: rows that are here already are typed by the names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow

_TIME: Final = pyarrow.timestamp("us", tz="UTC")
#: Columns of one name have one type, whichever verb answers; all others are text.
TYPES: Final[Mapping[str, pyarrow.DataType]] = {
    **dict.fromkeys(("messages", "bytes", "requests", "times", "hops"), pyarrow.int64()),
    **dict.fromkeys(("first", "last", "declared", "hour"), _TIME),
}


def table_of(names: Sequence[str], rows: Iterable[Sequence[object]]) -> pyarrow.Table:
    """The rows as a table."""
    types = [TYPES.get(name, pyarrow.string()) for name in names]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pyarrow.table(arrays, names=list(names))

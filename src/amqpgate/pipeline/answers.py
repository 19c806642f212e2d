"""The answer of a verb in Arrow: rows that are here already are typed by the names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow

from amqpgate.pipeline.batches import together

#: Bytes of rows that are written together.
TOGETHER: Final = 64 << 20
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


def write_parquet(rows: pyarrow.RecordBatchReader, path: Path) -> None:
    """The rows as a file, also if there are none."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, rows.schema, compression="zstd", write_page_checksum=True) as writer:
        for part in together(rows, TOGETHER):
            writer.write_table(part)

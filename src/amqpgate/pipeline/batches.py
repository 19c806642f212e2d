"""Rows that come in batches: not a few at a time, and not all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def together(batches: Iterable[pa.RecordBatch], enough: int, most: int | None = None) -> Iterator[pa.Table]:
    """The rows of several batches in one table, which has so many bytes, or is the last. ``most``: how many
    batches, where each keeps more memory than its rows take."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= enough or len(waiting) == most:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)

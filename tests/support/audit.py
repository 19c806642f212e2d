"""Audit records, read back from the files that a gateway has written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import pyarrow.parquet

from amqpgate.records import Sort

Record: TypeAlias = "dict[str, object]"


def setting(folder: Path, window: float, **more: object) -> str:
    """The settings of an audit log that rolls files at once; the folder is made."""
    folder.mkdir(exist_ok=True)
    said = {"format": "parquet", "folder": folder, "gateway": "gw", "window": window, "rollInterval": 0.1}
    return "audit:\n" + "".join(f"  {name}: {value}\n" for name, value in (said | more).items())


def records(folder: Path, sort: Sort) -> list[Record]:
    """All of one sort that are in whole files, in the order of their times."""
    found: list[Record] = []
    for file in (folder / sort).glob("date=*/[!_]*.parquet"):
        found += pyarrow.parquet.ParquetFile(file).read().to_pylist()
    return sorted(found, key=lambda one: str(one["time" if sort == "events" else "first"]))


def sums(usage: Iterable[Record], *columns: str) -> dict[tuple[object, ...], tuple[int, int]]:
    """Messages and bytes of usage by these columns; requests, of what carries no messages."""
    messages: Counter[tuple[object, ...]] = Counter()
    byte_count: Counter[tuple[object, ...]] = Counter()
    for one in usage:
        key = tuple(one[column] for column in columns)
        count, requests, size = one["messages"], one["requests"], one["bytes"]
        assert isinstance(count, int)
        assert isinstance(requests, int)
        assert isinstance(size, int)
        assert count in (0, requests)
        messages[key] += requests
        byte_count[key] += size
    return {key: (messages[key], byte_count[key]) for key in messages}

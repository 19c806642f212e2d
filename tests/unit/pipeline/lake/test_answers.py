"""The answers of verbs as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline.answers import table_of
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.answers import replace
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.table import Lake
from tests.support.audit_records import START


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A place for tables."""
    address = address_of(f"{request.param}:{tmp_path}")
    assert address is not None
    return open_lake(address)


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    table = lake.load(name)
    assert table is not None
    return [row for file in table.files() for row in pq.read_table(table.open(file.path)).to_pylist()]


def test_each_run_replaces_what_was_there(lake: Lake) -> None:
    replace(lake, "denials", pa.table({"times": [1, 2], "users": [["a", "b"], []], "last": [START, None]}))
    assert rows(lake, "denials") == [
        {"times": 1, "users": ["a", "b"], "last": START},
        {"times": 2, "users": [], "last": None},
    ]
    replace(lake, "denials", pa.table({"times": [3], "users": [["c"]], "last": [START], "new": ["x"]}))
    assert rows(lake, "denials") == [{"times": 3, "users": ["c"], "last": START, "new": "x"}]
    replace(lake, "denials", pa.table({"times": pa.array([], pa.int64())}))
    assert rows(lake, "denials") == []
    with pytest.raises(PipelineError, match="the table denials has int64 in times, and not string"):
        replace(lake, "denials", pa.table({"times": ["many"]}))


def test_rows_are_typed_by_the_names_of_their_columns() -> None:
    names = ("source", "messages", "last")
    assert table_of(names, []).schema == table_of(names, [("a", 1, START)]).schema
    assert table_of(names, [("a", 1, START), (None, None, None)]).to_pylist() == [
        {"source": "a", "messages": 1, "last": START},
        {"source": None, "messages": None, "last": None},
    ]

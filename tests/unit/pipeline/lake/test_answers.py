"""The answers of verbs as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline.answers import table_of, write_parquet
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake import answers
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.answers import replace
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.table import Lake, NewFile
from tests.support.audit_records import START


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A place for tables."""
    address = address_of(f"{request.param}:{tmp_path}")
    assert address is not None
    return open_lake(address)


def put(lake: Lake, columns: dict[str, Any]) -> None:
    replace(lake, "denials", pa.table(columns).to_reader(1))


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    table = lake.load(name)
    assert table is not None
    return [row for file in table.files() for row in pq.read_table(table.open(file.path)).to_pylist()]


def test_each_run_replaces_what_was_there(lake: Lake) -> None:
    put(lake, {"times": [1, 2], "users": [["a", "b"], []], "last": [START, None]})
    assert rows(lake, "denials") == [
        {"times": 1, "users": ["a", "b"], "last": START},
        {"times": 2, "users": [], "last": None},
    ]
    put(lake, {"times": [3], "users": [["c"]], "last": [START], "new": ["x"]})
    assert rows(lake, "denials") == [{"times": 3, "users": ["c"], "last": START, "new": "x"}]
    put(lake, {"times": pa.array([], pa.int64())})
    assert rows(lake, "denials") == []
    with pytest.raises(PipelineError, match="the table denials has int64 in times, and not string"):
        put(lake, {"times": ["many"]})


def test_who_is_overtaken_replaces_what_the_other_has_put(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(lake, {"times": [1]})
    real = answers.write

    def overtaken(*args: Any) -> NewFile:
        monkeypatch.setattr(answers, "write", real)
        put(lake, {"times": [2], "by": ["other"]})
        return real(*args)

    monkeypatch.setattr(answers, "write", overtaken)
    put(lake, {"times": [3, 4]})
    assert [row["times"] for row in rows(lake, "denials")] == [3, 4]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_file_has_all_rows_however_they_come(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "TOGETHER", 1)
    table = pa.table({"times": pa.array(range(count), pa.int64())})
    write_parquet(table.to_reader(1), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet") == table


def test_rows_are_typed_by_the_names_of_their_columns() -> None:
    names = ("source", "messages", "last")
    assert table_of(names, []).schema == table_of(names, [("a", 1, START)]).schema
    assert table_of(names, [("a", 1, START), (None, None, None)]).to_pylist() == [
        {"source": "a", "messages": 1, "last": START},
        {"source": None, "messages": None, "last": None},
    ]

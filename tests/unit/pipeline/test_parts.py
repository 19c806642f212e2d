"""Records in parts, and parts as one file."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline import parts as module
from amqpgate.pipeline.parts import Part, merge, merged, pack, pack_files, unpack
from amqpgate.records import Usage, arrow_schema
from tests.support.audit_records import START, Traffic, table_of, usage, write


def batches(table: pa.Table, size: int = 100) -> Iterator[pa.RecordBatch]:
    """As Spark hands them over."""
    return iter(table.combine_chunks().to_batches(max_chunksize=size))


def by_place(packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As Spark hands back what was packed."""
    table = pa.Table.from_batches(list(packed)).sort_by([("place", "ascending"), ("first", "ascending")])
    return iter(table.to_batches(max_chunksize=3))


def part(*ids: str, read: list[str] | None = None) -> Part:
    """A part, and a note when it is read."""

    def records() -> pa.Table:
        if read is not None:
            read.append(min(ids))
        return module.fitted(table_of("usage", [usage(one, START) for one in ids]), "usage")

    return Part(min(ids), records)


def ids(tables: Iterable[pa.Table]) -> list[list[str]]:
    return [table["record_id"].to_pylist() for table in tables]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes is enough to be looked at."""
    monkeypatch.setattr(module, "_TOGETHER", 1)


@pytest.mark.parametrize("together", [1, 100_000, 1 << 30])
def test_all_of_it_comes_back_by_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(module, "_TOGETHER", together)
    table = Traffic(gateways=3).usage(2_000, span=timedelta(days=3))
    packed = list(pack(batches(table), "usage"))
    assert (sum(map(len, packed)) > 3 * 6) == (together < 1 << 30)
    days = table["window_start"].cast(pa.date32()).cast(pa.string()).to_pylist()
    keys = [vhost.replace("/", "_") for vhost in table["vhost"].to_pylist()]
    of = [f"date={day}/vhost_key={key}" for day, key in zip(days, keys, strict=True)]
    places = []
    for place, parts in unpack(by_place(packed), "usage"):
        places.append(place)
        merge(parts, None, "usage", tmp_path / place / "made")
        mine = table.filter(pa.array([one == place for one in of])).sort_by("record_id")
        expected = mine.cast(pa.schema([field.with_nullable(True) for field in mine.schema]))
        assert pq.read_table(tmp_path / place / "made", partitioning=None).equals(expected)
    assert places == sorted(set(of))
    assert len(places) == 6


def test_files_are_packed_as_what_spark_reads(tmp_path: Path) -> None:
    table = Traffic().usage(1_000)
    paths = write(tmp_path, "usage", table, per_file=300)
    rows = pa.record_batch({"path": [f"file://{path}" for path in paths]})
    for read, found in zip(
        unpack(by_place(pack_files([rows], "usage")), "usage"),
        unpack(by_place(pack(batches(table), "usage")), "usage"),
        strict=True,
    ):
        assert read[0] == found[0]
        for part in (read, found):
            merge(part[1], None, "usage", tmp_path / f"made-{part is read}")
        assert pq.read_table(tmp_path / "made-True").equals(pq.read_table(tmp_path / "made-False"))


def test_a_file_that_is_damaged_inside_is_named(tmp_path: Path) -> None:
    (path,) = write(tmp_path, "usage", Traffic().usage(1_000))
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"file://{path} is damaged: "):
        list(pack_files([pa.record_batch({"path": [f"file://{path}"]})], "usage"))


def test_what_could_not_be_opened_is_in_one_place() -> None:
    records = [usage(str(n), START, vhost=str(n), operation="connection.open") for n in range(9)]
    records.append(usage("9", START, vhost=None))
    (batch,) = pack(batches(table_of("usage", records)), "usage")
    assert batch["place"].to_pylist() == ["date=2026-11-02/vhost_key=_"]


def test_a_part_is_of_one_gateway(few: None) -> None:
    """Ids of several would lie between those of all others."""
    table = Traffic(gateways=2).usage(100)
    for _, parts in unpack(by_place(pack(batches(table), "usage")), "usage"):
        for one in parts:
            records = one.read()
            assert len(set(records["gateway"].to_pylist())) == 1
            assert min(records["record_id"].to_pylist()) == one.first


def test_what_does_not_overlap_is_read_and_gone(few: None) -> None:
    read: list[str] = []
    found = merged(part(*pair, read=read) for pair in ("ab", "cd", "ef"))
    assert next(found)["record_id"].to_pylist() == ["a", "b"]
    assert read == ["a"]
    assert ids(found) == [["c", "d"], ["e", "f"]]


@pytest.mark.parametrize("seed", range(5))
def test_each_is_there_once_and_in_order(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(module, "_TOGETHER", seed * 1_000)
    chance = random.Random(seed)
    every = [f"{number:03}" for number in range(200)]
    some = [sorted(chance.sample(every, chance.randint(1, 20)))[:: chance.choice((1, -1))] for _ in range(30)]
    tables = merged(sorted((part(*one) for one in some), key=lambda one: one.first))
    assert list(chain.from_iterable(ids(tables))) == sorted(set().union(*some))


def test_parts_are_merged_with_a_file(tmp_path: Path) -> None:
    merge([part("b", "d")], None, "usage", tmp_path / "old")
    merge([part("a", "d"), part("c", "e")], tmp_path / "old", "usage", tmp_path / "made")
    made = pq.read_table(tmp_path / "made")
    assert made.column_names == arrow_schema(Usage).names
    assert made["record_id"].to_pylist() == ["a", "b", "c", "d", "e"]
    assert {path.name for path in tmp_path.iterdir()} == {"old", "made"}


def test_a_column_that_a_file_does_not_have_is_null(tmp_path: Path) -> None:
    old = table_of("usage", [usage("a", START)]).drop_columns(["client", "messages"])
    pq.write_table(old, tmp_path / "old")
    merge([part("b")], tmp_path / "old", "usage", tmp_path / "made")
    made = pq.read_table(tmp_path / "made")
    assert made["messages"].to_pylist() == [None, 1]
    assert made["client"].to_pylist() == [None, None]

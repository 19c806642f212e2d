"""Raw records as a table of few files."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from amqpgate.pipeline import compact as module
from amqpgate.pipeline.compact import Compacted, compact, locked, merged, placed
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.reading import Span, read, schema
from amqpgate.records import Sort
from tests.support.audit_records import START, event, frame_of, lines, table_of, usage, write

DAY = timedelta(days=1)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Two files of usage, the first of which goes on until after midnight, and one of events."""
    folder = tmp_path / "raw"
    records = [
        usage("a-1", START, 1),
        usage("a-2", START, 2, vhost="shop"),
        usage("a-3", START + DAY, 4),
        usage("a-4", START + DAY, 8),
    ]
    write(folder, "usage", table_of("usage", records), per_file=3)
    write(folder, "events", table_of("events", [event("e-1", "admin", START)]))
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def files(table: Path) -> dict[str, tuple[int, int]]:
    """All that readers see, and what changes when a file is written anew."""
    return {
        str(path.relative_to(table)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in sorted(table.rglob("*"))
        if path.is_file() and not any(part.startswith(("_", ".")) for part in path.relative_to(table).parts)
    }


def sums(spark: SparkSession, folder: Path, span: Span | None = None) -> dict[str, int]:
    """Messages by record."""
    rows = read(spark, str(folder), "usage", span).frame.collect()
    assert len({row.record_id for row in rows}) == len(rows)
    return {row.record_id: row.messages for row in rows}


def brief(done: list[Compacted]) -> dict[Sort, tuple[int, int, int]]:
    return {each.sort: (each.files, each.changed, each.records) for each in done}


def test_records_are_placed_by_their_own_day_and_virtual_host(
    spark: SparkSession, raw: Path, table: Path
) -> None:
    assert brief(compact(spark, str(raw), table)) == {"events": (1, 1, 1), "usage": (2, 3, 4)}
    assert list(files(table)) == [
        "events/date=2026-11-02/records.parquet",
        "usage/date=2026-11-02/vhost_key=_/records.parquet",
        "usage/date=2026-11-02/vhost_key=shop/records.parquet",
        "usage/date=2026-11-03/vhost_key=_/records.parquet",
    ]
    for sort in ("events", "usage"):
        assertDataFrameEqual(read(spark, str(table), sort).frame, read(spark, str(raw), sort).frame)


def test_once_more_changes_nothing(spark: SparkSession, raw: Path, table: Path) -> None:
    compact(spark, str(raw), table)
    before = files(table)
    assert brief(compact(spark, str(raw), table)) == {"events": (0, 0, 0), "usage": (0, 0, 0)}
    assert files(table) == before


def test_records_that_come_again_change_nothing(spark: SparkSession, raw: Path, table: Path) -> None:
    compact(spark, str(raw), table)
    before = files(table)
    again = [usage("a-4", START + DAY, 8), usage("a-1", START, 1)]
    write(raw, "usage", table_of("usage", again), gateway="copy")
    (raw / "copy.jsonl").write_text("\n".join(lines("usage", again)))
    assert brief(compact(spark, str(raw), table))["usage"] == (2, 0, 0)
    assert files(table) == before


def test_late_records_change_their_day_only(spark: SparkSession, raw: Path, table: Path) -> None:
    compact(spark, str(raw), table)
    before = files(table)
    late = [
        usage("b-1", START + DAY, 16),
        usage("b-2", START, 32, vhost="shop"),
        usage("b-2", START, 32, vhost="shop"),
    ]
    write(raw, "usage", table_of("usage", late), gateway="late")
    assert brief(compact(spark, str(raw), table))["usage"] == (1, 2, 2)
    after = files(table)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {
        "usage/date=2026-11-02/vhost_key=shop/records.parquet",
        "usage/date=2026-11-03/vhost_key=_/records.parquet",
    }
    assert sums(spark, table) == {"a-1": 1, "a-2": 2, "a-3": 4, "a-4": 8, "b-1": 16, "b-2": 32}


@pytest.mark.parametrize("moment", ["before the first exchange", "between exchanges", "before the ledger"])
def test_after_a_crash_the_table_is_read_and_then_completed(
    spark: SparkSession, raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    compact(spark, str(raw), table)
    write(
        raw, "usage", table_of("usage", [usage("b-1", START, 16), usage("b-2", START + DAY, 32)]), gateway="b"
    )
    left = {"before the first exchange": 0, "between exchanges": 1}.get(moment, 99)
    exchange = module._exchange

    class Crash(BaseException):
        pass

    def fail(*_: object) -> int:
        raise Crash

    def exchange_some(part: Path, place: Path) -> int:
        nonlocal left
        left -= 1
        return exchange(part, place) if left >= 0 else fail()

    with monkeypatch.context() as patch:
        patch.setattr(module, "_exchange", exchange_some)
        patch.setattr(module, "_replace_text", fail)
        with pytest.raises(Crash):
            compact(spark, str(raw), table)
    whole = {"a-1": 1, "a-2": 2, "a-3": 4, "a-4": 8, "b-1": 16, "b-2": 32}
    found = sums(spark, table)
    assert found.items() <= whole.items()
    assert len(found) == {"before the first exchange": 4, "between exchanges": 5}.get(moment, 6)
    compact(spark, str(raw), table)
    assert sums(spark, table) == whole
    assert not (table / "_unfinished").exists()


def test_two_at_once_are_refused(spark: SparkSession, raw: Path, table: Path) -> None:
    with locked(table), pytest.raises(PipelineError, match="is being compacted by another process"):
        compact(spark, str(raw), table)


@pytest.mark.parametrize("inside", ["", "usage", ".."])
def test_the_table_must_be_apart_from_the_raw_records(spark: SparkSession, raw: Path, inside: str) -> None:
    with pytest.raises(PipelineError, match="the table must be apart"):
        compact(spark, f"file://{raw}", raw / inside)


def test_files_that_are_cut_off_are_tried_again(spark: SparkSession, raw: Path, table: Path) -> None:
    (path,) = write(raw, "usage", table_of("usage", [usage("b-1", START, 16)]), gateway="b")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    (_, done) = compact(spark, str(raw), table)
    assert [skipped.path for skipped in done.skipped] == [f"file://{path}"]
    path.write_bytes(whole)
    assert brief(compact(spark, str(raw), table))["usage"] == (1, 1, 1)


def test_one_virtual_host_is_read_from_its_own_files(spark: SparkSession, raw: Path, table: Path) -> None:
    names = ["", "a/b", "a_b", "é" * 100, "é" * 99, "..", "a b%2F", None]
    records = [usage(f"v-{number}", START, vhost=name) for number, name in enumerate(names)]
    write(raw, "usage", table_of("usage", records), gateway="v")
    compact(spark, str(raw), table)
    for number, name in enumerate(names[:-1]):
        assert sums(spark, table, Span(vhost=name)) == {f"v-{number}": 1}
    assert read(spark, str(table), "usage", Span(vhost="shop")).files == 3
    assert all(re.fullmatch(r"[\w./=-]+", name) for name in files(table))


def test_virtual_hosts_that_could_not_be_opened_share_a_file(spark: SparkSession) -> None:
    records = [
        usage(str(number), START, vhost=str(number), operation="connection.open") for number in range(9)
    ]
    assert placed(frame_of(spark, "usage", records), "usage").select("vhost_key").distinct().count() == 1


def test_a_merge_sorts_and_keeps_one_of_each(spark: SparkSession) -> None:
    def frame(*ids: str) -> DataFrame:
        return placed(frame_of(spark, "usage", [usage(name, START) for name in ids]), "usage")

    found = merged(frame("c", "a", "b", "a", "a", "c"), "usage")
    assertDataFrameEqual(found, frame("a", "b", "c"), checkRowOrder=True)
    assert found.columns == [*schema("usage").names, "date", "vhost_key"]

"""Raw records as a table of few files, with Spark and in this process."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from amqpgate.pipeline import compacted as module
from amqpgate.pipeline import local_compact
from amqpgate.pipeline.compact import compact as compact_with_spark
from amqpgate.pipeline.compacted import locked
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import Compacted, Span
from amqpgate.pipeline.reading import read
from amqpgate.pipeline.spark import explained
from amqpgate.records import Sort
from tests.support.audit_records import START, Traffic, event, lines, table_of, usage, write

DAY = timedelta(days=1)
Compact: TypeAlias = Callable[[str, Path], list[Compacted]]
UNCHANGED = "usage/date=2026-11-02/vhost_key=_/records-00000001.parquet"


@pytest.fixture(params=["spark", "local"])
def compact(request: pytest.FixtureRequest, spark: SparkSession) -> Compact:
    """The one, or the other."""
    return partial(compact_with_spark, spark) if request.param == "spark" else local_compact.compact


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Two files of usage, the first of which goes on until after midnight."""
    folder = tmp_path / "raw"
    records = [
        usage("a-1", START, 1),
        usage("a-2", START, 2, vhost="shop"),
        usage("a-3", START + DAY, 4),
        usage("a-4", START + DAY, 8),
    ]
    write(folder, "usage", table_of("usage", records), per_file=3)
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
    spark: SparkSession, compact: Compact, raw: Path, table: Path
) -> None:
    write(raw, "events", table_of("events", [event("e-1", "admin", START)]))
    assert brief(compact(str(raw), table)) == {"events": (1, 1, 1), "usage": (2, 3, 4)}
    assert list(files(table)) == [
        "events/date=2026-11-02/records-00000001.parquet",
        "usage/date=2026-11-02/vhost_key=_/records-00000001.parquet",
        "usage/date=2026-11-02/vhost_key=shop/records-00000001.parquet",
        "usage/date=2026-11-03/vhost_key=_/records-00000001.parquet",
    ]
    for sort in ("events", "usage"):
        assertDataFrameEqual(read(spark, str(table), sort).frame, read(spark, str(raw), sort).frame)


def test_once_more_changes_nothing(compact: Compact, raw: Path, table: Path) -> None:
    compact(str(raw), table)
    before = files(table)
    assert brief(compact(str(raw), table)) == {"events": (0, 0, 0), "usage": (0, 0, 0)}
    assert files(table) == before


def test_records_that_come_again_change_nothing(compact: Compact, raw: Path, table: Path) -> None:
    compact(str(raw), table)
    before = files(table)
    again = [usage("a-4", START + DAY, 8), usage("a-1", START, 1)]
    write(raw, "usage", table_of("usage", again), gateway="copy")
    (raw / "copy.jsonl").write_text("\n".join(lines("usage", again)))
    assert brief(compact(str(raw), table))["usage"] == (2, 0, 0)
    assert files(table) == before


def test_late_records_change_their_day_only(
    spark: SparkSession, compact: Compact, raw: Path, table: Path
) -> None:
    compact(str(raw), table)
    before = files(table)
    late = [
        usage("b-1", START + DAY, 16),
        usage("b-2", START, 32, vhost="shop"),
        usage("b-2", START, 32, vhost="shop"),
    ]
    write(raw, "usage", table_of("usage", late), gateway="late")
    assert brief(compact(str(raw), table))["usage"] == (1, 2, 2)
    after = files(table)
    assert after.keys() - before.keys() == {
        "usage/date=2026-11-02/vhost_key=shop/records-00000002.parquet",
        "usage/date=2026-11-03/vhost_key=_/records-00000002.parquet",
    }
    assert len(after) == len(before)
    assert before.items() & after.items() == {(UNCHANGED, before[UNCHANGED])}
    assert sums(spark, table) == {"a-1": 1, "a-2": 2, "a-3": 4, "a-4": 8, "b-1": 16, "b-2": 32}


class Crash(BaseException):
    """The process is gone: nothing is put right on the way out."""


def test_after_crashes_the_table_is_read_and_then_completed(
    spark: SparkSession, compact: Compact, raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact(str(raw), table)
    late = [usage("b-1", START, 16), usage("b-2", START + DAY, 32)]
    write(raw, "usage", table_of("usage", late), gateway="b")
    before = sums(spark, table)
    whole = before | {"b-1": 16, "b-2": 32}
    exchange = module._exchange

    def crash(*_: object) -> int:
        raise Crash

    for exchanges, added in ((0, 0), (1, 1), (2, 2)):
        left = iter([exchange] * exchanges)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_exchange", lambda *folders: next(left, crash)(*folders))  # noqa: B023
            patch.setattr(module, "_replace_text", crash)
            with pytest.raises(Crash):
                compact(str(raw), table)
        found = sums(spark, table)
        assert found.items() <= whole.items()
        assert len(found) == len(before) + added
    before_ledger = files(table)
    assert brief(compact(str(raw), table)) == {"events": (0, 0, 0), "usage": (1, 0, 0)}
    assert files(table) == before_ledger
    assert sums(spark, table) == whole


def test_a_file_that_was_replaced_is_neither_read_nor_kept(
    spark: SparkSession, compact: Compact, raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crash was between the rename and the removal."""
    compact(str(raw), table)
    before = sums(spark, table)
    write(raw, "usage", table_of("usage", [usage("b-1", START + DAY, 16)]), gateway="b")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda path: None)
        patch.setattr(module, "_replace_text", lambda *_: None)
        compact(str(raw), table)
    assert len(list(table.rglob("date=2026-11-03/*/records-*.parquet"))) == 2
    assert sums(spark, table) == before | {"b-1": 16}
    with locked(table):
        assert len(list(table.rglob("date=2026-11-03/*/records-*.parquet"))) == 1
    assert sums(spark, table) == before | {"b-1": 16}


def test_whoever_knows_a_file_that_is_gone_is_told(
    spark: SparkSession, compact: Compact, raw: Path, table: Path
) -> None:
    compact(str(raw), table)
    known = read(spark, str(table), "usage").frame
    write(raw, "usage", table_of("usage", [usage("b-1", START + DAY, 16)]), gateway="b")
    compact(str(raw), table)
    with pytest.raises(PipelineError, match="FILE_NOT_EXIST"), explained("Spark"):
        known.agg(F.sum("messages")).collect()


def test_two_at_once_are_refused(compact: Compact, raw: Path, table: Path) -> None:
    with locked(table), pytest.raises(PipelineError, match="is being compacted by another process"):
        compact(str(raw), table)


@pytest.mark.parametrize("inside", ["", "usage", ".."])
def test_the_table_must_be_apart_from_the_raw_records(compact: Compact, raw: Path, inside: str) -> None:
    with pytest.raises(PipelineError, match="the table must be apart"):
        compact(f"file://{raw}", raw / inside)


def test_files_that_are_cut_off_are_tried_again(compact: Compact, raw: Path, table: Path) -> None:
    (path,) = write(raw, "usage", table_of("usage", [usage("b-1", START, 16)]), gateway="b")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    (_, done) = compact(str(raw), table)
    assert [skipped.path for skipped in done.skipped] == [f"file://{path}"]
    path.write_bytes(whole)
    assert brief(compact(str(raw), table))["usage"] == (1, 1, 1)


def test_one_virtual_host_is_read_from_its_own_files(
    spark: SparkSession, compact: Compact, raw: Path, table: Path
) -> None:
    names = ["", "a/b", "a_b", "é" * 100, "é" * 99, "..", "a b%2F", None]
    records = [usage(f"v-{number}", START, vhost=name) for number, name in enumerate(names)]
    write(raw, "usage", table_of("usage", records), gateway="v")
    compact(str(raw), table)
    for number, name in enumerate(names[:-1]):
        assert sums(spark, table, Span(vhost=name)) == {f"v-{number}": 1}
    assert read(spark, str(table), "usage", Span(vhost="shop")).files == 3
    assert all(re.fullmatch(r"[\w./=-]+", name) for name in files(table))


def test_a_file_that_is_damaged_inside_ends_it_and_changes_nothing(
    compact: Compact, raw: Path, table: Path
) -> None:
    compact(str(raw), table)
    before = files(table)
    (path,) = write(raw, "usage", Traffic().usage(1_000), gateway="b")
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    path.write_bytes(data)
    with pytest.raises(PipelineError, match=str(path)):
        compact(str(raw), table)
    assert files(table) == before

"""Raw records into tables of both formats: each once, whatever happens between."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline import local_compact, parts
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import Compacted, Span
from amqpgate.pipeline.lake import compacting, writing
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.compacting import FILES, compact_into, expire
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.source import LakeSource
from amqpgate.pipeline.lake.table import VERSION, Lake, LakeTable, NewFile
from amqpgate.records import TABLES, Sort, Usage, arrow_schema
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, Traffic, event, lines, table_of, usage, write

DAY = timedelta(days=1)


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A place for tables."""
    address = address_of(f"{request.param}:{tmp_path}/a table")
    assert address is not None
    return open_lake(address)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Two days of two gateways, and one file that goes on into the next day."""
    folder = tmp_path / "raw"
    first = [usage("a-1", START, 1), usage("a-2", START + DAY, 2), usage("a-3", START, 4, vhost=None)]
    write(folder, "usage", table_of("usage", first), gateway="a")
    write(folder, "usage", table_of("usage", [usage("b-1", START + DAY, 8)]), gateway="b")
    write(folder, "events", table_of("events", [event("e-1", "denied", START, user="alice")]))
    return folder


def rows(lake: Lake, name: str = "usage") -> list[dict[str, Any]]:
    """All rows of a table, by whoever reads its files."""
    table = lake.load(name)
    if table is None:
        return []
    return [row for file in table.files() for row in pq.read_table(table.open(file.path)).to_pylist()]


def sums(lake: Lake) -> dict[str, int]:
    """Messages by id. Fails where one is there twice."""
    found = [(row["record_id"], row["messages"]) for row in rows(lake)]
    assert len(found) == len(dict(found))
    return dict(found)


def data_files(folder: Path, raw: Path) -> set[Path]:
    """Those of tables, whichever versions have them."""
    return {path for path in folder.rglob("*.parquet") if path.parent.name != "_delta_log"} - set(
        raw.rglob("*")
    )


def brief(done: list[Compacted]) -> dict[str, tuple[int, int]]:
    return {one.sort: (one.files, one.records) for one in done}


def test_each_record_is_there_once(lake: Lake, raw: Path) -> None:
    assert brief(compact_into(lake, str(raw))) == {"events": (1, 1), "usage": (2, 4)}
    whole = {"a-1": 1, "a-2": 2, "a-3": 4, "b-1": 8}
    assert sums(lake) == whole
    # Nothing is read again.
    assert brief(compact_into(lake, str(raw))) == {"events": (0, 0), "usage": (0, 0)}
    # What somebody copied under another name, and what is late.
    again = [usage("a-2", START + DAY, 2), usage("a-0", START, 16), usage("c-1", START + 5 * DAY, 32)]
    write(raw, "usage", table_of("usage", again), gateway="copy")
    assert brief(compact_into(lake, str(raw))) == {"events": (0, 0), "usage": (1, 2)}
    assert sums(lake) == whole | {"a-0": 16, "c-1": 32}
    table = lake.load("usage")
    assert table is not None
    assert {file.day for file in table.files()} == {date(2026, 11, 2), date(2026, 11, 3), date(2026, 11, 7)}
    (found,) = rows(lake, "events")
    assert (found["record_id"], found["user"], found["time"]) == ("e-1", "alice", START)


def test_lines_of_json_are_read_each_time(lake: Lake, raw: Path) -> None:
    file = raw / "pod.jsonl"
    file.write_text("\n".join(lines("usage", [usage("l-1", START, 16), usage("a-1", START, 1)])) + "\nno\n")
    done = compact_into(lake, str(raw))
    assert brief(done)["usage"] == (3, 5)
    assert [(one.path, one.why) for one in done[1].skipped] == [
        (f"file://{file}", "1 lines are no audit records, the first is line 3")
    ]
    assert brief(compact_into(lake, str(raw)))["usage"] == (1, 0)
    assert sums(lake) == {"a-1": 1, "a-2": 2, "a-3": 4, "b-1": 8, "l-1": 16}


class Crash(BaseException):
    """The process is gone: nothing is put right on the way out."""


@pytest.mark.parametrize("place", ["write", "_note", "_record_table", "commit"])
def test_after_a_crash_it_is_completed(
    lake: Lake, raw: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """At each call of a step in turn, and right after each commit, until one run comes to its end."""
    monkeypatch.setattr(compacting, "_BATCH_FILES", 1)
    whole = {"a-1": 1, "a-2": 2, "a-3": 4, "b-1": 8}
    kind = type(lake.create("other", pa.schema([("x", pa.int64())]), None, {}))
    for calls in range(20):
        left = iter(range(calls))

        def dying(real: Callable[..., Any], left: Iterator[int] = left) -> Callable[..., Any]:
            def step(*args: Any, **kwargs: Any) -> Any:
                if place != "commit" and next(left, None) is None:
                    raise Crash
                found = real(*args, **kwargs)
                if place == "commit" and next(left, None) is None:
                    raise Crash
                return found

            return step

        with monkeypatch.context() as patch:
            where = {"commit": kind, "write": writing}.get(place, compacting)
            patch.setattr(where, place, dying(getattr(where, place)))
            try:
                compact_into(lake, str(raw))
            except Crash:
                assert sums(lake).items() <= whole.items()
                continue
        break
    assert 0 < calls < 20
    assert sums(lake) == whole
    assert brief(compact_into(lake, str(raw))) == {"events": (0, 0), "usage": (0, 0)}


def test_two_at_once(lake: Lake, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another adds the same records between the look and the commit."""
    real = writing.write
    others: list[list[Compacted]] = []

    def meddling(*args: Any, **kwargs: Any) -> Any:
        made = real(*args, **kwargs)
        monkeypatch.setattr(writing, "write", real)
        others.append(compact_into(lake, str(raw)))
        return made

    monkeypatch.setattr(writing, "write", meddling)
    mine = compact_into(lake, str(raw))
    assert brief(others[0]) == {"events": (1, 1), "usage": (2, 4)}
    assert brief(mine)["events"] == (1, 0)
    assert sums(lake) == {"a-1": 1, "a-2": 2, "a-3": 4, "b-1": 8}
    assert len(rows(lake, "events")) == 1


def test_older_tables_get_later_columns(lake: Lake, raw: Path) -> None:
    later = [field.name for field in Usage.__attrs_attrs__ if field.metadata["later"]]
    schema = arrow_schema(Usage).remove_metadata()
    older = pa.schema([field for field in schema if field.name not in later])
    table = lake.create("usage", older, "window_start", {VERSION: "1"})
    old = table_of("usage", [usage("o-1", START, 16)]).select(older.names)
    table.commit([writing.write(table, [old], START.date())])
    write(raw, "usage", table_of("usage", [usage("n-1", START, 32, more_keys='["k"]')]), gateway="n")
    compact_into(lake, str(raw))
    table = lake.load("usage")
    assert table is not None
    assert table.schema.names == schema.names
    assert sums(lake) == {"a-1": 1, "a-2": 2, "a-3": 4, "b-1": 8, "o-1": 16, "n-1": 32}
    keys = {row["record_id"]: row.get("more_keys") for row in rows(lake)}
    assert (keys["n-1"], keys["o-1"]) == ('["k"]', None)


def test_tables_of_others(lake: Lake, raw: Path) -> None:
    schema = arrow_schema(Usage).remove_metadata()
    # A later amqpgate has one more column, which this one leaves null.
    lake.create("usage", schema.append(pa.field("colour", pa.string())), "window_start", {VERSION: "1"})
    compact_into(lake, str(raw))
    assert len(sums(lake)) == 4


@pytest.mark.parametrize(
    ("version", "said"), [("2", "records of schema version 2"), (None, "no audit records")]
)
def test_tables_of_another_version_are_refused(lake: Lake, raw: Path, version: str | None, said: str) -> None:
    properties = {} if version is None else {VERSION: version}
    lake.create("events", arrow_schema(TABLES["events"]).remove_metadata(), "time", properties)
    with pytest.raises(PipelineError, match=said):
        compact_into(lake, str(raw))
    with pytest.raises(PipelineError, match=r"schema version 2, later than 1|was not made by compact"):
        LakeSource(lake).chosen("events", Span(), set())


def test_a_damaged_file_is_left_out_and_named(lake: Lake, raw: Path) -> None:
    (path,) = write(raw, "usage", Traffic().usage(1_000), gateway="d")
    whole = path.read_bytes()
    cut = bytearray(whole)
    cut[len(cut) // 3 : len(cut) // 2] = bytes(len(cut) // 2 - len(cut) // 3)
    for data, why in ((bytes(cut), "is damaged: a page has "), (whole[:-1], "is cut off or damaged")):
        path.write_bytes(data)
        (skipped,) = compact_into(lake, str(raw))[1].skipped
        assert skipped.path == f"file://{path}"
        assert skipped.why.startswith(why)
    assert len(sums(lake)) == 4
    path.write_bytes(whole)
    assert brief(compact_into(lake, str(raw)))["usage"] == (1, 1_000)


@pytest.fixture
def large(raw: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of one row group of which not all is held at once."""
    monkeypatch.setattr(parts, "_FEW", 1 << 10)
    monkeypatch.setattr(parts, "_ROWS", 100)
    monkeypatch.setattr(parts, "_TOGETHER", 1 << 10)
    monkeypatch.setattr(compacting, "_MOST_BYTES", 1 << 10)
    (path,) = write(raw, "usage", Traffic().usage(1_000), gateway="large")
    return path


def test_a_large_file_comes_in_parts_and_once(
    lake: Lake, raw: Path, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between two of them, and the next one takes the rest."""
    real, calls = compacting.add, itertools.count()

    def dying(to: Lake, sort: Sort, records: pa.Table) -> tuple[int, set[date]]:
        if next(calls) == 4:
            raise Crash
        return real(to, sort, records)

    with monkeypatch.context() as patch:
        patch.setattr(compacting, "add", dying)
        with pytest.raises(Crash):
            compact_into(lake, str(raw))
    assert 100 <= len(sums(lake)) < 1_000
    # It, and the one that comes after it.
    files, records = brief(compact_into(lake, str(raw)))["usage"]
    assert (files, len(sums(lake))) == (2, 1_004)
    assert records < 1_000
    assert brief(compact_into(lake, str(raw)))["usage"] == (0, 0)


def test_a_folder_is_not_in_memory(lake: Lake, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is in the table before the next is."""
    done: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        real = getattr(compacting, name)
        return lambda *args: (done.append(name), real(*args))[1]

    monkeypatch.setattr(compacting, "_BATCH_FILES", 1)
    for name in ("records_of", "add"):
        monkeypatch.setattr(compacting, name, noted(name))
    compact_into(lake, str(raw))
    assert done == ["records_of", "add"] * 3


def test_a_large_file_is_taken_as_a_whole_or_not_at_all(lake: Lake, raw: Path, large: Path) -> None:
    """The damage is at the end of a column; no checksum tells it."""
    pq.write_table(pq.read_table(large, partitioning=None), large, data_page_size=1_000, compression="none")
    content = bytearray(large.read_bytes())
    last = pq.read_metadata(large).row_group(0).column(0)
    end = (last.dictionary_page_offset or last.data_page_offset) + last.total_compressed_size
    content[end - 4 : end] = b"\xff" * 4
    large.write_bytes(content)
    (skipped,) = compact_into(lake, str(raw))[1].skipped
    assert (skipped.path, skipped.why[:10]) == (f"file://{large}", "is damaged")
    assert len(sums(lake)) == 4


def test_few_files_of_many(lake: Lake, tmp_path: Path) -> None:
    """Readers that began before go on with the files that they know."""
    raw = tmp_path / "raw"
    month = Traffic(services=3).usage(900, span=timedelta(hours=20))
    for number in range(9):
        write(raw, "usage", month.slice(number * 100, 100), gateway=f"g{number}")
        compact_into(lake, str(raw))
        if number == 6:
            before, _ = LakeSource(lake).chosen("usage", Span(), set())
    table = lake.load("usage")
    assert table is not None
    assert len(before) == 7
    assert len(table.files()) == 2
    assert sorted(sums(lake)) == sorted(month["record_id"].to_pylist())
    assert sum(pq.read_metadata(path.removeprefix("file://")).num_rows for path in before) == 700
    ids = pq.read_table(table.open(max(table.files(), key=lambda file: file.records).path))["record_id"]
    assert ids.to_pylist() == sorted(ids.to_pylist())


def test_what_no_version_has_goes_after_a_while(lake: Lake, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    month = Traffic(services=3).usage(800, span=timedelta(hours=20))
    for number in range(8):
        write(raw, "usage", month.slice(number * 100, 100), gateway=f"g{number}")
        compact_into(lake, str(raw))
    table = lake.load("usage")
    assert table is not None
    orphan = table.path_for(START.date())
    with table.create(orphan) as out:
        out.write(b"of a process that died")
    there = data_files(tmp_path, raw)
    assert expire(lake, datetime.now(UTC) - DAY) == 0
    assert data_files(tmp_path, raw) == there
    assert expire(lake, datetime.now(UTC) + timedelta(seconds=1)) >= 9
    assert len(sums(lake)) == 800
    left = {path.name for path in data_files(tmp_path, raw)}
    named = {
        file.path.rpartition("/")[2]
        for name in (*TABLES, FILES)
        if (one := lake.load(name)) is not None
        for file in one.files()
    }
    assert left == named
    # And it goes on.
    write(raw, "usage", table_of("usage", [usage("late", START, 1)]), gateway="late")
    assert brief(compact_into(lake, str(raw)))["usage"] == (1, 1)


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_files_that_spark_wrote_into_a_table_are_read(
    lake: Lake, raw: Path, tmp_path: Path, plans: Plans
) -> None:
    """Into tables of Delta it writes times of 96 bits, which say neither their unit nor a zone."""
    compact_into(lake, str(raw))
    table = lake.load("usage")
    assert table is not None
    records = table_of("usage", [usage("s-1", START, 16)])
    wider = pa.schema(
        [field.with_type(pa.int32()) if field.type == pa.int16() else field for field in records.schema]
    )
    path = table.path_for(START.date())
    with table.create(path) as out:
        pq.write_table(records.cast(wider), out, use_deprecated_int96_timestamps=True)
    with table.open(path) as file:
        bounds = {"record_id": ("s-1", "s-1")}
        table.commit([NewFile(path, 1, file.size(), START.date(), bounds)])
    found = plans.read(LakeSource(lake), "usage", Span(until=START + timedelta(hours=1)))
    assert found.skipped == ()
    times = {row.record_id: row.window_start for row in plans.rows_of(found)}
    assert times == {"a-1": START, "a-3": START, "s-1": START}
    made = tmp_path / "made"
    assert [(one.records, one.skipped) for one in local_compact.compact(LakeSource(lake), made)] == [
        (1, ()),
        (5, ()),
    ]
    # One folder of a gateway has no such files.
    (path_of,) = write(tmp_path / "other", "usage", records)
    pq.write_table(records, path_of, use_deprecated_int96_timestamps=True)
    (_, done) = local_compact.compact(str(tmp_path / "other"), made)
    assert [one.why for one in done.skipped] == [
        "has timestamp[us] in the column window_start, not timestamp[us, tz=UTC]"
    ]


def test_only_the_days_that_are_wanted(lake: Lake, raw: Path) -> None:
    compact_into(lake, str(raw))
    source = LakeSource(lake)

    def days(**span: Any) -> list[date]:
        table: LakeTable | None = lake.load("usage")
        assert table is not None
        paths, _ = source.chosen("usage", Span(**span), set())
        return sorted(file.day for file in table.files() if any(file.path in path for path in paths))  # type: ignore[type-var]

    first, second = START.date(), (START + DAY).date()
    assert days() == [first, second]
    assert days(since=START + DAY) == [second]
    assert days(until=START + timedelta(hours=1)) == [first]
    assert source.size == sum(file.size for name in TABLES if (t := lake.load(name)) for file in t.files())


def test_the_table_must_be_apart_from_the_raw_records(lake: Lake) -> None:
    assert lake.address.folder is not None
    with pytest.raises(PipelineError, match="the table must be apart"):
        compact_into(lake, str(lake.address.folder.parent))
    with pytest.raises(PipelineError, match="is such a table already"):
        compact_into(lake, LakeSource(lake))
    with pytest.raises(PipelineError, match="is neither of this machine nor s3://"):
        compact_into(lake, "s3a://bucket/raw")

"""What only this process does of it: some files after others, threads, folders that are followed."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from amqpgate.pipeline import local_compact as module
from amqpgate.pipeline import parts
from amqpgate.pipeline.compact import compact as compact_with_spark
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.compacting import compact_into
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.source import LakeSource
from amqpgate.pipeline.local_compact import compact
from amqpgate.records import Sort, Usage, arrow_schema
from tests.support.audit_oracle import Month
from tests.support.audit_records import START, Traffic, lines, table_of, usage, write
from tests.support.inprocess import eventually

DAY = timedelta(days=1)
#: The verb, with few files at a time.
IN_GROUPS = """
import sys
from amqpgate.cli import main
from amqpgate.pipeline import local_compact
local_compact._MOST_FILES = 4
sys.argv[1:1] = ["audit", "compact"]
main()
"""


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Six files of three days."""
    folder = tmp_path / "raw"
    write(folder, "usage", Traffic(services=3).usage(600, span=3 * DAY), per_file=100)
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def ids(table: Path) -> list[str]:
    """Those of all records of usage, as often as they are there."""
    files = {path.parent: path for path in sorted(table.glob("usage/*/*/records-*.parquet"))}
    return sorted(
        one
        for path in files.values()
        for one in pq.read_table(path, columns=["record_id"], partitioning=None)["record_id"].to_pylist()
    )


def damage(path: Path) -> None:
    """Zeros in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 3)
    path.write_bytes(content)


def rows(table: Path, sort: Sort) -> dict[str, list[dict[str, object]]]:
    """By file, as they come."""
    return {
        str(path.relative_to(table)): pq.read_table(path, partitioning=None).to_pylist()
        for path in sorted(table.glob(f"{sort}/**/records-*.parquet"))
    }


def test_the_table_is_the_one_that_spark_makes(spark: SparkSession, tmp_path: Path) -> None:
    """Of a month with odd names, copies under another name, lines of JSON, and what came later."""
    month = Month(600, days=5)
    raw, here, there = tmp_path / "raw", tmp_path / "here", tmp_path / "there"
    write(raw, "events", month.events, per_file=50)
    for number, part in enumerate((month.usage.slice(0, 450), month.usage.slice(400))):
        write(raw, "usage", part, gateway=f"gate-{number}", per_file=100)
        (raw / "pod.jsonl").write_text("\n".join(lines("usage", [usage("l-1", START)])) + "\nno\n")
        assert compact(str(raw), here) == compact_with_spark(spark, str(raw), there)
        for sort in ("events", "usage"):
            assert rows(here, sort) == rows(there, sort)
    assert ids(here) == sorted({"l-1", *month.usage["record_id"].to_pylist()})


@pytest.mark.parametrize("step", ["read", "merge_into", "note"])
def test_what_was_added_before_a_crash_stays(
    raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """One file at a time, and it dies at the fourth."""

    class Crash(BaseException):
        """The process is gone."""

    name = "records_of" if step == "read" else step
    real, calls = getattr(module, name), itertools.count()

    def dying(*args: object) -> object:
        if next(calls) == 3:
            raise Crash
        return real(*args)

    monkeypatch.setattr(module, "_MOST_FILES", 1)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, dying)
        with pytest.raises(Crash):
            compact(str(raw), table)
    before = ids(table)
    assert 0 < len(before) == len(set(before)) < 600
    (_, done) = compact(str(raw), table)
    assert (done.files, done.records) == (6 - len(before) // 100 + (step == "note"), 600 - len(before))
    assert len(set(ids(table))) == len(ids(table)) == 600
    assert not (table / "_unfinished").exists()


def test_a_large_file_is_taken_as_a_whole_or_not_at_all(
    raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The damage is in its last row group. The others go on where the folder is followed."""
    monkeypatch.setattr(parts, "_FEW", 1 << 10)
    monkeypatch.setattr(parts, "_TOGETHER", 1 << 10)
    monkeypatch.setattr(parts, "_ROWS", 20)
    broken = sorted(raw.rglob("*.parquet"))[2]
    records = pq.read_table(broken, partitioning=None)
    pq.write_table(records, broken, row_group_size=20, compression="none")
    whole = broken.read_bytes()
    last = pq.read_metadata(broken).row_group(4).column(0)
    end = (last.dictionary_page_offset or last.data_page_offset) + last.total_compressed_size
    broken.write_bytes(whole[: end - 4] + b"\xff" * 4 + whole[end:])
    with pytest.raises(PipelineError, match=f"compacting the usage: file://{broken} is damaged"):
        compact(str(raw), table)
    assert ids(table) == []
    (_, done) = compact(str(raw), table, is_followed=True)
    assert [(one.path, one.why) for one in done.skipped] == [(f"file://{broken}", "is damaged")]
    assert (done.files, done.records, len(ids(table))) == (5, 500, 500)
    broken.write_bytes(whole)
    (_, done) = compact(str(raw), table, is_followed=True)
    assert (done.files, done.records, done.skipped, len(ids(table))) == (1, 100, (), 600)


def test_many_small_files_make_few_parts(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    real = module.pack_tables

    def counted(tables: Iterable[pa.Table], sort: Sort) -> Iterator[pa.RecordBatch]:
        for batch in real(tables, sort):
            made.append(len(batch))
            yield batch

    monkeypatch.setattr(module, "pack_tables", counted)
    records = [usage(f"u-{number:03}", START, vhost=f"v{number % 3}") for number in range(300)]
    write(tmp_path / "raw", "usage", table_of("usage", records), per_file=3)
    (tmp_path / "raw/pod.jsonl").write_text("\n".join(lines("usage", records[:3])))
    (_, done) = compact(str(tmp_path / "raw"), table)
    assert (done.files, done.records, done.changed) == (101, 300, 3)
    assert made == [3]
    assert ids(table) == [record.record_id for record in records]


def test_records_of_a_later_version_change_nothing(raw: Path, table: Path) -> None:
    write(raw, "usage", table_of("usage", [usage("u", START, schema_version=2)]), gateway="later")
    with pytest.raises(PipelineError, match="schema version 2"):
        compact(str(raw), table)
    assert ids(table) == []
    (raw / "usage/date=2026-11-02/later-000001.parquet").unlink()
    (line,) = lines("usage", [usage("l", START, schema_version=2)])
    (raw / "later.jsonl").write_text(f"{line}\n")
    with pytest.raises(PipelineError, match="schema version 2"):
        compact(str(raw), table)
    assert "l" not in ids(table)


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_of_an_open_format_is_read_once_and_stays_whole(
    raw: Path, table: Path, tmp_path: Path, form: str
) -> None:
    address = address_of(f"{form}:{tmp_path / form}")
    assert address is not None
    compact_into(open_lake(address), str(raw))
    there = sorted(path for path in (tmp_path / form).rglob("*") if path.is_file())
    (_, done) = compact(LakeSource(open_lake(address)), table)
    assert (done.records, len(ids(table))) == (600, 600)
    (_, done) = compact(LakeSource(open_lake(address)), table)
    assert (done.files, done.records) == (0, 0)
    assert sorted(path for path in (tmp_path / form).rglob("*") if path.is_file()) == there
    with pytest.raises(PipelineError, match="the table must be apart"):
        compact(LakeSource(open_lake(address)), tmp_path / form)


def test_a_file_that_is_removed_meanwhile(raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends a job, which could not say what is missing. Where the folder is followed, old files go."""
    real = module.workplace
    gone = iter(sorted(raw.rglob("*.parquet")))

    def removing(*args: object) -> Path:
        if args[1] == "usage":
            next(gone).unlink()
        return real(*args)

    monkeypatch.setattr(module, "workplace", removing)
    with pytest.raises(PipelineError, match="is gone since its folder was listed"):
        compact(str(raw), table)
    (_, done) = compact(str(raw), table, is_followed=True)
    assert (done.files, done.records, done.skipped) == (4, 400, ())


def test_a_table_lacks_no_column(raw: Path, table: Path) -> None:
    """Older files have none of what came later."""
    (path,) = write(raw, "usage", table_of("usage", [usage("old", START)]), gateway="old")
    later = [field.name for field in Usage.__attrs_attrs__ if field.metadata["later"]]
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(later), path)
    compact(str(raw), table)
    for made in table.glob("usage/*/*/*.parquet"):
        assert pq.read_schema(made).names == arrow_schema(Usage).names


def follow(raw: Path, table: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "amqpgate", "audit", "compact", str(raw), str(table), "--follow"]
    return subprocess.Popen(
        [*command, "--every", "0.2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_a_folder_is_followed(raw: Path, table: Path) -> None:
    """What is damaged is named once, and taken when it is mended; a signal ends it quietly."""
    with follow(raw, table) as process:
        eventually(lambda: len(ids(table)) == 600, timeout=60)
        (made,) = write(raw.parent, "usage", table_of("usage", [usage("u-1", START)]), gateway="gate-1")
        whole = made.read_bytes()
        damage(made)
        path = made.replace(raw / made.relative_to(raw.parent))
        write(raw, "usage", table_of("usage", [usage("u-2", START)]), gateway="late")
        eventually(lambda: "u-2" in ids(table), timeout=60)
        time.sleep(1)
        made.write_bytes(whole)
        made.replace(path)
        eventually(lambda: "u-1" in ids(table), timeout=60)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate()
    assert process.returncode == 0
    told = [line for line in said.splitlines() if not line.startswith("events: ")]
    assert told[0] == "usage: 6 new files read, 600 records added, 6 files changed"
    assert sum(line.startswith(f"skipped: file://{path}: is ") for line in told) == 1
    assert told[-1] == "usage: 1 new files read, 1 records added, 1 files changed"
    assert len(ids(table)) == len(set(ids(table))) == 602


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kills_lose_nothing_and_double_nothing(tmp_path: Path, table: Path) -> None:
    """A kill -9 at moments over all of the work; readers see whole files at each."""
    raw = tmp_path / "raw"
    month = Traffic(services=50).usage(400_000, span=9 * DAY)
    write(raw, "usage", month, per_file=20_000)
    command = [sys.executable, "-c", IN_GROUPS, str(raw), str(table)]
    began = time.monotonic()
    subprocess.run([*command[:-1], str(tmp_path / "other")], check=True)
    took = time.monotonic() - began
    whole = sorted(month["record_id"].to_pylist())
    killed = 0
    for number in range(30):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(took * (0.2 + 0.8 * (number * 7 % 30) / 30))
        process.send_signal(signal.SIGKILL)
        found = ids(table)
        if process.wait() == -signal.SIGKILL:
            killed += 1
            assert len(found) == len(set(found))
        else:
            assert found == whole
            shutil.rmtree(table)
    assert killed > 10
    subprocess.run(command, check=True)
    assert ids(table) == whole

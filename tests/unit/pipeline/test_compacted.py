"""A table that meets what it should not: files of others, folders that hide, damage of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline import compacted
from amqpgate.pipeline.errors import PassingError, PipelineError
from amqpgate.pipeline.local_compact import compact
from tests.support.audit_records import START, event, lines, table_of, usage, write
from tests.support.inprocess import eventually

FILE = "usage/date=2026-11-02/vhost_key=_/records-00000001.parquet"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    write(folder, "usage", table_of("usage", [usage(f"a-{number}", START) for number in range(10)]))
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def ids(table: Path) -> list[str]:
    """Those of all records of usage."""
    return sorted(
        one
        for path in table.glob("usage/*/*/records-*.parquet")
        for one in pq.read_table(path, columns=["record_id"], partitioning=None)["record_id"].to_pylist()
    )


def add(raw: Path, record_id: str, gateway: str = "later", **columns: object) -> Path:
    (path,) = write(raw, "usage", table_of("usage", [usage(record_id, START, **columns)]), gateway=gateway)
    return path


def test_a_folder_that_cannot_be_listed_is_not_empty(
    raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an empty one its file would be replaced, and what was in it be gone."""
    compact(str(raw), table)
    add(raw, "later")
    place = table / Path(FILE).parent

    def refusing(folder: Path, real: object = os.listdir) -> list[str]:
        if Path(folder) == place:
            raise PermissionError(13, "Permission denied", str(folder))
        return real(folder)  # type: ignore[operator]

    with monkeypatch.context() as patch:
        patch.setattr(compacted.os, "listdir", refusing)
        with pytest.raises(PermissionError):
            compact(str(raw), table)
    assert len(ids(table)) == 10
    # And whatever was seen.
    with monkeypatch.context() as patch:
        patch.setattr(compacted, "_in_force", lambda _: None)
        with pytest.raises(AssertionError, match="is there already"):
            compact(str(raw), table)
    compact(str(raw), table)
    assert len(ids(table)) == 11


def test_files_of_others_stay(tmp_path: Path, raw: Path) -> None:
    folder = tmp_path / "mine"
    theirs = [folder / "sales" / f"records-2024010{number}.parquet" for number in range(3)]
    (folder / "sales").mkdir(parents=True)
    for path in theirs:
        path.write_text("mine")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PassingError, match="no audit records"):
        compact(str(tmp_path / "empty"), folder)
    compact(str(raw), folder)
    assert all(path.read_text() == "mine" for path in theirs)


def test_tables_are_made_of_tables(tmp_path: Path, table: Path) -> None:
    """Their files are called alike, and are replaced."""
    for site in "ab":
        add(tmp_path / f"raw-{site}", f"{site}-1")
        compact(str(tmp_path / f"raw-{site}"), tmp_path / "sites" / site)
    compact(str(tmp_path / "sites/a"), table)
    compact(str(tmp_path / "sites/b"), table)
    assert ids(table) == ["a-1", "b-1"]
    for site in "ab":
        add(tmp_path / f"raw-{site}", f"{site}-2", "more")
        compact(str(tmp_path / f"raw-{site}"), tmp_path / "sites" / site)
    # As an older version noted them.
    (table / "_usage.txt").write_text(f"{FILE}\n{FILE.replace('01.p', '02.p')}\n")
    compact(str(tmp_path / "sites"), table)
    assert ids(table) == ["a-1", "a-2", "b-1", "b-2"]


@pytest.mark.parametrize("spelling", ["file:{}", "file://localhost{}", "file://{}"])
def test_one_in_the_other_is_seen_however_it_is_written(tmp_path: Path, spelling: str) -> None:
    raw = tmp_path / "a b"
    add(raw, "a")
    for folder in (raw, str(raw).replace(" ", "%20")):
        with pytest.raises(PipelineError, match="the table must be apart"):
            compact(spelling.format(folder), raw / "table")


def test_a_folder_within_that_cannot_be_listed_ends_it(
    raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def refusing(folder: str) -> object:
        if str(folder).endswith("date=2026-11-02"):
            raise PermissionError(13, "Permission denied", folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(PipelineError, match=r"date=2026-11-02 cannot be listed: Permission denied"):
        compact(str(raw), table)


def lying(path: Path, column: str, values: pa.Array) -> None:
    """A file whose footer has no word of what is in a column."""
    read = pq.read_table(path, partitioning=None)
    at = read.schema.get_field_index(column)
    schema = read.schema.set(at, pa.field(column, read.schema.field(at).type))
    made = read.set_column(at, schema.field(at), values.cast(schema.field(at).type))
    pq.write_table(made, path, write_statistics=[one for one in made.column_names if one != column])


@pytest.mark.parametrize("column", ["record_id", "gateway", "window_start"])
def test_statistics_that_lie(raw: Path, table: Path, monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    """A record without a value that all have, or at no time, would stop the table for good."""
    path = add(raw, "forged")
    wrong = pa.array([None], pa.string())
    if column == "window_start":
        wrong = pa.array([1 << 61], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    lying(path, column, wrong)
    monkeypatch.setattr("amqpgate.pipeline.contract._without_value", lambda *_: None)
    monkeypatch.setattr("amqpgate.pipeline.contract._out_of_time", lambda *_: None)
    (_, done) = compact(str(raw), table, is_followed=True)
    why = (
        "has a time in window_start that is none"
        if column == "window_start"
        else f"has a record without {column}"
    )
    assert [(one.path, one.why) for one in done.skipped] == [(f"file://{path}", why)]
    assert len(ids(table)) == 10
    with pytest.raises(PipelineError, match=f"{path} {why}"):
        compact(str(raw), table)


def test_few_bytes_that_stand_for_many_are_no_records(tmp_path: Path, table: Path) -> None:
    """One long text in a dictionary, as often as there are records."""
    (path,) = write(tmp_path / "raw", "events", table_of("events", [event("e", "denied", START)]))
    one = pq.read_table(path, partitioning=None)
    many = pa.concat_tables([one] * 40_000)
    body = pa.DictionaryArray.from_arrays(pa.array([0] * len(many), pa.int32()), [b"x" * 10_000])
    at = many.schema.get_field_index("body")
    pq.write_table(many.set_column(at, "body", body), path)
    assert path.stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    (done, _) = compact(str(tmp_path / "raw"), table, is_followed=True)
    assert [one.why for one in done.skipped] == ["has more than 256 MiB of body in 40,000 records"]
    assert pa.total_allocated_bytes() - before < 64 << 20


def test_each_record_on_a_day_and_in_a_virtual_host_of_its_own(tmp_path: Path, table: Path) -> None:
    """Folders are named for those that there are, not for all days by all virtual hosts."""
    records = [usage(f"{n:03}", START + timedelta(days=n), vhost=f"v{n}") for n in range(300)]
    write(tmp_path / "raw", "usage", table_of("usage", records))
    (_, done) = compact(str(tmp_path / "raw"), table)
    assert (done.records, done.changed) == (300, 300)
    assert (table / "usage" / f"date={date(2026, 11, 4)}" / "vhost_key=v2").is_dir()


def test_a_folder_that_is_no_day_and_a_name_that_is_no_text(raw: Path, table: Path) -> None:
    strange = raw / "usage" / "date=2026-13-45"
    strange.mkdir()
    add(raw, "later").rename(strange / "a.parquet")
    name = os.fsencode(raw / "usage" / "date=2026-11-02") + b"/\xff.parquet"
    Path(os.fsdecode(name)).write_bytes((strange / "a.parquet").read_bytes())
    (_, done) = compact(str(raw), table)
    assert [one.why for one in done.skipped] == ["has a name that is not UTF-8"]
    assert len(ids(table)) == 11


def test_a_file_of_the_table_that_is_damaged_is_named(raw: Path, table: Path) -> None:
    compact(str(raw), table)
    add(raw, "later")
    whole = (table / FILE).read_bytes()
    for content in (whole[:100], b"", whole[:200] + bytes(300) + whole[500:]):
        (table / FILE).write_bytes(content)
        with pytest.raises(PipelineError, match=rf"{FILE} is a file of the table, and cannot be read"):
            compact(str(raw), table)
        assert (table / FILE).read_bytes() == content
    (table / FILE).write_bytes(whole)
    (table / "_usage.txt").write_bytes(b"\xff\xfe\n")
    compact(str(raw), table)
    assert len(ids(table)) == 11


def held(table: Path, raw: Path) -> bool:
    """Whether it could be had for some turns of who follows, in which records came."""
    try:
        with compacted.locked(table):
            (raw / "pod.jsonl").write_text("\n".join(lines("usage", [usage("a", START)])) + "\n")
            time.sleep(1)
    except PassingError:
        return False
    return True


def test_who_follows_looks_again(tmp_path: Path, table: Path) -> None:
    """At a folder that is still empty, or a table that another is at."""
    raw = tmp_path / "raw"
    raw.mkdir()
    command = [sys.executable, "-m", "amqpgate", "audit", "compact", str(raw), str(table), "--follow"]
    with subprocess.Popen(
        [*command, "--every", "0.2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        eventually(lambda: (table / "_lock").exists(), timeout=60)
        eventually(lambda: held(table, raw), timeout=60)
        eventually(lambda: ids(table) == ["a"], timeout=60)
        process.terminate()
        _, said = process.communicate()
    assert process.returncode == 0
    assert said.splitlines()[0].startswith(f"amqpgate: {raw} has no audit records: ")
    assert said.count("has no audit records") == 1

"""Records in a real object store: the same answers as from a folder, and clear ones where there are none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from amqpgate.pipeline import local_compact
from amqpgate.pipeline.compact import compact as compact_with_spark
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.objects import Objects
from amqpgate.pipeline.reading import Span, read
from amqpgate.pipeline.spark import start
from tests.support.audit_records import START, Traffic, lines, table_of, usage, write
from tests.support.inprocess import eventually
from tests.support.swift import Swift

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def swift() -> Iterator[Swift]:
    server = Swift()
    try:
        server.start()
        yield server
    finally:
        server.destroy()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start("local[1]", {"spark.sql.shuffle.partitions": "1"})
    yield session
    session.stop()


@pytest.fixture
def objects(
    swift: Swift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Objects, list[str]]]:
    """Those at an address, and what is told of copying them."""
    for name, value in swift.environment().items():
        monkeypatch.setenv(name, value)

    def make(address: str) -> tuple[Objects, list[str]]:
        told: list[str] = []
        return Objects(address, tmp_path / "copies", told.append), told

    return make


def audit(environment: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "amqpgate", "audit", *map(str, words)]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=240, check=False
    )


def test_a_job_says_the_same_of_a_bucket_as_of_a_folder(swift: Swift, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    write(raw, "usage", Traffic(services=3).usage(2_000), per_file=200)
    (raw / "usage" / "_half.parquet").write_bytes(b"PAR1")
    swift.upload(raw, "bills/of the/audit")
    job = ("--per", "day", "--format", "csv")
    here = audit({}, "usage", raw, *job)
    there = audit(swift.environment(), "usage", "s3://bills/of the/audit", *job)
    assert (there.stdout, there.stderr) == (here.stdout, "")
    assert len(here.stdout.splitlines()) == 7
    # Nothing of it is left on this machine.
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("amqpgate-audit-*"))


def test_only_what_is_wanted_is_copied(
    swift: Swift, spark: SparkSession, tmp_path: Path, objects: Callable[[str], tuple[Objects, list[str]]]
) -> None:
    raw = tmp_path / "raw"
    for day in range(4):
        write(raw, "usage", Traffic(services=2).usage(100, start=START + day * DAY))
    write(raw, "events", table_of("events", Traffic().events()))
    (raw / "pod.jsonl").write_text("\n".join(lines("usage", [usage("line", START)])) + "\nno record\n")
    swift.upload(raw, "days")
    whole, told = objects("s3://days/")
    table = read(spark, whole, "usage", Span(since=START + 2 * DAY, until=START + 3 * DAY))
    expected = read(spark, str(raw), "usage", Span(since=START + 2 * DAY, until=START + 3 * DAY))
    assert (table.files, table.records) == (expected.files, expected.records)
    assert sorted(table.frame.collect()) == sorted(expected.frame.collect())
    copied = [path.name for path in whole.into.rglob("*") if path.is_file()]
    assert len(copied) == table.files == len(told) < 5
    assert told[-1].startswith(f"copying {len(told)} of {len(told)} objects, ")
    # A line that is no record is named by where it is in the store.
    assert [(each.path, each.why) for each in table.skipped] == [
        ("s3://days/pod.jsonl", "1 lines are no audit records, the first is line 2")
    ]
    # What is here is not copied again, and what is asked for next is.
    del told[:]
    assert read(spark, whole, "events").records == len(Traffic().events())
    assert len(told) == 1


def test_one_object_of_lines(
    swift: Swift, spark: SparkSession, tmp_path: Path, objects: Callable[[str], tuple[Objects, list[str]]]
) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods/a.jsonl").write_text(
        "\n".join(lines("usage", [usage("u1", START), usage("u2", START)]))
    )
    swift.upload(tmp_path / "pods", "lines")
    assert read(spark, objects("s3://lines/a.jsonl")[0], "usage").records == 2


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_compact_copies_what_is_new(
    swift: Swift,
    spark: SparkSession,
    tmp_path: Path,
    objects: Callable[[str], tuple[Objects, list[str]]],
    engine: str,
) -> None:
    raw, table, place = tmp_path / "raw", tmp_path / "table", f"compacted/{engine}"
    compact = partial(compact_with_spark, spark) if engine == "spark" else local_compact.compact
    write(raw, "usage", Traffic(services=2).usage(300), per_file=100)
    (raw / "pod.jsonl").write_text("\n".join(lines("usage", [usage("line", START)])) + "\nno\n")
    swift.upload(raw, place)
    first = compact(objects(f"s3://{place}")[0], table)
    assert {done.sort: (done.files, done.records) for done in first} == {"usage": (4, 301), "events": (1, 0)}
    assert [each.path for each in first[1].skipped] == [f"s3://{place}/pod.jsonl"]
    write(raw, "usage", table_of("usage", [usage("late", START)]), gateway="gate-1")
    swift.upload(raw, place)
    again, told = objects(f"s3://{place}")
    shutil.rmtree(again.into)
    second = compact(again, table)
    assert {done.sort: (done.files, done.records) for done in second} == {"usage": (2, 1), "events": (1, 0)}
    # One is new, and lines are read each time; Spark has their copy for both sorts.
    assert len(told) == (2 if engine == "spark" else 3)
    assert read(spark, str(table), "usage").records == 302


def test_compact_follows_objects(swift: Swift, tmp_path: Path) -> None:
    raw, table = tmp_path / "raw", tmp_path / "table"
    write(raw, "usage", Traffic(services=2).usage(100))
    swift.upload(raw, "followed")
    command = [sys.executable, "-m", "amqpgate", "audit", "compact", "s3://followed", str(table)]
    with subprocess.Popen(
        [*command, "--follow", "--every", "0.2"], env=os.environ | swift.environment(), stdout=subprocess.PIPE
    ) as process:
        eventually(lambda: any(table.glob("_usage.txt")), timeout=60)
        write(raw, "usage", table_of("usage", [usage("late", START)]), gateway="gate-1")
        swift.upload(raw, "followed")
        eventually(lambda: "gate-1" in (table / "_usage.txt").read_text(), timeout=60)
        process.terminate()
        said, _ = process.communicate()
    assert process.returncode == 0
    assert b"usage: 1 new files read, 1 records added, 1 files changed" in said


def test_what_cannot_be_read_is_named(
    swift: Swift, spark: SparkSession, objects: Callable[[str], tuple[Objects, list[str]]]
) -> None:
    swift.client().create_dir("empty")
    for address, said in {
        "s3://nowhere/audit": "s3://nowhere/audit: When listing objects ",
        "s3://empty/audit": "s3://empty/audit: no such object or folder",
        "s3://empty": "s3://empty has no audit records: ",
        "s3://": "s3:// is not like s3://BUCKET/PREFIX",
        "s3://a/../b": "s3://a/../b is not like s3://BUCKET/PREFIX",
        "s3://empty?scheme=gopher": "s3://empty: ",
    }.items():
        with pytest.raises(PipelineError) as raised:
            read(spark, objects(address)[0], "usage")
        assert str(raised.value).startswith(said)
    # One with a key in it is not even repeated.
    for secret in (swift.secret, "sec/ret"):
        with pytest.raises(PipelineError, match=r"^s3://\.\.\.: a key in an address") as raised:
            read(spark, objects(f"s3://{swift.key}:{secret}@empty/audit")[0], "usage")
        assert secret not in str(raised.value)


@pytest.mark.parametrize("who", ["stranger", "nobody"])
def test_who_may_not_read_is_told(
    swift: Swift,
    spark: SparkSession,
    objects: Callable[[str], tuple[Objects, list[str]]],
    monkeypatch: pytest.MonkeyPatch,
    who: str,
) -> None:
    swift.client().create_dir("closed")
    there, _ = objects("s3://closed/audit")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"test:{who}")
    with pytest.raises(PipelineError, match=r"^s3://closed/audit: .*AWS Error ACCESS_DENIED") as raised:
        read(spark, there, "usage")
    assert swift.secret not in str(raised.value)


def test_what_changes_or_follows_needs_a_folder(tmp_path: Path) -> None:
    refused = audit({}, "compact", tmp_path, "s3://bucket/table")
    assert refused.returncode == 2
    assert "s3://bucket/table is not a folder of this machine" in refused.stderr
    followed = audit(
        {}, "usage", "s3://bucket/audit", "--follow", "--format", "json", "-o", tmp_path / "answers"
    )
    assert followed.returncode == 2
    assert "s3://bucket/audit is copied, and so cannot be followed" in followed.stderr

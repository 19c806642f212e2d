"""Tables of both formats in a real object store: written, killed, read back; no Spark jars, and no Java."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.compacting import compact_into, expire
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.table import Conflict, Lake, NewFile
from tests.support.audit_records import START, Traffic, table_of, usage, write
from tests.support.swift import Swift

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]


@pytest.fixture(scope="module")
def swift() -> Iterator[Swift]:
    server = Swift()
    try:
        server.start()
        yield server
    finally:
        server.destroy()


@pytest.fixture
def environment(swift: Swift, tmp_path: Path) -> dict[str, str]:
    """The store, and a catalogue of pyiceberg's settings that has its tables there."""
    swift.client().create_dir("lake")
    return swift.environment() | {
        "PYICEBERG_CATALOG__PROD__TYPE": "sql",
        "PYICEBERG_CATALOG__PROD__URI": f"sqlite:///{tmp_path}/prod.db",
        "PYICEBERG_CATALOG__PROD__WAREHOUSE": f"s3://lake/{tmp_path.name}",
    }


@pytest.fixture(params=["delta", "iceberg"])
def place(
    request: pytest.FixtureRequest,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return "iceberg://prod/audit" if request.param == "iceberg" else f"delta:s3://lake/{tmp_path.name}/d"


def lake_of(place: str) -> Lake:
    address = address_of(place)
    assert address is not None
    return open_lake(address)


def audit(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "amqpgate", "audit", *map(str, words)]
    return subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=240, check=False)


def ids(lake: Lake) -> list[str]:
    table = lake.load("usage")
    if table is None:
        return []
    return [
        one
        for file in table.files()
        for one in pq.read_table(table.open(file.path), columns=["record_id"])["record_id"].to_pylist()
    ]


@pytest.mark.timeout(900)
def test_a_table_in_a_store_is_written_and_read(place: str, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    write(raw, "usage", Traffic(services=3).usage(2_000, span=timedelta(days=3)), per_file=500)
    done = audit("compact", raw, place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: 4 new files read, 2,000 records added" in done.stdout
    job = ("--per", "day", "--format", "csv")
    here, there = audit("usage", raw, *job), audit("usage", place, *job)
    assert (there.stdout, there.stderr) == (here.stdout, "")
    assert len(here.stdout.splitlines()) > 10
    # Two that begin with the same version: the second is told.
    lake = lake_of(place)
    write(raw, "usage", table_of("usage", [usage("late", START)]), gateway="gate-1")
    first, second = lake.load("files"), lake.load("files")
    assert first is not None
    assert second is not None
    again = first.files()
    for table in (first, second):
        same = [NewFile(table.path_for(None), again[0].records, again[0].size, None)]
        with table.open(again[0].path) as source, table.create(same[0].path) as out:
            out.write(source.read())
        if table is first:
            table.commit(same)
        else:
            with pytest.raises(Conflict):
                table.commit(same)
    # What was replaced is gone after a while, and the rest is there.
    assert [one.records for one in compact_into(lake, str(raw))] == [0, 1]
    expire(lake, START.replace(year=2126))
    assert len(ids(lake)) == len(set(ids(lake))) == 2_001


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kills_lose_nothing_and_double_nothing(place: str, tmp_path: Path) -> None:
    """A kill -9 at twelve moments of the work, the last one comes through."""
    raw = tmp_path / "raw"
    month = Traffic(services=3).usage(20_000, span=timedelta(days=5))
    # Several batches of files: who is killed behind the first has more to do.
    write(raw, "usage", month, per_file=20)
    command = [sys.executable, "-m", "amqpgate", "audit", "compact", str(raw), place]
    killed = 0
    for number in range(12):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        before = len(ids(lake_of(place)))
        # After a start that takes a while, at another moment each time.
        deadline = time.monotonic() + 60
        while process.poll() is None and len(ids(lake_of(place))) == before and time.monotonic() < deadline:
            time.sleep(0.05 * number)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        found = ids(lake_of(place))
        assert len(found) == len(set(found))
    assert killed
    assert audit("compact", raw, place).returncode == 0
    assert sorted(ids(lake_of(place))) == sorted(month["record_id"].to_pylist())

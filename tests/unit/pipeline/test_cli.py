"""``amqpgate audit``: what the verbs print, and how they end."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import threading
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from tests.support.audit_records import START, event, table_of, usage, write
from tests.support.audit_verbs import audit_locally
from tests.unit.pipeline.conftest import SETTINGS

pytestmark = pytest.mark.usefixtures("running")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    records = [
        usage("u-1", START, 60),
        usage("u-2", START + timedelta(hours=30), 6, user="bob", vhost="shop"),
        usage("u-3", START, 1, user="\x1b[31mred"),
    ]
    write(tmp_path / "raw", "usage", table_of("usage", records))
    refused = {"verdict": "deny", "policy": "p", "rule": "r", "operation": "basic.publish", "vhost": "/"}
    events = [event(f"e-{number}", "denied", START, **refused, user="alice") for number in range(1_234)]
    events.append(event("s", "shadow", START, **refused))
    write(tmp_path / "raw", "events", table_of("events", events))
    return tmp_path / "raw"


def audit(verb: str, *args: str | Path) -> Result:
    return CliRunner().invoke(main, ["audit", verb, *map(str, args), *SETTINGS])


def test_usage_as_csv(raw: Path, tmp_path: Path) -> None:
    result = audit("usage", raw, "--per", "day", "--format", "csv", "-o", tmp_path / "bill.csv")
    assert (result.exit_code, result.output) == (0, "")
    with (tmp_path / "bill.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["start"], row["user"], row["published"]) for row in rows] == [
        ("2026-11-02T00:00:00Z", "\x1b[31mred", "1"),
        ("2026-11-02T00:00:00Z", "alice", "60"),
        ("2026-11-03T00:00:00Z", "bob", "6"),
    ]


def test_what_usage_costs(raw: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: EUR\nperMillionMessages: 2\ngroups: {shop: [bob]}")
    told = audit_locally("usage", raw, "--price", prices, "--by", "group", "--format", "csv")
    rows = [(row["start"], row["group"], row["cost"]) for row in csv.DictReader(io.StringIO(told))]
    assert rows == [
        ("2026-11-01T00:00:00Z", "", "0.000122000"),
        ("2026-11-01T00:00:00Z", "shop", "0.000012000"),
    ]
    prices.write_text("currency: EUR\nperMillionMessage: 2")
    wrong = audit("usage", raw, "--price", prices)
    assert wrong.exit_code == 2
    assert f"{prices}:2:1: unknown key 'perMillionMessage' (did you mean" in wrong.stderr


@pytest.mark.parametrize(
    "options", [("--by", "user"), ("--price", "p", "--per", "hour"), ("--price", "p", "--follow")]
)
def test_options_of_costs_that_do_not_go_together(raw: Path, options: tuple[str, ...]) -> None:
    assert audit("usage", raw, *options).exit_code == 2


def test_a_span_as_json(raw: Path) -> None:
    result = audit("usage", raw, "--since", "2026-11-03T07:00+01:00", "--vhost", "shop", "--format", "json")
    (row,) = map(json.loads, result.stdout.splitlines())
    assert row["start"] == "2026-11-03T06:00:00Z"
    assert (row["user"], row["published"], row["peak_messages_per_second"]) == ("bob", 6, 0.1)
    assert audit("usage", raw, "--until", "2026-11-02", "--format", "json").stdout == ""


def test_denials_as_a_table(raw: Path) -> None:
    result = audit("denials", raw)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    words = lines[0].split()
    assert words[:4] == ["policy", "rule", "verdict", "operation"]
    assert lines[2].split() == [
        *("p", "r", "deny", "basic.publish", "/", "1,234", "1", "alice"),
        *("2026-11-02T00:00:00Z", "2026-11-02T00:00:00Z", "█"),
    ]
    assert len(lines) == 3
    assert audit("denials", raw, "--shadow").stdout.splitlines()[2].split()[5] == "1"


def test_what_a_client_chose_cannot_steer_the_terminal(raw: Path) -> None:
    output = audit("usage", raw).stdout
    assert "\x1b" not in output
    assert r"\x1b[31mred" in output


def test_a_long_table_is_cut(tmp_path: Path) -> None:
    records = [usage(str(number), START, user=f"user-{number}") for number in range(300)]
    write(tmp_path, "usage", table_of("usage", records))
    lines = audit("usage", tmp_path).stdout.splitlines()
    assert lines[-1] == "The first 200 rows; --format csv has all."
    assert sum("user-" in line for line in lines) == 200
    assert len(audit("usage", tmp_path, "--format", "csv").stdout.splitlines()) == 301


def test_compact_says_what_it_did(raw: Path, tmp_path: Path) -> None:
    result = audit("compact", raw, tmp_path / "table")
    assert result.stdout.splitlines() == [
        "events: 1 new files read, 1,235 records added, 1 files changed",
        "usage: 1 new files read, 3 records added, 2 files changed",
    ]
    of_raw, of_table = (audit("usage", folder, "--format", "csv") for folder in (raw, tmp_path / "table"))
    assert of_raw.stdout == of_table.stdout


def test_files_that_are_cut_off_are_named_on_standard_error(raw: Path) -> None:
    (path,) = write(raw, "usage", table_of("usage", [usage("u-9", START)]), gateway="gate-9")
    path.write_bytes(path.read_bytes()[:-1])
    result = audit("usage", raw, "--format", "json")
    assert result.exit_code == 0
    assert result.stderr == f"skipped: file://{path}: is cut off or damaged\n"
    assert len(result.stdout.splitlines()) == 3


def test_a_damaged_file_is_an_error(raw: Path) -> None:
    """Its footer is whole, so that only the job finds out. Nothing is half counted."""
    (path,) = write(raw, "usage", table_of("usage", [usage("u-9", START)]), gateway="gate-9")
    columns = pq.read_metadata(path).row_group(0)
    (column,) = (
        column
        for column in map(columns.column, range(columns.num_columns))
        if column.path_in_schema == "bytes"
    )
    with path.open("r+b") as file:
        file.seek(column.dictionary_page_offset)
        file.write(bytes(column.total_compressed_size))
    result = audit("usage", raw, "--output", raw / "out.txt")
    assert result.exit_code == 1
    assert "gate-9" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (raw / "out.txt").exists()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["none"], 1, "amqpgate: none: no such file or folder"),
        ([".", "--since", "yesterday"], 2, "'yesterday' is not like 2026-11-22 or 2026-11-22T13:30"),
        ([".", "--conf", "spark.ui.enabled"], 2, "'spark.ui.enabled' is not NAME=VALUE"),
        ([".", "--follow"], 2, "amqpgate: --follow needs --output FOLDER and --format csv or json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(args: list[str], code: int, message: str) -> None:
    result = audit("usage", *args)
    assert result.exit_code == code
    assert result.stderr.splitlines()[-1].endswith(message)


def test_a_bill_of_local_days_says_so(raw: Path) -> None:
    args = [raw, "--per", "day", "--timezone", "Asia/Kathmandu", "--format", "json"]
    result = audit("usage", *args)
    assert result.exit_code == 0, result.output
    starts = {json.loads(line)["start"] for line in result.stdout.splitlines()}
    assert all(start.endswith("T00:00:00+05:45") for start in starts)
    assert starts


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--timezone", "Berlin"], "there is no time zone 'Berlin'"),
        (["--timezone", "Europe/Berlin", "--follow"], "--follow has neither months nor --timezone"),
        (["--per", "month", "--follow"], "--follow has neither months nor --timezone"),
        (["--conf", "spark.sql.session.timeZone=Asia/Tokyo"], "answers are UTC"),
    ],
)
def test_time_zones_that_cannot_be_are_told(raw: Path, args: list[str], message: str) -> None:
    result = audit("usage", raw, *args)
    assert result.exit_code in (1, 2)
    assert message in result.stderr


def test_follow_writes_a_file_for_each_batch_until_a_signal(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def end_when_written() -> None:
        while not list(out.glob("usage-day-*.json")):
            ended.wait(0.05)
            if ended.is_set():
                return
        os.kill(os.getpid(), signal.SIGTERM)

    ended = threading.Event()
    watcher = threading.Thread(target=end_when_written)
    watcher.start()
    try:
        result = audit(
            "usage", raw, "--per", "day", "--follow", "--every", "0.1", "-o", out, "--format", "json"
        )
    finally:
        ended.set()
        watcher.join()
    assert result.exit_code == 0, result.output
    (path,) = out.glob("*.json")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    # The second day is not over.
    assert sorted((row["user"], row["published"]) for row in rows) == [("\x1b[31mred", 1), ("alice", 60)]

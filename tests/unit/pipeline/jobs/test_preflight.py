"""Who would fail on RabbitMQ 4, by records and by definitions."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from amqpgate.cli import main
from amqpgate.pipeline.jobs import preflight as job
from amqpgate.pipeline.jobs.preflight import seen
from amqpgate.pipeline.jobs.report_parts import ReportTable, Word
from amqpgate.pipeline.jobs.report_upgrade import upgrade
from amqpgate.pipeline.reading import schema
from amqpgate.records import Event
from tests.support.audit_records import START, event, table_of, usage, write
from tests.unit.pipeline.conftest import SETTINGS

pytestmark = pytest.mark.usefixtures("running")


def declared(number: int, queue: str, arguments: dict[str, object] | None = None, **detail: object) -> Event:
    said = {"durable": False, "exclusive": False, "auto_delete": False} | detail
    return event(
        f"e-{number}",
        "topology",
        START + timedelta(minutes=number),
        user="celery",
        vhost="/",
        operation="queue.declare",
        queue=queue,
        arguments=json.dumps(arguments) if arguments else None,
        detail=json.dumps(said),
    )


EVENTS = [
    declared(0, "celeryev.5f1c1f0e-8a8d-4d6c-9d3c-3b7f3f3c0a11"),
    declared(1, "celeryev.0d6b2c1e-1b1d-4c6c-8d3c-3b7f3f3c0b22"),
    declared(2, "mine", exclusive=True),
    declared(3, "work", {"x-queue-version": 1}, durable=True),
    declared(4, "plain", durable=True),
    event("d", "denied", START, user="celery", vhost="/", operation="queue.declare", queue="never"),
]
CONNECTIONS = [
    event(
        f"c-{number}",
        "session.open",
        START + timedelta(minutes=number),
        user="old",
        vhost="/",
        client=client,
        amqp_version=version,
        detail=detail,
    )
    for number, (client, version, detail) in enumerate(
        [
            ('{"product":"py-amqplib"}', "0-8", None),
            ('{"product":"py-amqplib","host":"other"}', "0-8", '{"route":"a/b"}'),
            ('{"product":"amqplib"}', "0-9-1", '{"frame_max":4096}'),
            ('{"product":"pika"}', "0-9-1", None),
            (None, "0-8", '{"frame_max":4096}'),
        ]
    )
]
USAGE = [
    usage("u-1", START, 0, requests=3, user="celery", operation="basic.qos", arguments='{"global": true}'),
    usage("u-2", START, 0, requests=9, user="celery", operation="basic.qos"),
    usage("u-3", START, 4, user="celery", exchange="files", largest_body=(16 << 20) + 1),
    usage("u-4", START, 4, user="celery", exchange="files", largest_body=20 << 20),
    usage("u-5", START, 4, user="celery", exchange="small", largest_body=16 << 20),
    usage("u-6", START, 4, user="celery", exchange="older"),
    usage(
        "u-7", START, 0, requests=2, user="celery", operation="queue.delete", queue="work", exchange=None,
        arguments='{"if_empty":true}',
    ),
    usage("u-8", START, 0, requests=2, user="celery", operation="queue.delete", queue="work", exchange=None),
]  # fmt: skip


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    write(tmp_path / "raw", "events", table_of("events", EVENTS))
    write(tmp_path / "raw", "usage", table_of("usage", USAGE))
    return tmp_path / "raw"


def preflight(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["audit", "preflight", *map(str, args), *SETTINGS])


def rows(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_records_say_who_how_often_and_since_when(raw: Path) -> None:
    result = preflight(raw, "--format", "csv")
    assert result.exit_code == 1
    found = {row["item"]: row for row in rows(result)}
    assert found.keys() == {"transient-queue", "queue-version", "global-prefetch", "message-size"}
    size = found["message-size"]
    assert (size["outcome"], size["name"], size["times"]) == ("closed", "files", "2")
    transient = found["transient-queue"]
    assert (transient["outcome"], transient["user"], transient["name"]) == (
        "may-be-lost",
        "celery",
        "celeryev.*",
    )
    assert (transient["times"], transient["first"], transient["last"]) == (
        "2",
        "2026-11-02T00:00:00Z",
        "2026-11-02T00:01:00Z",
    )
    assert (found["global-prefetch"]["times"], found["global-prefetch"]["outcome"]) == ("3", "differs")
    assert found["queue-version"]["mended_by"] == "CompatibilityPolicy retiredArguments"


def test_connections_of_old_clients_are_said_by_product(tmp_path: Path) -> None:
    write(tmp_path / "raw", "events", table_of("events", CONNECTIONS))
    write(tmp_path / "raw", "usage", table_of("usage", []))
    result = preflight(tmp_path / "raw", "--format", "csv")
    found = sorted((row["item"], row["outcome"], row["name"], row["times"]) for row in rows(result))
    assert (result.exit_code, found) == (
        1,
        [
            ("old-version", "lost", "", "1"),
            ("old-version", "lost", "py-amqplib", "2"),
            ("small-frames", "lost", "", "1"),
            ("small-frames", "lost", "amqplib", "1"),
        ],
    )
    assert {(row["user"], row["request"], row["mended_by"]) for row in rows(result)} == {
        ("old", "connection.open", "any gateway")
    }


def test_what_is_to_be_a_quorum_queue_is_said(raw: Path) -> None:
    result = preflight(raw, "--format", "csv", "--quorum", "wor*")
    found = {row["item"]: row for row in rows(result) if row["name"] == "work"}
    assert found.keys() == {"queue-version", "quorum-argument", "quorum-type", "conditional-delete"}
    delete = found["conditional-delete"]
    assert (delete["request"], delete["outcome"], delete["times"]) == ("queue.delete", "lost", "2")


def test_what_only_differs_fails_nobody(tmp_path: Path) -> None:
    write(tmp_path / "raw", "events", table_of("events", EVENTS[4:5]))
    write(tmp_path / "raw", "usage", table_of("usage", USAGE[:2]))
    result = preflight(tmp_path / "raw", "--format", "csv")
    assert (result.exit_code, [row["item"] for row in rows(result)]) == (0, ["global-prefetch"])


def test_rows_beyond_the_limit_are_counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST", 2)
    found = seen(
        spark.createDataFrame(table_of("usage", USAGE), schema("usage")),
        spark.createDataFrame(table_of("events", EVENTS), schema("events")),
    )
    assert (len(found.requests), found.left_out) == (2, 6)


def test_the_report_has_a_section(spark: SparkSession) -> None:
    section = upgrade(
        spark.createDataFrame(table_of("usage", USAGE), schema("usage")),
        spark.createDataFrame(table_of("events", EVENTS), schema("events")),
        top=2,
    )
    assert section.title == "Before RabbitMQ 4.3"
    fails, differs = section.parts
    assert isinstance(fails, ReportTable)
    assert isinstance(differs, ReportTable)
    assert (len(fails.rows), fails.more, len(differs.rows)) == (2, 1, 1)
    (outcome, user, vhost, request, _, times, since, *_) = differs.rows[0]
    assert (outcome, user, vhost, request, times) == (Word("differs"), "celery", "/", "basic.qos", 3)
    assert since == START


def test_definitions_are_enough(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    queue = {"name": "q", "vhost": "/", "durable": True, "arguments": {"x-queue-master-locator": "random"}}
    file.write_text(json.dumps({"queues": [queue, queue | {"vhost": "other"}]}))
    result = preflight(file, "--format", "json", "--vhost", "/")
    assert result.exit_code == 1
    (row,) = map(json.loads, result.stdout.splitlines())
    assert (row["outcome"], row["item"], row["name"], row["user"]) == ("lost", "master-locator", "q", None)
    fine = preflight(file, "--format", "json", "--target", "4.0")
    assert (fine.exit_code, fine.stdout) == (0, "")


def test_what_is_no_definitions_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text("{}")
    result = preflight(file)
    assert result.exit_code == 2
    assert "rabbitmqctl export_definitions" in result.stderr

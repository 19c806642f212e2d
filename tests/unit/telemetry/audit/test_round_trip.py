"""What is recorded is what is read: from Parquet, and from lines of JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
from pyarrow import parquet

from amqpgate.config import Audit
from amqpgate.records import SCHEMA_VERSION, TABLES, VERSION_KEY, Event, Origin, Sort, Usage, arrow_schema
from amqpgate.telemetry.audit.lines import LineSink
from amqpgate.telemetry.audit.log import AuditLog, open_log
from amqpgate.telemetry.audit.pieces import Pieces
from amqpgate.telemetry.audit.rows import AuditRow, Columns

from .records import BOOT, NOW, ORIGIN, parquet_sink, read, read_lines, visible

FULL = AuditRow(
    origin=ORIGIN,
    operation="queue.bind",
    exchange="orders",
    routing_key="order.*",
    routing_key_is_template=True,
    queue="q \N{SNOWMAN} \u2028 \N{GRINNING FACE}",
    destination="d",
    arguments='{"x-max-length": 5}',
    passive=True,
    foreign=True,
    any_key=True,
    verdict="deny",
    policy="p",
    rule="r",
    policy_digest="ab" * 32,
    more_keys='["a","b",null]',
)
SAID: Columns = {
    "operation": "basic.publish",
    "exchange": "orders",
    "routing_key": 'line\nbreak "quoted"',
    "routing_key_is_template": True,
    "queue": "q",
    "destination": "d",
    "arguments": "{}",
    "passive": True,
    "foreign": True,
    "any_key": True,
    "verdict": "deny",
    "policy": "p",
    "rule": "r",
    "more_keys": "[null]",
    "policy_digest": "cd" * 32,
    "outcome": "closed",
    "reply_code": 403,
    "reason": "no",
    "body_size": 1 << 40,
    "properties": '{"message_id": "1"}',
    "headers": "{}",
    "body": bytes(range(256)),
    "body_cut": True,
    "audit_policy": "a",
    "audit_rule": "b",
    "detail": '{"a": 1}',
}


def record_some(log: AuditLog) -> None:
    log.start()
    log.event(ORIGIN, "message", NOW + 0.123456, **SAID)
    log.event(None, "policies", NOW + 1)
    log.usage(FULL, 3, 2, 1 << 40, NOW + 0.000001, NOW + 9.999999, 1 << 39)
    log.close_window(NOW, NOW + 10)
    assert log.stop()


def from_parquet(folder: Path) -> dict[Sort, list[dict[str, object]]]:
    record_some(AuditLog(parquet_sink(folder), Pieces("gw", BOOT), max_queue=1 << 20))
    return {sort: read(folder, sort) for sort in TABLES}


def from_lines(folder: Path) -> dict[Sort, list[dict[str, object]]]:
    with open(folder / "out", "wb") as file:
        record_some(AuditLog(LineSink(file.fileno()), Pieces("gw", BOOT), max_queue=1 << 20))
    return read_lines((folder / "out").read_text())


@pytest.mark.parametrize("write", [from_parquet, from_lines])
def test_what_was_recorded_is_read(tmp_path: Path, write: object) -> None:
    assert callable(write)
    found = write(tmp_path)
    full, empty = found["events"]
    who = attrs.asdict(ORIGIN)
    common = {"schema_version": 1, "gateway": "gw"}
    when = datetime.fromtimestamp(NOW, UTC)
    assert full == common | who | SAID | {
        "record_id": f"gw-{BOOT}-1",
        "time": when.replace(microsecond=123456),
        "kind": "message",
    }
    assert empty == attrs.asdict(
        Event(record_id=f"gw-{BOOT}-2", gateway="gw", time=when.replace(second=1), kind="policies")
    )
    assert found["usage"] == [
        attrs.asdict(
            Usage(
                **common,
                **who,
                **{name: value for name, value in attrs.asdict(FULL).items() if name != "origin"},
                record_id=f"gw-{BOOT}-3",
                window_start=when,
                window_end=when.replace(second=10),
                first=when.replace(microsecond=1),
                last=when.replace(second=9, microsecond=999999),
                requests=3,
                messages=2,
                bytes=1 << 40,
                largest_body=1 << 39,
            )
        )
    ]


def test_files_have_the_schema_and_its_version(tmp_path: Path) -> None:
    from_parquet(tmp_path)
    for sort, table in TABLES.items():
        (path,) = visible(tmp_path, sort)
        assert path.relative_to(tmp_path) == Path(f"{sort}/date=2026-11-22/gw-{BOOT}-000001.parquet")
        schema = parquet.read_schema(path)
        assert schema.metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()
        assert schema.equals(arrow_schema(table), check_metadata=False)
        # Readers that know nothing of Arrow's own copy of the schema find it, too.
        assert parquet.read_metadata(path).metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()


def test_rows_and_events_have_the_columns_of_the_record() -> None:
    usage = {field.name for field in attrs.fields(Usage)}
    events = {field.name: field for field in attrs.fields(Event)}
    of_all = {"record_id", "schema_version", "gateway"}
    of_origin = {field.name for field in attrs.fields(Origin)}
    of_row = {field.name: field for field in attrs.fields(AuditRow) if field.name != "origin"}
    of_window = {"window_start", "window_end", "first", "last", "requests", "messages", "bytes"}
    of_window |= {"largest_body"}
    assert of_all | of_origin | set(of_row) | of_window == usage
    assert of_all | of_origin | {"time", "kind"} | set(Columns.__annotations__) == set(events)
    # What neither says is what the record says by default.
    for name, field in of_row.items():
        if name != "operation":
            assert field.default == events[name].default, name


def test_bytes_that_are_no_text_are_shown_as_such(tmp_path: Path) -> None:
    origin = attrs.evolve(ORIGIN, user=b"b\xffb".decode(errors="surrogateescape"))
    for write in ("parquet", "json"):
        with open(tmp_path / "out", "wb") as file:
            sink = LineSink(file.fileno()) if write == "json" else parquet_sink(tmp_path)
            log = AuditLog(sink, Pieces("gw", BOOT), max_queue=1 << 20)
            log.start()
            log.event(origin, "session.open", NOW, reason="\ud800")
            log.event(ORIGIN, "session.open", NOW)
            assert log.stop()
            assert log.counts().written == (2, 0)
        found = (
            read(tmp_path, "events")
            if write == "parquet"
            else read_lines((tmp_path / "out").read_text())["events"]
        )
        assert [record["user"] for record in found] == ["b\\xffb", "bob"]
        assert [record["reason"] for record in found] == ["\\ud800", None]


def test_no_password_of_an_address_is_recorded(tmp_path: Path) -> None:
    address = "amqp://bob:hush@host/"
    origin = attrs.evolve(ORIGIN, client=f'{{"url": "{address}"}}')
    log = open_log(Audit(format="parquet", folder=tmp_path, gateway="gw"))  # type: ignore[arg-type]
    log.start()
    log.event(
        origin, "admin", reason=f"cannot reach {address}", detail=f'"{address}"', arguments=f'["{address}"]'
    )
    log.usage(attrs.evolve(FULL, origin=origin, arguments=f'["{address}"]'), 1, 1, 1, NOW, NOW)
    assert log.stop()
    records = read(tmp_path, "events") + read(tmp_path, "usage")
    assert len(records) == 2
    assert "amqp://bob:***@host/" in str(records)
    assert "hush" not in str(records)
    assert not any(b"hush" in path.read_bytes() for path in tmp_path.rglob("*.*"))


def test_a_name_of_a_column_is_not_made_up(tmp_path: Path) -> None:
    log = AuditLog(parquet_sink(tmp_path), Pieces("gw", BOOT), max_queue=1 << 20)
    with pytest.raises(TypeError, match=r"\['queu'\]"):
        log.event(None, "denied", queu="q")  # type: ignore[call-arg]


def test_a_record_that_cannot_be_written_costs_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = AuditLog(parquet_sink(tmp_path), Pieces("gw", BOOT), max_queue=1 << 20)
    log.start()
    for code in (200, 1 << 20, 403):
        log.event(None, "denied", NOW, reply_code=code)
    assert log.stop()
    assert [record["reply_code"] for record in read(tmp_path, "events")] == [200, 403]
    counts = log.counts()
    assert (counts.written, counts.dropped, counts.queued) == ((2, 0), (1, 0), (0, 0))
    assert counts.queued_bytes == 0
    assert "cannot be written, and is lost" in caplog.text


def test_each_process_numbers_for_itself(tmp_path: Path) -> None:
    for _ in range(3):
        log = open_log(Audit(format="parquet", folder=tmp_path, gateway="gw"))  # type: ignore[arg-type]
        log.start()
        log.event(None, "policies")
        log.event(None, "policies")
        assert log.stop()
    ids = [record["record_id"] for record in read(tmp_path, "events")]
    assert len(set(ids)) == 6
    assert len(visible(tmp_path, "events")) == 3


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    log = open_log(Audit(format="parquet", folder=tmp_path / "gone", gateway="gw"))  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        log.start()
    assert log.stop()

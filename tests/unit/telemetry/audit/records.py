"""What the tests of the audit log record, and how they read it again."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep

import attrs
from pyarrow import parquet

from amqpgate.records import TABLES, Origin, Sort
from amqpgate.telemetry.audit.parquet import ParquetSink
from amqpgate.telemetry.audit.pieces import Piece, Pieces
from amqpgate.telemetry.audit.rows import AuditRow, Sums

BOOT = "0123456789ab"
#: 2026-11-22T02:00:00Z
NOW = 1795312800.0

ORIGIN = Origin(
    session="127.0.0.1:4711",
    user="bob",
    vhost="/prod",
    source="127.0.0.1",
    listener="main",
    tls='{"common_name": "bob"}',
    client='{"product": "pika"}',
)


def row(key: str = "k", origin: Origin = ORIGIN) -> AuditRow:
    return AuditRow(
        origin=origin, operation="basic.publish", exchange="orders", routing_key=key, verdict="allow"
    )


def parquet_sink(
    folder: Path, *, boot: str = BOOT, records: int = 1000, interval: float = 3600
) -> ParquetSink:
    sink = ParquetSink(folder, "gw", boot, roll_records=records, roll_interval=interval)
    sink.start()
    return sink


def usage_pieces(*counts: int, pieces: Pieces | None = None) -> list[Piece]:
    """A piece for each count, with so many messages in one record."""
    pieces = pieces or Pieces("gw", BOOT)
    found = []
    for count in counts:
        sums = Sums()
        sums.add(row(), count, count, 10 * count, NOW, NOW + 1)
        sums.close(NOW, NOW + 10)
        found += pieces.of_usage(sums)
    return found


def visible(folder: Path, sort: Sort) -> list[Path]:
    """The files that a reader may see."""
    return sorted(path for path in folder.glob(f"{sort}/date=*/*") if not path.name.startswith(("_", ".")))


def hidden(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/date=*/_*"))


def read(folder: Path, sort: Sort) -> list[dict[str, object]]:
    """All records that a reader sees, file by file."""
    return [
        record for path in visible(folder, sort) for record in parquet.ParquetFile(path).read().to_pylist()
    ]


def messages(folder: Path) -> list[object]:
    return [record["messages"] for record in read(folder, "usage")]


def read_lines(text: str) -> dict[Sort, list[dict[str, object]]]:
    """Lines of JSON as what Parquet gives."""
    found: dict[Sort, list[dict[str, object]]] = {"events": [], "usage": []}
    names: dict[str, Sort] = {"event": "events", "usage": "usage"}
    for line in text.splitlines():
        told = json.loads(line)
        sort = names[told.pop("record")]
        record: dict[str, object] = {}
        for field in attrs.fields(TABLES[sort]):
            value = told.pop(field.name, None)
            if value is not None and field.metadata["kind"] == "time":
                value = datetime.fromisoformat(value)
            if value is not None and field.metadata["kind"] == "bytes":
                value = b64decode(value)
            record[field.name] = value
        assert not told
        found[sort].append(record)
    return found


def until(is_so: Callable[[], bool]) -> None:
    """Wait for the writer's thread."""
    deadline = monotonic() + 60
    while not is_so():
        assert monotonic() < deadline
        sleep(0.005)

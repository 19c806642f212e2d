"""A log that ships, and what the tests put into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema
import pytest

from amqpgate.config import Audit, HttpUrl
from amqpgate.config.audit_sinks import AuditOpenSearch
from amqpgate.telemetry.audit import writer
from amqpgate.telemetry.audit.log import AuditLog, open_log
from amqpgate.telemetry.audit.outlets import sending
from amqpgate.yamldoc import Seconds, Size
from tests.unit.telemetry.audit.records import NOW, ORIGIN, row
from tests.unit.test_ocsf import check_of


def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_GATHER", 0.0)
    monkeypatch.setattr(writer, "_LAST_PIECE", 0.2)
    monkeypatch.setattr(sending, "_FIRST", 0.001)
    monkeypatch.setattr(sending, "_MOST", 0.01)
    monkeypatch.setattr(sending, "_AT_END", 0.001)


def search(url: str, **more: Any) -> AuditOpenSearch:
    said = {"url": HttpUrl.parse(url), "timeout": Seconds(20), **more}
    return AuditOpenSearch(**said)


@contextmanager
def log_of(
    settings: Audit | None = None,
    *,
    patience: float = 20,
    on_room: Callable[[], None] = lambda: None,
    **sinks: Any,
) -> Iterator[AuditLog]:
    """Started, and stopped in the end: within its patience, all is written."""
    log = open_log(settings or Audit(gateway="gw", **sinks), on_room)
    log.start()
    try:
        yield log
    finally:
        log.stop(patience)


def small(**sinks: Any) -> Audit:
    """With the smallest queue."""
    return Audit(gateway="gw", max_queue=Size(64 << 10), **sinks)


def record_some(log: AuditLog, count: int) -> None:
    """So many events, and a row of usage."""
    for number in range(count):
        columns = {"operation": "basic.publish", "exchange": "x", "routing_key": str(number)}
        log.event(ORIGIN, "denied", NOW + number, **columns)  # type: ignore[arg-type]
    log.usage(row(), 3, 3, 30, NOW, NOW + 1)
    log.close_window(NOW, NOW + 10)


def check(event: dict[str, Any]) -> dict[str, Any]:
    """It is valid by the schema of OCSF."""
    check_of(event["class_uid"])(event)
    return event


def checked(data: bytes | str) -> dict[str, Any]:
    try:
        return check(json.loads(data))
    except jsonschema.ValidationError as error:
        raise AssertionError(str(error)) from error

"""Events of OCSF: each is valid by the schema that was published, and says what the record says."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import attrs
import jsonschema
import pytest
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

from amqpgate.ocsf import BODY, VERSION, ocsf_of
from amqpgate.records import EventKind, Record
from tests.support.audit_records import START, Traffic, event, table_of, usage, write
from tests.support.audit_verbs import audit_locally

CLASSES = {3002: "authentication", 6003: "api_activity", 6005: "datastore_activity"}
ORIGIN: dict[str, object] = {"session": "5e5510", "user": "alice", "vhost": "/", "source": "10.0.0.1"}


@cache
def schema() -> OcsfJsonSchemaEmbedded:
    return OcsfJsonSchemaEmbedded(get_ocsf_schema(version=VERSION))


@cache
def check_of(number: int) -> Callable[[object], None]:
    found = schema().get_class_schema(CLASSES[number])
    return jsonschema.Draft202012Validator(found).validate  # type: ignore[no-any-return]


def told(record: Record) -> dict[str, Any]:
    """The event, valid, and as its line of JSON has it."""
    row = {name: value for name, value in attrs.asdict(record).items() if name != BODY}
    sort = "events" if "kind" in row else "usage"
    found: dict[str, Any] = json.loads(json.dumps(ocsf_of(sort, row)))  # type: ignore[arg-type]
    check_of(found["class_uid"])(found)
    return found


@pytest.mark.parametrize("kind", get_args(EventKind))
@pytest.mark.parametrize("origin", [ORIGIN, {}])
@pytest.mark.parametrize(
    "operation", [None, "queue.declare", "basic.publish", "basic.deliver", "exchange.unbind"]
)
def test_every_record_is_valid(kind: EventKind, origin: dict[str, object], operation: str | None) -> None:
    columns = {"operation": operation, "queue": "q", "exchange": "", "detail": '{"a": [1]}', "body": b"\xff"}
    told(event("1", kind, START, **columns, **origin))


def test_a_session() -> None:
    opened = told(event("g-1", "session.open", START, **ORIGIN, client='{"product": "pika"}'))
    assert (opened["class_uid"], opened["activity_id"], opened["type_uid"]) == (3002, 1, 300201)
    assert (opened["user"]["name"], opened["session"]["uid"]) == ("alice", "5e5510")
    assert opened["src_endpoint"] == {"ip": "10.0.0.1"}
    assert opened["time"] == int(START.timestamp()) * 1000
    assert opened["unmapped"]["client"] == {"product": "pika"}
    closed = told(event("g-2", "session.close", START, **ORIGIN, reply_code=501, reason="FRAME_ERROR"))
    assert (closed["activity_id"], closed["status_code"], closed["status_detail"]) == (
        2,
        "501",
        "FRAME_ERROR",
    )


def test_a_login_that_was_refused() -> None:
    detail = '{"times": 3, "upstream": "rabbit"}'
    refused = told(
        event("g-1", "session.refused", START, **ORIGIN, reply_code=403, reason="no", detail=detail)
    )
    assert (refused["class_uid"], refused["activity_id"], refused["type_uid"]) == (3002, 1, 300201)
    assert (refused["status"], refused["status_code"], refused["status_detail"]) == ("Failure", "403", "no")
    assert (refused["user"]["name"], refused["src_endpoint"]) == ("alice", {"ip": "10.0.0.1"})
    assert refused["unmapped"]["detail"] == {"times": 3, "upstream": "rabbit"}


def test_a_denial() -> None:
    columns = {"operation": "queue.delete", "queue": "q", "policy": "p", "rule": "r", "reply_code": 403}
    denied = told(event("g-1", "denied", START, **ORIGIN, **columns))
    assert (denied["class_uid"], denied["activity_id"]) == (6003, 4)
    assert (denied["status"], denied["api"]["operation"]) == ("Failure", "queue.delete")
    assert denied["resources"] == [{"name": "q", "type": "queue"}]
    assert (denied["unmapped"]["policy"], denied["unmapped"]["rule"]) == ("p", "r")
    assert told(event("g-2", "shadow", START, **ORIGIN, **columns))["status"] == "Success"


def test_an_operator() -> None:
    detail = '{"action": "pause", "address": "10.0.0.7", "by": "token"}'
    paused = told(event("g-1", "admin", START, detail=detail))
    assert (paused["actor"]["user"]["name"], paused["src_endpoint"]) == ("token", {"ip": "10.0.0.7"})
    assert (paused["activity_id"], paused["unmapped"]["detail"]["action"]) == (3, "pause")
    nobody = told(event("g-2", "admin", START, detail='{"action": "reload", "by": "signal"}'))
    assert nobody["src_endpoint"] == {"name": "Unknown"}


def test_messages() -> None:
    sent = told(usage("1", START, 60, exchange="orders", routing_key="a.b", source="::1"))
    assert (sent["class_uid"], sent["activity_id"], sent["count"]) == (6005, 5, 60)
    assert (sent["database"]["name"], sent["table"]["name"]) == ("/", "orders")
    assert sent["end_time"] - sent["start_time"] == 10_000
    words = "usage: basic.publish exchange 'orders' routing key 'a.b' vhost '/' by"
    assert sent["message"].startswith(words)
    got = told(usage("2", START, 6, operation="basic.deliver", verdict=None, queue="q"))
    assert (got["activity_id"], got["table"]["name"], got["status"]) == (1, "q", "Success")
    assert told(usage("3", START, 6, verdict="deny"))["status"] == "Failure"
    asked = told(usage("4", START, 0, requests=3, operation="basic.qos", arguments='{"prefetch": 1}'))
    assert (asked["class_uid"], asked["activity_name"], asked["count"]) == (6003, "basic.qos", 3)


def test_the_check_can_fail() -> None:
    broken = told(usage("1", START)) | {"severity_id": 12}
    with pytest.raises(jsonschema.ValidationError):
        check_of(6005)(broken)
    del broken["severity_id"]
    with pytest.raises(jsonschema.ValidationError):
        check_of(6005)(broken)


def test_export(tmp_path: Path) -> None:
    month = Traffic(services=2, sessions=1, keys=2)
    write(tmp_path / "raw", "usage", month.usage(50))
    write(tmp_path / "raw", "events", table_of("events", events := month.events(1)))
    out = tmp_path / "out.jsonl"
    assert audit_locally("export", tmp_path / "raw", "-o", out) == ""
    found = [json.loads(line) for line in out.read_text().splitlines()]
    told_of = {(one["metadata"]["log_name"], one["metadata"]["uid"]) for one in found}
    assert len(found) == 50 + len(events) == len(told_of)
    for one in found:
        check_of(one["class_uid"])(one)
    assert len(audit_locally("export", tmp_path / "raw", "--only", "events").splitlines()) == len(events)

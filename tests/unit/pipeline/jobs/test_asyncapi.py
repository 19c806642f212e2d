"""AsyncAPI documents: valid by the schema that was published, and saying what the topology says."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from amqpgate.pipeline.frames import engine
from amqpgate.pipeline.jobs.asyncapi import asyncapi_of
from amqpgate.pipeline.jobs.topology import topology
from amqpgate.records import Event, Usage
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, event, table_of, usage, write
from tests.support.audit_verbs import audit_locally

SPEC = Path(__file__).parents[4] / "spec" / "asyncapi"

GOT = {"operation": "basic.deliver", "verdict": None, "user": "bob", "vhost": "shop"}
USAGE = [
    usage("1", START, 10, vhost="shop", exchange="orders", routing_key="order.1.created", bytes=5_004),
    usage("2", START, 2, vhost="shop", exchange="", routing_key="reply-4711", bytes=20),
    usage("3", START, 2, vhost="shop", exchange="", routing_key="{odd}/name~1", bytes=20),
    usage("4", START, 1, vhost="shop", exchange="amq.fanout", routing_key="", bytes=0),
    usage("5", START, 1, user="ann e/ü", vhost="shop", exchange="delayed", routing_key="k", bytes=7),
    usage("6", START, 9, exchange="orders", queue="in", routing_key="order.1.created", bytes=4_500, **GOT),
]
MADE = {"vhost": "shop", "user": "bob"}
EVENTS = [
    event(
        "1",
        "topology",
        START,
        operation="exchange.declare",
        exchange="orders",
        detail='{"type":"topic"}',
        **MADE,
    ),
    event(
        "2",
        "topology",
        START,
        operation="exchange.declare",
        exchange="delayed",
        detail='{"type":"x-my"}',
        **MADE,
    ),
    event(
        "3",
        "topology",
        START,
        operation="queue.declare",
        queue="in",
        arguments='{"x-dead-letter-exchange":"dlx"}',
        **MADE,
    ),
    event(
        "4",
        "topology",
        START,
        operation="queue.bind",
        queue="in",
        exchange="orders",
        routing_key="order.#",
        **MADE,
    ),
    event(
        "5",
        "topology",
        START,
        operation="exchange.bind",
        destination="delayed",
        exchange="orders",
        routing_key="x",
        **MADE,
    ),
]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    data = (SPEC / "asyncapi-3.0.0.json").read_bytes()
    assert hashlib.sha256(data).hexdigest() in (SPEC / "README.md").read_text()
    found: dict[str, Any] = json.loads(data)
    return found


def document(plans: Plans, user: str | None = None) -> dict[str, Any]:
    with engine(plans.name):
        return asyncapi_of(topology(plans.frame("usage", USAGE), plans.frame("events", EVENTS)), user)


def test_it_is_valid_and_says_what_was_seen(plans: Plans, schema: dict[str, Any]) -> None:
    found = document(plans)
    jsonschema.Draft7Validator(schema).validate(found)
    assert list(found["channels"]) == [
        *("shop.exchange.amq.fanout", "shop.exchange.delayed", "shop.exchange.orders"),
        *("shop.queue.in", "shop.queue.reply", "shop.queue.-odd-name-1"),
    ]
    orders = found["channels"]["shop.exchange.orders"]
    assert orders["bindings"]["amqp"]["exchange"] == {"name": "orders", "vhost": "shop", "type": "topic"}
    assert orders["parameters"]["routingKey"]["examples"] == ["order.#", "order.*.created", "x"]
    assert orders["messages"]["message"]["x-mean-size"] == 500
    assert orders["x-feeds"] == ["delayed"]
    assert found["channels"]["shop.exchange.delayed"]["x-type"] == "x-my"
    assert found["channels"]["shop.exchange.amq.fanout"]["address"] is None
    queue = found["channels"]["shop.queue.in"]
    assert (queue["address"], queue["x-dead-letters-to"]) == ("in", ["dlx"])
    assert queue["x-bindings"] == [{"exchange": "orders", "routingKey": "order.#"}]
    assert {name: one["action"] for name, one in found["operations"].items() if "in" in name} == {
        "bob.receive.shop.queue.in": "receive"
    }
    # Every reference leads somewhere.
    for path in re.findall(r'"\$ref": "#/([^"]*)"', json.dumps(found)):
        place: Any = found
        for part in path.split("/"):
            place = place[part]


def test_it_may_be_of_one_user(plans: Plans, schema: dict[str, Any]) -> None:
    found = document(plans, "bob")
    jsonschema.Draft7Validator(schema).validate(found)
    assert list(found["channels"]) == ["shop.queue.in"]
    assert list(found["operations"]) == ["bob.receive.shop.queue.in"]
    assert document(plans, "nobody")["operations"] == {}


def test_the_schema_finds_what_is_wrong(plans: Plans, schema: dict[str, Any]) -> None:
    found = document(plans)
    found["channels"]["shop.queue.in"]["bindings"]["amqp"]["queue"]["size"] = 1
    found["channels"]["shop.queue.in"]["bindings"]["amqp"]["is"] = "topic"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(found)


def test_by_the_command_line(tmp_path: Path, schema: dict[str, Any]) -> None:
    records: list[Usage] = USAGE
    events: list[Event] = EVENTS
    write(tmp_path / "raw", "usage", table_of("usage", records))
    write(tmp_path / "raw", "events", table_of("events", events))
    out = tmp_path / "shop.json"
    audit_locally("export", tmp_path / "raw", "--as", "asyncapi", "-o", out)
    found = json.loads(out.read_text())
    jsonschema.Draft7Validator(schema).validate(found)
    assert len(found["operations"]) == 6
    with pytest.raises(subprocess.CalledProcessError) as error:
        audit_locally("export", tmp_path / "raw", "--as", "asyncapi", "--user", "nobody")
    assert "user nobody sent and read nothing" in error.value.stderr

"""Definitions of RabbitMQ's, as they are looked at before an upgrade."""

from __future__ import annotations

import json

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy.tools.definition_requests import requests_in
from amqpgate.policy.tools.preflight import BrokerRequest


def of(**lists: object) -> list[BrokerRequest]:
    return list(requests_in(json.dumps(lists).encode(), "definitions.json"))


def test_queues_exchanges_and_policies_are_read() -> None:
    assert of(
        queues=[
            {"name": "q", "vhost": "/", "durable": True, "arguments": {"x-queue-version": 1}},
            {"name": "k", "vhost": "/", "durable": True, "type": "quorum", "arguments": {}},
        ],
        exchanges=[{"name": "x", "vhost": "v", "type": "x-delayed-message", "durable": True}],
        policies=[{"name": "p", "vhost": "/", "pattern": "", "definition": {"ha-mode": "all"}}],
        users=[{"name": "u"}],
    ) == [
        BrokerRequest(kind="queue.declare", vhost="/", name="q", arguments={"x-queue-version": 1}),
        BrokerRequest(kind="queue.declare", vhost="/", name="k", arguments={"x-queue-type": "quorum"}),
        BrokerRequest(kind="exchange.declare", vhost="v", name="x", type="x-delayed-message"),
        BrokerRequest(kind="policy", vhost="/", name="p", arguments={"ha-mode": "all"}),
    ]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b'"\xff"', "not JSON: invalid start byte"),
        (b"9" * 5000, "not JSON: Exceeds the limit"),
        (b"[]", "no definitions"),
        (b'{"users": []}', "no definitions"),
        (b'{"queues": {}}', "'queues' is not a list"),
        (b'{"queues": [{"vhost": "/"}]}', r"'queues\[0\]' is no object with a name"),
    ],
)
def test_what_is_no_definitions_file(data: bytes, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        list(requests_in(data, "definitions.json"))

"""The names of attributes before and since 1.45 of the conventions, and which are given."""

from __future__ import annotations

import pytest
from opentelemetry.semconv._incubating.attributes import messaging_attributes

from amqpgate.telemetry.tracing.semconv import Key, Names, destination

VALUES = {Key.SYSTEM: "rabbitmq", Key.ROUTING_KEY: "k", Key.DELIVERY_TAG: 7, Key.MESSAGE_ID: None}
BEFORE = {
    "messaging.system": "rabbitmq",
    "messaging.rabbitmq.destination.routing_key": "k",
    "messaging.rabbitmq.message.delivery_tag": 7,
}
SINCE = {
    "messaging.system.name": "rabbitmq",
    "rabbitmq.destination.routing_key": "k",
    "rabbitmq.message.delivery_tag": 7,
}


@pytest.mark.parametrize(
    ("opt_in", "expected"),
    [
        ("", BEFORE),
        ("http, database/dup", BEFORE),
        ("messaging", SINCE),
        ("http,messaging ", SINCE),
        ("messaging/dup", BEFORE | SINCE),
        ("messaging,messaging/dup", BEFORE | SINCE),
        ("messaging/other", BEFORE),
    ],
)
def test_the_names_are_those_asked_for(opt_in: str, expected: dict[str, object]) -> None:
    assert Names.chosen(opt_in).attributes(VALUES) == expected


def test_the_names_from_before_are_those_of_the_installed_conventions() -> None:
    known = {value for name, value in vars(messaging_attributes).items() if name.startswith("MESSAGING_")}
    assert {key.value[0] for key in Key if key.value[0].startswith("messaging.")} <= known


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("e", "k"), "e:k"),
        (("e", ""), "e"),
        (("", "k"), "k"),
        (("", ""), "amq.default"),
        (("e", "k", "q"), "e:k:q"),
        (("", "q", "q"), "q"),
        (("e", "q", "q"), "e:q"),
        ((None, None, "q"), "q"),
    ],
)
def test_the_destination_is_exchange_routing_key_and_queue(parts: tuple[str | None, ...], name: str) -> None:
    assert destination(*parts) == name

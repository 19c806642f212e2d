"""Capabilities are told where the broker's version has the words for them."""

from __future__ import annotations

from amqpgate.bridge import interpreter_for
from amqpgate.gateway.upstream.capabilities import of_broker, of_client
from amqpgate.wire.dialects import LEGACY_BROKER
from amqpgate.wire.tables import EMPTY_TABLE, Table

SAID = Table.of({"product": "p", "capabilities": {"publisher_confirms": True, "per_consumer_qos": True}})


def test_what_the_version_has_no_method_for_is_left_out() -> None:
    old = interpreter_for(LEGACY_BROKER)
    left = Table.of({"product": "p", "capabilities": {"per_consumer_qos": True}})
    assert of_client(old, SAID) == left
    assert of_broker(old, SAID) == left


def test_a_broker_that_says_nothing_can_do_nothing_besides() -> None:
    old = interpreter_for(LEGACY_BROKER)
    assert of_client(old, EMPTY_TABLE) == EMPTY_TABLE
    assert of_broker(old, EMPTY_TABLE) == Table.of({"capabilities": {}})

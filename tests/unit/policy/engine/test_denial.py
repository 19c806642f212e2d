"""The sentences of denials, which RabbitMQ 3.10.8 wrote for the same requests."""

from __future__ import annotations

import pytest

from amqpgate.policy import Operation, PolicySet, Principal, denial_text
from tests.unit.policy.build_set import document, policies

BOB = Principal("bob", "/")

#: The permissions of the user who was denied: all that starts with "ok", topics that start with "fine".
RULES = policies(
    document(
        "effect: allow, operations: [exchange.declare, exchange.delete], exchange: {prefix: ok}",
        "effect: allow, operations: [queue.declare, queue.purge, queue.delete, basic.*], queue: {prefix: ok}",
        "effect: allow, operations: [exchange.*, basic.publish], exchange: {prefix: ok}, "
        "routingKey: {prefix: fine}",
        "effect: allow, operations: [queue.bind, queue.unbind], queue: {prefix: ok}, exchange: {prefix: ok}, "
        "routingKey: {prefix: fine}",
    )
)

#: Request, then what RabbitMQ said, word for word.
MEASURED = [
    (("exchange.declare", {"exchange": "no.x"}), "exchange 'no.x' in vhost '/'"),
    (("exchange.delete", {"exchange": "no.d"}), "exchange 'no.d' in vhost '/'"),
    (
        ("exchange.bind", {"destination": "no.d", "exchange": "ok.d", "routing_key": "k"}),
        "exchange 'no.d' in vhost '/'",
    ),
    (
        ("exchange.bind", {"destination": "ok.d", "exchange": "no.d", "routing_key": "k"}),
        "exchange 'no.d' in vhost '/'",
    ),
    (
        ("exchange.unbind", {"destination": "no.e", "exchange": "no.d", "routing_key": "k"}),
        "exchange 'no.e' in vhost '/'",
    ),
    (
        ("exchange.bind", {"destination": "ok.d", "exchange": "ok.t", "routing_key": "bad"}),
        "topic 'bad' in exchange 'ok.t' in vhost '/'",
    ),
    (("queue.declare", {"queue": "no.new"}), "queue 'no.new' in vhost '/'"),
    (("queue.bind", {"queue": "no.q", "exchange": "ok.d", "routing_key": "k"}), "queue 'no.q' in vhost '/'"),
    (
        ("queue.bind", {"queue": "ok.q", "exchange": "no.d", "routing_key": "k"}),
        "exchange 'no.d' in vhost '/'",
    ),
    (
        ("queue.bind", {"queue": "ok.q", "exchange": "ok.t", "routing_key": "bad"}),
        "topic 'bad' in exchange 'ok.t' in vhost '/'",
    ),
    (
        ("queue.unbind", {"queue": "ok.q", "exchange": "ok.t", "routing_key": "bad"}),
        "topic 'bad' in exchange 'ok.t' in vhost '/'",
    ),
    (("queue.purge", {"queue": "no.q"}), "queue 'no.q' in vhost '/'"),
    (("queue.delete", {"queue": "no.q"}), "queue 'no.q' in vhost '/'"),
    (("basic.get", {"queue": "no.q"}), "queue 'no.q' in vhost '/'"),
    (("basic.consume", {"queue": "no.q"}), "queue 'no.q' in vhost '/'"),
    (("basic.publish", {"exchange": "no.d", "routing_key": "k"}), "exchange 'no.d' in vhost '/'"),
    (("basic.publish", {"exchange": "", "routing_key": "no.q"}), "exchange 'amq.default' in vhost '/'"),
    (
        ("basic.publish", {"exchange": "ok.t", "routing_key": "bäd'quote"}),
        "topic 'bäd'quote' in exchange 'ok.t' in vhost '/'",
    ),
    (("basic.publish", {"exchange": "no\n.d", "routing_key": "k\nk"}), "exchange 'no\n.d' in vhost '/'"),
]


@pytest.mark.parametrize(("request_", "what"), MEASURED)
def test_as_rabbitmq_says_it(request_: tuple[str, dict[str, str]], what: str) -> None:
    name, attributes = request_
    operation = Operation(BOB, name, **attributes)
    verdict = RULES.decide(operation)
    assert not verdict.allowed
    assert denial_text(operation, verdict) == f"access to {what} refused for user 'bob'"


def test_server_named_queues_have_no_name_yet() -> None:
    operation = Operation(BOB, "queue.declare", queue="")
    text = denial_text(operation, RULES.decide(operation))
    # RabbitMQ makes the name up before it denies: 'amq.gen-NHGhDrYChW94V_8aMEAGGA' and the like.
    assert text == "access to queue 'amq.gen-' in vhost '/' refused for user 'bob'"


def test_what_no_table_knows_is_still_a_sentence() -> None:
    operation = Operation(BOB, "basic.frobnicate")
    text = denial_text(operation, RULES.decide(operation))
    assert text == "access to basic.frobnicate in vhost '/' refused for user 'bob'"


def test_nobody_is_refused_without_policies() -> None:
    assert PolicySet.empty().decide(Operation(BOB, "basic.frobnicate")).allowed

"""Which declares become those of quorum queues, by a rule on the queue's name."""

from __future__ import annotations

import pytest

from amqpgate.gateway.session.compatibility import adapted
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.unit.gateway.session.test_compatibility import declare
from tests.unit.policy.kinds.test_compatibility import profile

RULES = """quorumQueues:
- {queue: {prefix: c.}, become: classic}
- {queue: {prefix: e.}, autoDeleteAfter: 1h, maxPriority: 10}
- {queue: {prefix: q.}}
"""
QUORUM = {"x-queue-type": "quorum", "x-delivery-limit": -1}
MADE = ("quorum-queue", "delivery-limit")


def told(method: Method, spec: str = RULES) -> tuple[bool, dict[str, object], tuple[str, ...], str]:
    """Whether it is auto-delete, its arguments, what was changed, and why not."""
    result = adapted(profile(spec), method, "/")
    assert isinstance(result.method, amqp.QueueDeclare)
    return (
        result.method.auto_delete,
        dict(result.method.arguments.to_python()),
        result.items,
        result.left,
    )


@pytest.mark.parametrize(
    ("method", "arguments", "items"),
    [
        (declare("q.1", durable=True), QUORUM, MADE),
        (declare("q.1", durable=True, x_queue_type="classic"), QUORUM, MADE),
        (
            declare("q.1", durable=True, x_queue_mode="lazy", x_ha_policy="all", x_max_length=3),
            {"x-max-length": 3, **QUORUM},
            ("retired-argument", *MADE),
        ),
        (
            declare("q.1", durable=True, x_delivery_limit=7),
            {"x-delivery-limit": 7, "x-queue-type": "quorum"},
            ("quorum-queue",),
        ),
        (declare("e.1", durable=True, x_max_priority=10), QUORUM, MADE),
        (
            declare("e.1", durable=True, auto_delete=True),
            {"x-expires": 3_600_000, **QUORUM},
            MADE,
        ),
        (declare("e.1", durable=True, auto_delete=True, x_expires=5), {"x-expires": 5, **QUORUM}, MADE),
        (declare("c.1", durable=True), {"x-queue-type": "classic"}, ("classic-queue",)),
        (
            declare("c.1", durable=True, x_queue_type="quorum", x_delivery_limit=3, x_max_length=3),
            {"x-queue-type": "classic", "x-max-length": 3},
            ("classic-queue",),
        ),
    ],
)
def test_what_the_broker_gets(method: Method, arguments: dict[str, object], items: tuple[str, ...]) -> None:
    assert told(method) == (False, arguments, items, "")


CLASSIC = {"x-queue-type": "classic"}


@pytest.mark.parametrize(
    ("method", "arguments", "why"),
    [
        (declare("q.1", durable=True, exclusive=True), {}, "exclusive"),
        (declare("q.1", exclusive=True), {}, "exclusive"),
        (declare("q.1", durable=True, auto_delete=True), {}, "auto-delete"),
        (declare("q.1", durable=True, x_max_priority=2), {"x-max-priority": 2, **CLASSIC}, "x-max-priority"),
        (
            declare("e.1", durable=True, x_max_priority=11),
            {"x-max-priority": 11, **CLASSIC},
            "x-max-priority",
        ),
        (
            declare("e.1", durable=True, x_max_priority="ten"),
            {"x-max-priority": "ten", **CLASSIC},
            "x-max-priority",
        ),
        (
            declare("q.1", durable=True, x_overflow="reject-publish-dlx"),
            {"x-overflow": "reject-publish-dlx", **CLASSIC},
            "x-overflow",
        ),
    ],
)
def test_what_a_quorum_queue_cannot_be_stays_classic(
    method: Method, arguments: dict[str, object], why: str
) -> None:
    assert isinstance(method, amqp.QueueDeclare)
    assert told(method) == (method.auto_delete, arguments, ("left-classic",), why)


def test_a_transient_queue_is_the_other_items() -> None:
    assert told(declare("q.1"))[2:] == (("left-classic", "transient-queue"), "not durable")


def test_a_rule_for_every_queue_leaves_those_that_the_broker_names() -> None:
    rule = "quorumQueues: [{}]\ntransientQueues: {become: transient}"
    assert told(declare("", durable=True), rule)[1:] == ({}, ("left-classic",), "the broker names it")
    assert told(declare("any", durable=True), rule)[1] == QUORUM


@pytest.mark.parametrize(
    "method",
    [
        declare("other", durable=True),
        declare("q.1", passive=True),
        declare("q.1", durable=True, x_queue_type="quorum"),
        declare("q.1", durable=True, x_queue_type="stream"),
        declare("c.1", durable=True, x_queue_type="classic"),
        amqp.BasicQos(0, 5),
        amqp.QueueDelete(queue="q.1", if_empty=True),
    ],
)
def test_all_else_is_the_clients(method: Method) -> None:
    result = adapted(profile(RULES), method, "/")
    assert (result.method, result.items, result.left) == (method, (), "")


def test_a_limit_that_is_set_holds() -> None:
    method = declare("q.1", durable=True)
    assert told(method, f"{RULES}deliveryLimits: [{{limit: 5}}]\n")[1]["x-delivery-limit"] == 5


def test_retired_arguments_go_even_where_they_are_kept() -> None:
    """A quorum queue is refused for them."""
    method = declare("q.1", durable=True, x_queue_mode="lazy")
    assert told(method, f"{RULES}retiredArguments: keep")[1:3] == (QUORUM, MADE)
    left = declare("q.1", durable=True, x_queue_mode="lazy", x_max_priority=3)
    assert "x-queue-mode" in told(left, f"{RULES}retiredArguments: keep")[1]


def test_a_prefetch_of_the_channel_is_each_consumers() -> None:
    """Only where there may be quorum queues."""
    result = adapted(profile(RULES + "globalPrefetch: keep\n"), amqp.BasicQos(0, 5, True), "/")
    assert (result.method, result.items) == (amqp.BasicQos(0, 5), ("quorum-prefetch",))
    assert adapted(profile(), amqp.BasicQos(0, 5, True), "/").items == ()

"""What a compatibility policy makes of declares, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.gateway.session.compatibility import Adapted, adapted
from amqpgate.policy import Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.metrics import sample_value
from tests.unit.gateway.conftest import Stage
from tests.unit.policy.kinds.test_compatibility import document, profile

MakeStage = Callable[..., Stage]
DAY = 24 * 3600 * 1000
LIMITS = "deliveryLimits: [{queue: {prefix: few}, limit: 3}]"


def declare(queue: str = "q", *, durable: bool = False, **said: object) -> amqp.QueueDeclare:
    flags = {name: bool(said.pop(name, False)) for name in ("exclusive", "passive", "auto_delete")}
    table = Table.of({name.replace("_", "-"): value for name, value in said.items()})
    return amqp.QueueDeclare(queue=queue, durable=durable, arguments=table, **flags)


def told(method: Method, spec: str = LIMITS) -> tuple[bool, dict[str, object], tuple[str, ...]]:
    result = adapted(profile(spec), method, "/")
    assert isinstance(result.method, amqp.QueueDeclare)
    return result.method.durable, dict(result.method.arguments.to_python()), result.items


TRANSIENT = {"x-queue-type": "classic", "x-expires": DAY}


@pytest.mark.parametrize(
    ("method", "arguments", "items"),
    [
        (declare(), TRANSIENT, ["transient-queue"]),
        (declare(""), TRANSIENT, ["transient-queue"]),
        (declare(auto_delete=True), TRANSIENT, ["transient-queue"]),
        (
            declare(x_queue_type="classic", x_expires=5),
            {"x-queue-type": "classic", "x-expires": 5},
            ["transient-queue"],
        ),
        (
            declare(x_queue_version=1, x_queue_mode="lazy", x_ha_policy="all", x_ha_nodes=["a"]),
            TRANSIENT,
            ["retired-argument", "transient-queue"],
        ),
        (
            declare(durable=True, x_queue_master_locator="min-masters", x_max_length=3),
            {"x-max-length": 3, "x-queue-leader-locator": "balanced"},
            ["retired-argument"],
        ),
        (
            declare(durable=True, x_queue_master_locator="random", x_queue_leader_locator="client-local"),
            {"x-queue-leader-locator": "client-local"},
            ["retired-argument"],
        ),
        (declare(durable=True, x_queue_master_locator=b"\xff"), {}, ["retired-argument"]),
        (
            declare("few.1", durable=True, x_queue_type="quorum"),
            {"x-queue-type": "quorum", "x-delivery-limit": 3},
            ["delivery-limit"],
        ),
    ],
)
def test_what_the_broker_gets(method: Method, arguments: dict[str, object], items: list[str]) -> None:
    assert told(method) == (True, arguments, tuple(items))


@pytest.mark.parametrize(
    "method",
    [
        declare(durable=True),
        declare(exclusive=True),
        declare(passive=True),
        # As ever: for the broker to refuse.
        declare(durable=True, x_queue_type="quorum", x_queue_mode="lazy"),
        declare(durable=True, x_queue_type="stream", x_queue_master_locator="random"),
        declare("few", durable=True, x_queue_type="quorum", x_delivery_limit=9),
        declare("many", durable=True, x_queue_type="quorum"),
        declare("few", durable=True),
        amqp.QueueDelete(queue="q"),
    ],
)
def test_all_else_is_the_clients(method: Method) -> None:
    result = adapted(profile(LIMITS), method, "/")
    assert result.method is method
    assert result == Adapted(method)


def test_an_item_that_is_off_changes_nothing() -> None:
    off = "transientQueues: {become: transient}\nretiredArguments: keep"
    method = declare(x_queue_version=1)
    assert adapted(profile(off), method, "/").method is method


def test_a_session_declares_what_its_broker_takes(make_stage: MakeStage) -> None:
    stage = make_stage(policies=document("three"))
    client, broker = stage.opened()
    client.say(declare("q", x_queue_version=1), 1)
    got = broker.expect(amqp.QueueDeclare, 1)
    assert (got.durable, got.arguments.to_python()) == (True, TRANSIENT)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    assert client.expect(amqp.QueueDeclareOk, 1).queue == "q"
    client.say(declare("mine", exclusive=True), 1)
    assert not broker.expect(amqp.QueueDeclare, 1).durable
    registry = stage.running.gateway.metrics.registry
    for item in ("transient-queue", "retired-argument"):
        labels = {"policy": "three", "item": item}
        assert sample_value(registry, "amqpgate_compatibility_changes_total", labels) == 1


def test_a_transient_quorum_queue_costs_the_channel_as_on_three(make_stage: MakeStage) -> None:
    stage = make_stage(policies=document("three"))
    client, broker = stage.opened()
    client.say(declare("q", x_queue_type="quorum"), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.reply_text) == (
        406,
        "PRECONDITION_FAILED - invalid property 'non-durable' for queue 'q' in vhost '/'",
    )


def test_names_are_mapped_before(make_stage: MakeStage) -> None:
    names = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec: {subjects: [{}], names: {both: {prefix: few.}}}
---
"""
    client, broker = make_stage(policies=names + document("three", LIMITS)).opened()
    client.say(declare("q", durable=True, x_queue_type="quorum"), 1)
    got = broker.expect(amqp.QueueDeclare, 1)
    assert (got.queue, got.arguments.get("x-delivery-limit")) == ("few.q", 3)


def test_it_is_for_sessions_of_its_upstreams(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=document("three", "upstreams: [another]")).opened()
    client.say(declare("q"), 1)
    assert not broker.expect(amqp.QueueDeclare, 1).durable


def test_other_policies_hold_from_the_next_declare_on(make_stage: MakeStage) -> None:
    stage = make_stage()
    client, broker = stage.opened()
    client.say(declare("q"), 1)
    assert not broker.expect(amqp.QueueDeclare, 1).durable
    others = build([Source("p.yaml", document("three").encode())])
    stage.running.call(lambda: stage.running.gateway.use(others))
    client.say(declare("q"), 1)
    assert broker.expect(amqp.QueueDeclare, 1).durable

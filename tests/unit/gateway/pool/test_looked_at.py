"""Messages by connections that are shared, which are changed or traced: the data path does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.otlp import Collector
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import joined, opened, pooled
from tests.unit.gateway.rated import rates
from tests.unit.gateway.tapped import tap, upcalls
from tests.unit.gateway.traced import ALL, MAKER, SAMPLED, SETTINGS, UNSAMPLED, publish

TRANSFORM = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: t}
spec:
  subjects: [{user: guest}]
  names: {exchanges: {prefix: a.}}
  properties: {set: {appId: ours}}
"""
SHARED = "connections: pooled, pool: {spareChannels: 0}"
SHARED_CONSUMERS = "connections: pooled, pool: {spareChannels: 0, consumers: shared}"


TEXT = SETTINGS.replace("port: {port}}}", "port: {port}{upstream}}}")


def confirming(client: Talker, broker: Talker, channel: int, there: int) -> None:
    client.say(amqp.ConfirmSelect(), channel)
    broker.expect(amqp.ConfirmSelect, there)
    broker.say(amqp.ConfirmSelectOk(), there)
    client.expect(amqp.ConfirmSelectOk, channel)


def consuming(client: Talker, broker: Talker) -> None:
    """A consumer without a limit has a connection of its own."""
    relayed(client, broker, amqp.BasicQos(0, 200), amqp.BasicQosOk(), 1)
    relayed(client, broker, amqp.BasicConsume(queue="q", consumer_tag="c"), amqp.BasicConsumeOk("c"), 1)


def properties_of(said: dict[str, Any]) -> amqp.BasicProperties:
    headers = said.get("headers")
    return amqp.BasicProperties(**{**said, "headers": None if headers is None else Table.of(headers)})


def test_what_a_transform_changes_costs_one_upcall(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(upstream=SHARED, policies=TRANSFORM)
    client, broker = pooled(stage)
    other = joined(stage, broker)
    before = upcalls(stage)
    for number in range(100):
        for channel, talker in enumerate((client, other), 1):
            talker.publish(b"%d" % number, "k", exchange="orders")
            message = broker.expect_content(amqp.BasicPublish, channel)
            assert isinstance(message.method, amqp.BasicPublish)
            assert (message.method.exchange, message.body) == ("a.orders", b"%d" % number)
            assert message.header.properties == amqp.BasicProperties(app_id="ours")
    # A miss of each; what is shown has two for each message.
    assert upcalls(stage) - before == 2


@pytest.mark.parametrize("upstream", [SHARED_CONSUMERS, ""], ids=["shared", "own"])
def test_deliveries_under_other_names_cost_one_upcall(
    make_stage: Callable[..., Stage], upstream: str
) -> None:
    stage = make_stage(upstream=upstream, policies=TRANSFORM)
    client, broker = pooled(stage) if upstream else stage.opened()
    consuming(client, broker)
    before = upcalls(stage)
    for number in range(1, 101):
        method = amqp.BasicDeliver("c", number, number % 2 == 0, "a.orders", "k")
        properties = amqp.BasicProperties(app_id="theirs", headers=Table.of({"number": number}))
        broker.raw(content_frames(1, method, properties, b"%d" % number, 131072))
        message = client.expect_content(amqp.BasicDeliver, 1)
        assert message.method == amqp.BasicDeliver("c", number, number % 2 == 0, "orders", "k")
        assert (message.header.properties, message.body) == (properties, b"%d" % number)
    assert upcalls(stage) - before == 1


@pytest.mark.parametrize("upstream", [SHARED_CONSUMERS, ""], ids=["shared", "own"])
@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "in bytes"])
def test_deliveries_under_other_names_that_are_tapped_and_limited(
    make_stage: Callable[..., Stage], upstream: str, in_bytes: bool
) -> None:
    """Each passes once, in order, as the transform has it: some by the data path, some shown."""
    names = TRANSFORM.replace("{prefix: a.}", "{prefix: a.}, queues: {prefix: a.}")
    stage = make_stage(
        upstream=upstream, policies=names + "---" + rates("deliverMessages: 100/s", burst="40ms")
    )
    client, broker = pooled(stage) if upstream else stage.opened()
    consuming(client, broker)
    watch = tap(stage, "operation=basic.deliver")
    dead = [{"queue": "a.q", "exchange": "a.orders", "routing-keys": ["k"], "count": 1}]
    alive = [{"queue": "q", "exchange": "orders", "routing-keys": ["k"], "count": 1}]
    came = (
        ({}, {}, 0),
        ({"reply_to": "a.r"}, {"reply_to": "r"}, 5),
        ({"app_id": "theirs"}, {"app_id": "theirs"}, 300 if in_bytes else 150_000),
        ({"headers": {"x-death": dead}}, {"headers": {"x-death": alive}}, 0),
        ({"headers": {"n": 1}}, {"headers": {"n": 1}}, 7),
        ({}, {}, 3),
    )
    for tag, (there, here, size) in enumerate(came * 2, 1):
        method = amqp.BasicDeliver("c", tag, tag % 3 == 0, "a.orders", "k")
        data = content_frames(1, method, properties_of(there), b"x" * size, 131072 if size > 300 else 140)
        for piece in [data[at : at + 1] for at in range(len(data))] if in_bytes else [data]:
            broker.raw(piece)
        message = client.expect_content(amqp.BasicDeliver, 1)
        assert message.method == amqp.BasicDeliver("c", tag, tag % 3 == 0, "orders", "k")
        assert (message.header.properties, message.body) == (properties_of(here), b"x" * size)
    assert watch.counts == (12, 12)
    assert {(item["exchange"], item["routing_key"]) for item in watch.items()} == {("orders", "k")}


def test_what_carries_a_context_costs_no_upcall_and_is_traced_by_it(make_stage: Callable[..., Stage]) -> None:
    with Collector() as collector:
        stage = make_stage(upstream="", text=TEXT % (collector.endpoint, 1000), policies=ALL)
        client, broker = stage.opened()
        confirming(client, broker, 1, 1)
        publish(client)
        assert broker.expect_content(amqp.BasicPublish, 1).body == b"x"
        before = upcalls(stage)
        for _ in range(100):
            for context in (SAMPLED, UNSAMPLED):
                publish(client, {"traceparent": context})
                properties = broker.expect_content(amqp.BasicPublish, 1).header.properties
                assert properties == amqp.BasicProperties(headers=Table.of({"traceparent": context}))
        assert upcalls(stage) == before
        broker.say(amqp.BasicAck(201, multiple=True), 1)
        client.expect(amqp.BasicAck, 1)
        collector.wait_until(lambda: len(collector.named("publish orders")) == 101)
        made = [span for span in collector.named("publish orders") if span.parent]
        assert {(span.trace, span.parent, span.kind) for span in made} == {(*MAKER, "client")}
        assert len(made) == 100


def test_what_is_traced_costs_one_upcall_and_ends_with_its_confirm(make_stage: Callable[..., Stage]) -> None:
    with Collector() as collector:
        stage = make_stage(upstream=SHARED, text=TEXT % (collector.endpoint, 1000), policies=ALL)
        client, broker = pooled(stage)
        opened(client, broker, 2, 2)
        confirming(client, broker, 2, 2)
        before = upcalls(stage)
        contexts, first = set(), before
        for number in range(100):
            client.publish(b"x", "k", exchange="orders", channel=2)
            properties = broker.expect_content(amqp.BasicPublish, 2).header.properties
            assert isinstance(properties, amqp.BasicProperties)
            assert properties.headers is not None
            contexts.add(properties.headers.get("traceparent"))
            if not number:
                first = upcalls(stage)
        assert upcalls(stage) == first
        assert first == before + 1
        assert len(contexts) == 100
        assert not collector.named("publish orders")
        broker.say(amqp.BasicAck(100, multiple=True), 2)
        client.expect(amqp.BasicAck, 2)
        collector.wait_until(lambda: len(collector.named("publish orders")) == 100)
        assert {f"00-{span.trace}-{span.id}-03" for span in collector.spans} >= contexts

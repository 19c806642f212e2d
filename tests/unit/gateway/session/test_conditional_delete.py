"""queue.delete if unused or if empty of a quorum queue: what the broker is asked, and what it gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.policy import Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.metrics import sample_value
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import joined, pooled
from tests.unit.policy.kinds.test_compatibility import document

MakeStage = Callable[..., Stage]
THREE = document("three", "quorumQueues: [{queue: {prefix: q}}]")
IF_EMPTY = amqp.QueueDelete(queue="q", if_empty=True)


def asked(broker: Talker, number: int, queue: str = "q") -> None:
    """The gateway asks on a channel of its own."""
    broker.expect(amqp.ChannelOpen, number)
    assert broker.expect(amqp.QueueDeclare, number) == amqp.QueueDeclare(queue=queue, passive=True)
    broker.expect(amqp.ChannelClose, number)


def answers(broker: Talker, number: int, messages: int = 0, consumers: int = 0) -> None:
    broker.say(amqp.ChannelOpenOk(), number)
    broker.say(amqp.QueueDeclareOk("q", messages, consumers), number)
    broker.say(amqp.ChannelCloseOk(), number)


def test_the_delete_passes_without_conditions(make_stage: MakeStage) -> None:
    stage = make_stage(policies=THREE)
    client, broker = stage.opened()
    client.say(IF_EMPTY, 1)
    asked(broker, 2047)
    answers(broker, 2047, consumers=3)
    assert broker.expect(amqp.QueueDelete, 1) == amqp.QueueDelete(queue="q")
    broker.say(amqp.QueueDeleteOk(0), 1)
    client.expect(amqp.QueueDeleteOk, 1)
    labels = {"policy": "three", "item": "conditional-delete"}
    registry = stage.running.gateway.metrics.registry
    assert sample_value(registry, "amqpgate_compatibility_changes_total", labels) == 1


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (IF_EMPTY, "not empty"),
        (amqp.QueueDelete(queue="q", if_unused=True), "in use"),
        (amqp.QueueDelete(queue="q", if_unused=True, if_empty=True), "not empty"),
    ],
)
def test_where_they_do_not_hold_the_channel_closes(
    make_stage: MakeStage, method: amqp.QueueDelete, why: str
) -> None:
    client, broker = make_stage(policies=THREE).opened()
    client.say(method, 1)
    asked(broker, 2047)
    answers(broker, 2047, 1, 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.reply_text) == (
        406,
        f"PRECONDITION_FAILED - queue 'q' in vhost '/' {why}",
    )
    assert (close.class_id, close.method_id) == (amqp.QueueDelete.CLASS_ID, amqp.QueueDelete.METHOD_ID)


def test_what_the_broker_does_not_tell_it_says_of_the_delete(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=THREE).opened()
    client.say(IF_EMPTY, 1)
    asked(broker, 2047)
    broker.say(amqp.ChannelOpenOk(), 2047)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND", 50, 10), 2047)
    broker.expect(amqp.ChannelCloseOk, 2047)
    broker.say(amqp.ChannelCloseOk(), 2047)
    assert broker.expect(amqp.QueueDelete, 1) == amqp.QueueDelete(queue="q")


def test_a_broker_that_closes_the_connection_will_not_tell(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=THREE).opened()
    client.say(IF_EMPTY, 1)
    asked(broker, 2047)
    broker.say(amqp.ConnectionClose(320, "CONNECTION_FORCED", 0, 0), 0)
    client.expect(amqp.ConnectionClose, 0)
    # What is behind the delete is read.
    client.say(amqp.ConnectionCloseOk(), 0)
    broker.expect(amqp.QueueDelete, 1)
    broker.expect(amqp.ConnectionCloseOk, 0)


def test_what_comes_behind_it_waits(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=THREE).opened(2)
    client.say(IF_EMPTY, 1)
    client.say(amqp.QueueDeclare(queue="other", durable=True), 2)
    asked(broker, 2047)
    broker.hear_nothing(0.05)
    answers(broker, 2047)
    broker.expect(amqp.QueueDelete, 1)
    broker.expect(amqp.QueueDeclare, 2)


def test_an_empty_name_is_the_queue_declared_last(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=THREE).opened()
    client.say(amqp.QueueDeclare(queue="q", durable=True), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.say(amqp.QueueDelete(if_unused=True), 1)
    asked(broker, 2047)
    answers(broker, 2047)
    assert broker.expect(amqp.QueueDelete, 1) == amqp.QueueDelete()


@pytest.mark.parametrize(
    "method",
    [amqp.QueueDelete(queue="other", if_empty=True), amqp.QueueDelete(queue="q"), amqp.QueueDelete()],
)
def test_others_pass_as_they_are(make_stage: MakeStage, method: amqp.QueueDelete) -> None:
    client, broker = make_stage(policies=THREE).opened()
    client.say(method, 1)
    assert broker.expect(amqp.QueueDelete, 1) == method


def test_names_are_mapped_before_and_the_client_reads_its_own(make_stage: MakeStage) -> None:
    names = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec: {subjects: [{}], names: {both: {prefix: q.}}}
---
"""
    client, broker = make_stage(policies=names + THREE).opened()
    client.say(amqp.QueueDelete(queue="mine", if_empty=True), 1)
    asked(broker, 2047, "q.mine")
    answers(broker, 2047, 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert "'mine' in vhost '/' not empty" in client.expect(amqp.ChannelClose, 1).reply_text


def test_where_no_channel_is_left_the_client_hears_it(make_stage: MakeStage) -> None:
    client, broker = make_stage(policies=THREE).opened(tune_ok=amqp.ConnectionTuneOk(1, 131072, 0))
    client.say(IF_EMPTY, 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert "no channel is left" in client.expect(amqp.ChannelClose, 1).reply_text


def test_the_same_delete_is_asked_about_each_time(make_stage: MakeStage) -> None:
    """A number that is free again is used again."""
    client, broker = make_stage(policies=THREE).opened()
    for _ in range(3):
        client.say(IF_EMPTY, 1)
        asked(broker, 2047)
        answers(broker, 2047)
        broker.expect(amqp.QueueDelete, 1)
        broker.say(amqp.QueueDeleteOk(0), 1)
        client.expect(amqp.QueueDeleteOk, 1)


def test_an_answer_that_nobody_waits_for_any_more_is_for_nobody(make_stage: MakeStage) -> None:
    """The broker closes the channel whose delete waits."""
    client, broker = make_stage(policies=THREE).opened(2)
    client.say(IF_EMPTY, 1)
    asked(broker, 2047)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND", 60, 20), 1)
    client.expect(amqp.ChannelClose, 1)
    answers(broker, 2047)
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.QueueDelete, 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    client.say(IF_EMPTY, 2)
    asked(broker, 2047)
    answers(broker, 2047, 5)
    broker.expect(amqp.ChannelClose, 2)


def test_without_rules_nothing_is_asked_any_more(make_stage: MakeStage) -> None:
    """Other policies come into force while a delete waits: it passes as it is."""
    stage = make_stage(policies=THREE)
    client, broker = stage.opened()
    client.say(IF_EMPTY, 1)
    asked(broker, 2047)
    others = build([Source("p.yaml", document("three").encode())])
    stage.running.call(lambda: stage.running.gateway.use(others))
    answers(broker, 2047)
    assert broker.expect(amqp.QueueDelete, 1) == IF_EMPTY


# -- on connections that are shared --------------------------------------------------------------------------


def test_a_shared_connection_asks_on_a_channel_that_no_session_has(make_stage: MakeStage) -> None:
    """So the client need not have a connection of its own."""
    stage = make_stage(upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}", policies=THREE)
    client, broker = pooled(stage)
    client.say(IF_EMPTY, 1)
    asked(broker, 2)
    answers(broker, 2, 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 406
    client.say(amqp.ChannelCloseOk(), 1)
    joined(stage, broker, 1)


def test_a_shared_connection_that_is_lost_answers_nothing(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}", policies=THREE)
    client, broker = pooled(stage)
    client.say(IF_EMPTY, 1)
    asked(broker, 2)
    broker.close()
    assert client.expect(amqp.ChannelClose, 1).reply_code == 320

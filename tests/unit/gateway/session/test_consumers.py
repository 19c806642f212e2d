"""Consumers that a change of policies no longer allows: who hears what, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.gateway.session import consumers
from amqpgate.policy import PolicySet, Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: policy}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: rest, effect: allow, operations: ["queue.*", "exchange.*", basic.publish, basic.get]}
  - {id: consume, effect: allow, operations: [basic.consume], queue: {regex: "%s"}}
  onDeny: {publish: nack}
"""
#: What a client says that does not understand basic.cancel.
MUTE = Table.of({"product": "mute"})


def policies(allowed: str) -> PolicySet:
    return build([Source("policy.yaml", (POLICY % allowed).encode())])


def change(stage: Stage, allowed: str) -> None:
    """Other policies: consuming from these queues, a regular expression, is allowed."""
    running = stage.running
    running.call(lambda: running.gateway.use(policies(allowed)))


def consume(
    client: Talker, broker: Talker, queue: str, tag: str = "", *, named: str = "", no_wait: bool = False
) -> None:
    client.say(amqp.BasicConsume(queue=queue, consumer_tag=tag, no_wait=no_wait), 1)
    broker.expect(amqp.BasicConsume, 1)
    if not no_wait:
        broker.say(amqp.BasicConsumeOk(tag or named), 1)
        client.expect(amqp.BasicConsumeOk, 1)


def deliver(broker: Talker, tag: str, number: int = 1, body: bytes = b"body") -> bytes:
    return content_frames(
        1, amqp.BasicDeliver(tag, number, False, "", "q"), amqp.BasicProperties(), body, broker.frame_max
    )


def test_what_is_not_allowed_any_more_is_cancelled(stage: Stage) -> None:
    client, broker = stage.opened()
    consume(client, broker, "a", "mine")
    consume(client, broker, "b", named="amq.ctag-1")
    consume(client, broker, "c", "other")
    change(stage, "c")
    for tag in ("mine", "amq.ctag-1"):
        assert broker.expect(amqp.BasicCancel, 1) == amqp.BasicCancel(tag)
    # What was under way passes.
    broker.raw(deliver(broker, "mine"))
    client.expect_content(amqp.BasicDeliver)
    for tag in ("amq.ctag-1", "mine"):
        broker.say(amqp.BasicCancelOk(tag), 1)
        assert client.expect(amqp.BasicCancel, 1) == amqp.BasicCancel(tag, no_wait=True)
    # The channel goes on, and the tag is free.
    consume(client, broker, "c", "mine")
    client.say(amqp.BasicAck(1), 1)
    broker.expect(amqp.BasicAck, 1)
    denials = stage.running.ask(stage.running.gateway.metrics_text).decode()
    assert 'amqpgate_denials_total{policy="",rule="default"} 2.0' in denials
    # It is done once.
    change(stage, "c|d")
    client.say(amqp.BasicQos(), 1)
    broker.expect(amqp.BasicQos, 1)


@pytest.mark.parametrize("gone", ["client", "broker"])
def test_who_is_gone_already_is_left_alone(stage: Stage, gone: str) -> None:
    client, broker = stage.opened()
    consume(client, broker, "a", "mine")
    if gone == "client":
        client.say(amqp.BasicCancel("mine"), 1)
        broker.expect(amqp.BasicCancel, 1)
        broker.say(amqp.BasicCancelOk("mine"), 1)
        client.expect(amqp.BasicCancelOk, 1)
    else:
        broker.say(amqp.BasicCancel("mine", no_wait=True), 1)
        client.expect(amqp.BasicCancel, 1)
    change(stage, "c")
    client.say(amqp.BasicQos(), 1)
    broker.expect(amqp.BasicQos, 1)


def test_cancels_that_cross(stage: Stage) -> None:
    client, broker = stage.opened()
    consume(client, broker, "a", "mine")
    change(stage, "c")
    client.say(amqp.BasicCancel("mine"), 1)
    client.say(amqp.BasicConsume(queue="c", consumer_tag="mine"), 1)
    broker.expect(amqp.BasicCancel, 1)
    broker.expect(amqp.BasicCancel, 1)
    broker.expect(amqp.BasicConsume, 1)
    for _ in range(2):
        broker.say(amqp.BasicCancelOk("mine"), 1)
    broker.say(amqp.BasicConsumeOk("mine"), 1)
    # The client hears its own answer, and of no cancel that would mean its next consumer.
    client.expect(amqp.BasicCancelOk, 1)
    client.expect(amqp.BasicConsumeOk, 1)
    change(stage, "d")
    assert broker.expect(amqp.BasicCancel, 1) == amqp.BasicCancel("mine")
    # And the broker's own notice is not repeated.
    broker.say(amqp.BasicCancel("mine", no_wait=True), 1)
    broker.say(amqp.BasicCancelOk("mine"), 1)
    client.expect(amqp.BasicCancel, 1)
    client.say(amqp.BasicQos(), 1)
    broker.expect(amqp.BasicQos, 1)
    broker.say(amqp.BasicQosOk(), 1)
    client.expect(amqp.BasicQosOk, 1)


def test_a_consumer_without_a_name_yet(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(amqp.BasicConsume(queue="a"), 1)
    broker.expect(amqp.BasicConsume, 1)
    change(stage, "c")
    broker.say(amqp.BasicConsumeOk("amq.ctag-9"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    assert broker.expect(amqp.BasicCancel, 1) == amqp.BasicCancel("amq.ctag-9")
    broker.say(amqp.BasicCancelOk("amq.ctag-9"), 1)
    client.expect(amqp.BasicCancel, 1)


def test_answers_that_may_be_out_of_order_are_held_against_all(stage: Stage) -> None:
    client, broker = stage.opened()
    for queue in ("c", "amq.rabbitmq.reply-to"):
        client.say(amqp.BasicConsume(queue=queue), 1)
        broker.expect(amqp.BasicConsume, 1)
    for tag in ("amq.ctag-reply", "amq.ctag-c"):
        broker.say(amqp.BasicConsumeOk(tag), 1)
        client.expect(amqp.BasicConsumeOk, 1)
    # The first answer was the second request's, so that it is not known which of the two to cancel.
    change(stage, "amq[.]rabbitmq[.]reply-to")
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 403


@pytest.mark.parametrize("why", ["mute", "nameless", "replies"])
def test_where_a_cancel_would_not_do_the_channel_is_closed(stage: Stage, why: str) -> None:
    client, broker = stage.opened(**({"properties": MUTE} if why == "mute" else {}))
    queue = "amq.rabbitmq.reply-to" if why == "replies" else "a"
    consume(client, broker, queue, "" if why == "nameless" else "mine", no_wait=why == "nameless")
    change(stage, "c")
    broker.expect(amqp.ChannelClose, 1)
    broker.raw(deliver(broker, "mine"))
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect_content(amqp.BasicDeliver)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (403, 60, 20)
    assert close.reply_text == (
        f"ACCESS_REFUSED - access to queue '{queue}' in vhost '/' refused for user 'guest'"
    )
    client.say(amqp.ChannelCloseOk(), 1)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)


@pytest.mark.parametrize("how", [{}, {"properties": MUTE}], ids=["told", "mute"])
def test_the_end_of_a_message_of_the_clients_is_waited_for(stage: Stage, how: dict[str, Table]) -> None:
    client, broker = stage.opened(**how)
    consume(client, broker, "a", "mine")
    publish = content_frames(
        1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"x" * 300_000, 131072
    )
    client.raw(publish[:200_000])
    method = broker.expect(amqp.BasicPublish, 1)
    change(stage, "c")
    client.raw(publish[200_000:])
    assert len(broker.content_of(method).body) == 300_000
    broker.expect(amqp.ChannelClose if how else amqp.BasicCancel, 1)


def test_a_message_that_is_swallowed_is_not_waited_for(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(policies=(POLICY % "a").replace(", basic.publish", ""))
    client, broker = stage.opened()
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    consume(client, broker, "a", "mine")
    publish = content_frames(
        1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"x" * 300_000, 131072
    )
    client.raw(publish[:200_000])
    client.expect(amqp.BasicNack, 1)
    change(stage, "c")
    broker.expect(amqp.BasicCancel, 1)
    client.raw(publish[200_000:])
    client.say(amqp.BasicQos(), 1)
    broker.expect(amqp.BasicQos, 1)


def test_who_never_ends_a_message_is_ended(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(limits="drainTimeout: 0.2s")
    client, broker = stage.opened()
    consume(client, broker, "a", "mine")
    client.raw(
        content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"x" * 100, 131072)[
            :-50
        ]
    )
    broker.expect(amqp.BasicPublish, 1)
    change(stage, "c")
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 320
    assert close.reply_text.startswith("CONNECTION_FORCED - a consumer is not allowed any more")


def test_what_is_remembered_is_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "ROOM", 4096)
    client, broker = stage.opened(2)
    for number in range(20):
        consume(client, broker, "c", f"tag-{number}")
    session = next(iter(stage.running.gateway.sessions.values()))
    channels = session.channels.states.values()
    held = stage.running.call(
        lambda: sum(c.consuming.byte_count for c in channels if c.consuming is not None)
    )
    assert 2048 < held <= 4096
    # All of them are allowed; but not all of them are known.
    change(stage, "c")
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 403
    # Without consumers a channel goes on.
    client.say(amqp.BasicQos(), 2)
    broker.expect(amqp.BasicQos, 2)


@pytest.mark.parametrize("tag", ["tag-%d", "the same"])
def test_a_client_that_cancels_and_reads_no_answers_costs_bounded_memory(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    monkeypatch.setattr(consumers, "CANCELS", 8)
    client, broker = stage.opened(2)
    change(stage, "c")
    tags = [tag % number if "%" in tag else tag for number in range(20)]
    for number, one in enumerate(tags):
        client.say(amqp.BasicCancel(one), 1 + number % 2)
        broker.expect(amqp.BasicCancel, 1 + number % 2)
    session = next(iter(stage.running.gateway.sessions.values()))
    channels = [state for _, state in session.channels.states.made()]
    due = stage.running.call(lambda: [c.consuming.cancels_due for c in channels if c.consuming is not None])
    assert due == [4, 4]
    # Each hears its answers, in order.
    for number, one in enumerate(tags):
        broker.say(amqp.BasicCancelOk(one), 1 + number % 2)
        assert client.expect(amqp.BasicCancelOk, 1 + number % 2).consumer_tag == one
    # Nobody knows which consumers there are now.
    change(stage, "d")
    assert {broker.hear()[0] for _ in range(2)} == {1, 2}


def test_without_policies_nothing_is_asked(stage: Stage) -> None:
    client, broker = stage.opened()
    consume(client, broker, "a", "mine")
    stage.running.call(lambda: stage.running.gateway.use(PolicySet.empty()))
    client.say(amqp.BasicQos(), 1)
    broker.expect(amqp.BasicQos, 1)


def test_a_broker_that_has_gone_is_no_failure(stage: Stage) -> None:
    client, broker = stage.opened()
    consume(client, broker, "a", "mine")
    running = stage.running

    def at_once() -> None:
        broker.reset()
        running.gateway.use(policies("c"))

    running.call(at_once)
    client.expect(amqp.ConnectionClose)
    client.say(amqp.ConnectionCloseOk())
    client.close()
    stage.running.wait_idle()
    eventually(lambda: stage.running.outcomes() == {"upstream_gone": 1})

"""Methods of the client but publishes: what is decided of them, and which queue an empty name means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.gateway.session import channel_close
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import refused

MakeStage = Callable[..., Stage]


def test_every_operation_is_judged(guarded: Stage) -> None:
    client, broker = guarded.opened()
    for method in (
        amqp.ExchangeDeclare(exchange="x"),
        amqp.ExchangeDelete(exchange="x"),
        amqp.ExchangeBind(destination="x", source="y"),
        amqp.ExchangeUnbind(destination="x", source="y"),
        amqp.QueueBind(queue="theirs", exchange="x"),
        amqp.QueueUnbind(queue="theirs", exchange="x"),
        amqp.QueuePurge(queue="theirs"),
        amqp.QueueDelete(queue="theirs"),
        amqp.BasicConsume(queue="theirs"),
        amqp.BasicGet(queue="theirs"),
    ):
        client.say(method, 1)
        refused(client, broker, (method.CLASS_ID, method.METHOD_ID))


def declared(client: Talker, broker: Talker, name: str, told: str) -> None:
    client.say(amqp.QueueDeclare(queue=name), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk(told, 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)


EMPTY_NAME = (
    amqp.BasicConsume(),
    amqp.BasicGet(),
    amqp.QueueBind(exchange="x", routing_key="k"),
    amqp.QueueUnbind(exchange="x", routing_key="k"),
    amqp.QueuePurge(),
    amqp.QueueDelete(),
)


@pytest.mark.parametrize("method", EMPTY_NAME, ids=lambda method: method.NAME)
def test_an_empty_name_is_the_queue_declared_last(guarded: Stage, method: Method) -> None:
    client, broker = guarded.opened()
    declared(client, broker, "mine.1", "mine.1")
    client.say(method, 1)
    assert broker.expect(type(method), 1) == method
    declared(client, broker, "theirs", "theirs")
    client.say(method, 1)
    refused(client, broker, (method.CLASS_ID, method.METHOD_ID))
    # A new channel has declared nothing.
    client.say(method, 1)
    refused(client, broker, (method.CLASS_ID, method.METHOD_ID))


def test_a_declare_counts_before_it_is_answered(guarded: Stage) -> None:
    """Or a client could use a queue by its empty name while the gateway believes in the one before."""
    client, broker = guarded.opened()
    declared(client, broker, "mine", "mine")
    client.raw(
        method_frame(1, amqp.QueueDeclare(queue="theirs", passive=True))
        + method_frame(1, amqp.BasicConsume())
    )
    broker.expect(amqp.QueueDeclare, 1)
    refused(client, broker, (60, 20))


@pytest.mark.parametrize(
    ("said", "answers", "allowed"),
    [
        # Answers that come late do not bring an older name back.
        ([("mine", False), ("theirs", False)], ["mine"], False),
        ([("mine", False), ("theirs", False)], ["mine", "theirs"], False),
        ([("theirs", False), ("mine", False)], ["theirs"], True),
        ([("theirs", False), ("mine", True)], ["theirs"], True),
        ([("", False), ("theirs", False)], ["amq.gen-1"], False),
        ([("", False), ("theirs", True)], ["amq.gen-1"], False),
        ([("", False), ("", False)], ["amq.gen-1"], True),
        ([("theirs", False), ("", False)], ["theirs"], True),
        # A name that the broker makes up, and that no policy of amq.gen- names allows.
        ([("", False)], ["odd-1"], False),
        ([("", False)], [], True),
        ([("", True)], [], True),
    ],
)
def test_declares_that_overtake_their_answers(
    guarded: Stage, said: list[tuple[str, bool]], answers: list[str], allowed: bool
) -> None:
    client, broker = guarded.opened()
    for name, no_wait in said:
        client.say(amqp.QueueDeclare(queue=name, no_wait=no_wait), 1)
        broker.expect(amqp.QueueDeclare, 1)
    for name in answers:
        broker.say(amqp.QueueDeclareOk(name, 0, 0), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    client.say(amqp.BasicConsume(), 1)
    if allowed:
        broker.expect(amqp.BasicConsume, 1)
    else:
        refused(client, broker, (60, 20))


OWN_REPLIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: replies}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: replies, effect: allow, operations: ["queue.*", "basic.*"], queue: {prefix: amq.gen-}}
"""


def is_allowed(client: Talker, broker: Talker, queue: str) -> bool:
    """Whether a get of that queue passes, on channel 1, which is open afterwards."""
    client.say(amqp.BasicGet(queue=queue), 1)
    heard = broker.hear()[1]
    if isinstance(heard, amqp.BasicGet):
        broker.say(amqp.BasicGetEmpty(), 1)
        client.expect(amqp.BasicGetEmpty, 1)
        return True
    assert isinstance(heard, amqp.ChannelClose)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.ChannelCloseOk(), 1)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    return False


def test_a_server_named_queue_is_its_connections(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpgate.gateway.session.channel_close.OWNED", 2)
    stage = make_stage(policies=OWN_REPLIES)
    client, broker = stage.opened()
    # Not told yet: the channel's last one, whatever its name will be.
    client.say(amqp.QueueDeclare(), 1)
    client.say(amqp.BasicGet(), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.expect(amqp.BasicGet, 1)
    broker.say(amqp.QueueDeclareOk("amq.gen-1"), 1)
    broker.say(amqp.BasicGetEmpty(), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.expect(amqp.BasicGetEmpty, 1)
    assert is_allowed(client, broker, "amq.gen-1")
    assert not is_allowed(client, broker, "amq.gen-9")
    assert is_allowed(client, broker, "amq.gen-1")
    for number in (2, 3):
        client.say(amqp.QueueDeclare(), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.say(amqp.QueueDeclareOk(f"amq.gen-{number}"), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    # The memory for them is bounded.
    assert [is_allowed(client, broker, f"amq.gen-{number}") for number in (1, 2, 3)] == [False, True, True]


def test_a_server_named_queue_is_one_by_another_name(make_stage: MakeStage) -> None:
    """A broker of 0-10 that keeps `amq.` to itself has them without it. Others' are not known for such."""
    stage = make_stage(policies=OWN_REPLIES)
    client, broker = stage.opened()
    client.say(amqp.QueueDeclare(), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("gen-1"), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    assert is_allowed(client, broker, "gen-1")
    assert is_allowed(client, broker, "")
    assert not is_allowed(client, broker, "gen-2")
    client.say(amqp.QueueDeclare(queue="gen-2"), 1)
    refused(client, broker, (50, 10))


def test_what_is_only_looked_at_is_not_ones_own(make_stage: MakeStage) -> None:
    stage = make_stage(policies=OWN_REPLIES.replace("prefix: amq.gen-", 'regex: "(q|amq[.]gen-.*)"'))
    client, broker = stage.opened()
    for queue, passive in (("q", False), ("", True)):
        client.say(amqp.QueueDeclare(queue=queue, passive=passive), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.say(amqp.QueueDeclareOk("amq.gen-5" if passive else "q"), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    assert not is_allowed(client, broker, "amq.gen-5")


@pytest.mark.parametrize("how", ["channel-close", "return"])
def test_a_refusal_that_is_longer_than_a_reply_text(make_stage: MakeStage, how: str) -> None:
    rule = "  - {id: x, effect: allow, operations: [basic.publish], routingKey: {literal: x}}\n"
    stage = make_stage(policies=OWN_REPLIES + rule + f"  onDeny: {{publish: {how}}}\n")
    client, broker = stage.opened()
    # As many bytes as a routing key has, in characters of two.
    client.raw(
        content_frames(1, amqp.BasicPublish(routing_key="é" * 127), amqp.BasicProperties(), b"x", 131072)
    )
    if how == "return":
        returned = client.expect_content(amqp.BasicReturn).method
        assert isinstance(returned, amqp.BasicReturn)
        text = returned.reply_text
    else:
        broker.expect(amqp.ChannelClose, 1)
        broker.say(amqp.ChannelCloseOk(), 1)
        text = client.expect(amqp.ChannelClose, 1).reply_text
    # RabbitMQ cuts bytes, be it within a character; half a character would break strict clients.
    assert len(text.encode()) in (254, 255)
    assert text.endswith("...")
    assert "access to topic 'ééé" in text


def test_declares_that_nobody_answers_are_bounded(guarded: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their channel is closed; its answers give room again."""
    monkeypatch.setattr(channel_close, "MOST_DECLARES", 3)
    client, broker = guarded.opened()
    declare = amqp.QueueDeclare(queue="mine.1")
    for _ in range(3):
        client.say(declare, 1)
        broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("mine.1", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.say(declare, 1)
    broker.expect(amqp.QueueDeclare, 1)
    client.say(declare, 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert close.reply_code == 406
    assert close.reply_text == "PRECONDITION_FAILED - 3 queue.declare are not answered"

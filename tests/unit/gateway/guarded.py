"""A session under an access policy, and how its client hears of denials."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.talker import Talker

POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: one}
spec:
  subjects: [{user: "*"}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], exchange: {prefix: ok}}
  - {id: declare, effect: allow, operations: [queue.declare]}
  - id: use
    effect: allow
    operations: [basic.consume, basic.get, queue.bind, queue.unbind, queue.purge, queue.delete]
    queue: {prefix: mine}
  - {id: named, effect: allow, operations: [basic.consume], queue: {prefix: amq.gen-}}
"""


def through(client: Talker, broker: Talker, method: Method, answer: Method, channel: int = 1) -> None:
    """A method of the client's and its answer pass."""
    client.say(method, channel)
    assert broker.expect(type(method), channel) == method
    broker.say(answer, channel)
    assert client.expect(type(answer), channel) == answer


def refused(client: Talker, broker: Talker, ids: tuple[int, int], channel: int = 1) -> str:
    """The conversation about a refusal, after which the number is used again; what the client is told."""
    said = broker.expect(amqp.ChannelClose, channel)
    broker.say(amqp.ChannelCloseOk(), channel)
    told = client.expect(amqp.ChannelClose, channel)
    assert told == said
    assert (told.reply_code, told.class_id, told.method_id) == (403, *ids)
    client.say(amqp.ChannelCloseOk(), channel)
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), channel)
    return told.reply_text

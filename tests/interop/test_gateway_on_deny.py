"""Publishes that are refused without closing their channel: each is answered once, with its own number."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Message, Talker

VHOST = "answered"

#: Publishes to the queue `mine` may pass if their content header is right, and to no other queue.
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {{name: {how}}}
spec:
  subjects: [{{client: {{product: {how}}}}}]
  onDeny: {{publish: {how}, disclose: rule-id}}
  rules:
  - {{id: queues, effect: allow, operations: ["queue.*", basic.consume, basic.get], queue: {{prefix: ""}}}}
  - id: publish
    effect: allow
    operations: [basic.publish]
    exchange: {{literal: ""}}
    routingKey: {{literal: mine}}
    properties: {{maxBodyBytes: 64Ki, headers: {{deny: [secret]}}}}
"""

HOWS = ["channel-close", "nack", "return", "drop"]
#: A message that is refused at its method, and three that are refused at their header.
REFUSED = [
    ("other", amqp.BasicProperties(), 10),
    ("mine", amqp.BasicProperties(headers=Table.of({"secret": 1})), 1000),
    ("mine", amqp.BasicProperties(headers=Table.of({"CC": ["other"]})), 0),
    ("mine", amqp.BasicProperties(), 65_537),
]


@pytest.fixture(scope="module")
def gateway(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    rabbitmq.fresh_vhost(VHOST)
    folder: Path = tmp_path_factory.mktemp("policies")
    for how in HOWS:
        (folder / f"{how}.yaml").write_text(POLICY.format(how=how))
    gateway = Gateway(f"amqp://{rabbitmq.address}", policies=folder)
    with gateway.serving():
        yield gateway


def client_of(gateway: Gateway, how: str) -> Talker:
    """A client whom that policy selects, with an empty queue `mine`, and one that nobody publishes to."""
    talker = Talker.dial(gateway.port)
    talker.open(vhost=VHOST, properties=Table.of({"product": how}))
    for queue in ("mine", "other"):
        talker.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
        talker.ask(amqp.QueuePurge(queue=queue), amqp.QueuePurgeOk, 1)
    return talker


def in_mine(talker: Talker) -> int:
    """How many messages are in the queue `mine` once it has any: RabbitMQ tells by and by."""

    def count() -> int:
        told = talker.ask(amqp.QueueDeclare(queue="mine", passive=True), amqp.QueueDeclareOk, 1)
        return told.message_count

    eventually(lambda: count() > 0)
    return count()


@attrs.define
class Heard:
    """What a publisher was told, by the numbers of its publishes."""

    acked: set[int] = attrs.field(factory=set)
    nacked: set[int] = attrs.field(factory=set)
    returned: list[Message] = attrs.field(factory=list)
    delivered: list[bytes] = attrs.field(factory=list)

    def listen(self, talker: Talker, until: int) -> None:
        """Until so many publishes have been answered."""
        while len(self.acked) + len(self.nacked) < until:
            channel, method = talker.hear()
            assert channel == 1
            if isinstance(method, amqp.BasicReturn):
                self.returned.append(talker.content_of(method))
            elif isinstance(method, amqp.BasicDeliver):
                self.delivered.append(talker.content_of(method).body)
            else:
                assert isinstance(method, amqp.BasicAck | amqp.BasicNack)
                into = self.acked if isinstance(method, amqp.BasicAck) else self.nacked
                known = self.acked | self.nacked
                first = min(set(range(1, method.delivery_tag + 1)) - known, default=0)
                told = range(first, method.delivery_tag + 1) if method.multiple else [method.delivery_tag]
                fresh = set(told) - known
                assert fresh, "every publish is answered once"
                into |= fresh


def publishes(seed: int, count: int) -> Iterator[tuple[bool, str, amqp.BasicProperties, bytes]]:
    chance = random.Random(seed)
    for number in range(count):
        if chance.random() < 0.5:
            size = chance.choice([0, 20, 3000, 60_000])
            yield True, "mine", amqp.BasicProperties(), b"%08d" % number + bytes(size)
        else:
            key, properties, size = chance.choice(REFUSED)
            yield False, key, properties, b"%08d" % number + bytes(size)


@pytest.mark.parametrize("how", ["nack", "return", "drop"])
@pytest.mark.parametrize("seed", [1, 2])
def test_confirms_keep_the_clients_numbers(gateway: Gateway, how: str, seed: int) -> None:
    """Answers come while large messages are delivered on the same channel, and never in the middle of one."""
    with client_of(gateway, how) as talker:
        talker.ask(amqp.BasicConsume(queue="mine", no_ack=True), amqp.BasicConsumeOk, 1)
        talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        heard, allowed, refused = Heard(), [], []
        for number, (passes, key, properties, body) in enumerate(publishes(seed, 300), 1):
            (allowed if passes else refused).append((number, body))
            talker.publish(body, key, properties=properties)
            if number % 7 == 0:
                heard.listen(talker, number - 5)
        heard.listen(talker, 300)
        while len(heard.delivered) < len(allowed):
            heard.delivered.append(talker.expect_content(amqp.BasicDeliver).body)
        assert heard.delivered == [body for _, body in allowed]
        numbers = {number for number, _ in refused}
        if how == "drop":
            assert heard.acked == set(range(1, 301))
        else:
            assert heard.nacked == numbers
            assert heard.acked == {number for number, _ in allowed}
        if how == "return":
            assert [message.body for message in heard.returned] == [body for _, body in refused]
            back = heard.returned[0].method
            assert isinstance(back, amqp.BasicReturn)
            assert back.reply_code == 403
            assert "refused for user 'guest' by" in back.reply_text
        else:
            assert heard.returned == []
        other = talker.ask(amqp.QueueDeclare(queue="other", passive=True), amqp.QueueDeclareOk, 1)
        assert other.message_count == 0
        talker.bye()


@pytest.mark.parametrize("case", range(len(REFUSED)))
@pytest.mark.parametrize("how", ["channel-close", "nack"])
def test_without_confirms_a_refusal_closes_the_channel(gateway: Gateway, how: str, case: int) -> None:
    key, properties, size = REFUSED[case]
    with client_of(gateway, how) as talker:
        talker.publish(b"before", "mine")
        talker.publish(bytes(size), key, properties=properties)
        talker.publish(b"after", "mine")
        close = talker.expect(amqp.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (403, 60, 40)
        assert close.reply_text.startswith("ACCESS_REFUSED - access to ")
        talker.say(amqp.ChannelCloseOk(), 1)
        talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        assert in_mine(talker) == 1
        talker.bye()


def test_without_confirms_a_returned_message_comes_back_and_a_dropped_one_does_not(gateway: Gateway) -> None:
    for how in ("return", "drop"):
        with client_of(gateway, how) as talker:
            talker.publish(b"refused", "other")
            talker.publish(b"refused, too", "mine", properties=REFUSED[1][1])
            talker.publish(b"passes", "mine")
            if how == "return":
                bodies = [talker.expect_content(amqp.BasicReturn).body for _ in range(2)]
                assert bodies == [b"refused", b"refused, too"]
            assert in_mine(talker) == 1
            talker.bye()


@pytest.mark.parametrize("how", ["nack", "return", "drop"])
def test_in_a_transaction_a_refusal_closes_the_channel(gateway: Gateway, how: str) -> None:
    with client_of(gateway, how) as talker:
        talker.ask(amqp.TxSelect(), amqp.TxSelectOk, 1)
        talker.publish(b"passes", "mine")
        talker.publish(b"refused", "other")
        assert talker.expect(amqp.ChannelClose, 1).reply_code == 403


@pytest.mark.parametrize("key", ["other", "mine"])
def test_a_message_too_large_to_be_given_back_closes_its_channel(gateway: Gateway, key: str) -> None:
    with client_of(gateway, "return") as talker:
        talker.publish(bytes((1 << 20) + 1), key)
        close = talker.expect(amqp.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (403, 60, 40)
        talker.say(amqp.ChannelCloseOk(), 1)
        talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        talker.publish(b"goes on", "mine")
        talker.bye()

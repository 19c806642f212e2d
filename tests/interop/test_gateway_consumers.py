"""Policies change under consumers of a real broker: they end, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.policy import PolicySet, Source, build
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Talker

VHOST = "revoked"
COUNT = 400
PREFETCH = 20

SETTINGS = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"}}]
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: revoked}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: rest, effect: allow, operations: ["queue.*", basic.publish, basic.get]}
  - {id: consume, effect: allow, operations: [basic.consume], queue: {literal: open}}
"""
MUTE = Table.of({"product": "talker"})


@pytest.fixture
def gateway(rabbitmq: RabbitMQ) -> Iterator[InProcess]:
    rabbitmq.fresh_vhost(VHOST)
    with serving(SETTINGS.format(address=rabbitmq.address)) as running:
        yield running


@pytest.fixture
def witness(rabbitmq: RabbitMQ, gateway: InProcess) -> Iterator[Talker]:
    """Fills the queue `work`, past the gateway."""
    with Talker.dial(rabbitmq.port) as talker:
        talker.open(vhost=VHOST)
        talker.ask(amqp.QueueDeclare(queue="open"), amqp.QueueDeclareOk, 1)
        talker.ask(amqp.QueueDeclare(queue="work"), amqp.QueueDeclareOk, 1)
        talker.raw(
            b"".join(
                content_frames(
                    1, amqp.BasicPublish(routing_key="work"), amqp.BasicProperties(), b"%d" % number, 131072
                )
                for number in range(COUNT)
            )
        )
        talker.ask(amqp.BasicQos(), amqp.BasicQosOk, 1)
        yield talker
        talker.bye()


def revoke(gateway: InProcess) -> None:
    policies: PolicySet = build([Source("policy.yaml", POLICY.encode())])
    gateway.call(lambda: gateway.gateway.use(policies))


def consumers_of(witness: Talker, queue: str) -> int:
    return witness.ask(amqp.QueueDeclare(queue=queue, passive=True), amqp.QueueDeclareOk, 1).consumer_count


def drain(witness: Talker, count: int) -> list[int]:
    """So many messages of `work`, taken by another consumer."""
    tag = witness.ask(amqp.BasicConsume(queue="work", no_ack=True), amqp.BasicConsumeOk, 1).consumer_tag
    taken = [int(witness.expect_content(amqp.BasicDeliver).body) for _ in range(count)]
    witness.say(amqp.BasicCancel(tag), 1)
    witness.expect(amqp.BasicCancelOk, 1)
    return taken


@pytest.mark.parametrize("tag", ["worker", ""])
def test_nothing_is_lost_when_a_consumer_is_cancelled(gateway: InProcess, witness: Talker, tag: str) -> None:
    with gateway.dial() as client:
        client.open(vhost=VHOST, properties=CAPABILITIES)
        client.ask(amqp.BasicQos(prefetch_count=PREFETCH), amqp.BasicQosOk, 1)
        named = client.ask(
            amqp.BasicConsume(queue="work", consumer_tag=tag), amqp.BasicConsumeOk, 1
        ).consumer_tag
        assert tag or named.startswith("amq.ctag-")
        acked: list[int] = []
        unacked: dict[int, int] = {}
        told = False
        while not told:
            frame = client.frame()
            method = decode_method(frame.payload)
            if isinstance(method, amqp.BasicCancel):
                assert (frame.channel, method) == (1, amqp.BasicCancel(named, no_wait=True))
                told = True
                continue
            assert isinstance(method, amqp.BasicDeliver)
            body = int(client.content_of(method).body)
            if len(acked) < 50:
                client.say(amqp.BasicAck(method.delivery_tag), 1)
                acked.append(body)
                if len(acked) == 50:
                    revoke(gateway)
            else:
                unacked[method.delivery_tag] = body
        # It got what its prefetch lets be under way, and may still acknowledge that.
        assert 0 < len(unacked) <= PREFETCH
        first = min(unacked)
        client.say(amqp.BasicAck(first), 1)
        acked.append(unacked.pop(first))
        # The broker has no consumer left, and the channel goes on; the tag is free.
        assert consumers_of(witness, "work") == 0
        client.ask(amqp.BasicConsume(queue="open", consumer_tag=named), amqp.BasicConsumeOk, 1)
        client.publish(b"still here", "open")
        assert client.expect_content(amqp.BasicDeliver).body == b"still here"
        # Everything else goes to others: at once what was not delivered, and what was, with the channel.
        others = drain(witness, COUNT - len(acked) - len(unacked))
        client.ask(amqp.ChannelClose(), amqp.ChannelCloseOk, 1)
        others += drain(witness, len(unacked))
        assert sorted(acked + others) == list(range(COUNT))
        client.bye()


def test_a_client_that_does_not_know_cancels_loses_its_channel(gateway: InProcess, witness: Talker) -> None:
    with gateway.dial() as client:
        client.open(vhost=VHOST, channels=2, properties=MUTE)
        client.ask(amqp.BasicQos(prefetch_count=PREFETCH), amqp.BasicQosOk, 1)
        client.ask(amqp.BasicConsume(queue="work", consumer_tag="w"), amqp.BasicConsumeOk, 1)
        seen = {int(client.expect_content(amqp.BasicDeliver).body) for _ in range(PREFETCH)}
        assert seen == set(range(PREFETCH))
        revoke(gateway)
        close = client.expect(amqp.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (403, 60, 20)
        assert close.reply_text == (
            f"ACCESS_REFUSED - access to queue 'work' in vhost '{VHOST}' refused for user 'guest'"
        )
        client.say(amqp.ChannelCloseOk(), 1)
        # What it had is given to others, and its other channel goes on.
        assert sorted(drain(witness, COUNT)) == list(range(COUNT))
        client.ask(amqp.BasicConsume(queue="open"), amqp.BasicConsumeOk, 2)
        client.bye()


def test_what_became_denied_is_refused_from_the_next_frame_on(gateway: InProcess, witness: Talker) -> None:
    with gateway.dial() as client:
        client.open(vhost=VHOST, channels=2, properties=CAPABILITIES)
        client.ask(amqp.ExchangeDeclare(exchange="before", type="direct"), amqp.ExchangeDeclareOk, 1)
        revoke(gateway)
        client.say(amqp.ExchangeDeclare(exchange="after", type="direct"), 1)
        assert client.expect(amqp.ChannelClose, 1).reply_code == 403
        client.say(amqp.ChannelCloseOk(), 1)
        # And back again.
        gateway.call(lambda: gateway.gateway.use(PolicySet.empty()))
        client.ask(amqp.ExchangeDeclare(exchange="after", type="direct"), amqp.ExchangeDeclareOk, 2)
        client.bye()

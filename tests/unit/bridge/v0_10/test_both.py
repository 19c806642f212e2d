"""A client of 0-9-1 through both translators to a broker of 0-9-1: 0-10 is spoken in between only."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.broker import BrokerTranslator
from amqpgate.bridge.v0_10.client import ClientTranslator
from amqpgate.broker.greeting import Greeting
from amqpgate.broker.outbox import Outbox
from amqpgate.broker.session import BrokerSession
from amqpgate.protocol.frames import FRAME_METHOD, FrameDecoder, encode_frame, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.unit.bridge.v0_10.lab import broker_state


class Chain:
    """What is said on the left is heard on the right, ``cut`` bytes at a time, until all is still."""

    def __init__(self, cut: int) -> None:
        self.left = BrokerTranslator("gate")
        self.right = ClientTranslator()
        self.broker = BrokerSession(broker_state(), Greeting(), Outbox(lambda: None))
        self.heard: list[Method | bytes] = []
        self.cut = cut
        self._to_broker = FrameDecoder(0)
        self._from_broker = FrameDecoder(0)
        self._to_client = FrameDecoder(0)
        assert self.right.bytes_for_peer() == PROTOCOL_HEADER
        list(self.broker.receive(b"AMQP\0\0\x09\x01"))
        self.settle()
        self.say(0, amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"))
        self.say(0, amqp.ConnectionTuneOk(8, 65531, 0), amqp.ConnectionOpen("/"))
        assert isinstance(self.heard[-1], amqp.ConnectionOpenOk)
        assert self.say(1, amqp.ChannelOpen()) == [amqp.ChannelOpenOk()]

    def say(self, channel: int, *methods: Method) -> list[Method | bytes]:
        return self.give(b"".join(method_frame(channel, method) for method in methods))

    def publish(self, key: str, body: bytes, exchange: str = "") -> list[Method | bytes]:
        method = amqp.BasicPublish(exchange=exchange, routing_key=key)
        return self.give(content_frames(1, method, amqp.BasicProperties(content_type="x"), body))

    def give(self, frames: bytes) -> list[Method | bytes]:
        before = len(self.heard)
        self.left.from_gateway(frames)
        self.settle()
        return self.heard[before:]

    def settle(self) -> None:
        while self._step():
            pass

    def _step(self) -> bool:
        there, back = self.left.bytes_for_peer(), self.right.bytes_for_peer()
        for at in range(0, len(there), self.cut):
            self.right.from_peer(there[at : at + self.cut])
        for at in range(0, len(back), self.cut):
            self.left.from_peer(back[at : at + self.cut])
        while self.right.has_frames:
            self._to_broker.feed(self.right.frames_for_gateway(4096))
        asked = []
        while (frame := self._to_broker.next()) is not None:
            asked.append(frame)
            list(self.broker.receive(encode_frame(*frame)))
        said = self.broker.outbox.take()
        self.broker.outbox.sent(len(said))
        self.broker.resume()
        self._from_broker.feed(said)
        while (frame := self._from_broker.next()) is not None:
            self.right.from_gateway(encode_frame(*frame))
        self._hear()
        return bool(there or back or asked or said)

    def _hear(self) -> None:
        while self.left.has_frames:
            self._to_client.feed(self.left.frames_for_gateway(4096))
        while (frame := self._to_client.next()) is not None:
            if frame.type == FRAME_METHOD:
                self.heard.append(decode_method(frame.payload))
            else:
                self.heard.append(frame.payload)


@pytest.fixture(params=[1, 100, 4096])
def chain(request: pytest.FixtureRequest) -> Chain:
    return Chain(request.param)


def test_publishing_and_counting(chain: Chain) -> None:
    assert chain.say(1, amqp.QueueDeclare(queue="q")) == [amqp.QueueDeclareOk("q")]
    assert chain.say(1, amqp.ConfirmSelect()) == [amqp.ConfirmSelectOk()]
    assert chain.publish("q", b"x" * 10_000) == [amqp.BasicAck(1)]
    assert chain.publish("q", b"") == [amqp.BasicAck(2)]
    assert chain.say(1, amqp.QueueDeclare(queue="q", passive=True)) == [amqp.QueueDeclareOk("q", 2)]
    assert chain.say(1, amqp.QueueDelete(queue="q")) == [amqp.QueueDeleteOk(2)]
    (close,) = chain.say(1, amqp.QueueDeclare(queue="q", passive=True))
    assert (close.reply_code, close.class_id, close.method_id) == (404, 50, 10)


def test_consuming_within_a_prefetch(chain: Chain) -> None:
    chain.say(1, amqp.QueueDeclare(queue="q"))
    chain.say(1, amqp.QueueBind(queue="q", exchange="amq.topic", routing_key="a.*"))
    for number in range(5):
        chain.publish("a.b", b"%d" % number, "amq.topic")
    heard = chain.say(1, amqp.BasicQos(prefetch_count=2), amqp.BasicConsume(queue="q", consumer_tag="t"))
    assert heard[:2] == [amqp.BasicQosOk(), amqp.BasicConsumeOk("t")]
    assert _bodies(heard) == [b"0", b"1"]
    assert [one.delivery_tag for one in heard if isinstance(one, amqp.BasicDeliver)] == [1, 2]
    deliver = heard[2]
    assert (deliver.exchange, deliver.routing_key) == ("amq.topic", "a.b")
    assert _bodies(chain.say(1, amqp.BasicAck(2, multiple=True))) == [b"2", b"3"]
    # One goes back, and comes again.
    assert b"2" in _bodies(chain.say(1, amqp.BasicReject(3, requeue=True)))
    assert chain.say(1, amqp.BasicCancel("t")) == [amqp.BasicCancelOk("t")]
    chain.say(1, amqp.BasicRecover(requeue=True))
    assert chain.say(1, amqp.QueuePurge(queue="q")) == [amqp.QueuePurgeOk(3)]


def test_getting(chain: Chain) -> None:
    chain.say(1, amqp.QueueDeclare(queue="q"))
    assert chain.say(1, amqp.BasicGet(queue="q")) == [amqp.BasicGetEmpty()]
    chain.publish("q", b"one")
    chain.publish("q", b"two")
    got = chain.say(1, amqp.BasicGet(queue="q"))
    # Where the credit comes in another read than the flush, the right side has fetched ahead already.
    left = 1 if chain.cut == 4096 else got[0].message_count
    assert got[0] == amqp.BasicGetOk(1, routing_key="q", message_count=left)
    assert _bodies(got) == [b"one"]
    assert _bodies(chain.say(1, amqp.BasicGet(queue="q", no_ack=chain.cut == 4096))) == [b"two"]
    assert chain.say(1, amqp.BasicGet(queue="q")) == [amqp.BasicGetEmpty()]
    chain.say(1, amqp.BasicNack(1, requeue=True))
    assert _bodies(chain.say(1, amqp.BasicGet(queue="q"))) == [b"one"]
    assert chain.say(1, amqp.QueueDelete(queue="q")) == [amqp.QueueDeleteOk(0)]


def test_transactions(chain: Chain) -> None:
    chain.say(1, amqp.QueueDeclare(queue="q"))
    assert chain.say(1, amqp.TxSelect()) == [amqp.TxSelectOk()]
    chain.publish("q", b"lost")
    assert chain.say(1, amqp.TxRollback()) == [amqp.TxRollbackOk()]
    chain.publish("q", b"kept")
    assert chain.say(1, amqp.TxCommit()) == [amqp.TxCommitOk()]
    assert _bodies(chain.say(1, amqp.BasicGet(queue="q"))) == [b"kept"]
    chain.say(1, amqp.BasicAck(1))
    assert chain.say(1, amqp.TxCommit()) == [amqp.TxCommitOk()]
    assert chain.say(1, amqp.BasicGet(queue="q")) == [amqp.BasicGetEmpty()]


def test_closing(chain: Chain) -> None:
    assert chain.say(1, amqp.ChannelClose(200, "")) == [amqp.ChannelCloseOk()]
    assert chain.say(1, amqp.ChannelOpen()) == [amqp.ChannelOpenOk()]
    (close,) = chain.publish("q", b"x", "none")
    assert (close.reply_code, close.class_id, close.method_id) == (404, 60, 40)
    assert chain.say(0, amqp.ConnectionClose(200, "bye")) == [amqp.ConnectionCloseOk()]


def _bodies(heard: list[Method | bytes]) -> list[bytes]:
    """The last frame of each message that has a body: those of properties begin with their class."""
    return [one for one in heard if isinstance(one, bytes) and not one.startswith(b"\0\x3c")]

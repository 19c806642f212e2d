"""The model broker's end of one connection: what it says and takes, as RabbitMQ would."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.simulation.connection import Line
from tests.simulation.entries import Delivery, Message, Source
from tests.simulation.held import Channel, Consumer
from tests.simulation.ledger import Violation
from tests.simulation.talk import Content, Talk, Wrong

if TYPE_CHECKING:
    from tests.simulation.broker import Broker

_CAPABILITIES = dict.fromkeys(
    ("basic.nack", "publisher_confirms", "consumer_cancel_notify", "connection.blocked", "per_consumer_qos",
     "exchange_exchange_bindings", "authentication_failure_close", "direct_reply_to"), True
)  # fmt: skip
_PROPERTIES = Table.of({"product": "RabbitMQ", "version": "3.10.8", "capabilities": Table.of(_CAPABILITIES)})


class BrokerEnd:
    """The broker's end of one connection."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.ledger, self.clock = broker, broker.world.ledger, broker.world.clock
        self.talk = Talk()
        self.connection: Line | None = None
        self.channels: dict[int, Channel] = {}
        self.state = "header"
        self.first = b""
        self.heartbeat = 0.0
        self.heard_at = self.clock.now

    @property
    def name(self) -> str:
        number = self.connection.number if self.connection is not None else 0
        return f"broker {self.broker.name}/{number}"

    # -- as a peer ---------------------------------------------------------------------------------

    def connected(self, connection: Line) -> None:
        self.connection = connection

    def ended(self, why: str) -> None:
        self.state = "over"
        self.broker.lost(self)

    def received(self, data: bytes) -> None:
        if self.state == "over":
            return
        self.heard_at = self.clock.now
        if self.state == "header":
            self.first += data
            if len(self.first) < 8:
                return
            if self.first[:8] != b"AMQP\0\0\x09\x01":
                raise Violation(f"{self.name} heard the header {self.first[:8]!r}")
            data, self.state = self.first[8:], "login"
            self.say(0, amqp.ConnectionStart(0, 9, _PROPERTIES, b"PLAIN AMQPLAIN", b"en_US"))
        self.talk.feed(data)
        try:
            while self.state != "over" and (heard := self.talk.next()) is not None:
                channel, method, content = heard
                if method is None:
                    continue
                if channel == 0:
                    self._connection_method(method)
                else:
                    self._heard(channel, method, content)
        except Wrong as wrong:
            raise Violation(f"{self.name}: {wrong}") from wrong

    def deliver(self, channel: Channel, consumer: Consumer, delivery: Delivery) -> None:
        """Send a message to a consumer."""
        message = delivery.message
        exchange = self.ledger.exchange_of(message)
        method = amqp.BasicDeliver(consumer.tag, channel.tag, delivery.redelivered, exchange, message.key)
        self.send_content(channel.number, method, self.ledger.content_of(delivery))

    # -- the connection ----------------------------------------------------------------------------

    def say(self, channel: int, method: Method) -> None:
        if self.connection is not None and self.state != "over":
            self.connection.send(self.talk.method(channel, method))

    def send_content(self, channel: int, method: Method, content: Content) -> None:
        if self.connection is not None and self.state != "over":
            self.connection.send(self.talk.content(channel, method, content))

    def _connection_method(self, method: Method) -> None:
        match method:
            case amqp.ConnectionStartOk():
                random = self.broker.random
                self.say(
                    0, amqp.ConnectionTune(255, random.choice((4096, 8192, 131072)), random.choice((20, 60)))
                )
            case amqp.ConnectionTuneOk(frame_max=frame_max, heartbeat=heartbeat):
                self.talk.agree(frame_max)
                self.heartbeat = float(heartbeat)
                if heartbeat:
                    self.clock.after(self.heartbeat / 2, self._beat)
            case amqp.ConnectionOpen():
                self.state = "open"
                self.say(0, amqp.ConnectionOpenOk())
            case amqp.ConnectionClose(reply_code=code, reply_text=text):
                if code not in (200, 320):
                    raise Violation(f"{self.name} heard connection.close {code} {text!r}")
                self.say(0, amqp.ConnectionCloseOk())
                self._leave()
            case amqp.ConnectionCloseOk():
                self._leave()
            case _:
                raise Violation(f"{self.name} heard {method} on channel 0")

    def _leave(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.ended("closed")

    def _beat(self) -> None:
        if self.state == "over" or self.connection is None:
            return
        if self.clock.now - self.heard_at > 2 * self.heartbeat:
            self.broker.world.tell(
                f"{self.name} has heard nothing for {2 * self.heartbeat:g} s, and hangs up"
            )
            self.connection.reset()
            return
        self.connection.send(self.talk.heartbeat)
        self.clock.after(self.heartbeat / 2, self._beat)

    # -- channels ----------------------------------------------------------------------------------

    def _heard(self, number: int, method: Method, content: Content | None) -> None:
        channel = self.channels.get(number)
        if isinstance(method, amqp.ChannelOpen):
            if channel is not None:
                raise Violation(f"{self.name} heard channel.open on channel {number}, which is open")
            self.channels[number] = Channel(number)
            self.say(number, amqp.ChannelOpenOk())
            return
        if channel is None:
            raise Violation(f"{self.name} heard {method.NAME} on channel {number}, which is not open")
        if channel.is_closing:
            if isinstance(method, amqp.ChannelCloseOk):
                del self.channels[number]
            elif isinstance(method, amqp.ChannelClose):
                self.say(number, amqp.ChannelCloseOk())
            return
        match method:
            case amqp.BasicPublish():
                assert content is not None
                self._publish(channel, method, content)
            case amqp.BasicAck(delivery_tag=tag, multiple=multiple):
                self._settle(channel, tag, "ack", multiple)
            case amqp.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue):
                self._settle(channel, tag, "requeue" if requeue else "discard", multiple)
            case amqp.BasicReject(delivery_tag=tag, requeue=requeue):
                self._settle(channel, tag, "requeue" if requeue else "discard", False)
            case amqp.ChannelClose():
                self.broker.close(self, channel)
                del self.channels[number]
                self.talk.forget(number)
                self.say(number, amqp.ChannelCloseOk())
            case amqp.ConfirmSelect(no_wait=no_wait):
                channel.confirms = True
                if not no_wait:
                    self.say(number, amqp.ConfirmSelectOk())
            case amqp.TxSelect():
                channel.publishes = channel.publishes or []
                self.say(number, amqp.TxSelectOk())
            case amqp.TxCommit() | amqp.TxRollback():
                self._end_transaction(channel, is_commit=isinstance(method, amqp.TxCommit))
            case amqp.BasicQos(prefetch_count=count):
                channel.prefetch = count
                self.say(number, amqp.BasicQosOk())
            case amqp.QueueDeclare(queue=queue, passive=passive):
                if passive and queue not in self.broker.queues:
                    self.close_channel(channel, 404, f"NOT_FOUND - no queue '{queue}' in vhost '/'")
                else:
                    self._declare(channel, queue)
            case amqp.BasicConsume():
                self._consume(channel, method)
            case amqp.BasicCancel(consumer_tag=tag, no_wait=no_wait):
                consumer = channel.consumers.pop(tag, None)
                if consumer is not None:
                    self.broker.cancel(self, channel, consumer)
                if not no_wait:
                    self.say(number, amqp.BasicCancelOk(tag))
            case amqp.BasicGet(queue=queue, no_ack=no_ack):
                self._get(channel, queue, no_ack)
            case _:
                raise Violation(f"{self.name} heard {method.NAME} on channel {number}")

    def close_channel(self, channel: Channel, code: int, text: str) -> None:
        """The broker closes it."""
        self.broker.close(self, channel)
        channel.is_closing = True
        self.talk.forget(channel.number)
        self.say(channel.number, amqp.ChannelClose(code, text))

    def _declare(self, channel: Channel, queue: str) -> None:
        broker = self.broker
        broker.queues.setdefault(queue, deque())
        broker.consumers.setdefault(queue, deque())
        self.say(
            channel.number,
            amqp.QueueDeclareOk(queue, len(broker.queues[queue]), len(broker.consumers[queue])),
        )

    def _publish(self, channel: Channel, method: amqp.BasicPublish, content: Content) -> None:
        message = self.ledger.arrive(self.broker.name, method.exchange, method.routing_key, content)
        if method.mandatory != message.mandatory:
            raise Violation(f"message {message.number} is not as mandatory as it was")
        channel.published += 1
        if channel.publishes is not None:
            channel.publishes.append(message)
            return
        self._route(channel, message)
        if channel.confirms:
            random, number = self.broker.random, channel.published
            channel.unconfirmed[number] = message
            self.clock.after(
                random.expovariate(1 / self.broker.slowness), lambda: self._confirm(channel, number)
            )

    def _route(self, channel: Channel, message: Message) -> None:
        if not self.broker.route(message) and message.mandatory:
            message.returned = True
            back = amqp.BasicReturn(312, "NO_ROUTE", self.ledger.exchange_of(message), message.key)
            self.send_content(channel.number, back, message.passed)

    def _end_transaction(self, channel: Channel, *, is_commit: bool) -> None:
        if channel.publishes is None:
            raise Violation(f"{self.name} heard of a transaction that nobody has begun")
        messages, channel.publishes = channel.publishes, []
        answers, channel.answers = channel.answers, []
        said = [(delivery, answer) for _, delivery, answer, _ in answers]
        self.ledger.transacted(self.name, messages, said, is_commit=is_commit)
        if not is_commit:
            for tag, delivery, _, consumer in answers:
                channel.held[tag] = delivery, consumer
            self.say(channel.number, amqp.TxRollbackOk())
            return
        for message in messages:
            self._route(channel, message)
        self._settled([(delivery, answer, consumer) for _, delivery, answer, consumer in answers])
        self.say(channel.number, amqp.TxCommitOk())

    def _confirm(self, channel: Channel, number: int) -> None:
        if self.channels.get(channel.number) is not channel or channel.is_closing or self.state == "over":
            return
        if number not in channel.unconfirmed:
            return
        random = self.broker.random
        if random.random() < self.broker.nacking:
            channel.unconfirmed.pop(number).confirmed = "nack"
            self.say(channel.number, amqp.BasicNack(number, False, False))
            return
        # Several at once, now and then: all before it are confirmed with it.
        multiple = random.random() < 0.3
        for one in [one for one in channel.unconfirmed if one <= number] if multiple else [number]:
            channel.unconfirmed.pop(one).confirmed = "ack"
        self.say(channel.number, amqp.BasicAck(number, multiple))

    def _consume(self, channel: Channel, method: amqp.BasicConsume) -> None:
        if method.queue not in self.broker.queues:
            self.close_channel(channel, 404, f"NOT_FOUND - no queue '{method.queue}'")
            return
        tag = method.consumer_tag or f"amq.ctag-{self.broker.random.getrandbits(64):x}"
        source = Source(f"{self.name} channel {channel.number} consumer {tag}", tag, channel.delivered)
        consumer = Consumer(tag, method.queue, method.no_ack, channel.prefetch, source)
        channel.consumers[tag] = consumer
        self.broker.consumers[method.queue].append((self, channel, consumer))
        if not method.no_wait:
            self.say(channel.number, amqp.BasicConsumeOk(tag))
        self.broker.serve(method.queue)

    def _get(self, channel: Channel, queue: str, no_ack: bool) -> None:
        waiting = self.broker.queues.get(queue)
        if waiting is None:
            self.close_channel(channel, 404, f"NOT_FOUND - no queue '{queue}'")
            return
        name = queue.removeprefix(self.broker.prefix)
        if not waiting:
            self.say(channel.number, amqp.BasicGetEmpty())
            return
        one = waiting.popleft()
        if channel.gets is None:
            channel.gets = Source(f"{self.name} channel {channel.number} gets", tags=channel.delivered)
        channel.tag += 1
        delivery = self.ledger.deliver(
            one.message, name, channel.gets, channel.tag, redelivered=one.redelivered, no_ack=no_ack
        )
        if not no_ack:
            channel.held[channel.tag] = delivery, None
        else:
            self.broker.consumed += 1
        exchange = self.ledger.exchange_of(one.message)
        ok = amqp.BasicGetOk(channel.tag, one.redelivered, exchange, one.message.key, len(waiting))
        self.send_content(channel.number, ok, self.ledger.content_of(delivery))

    def _settle(self, channel: Channel, tag: int, answer: str, multiple: bool) -> None:
        tags = [one for one in channel.held if one <= tag or not tag] if multiple else [tag]
        if not tags or (not multiple and tag not in channel.held):
            raise Violation(f"{self.name} heard {answer} of delivery tag {tag}, which is not held")
        answers = [(one, *channel.held.pop(one)) for one in tags]
        if channel.publishes is None:
            self._settled([(delivery, answer, consumer) for _, delivery, consumer in answers])
        else:
            channel.answers += [(one, delivery, answer, consumer) for one, delivery, consumer in answers]

    def _settled(self, answers: list[tuple[Delivery, str, Consumer | None]]) -> None:
        back: list[Delivery] = []
        for delivery, answer, consumer in answers:
            self.ledger.settle(delivery, answer, self.name)
            if consumer is not None:
                consumer.held -= 1
                if not consumer.is_over:
                    self.broker.serve(consumer.queue)
            if answer == "requeue":
                back.append(delivery)
            else:
                self.broker.consumed += 1
        for delivery in reversed(back):
            self.broker.put_back(delivery)

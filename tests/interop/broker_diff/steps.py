"""What a scenario is made of.

Nothing waits for a fixed time: a method that has an answer waits for it, `receive` waits for so many
deliveries, returns or cancellations, `confirmed` for so many confirms, and `quiet` makes round trips that the
queue takes part in. Frames that nobody waited for are found at the end, when each connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Names that the broker made (of queues, consumers, reply queues), by the name under which a step kept them.
Kept = Mapping[str, str]


@frozen
class Step:
    """Something that a client does. `client` is a letter, which also names the connection."""

    client: str


@frozen
class Connect(Step):
    """Open a connection in a way that is not the usual one; the handshake is part of the transcript.

    A client that a scenario does not connect is connected when it is first needed.
    """

    user: str = "guest"
    password: str = "guest"
    vhost: str | None = None
    mechanism: str = "PLAIN"
    capabilities: Mapping[str, object] = field(factory=dict)
    frame_max: int = 131_072
    channel_max: int = 2047


@frozen
class Dial(Step):
    """Open a socket, and send nothing."""


@frozen
class Send(Step):
    """Send a method and wait for `answers` answers; None: for one if the method has one."""

    channel: int
    method: Method | Callable[[Kept], Method]
    answers: int | None = None
    #: Keep this field of the answer under this name.
    keep: tuple[str, str] | None = None


@frozen
class Publish(Step):
    """Send a message and wait for `answers` answers (a close, that is)."""

    channel: int
    method: amqp.BasicPublish | Callable[[Kept], amqp.BasicPublish]
    body: bytes
    properties: amqp.BasicProperties
    answers: int = 0


@frozen
class Raw(Step):
    """Send bytes and wait for `answers` answers on `channel`."""

    channel: int
    data: bytes
    answers: int = 0


@frozen
class Receive(Step):
    """Wait until so many more deliveries, returns and cancellations are there.

    `keep`: as in `Send`, a property of the last message.
    """

    channel: int
    count: int
    keep: tuple[str, str] | None = None


@frozen
class Confirmed(Step):
    """Wait until so many publishes in all have been confirmed, one way or the other."""

    channel: int
    count: int


@frozen
class Quiet(Step):
    """Make sure that all that is under way between a queue and a channel has arrived."""

    channel: int
    queue: str


@frozen
class Eventually(Step):
    """Send a method until a field of its answer has this value, which takes RabbitMQ a moment when a
    connection or channel was lost; only the last answer counts.
    """

    channel: int
    method: Method
    name: str
    value: object


@frozen
class Close(Step):
    """Close the connection in good order."""


@frozen
class HangUp(Step):
    """Close the socket without a word."""


@frozen
class Ended(Step):
    """Wait until the broker closes the socket."""


@frozen
class Scenario:
    """Steps, played from top to bottom."""

    name: str
    steps: tuple[Step, ...]
    #: Where the confirms stand among the other frames is compared, too (RabbitMQ promises little there).
    confirms_in_place: bool = False


def scenario(name: str, *steps: Step, confirms_in_place: bool = False) -> Scenario:
    return Scenario(name, steps, confirms_in_place)


NO_PROPERTIES = amqp.BasicProperties()


@frozen
class On:
    """A channel of a client; its methods make steps."""

    client: str
    channel: int

    def send(
        self,
        method: Method | Callable[[Kept], Method],
        answers: int | None = None,
        keep: tuple[str, str] | None = None,
    ) -> Send:
        return Send(self.client, self.channel, method, answers, keep)

    def publish(
        self,
        routing_key: str | Callable[[Kept], str],
        body: bytes = b"",
        exchange: str = "",
        properties: amqp.BasicProperties = NO_PROPERTIES,
        mandatory: bool = False,
        immediate: bool = False,
        answers: int = 0,
    ) -> Publish:
        def made(kept: Kept) -> amqp.BasicPublish:
            key = routing_key if isinstance(routing_key, str) else routing_key(kept)
            return amqp.BasicPublish(0, exchange, key, mandatory, immediate)

        return Publish(self.client, self.channel, made, body, properties, answers)

    def raw(self, data: bytes, answers: int = 0) -> Raw:
        return Raw(self.client, self.channel, data, answers)

    def receive(self, count: int = 1, keep: tuple[str, str] | None = None) -> Receive:
        return Receive(self.client, self.channel, count, keep)

    def confirmed(self, count: int) -> Confirmed:
        return Confirmed(self.client, self.channel, count)

    def quiet(self, queue: str) -> Quiet:
        return Quiet(self.client, self.channel, queue)

    # What nearly every scenario needs.

    def queue(self, name: str, **flags: object) -> Send:
        return self.send(amqp.QueueDeclare(queue=name, **flags))  # type: ignore[arg-type]

    def exchange(self, name: str, type_: str, **flags: object) -> Send:
        return self.send(amqp.ExchangeDeclare(exchange=name, type=type_, **flags))  # type: ignore[arg-type]

    def bind(self, queue: str, exchange: str, key: str = "", **more: object) -> Send:
        return self.send(amqp.QueueBind(0, queue, exchange, key, **more))  # type: ignore[arg-type]

    def consume(self, queue: str, tag: str, **flags: object) -> Send:
        return self.send(amqp.BasicConsume(0, queue, tag, **flags))  # type: ignore[arg-type]

    def get(self, queue: str, no_ack: bool = True) -> Send:
        return self.send(amqp.BasicGet(0, queue, no_ack))

    def ack(self, tag: int, multiple: bool = False, answers: int = 0) -> Send:
        return self.send(amqp.BasicAck(tag, multiple), answers)

    def nack(self, tag: int, multiple: bool = False, requeue: bool = True, answers: int = 0) -> Send:
        return self.send(amqp.BasicNack(tag, multiple, requeue), answers)

    def qos(self, count: int, global_: bool = False) -> Send:
        return self.send(amqp.BasicQos(0, count, global_))

    def count(self, queue: str) -> Send:
        """How many messages and consumers a queue has. After a publish, be `quiet` first."""
        return self.send(amqp.QueueDeclare(queue=queue, passive=True))

    def counts(self, queue: str, messages: int) -> Eventually:
        """Wait until a queue has so many messages ready."""
        method = amqp.QueueDeclare(queue=queue, passive=True)
        return Eventually(self.client, self.channel, method, "message_count", messages)

    def agreed(self) -> Send:
        """Answer the broker's channel.close."""
        return self.send(amqp.ChannelCloseOk())


a, a2, b, b2, c = On("A", 1), On("A", 2), On("B", 1), On("B", 2), On("C", 1)

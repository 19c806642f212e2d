"""One session of a 0-10 client, and a small broker of 0-9-1 with one queue, both in the hands of a test."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from attrs import define, field

from amqpgate.bridge.v0_10.client_session import ClientSession
from amqpgate.bridge.v0_10.frames import CanonicalWriter, FromBroker
from amqpgate.bridge.v0_10.link import BrokerLink, ClientOptions
from amqpgate.bridge.v0_10.topology import KnownTopology
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.events import CommandsCompleted, IncomingCommand
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.codec import encode_header as encode_content_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_command, decode_header, encode_header
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Struct, Unknown

QUEUE = "q"
_SETTLEMENTS = amqp.BasicAck | amqp.BasicReject | amqp.BasicNack


def plain_header(body: bytes) -> bytes:
    """The content header of a message without properties."""
    return encode_content_header(ContentHeader(60, len(body), amqp.BasicProperties()))


@define(order=True)
class Message:
    """``position`` is its place in the queue, and it is known by that."""

    position: int
    body: bytes = field(order=False)
    redelivered: bool = field(default=False, order=False)


@define(eq=False)
class Consumer:
    tag: str
    prefetch: int
    unacked: int = 0


class ScriptedQueue:
    """A queue and the channels of one session, as RabbitMQ has them.

    A lazy one keeps deliveries to itself until it is asked something that the queue does not answer: they are
    on their way from there to the channel, which passes answers on first. It answers queue.declare before it
    hears of settlements, but of those that it had when it answered the last one. The channel gives a delivery
    its tag when it passes it on.

    A lazy one with a ``soft_limit`` is a quorum queue: the channel tells it of so many settlements, and of
    the rest once it has applied these, which may be behind the answer to basic.get. Its answer to
    queue.declare waits for none. With a single active consumer it has no basic.get.
    """

    def __init__(
        self,
        say: Callable[[int, FromBroker], None],
        *,
        is_lazy: bool = False,
        soft_limit: int = 0,
        has_single_active: bool = False,
    ) -> None:
        self.ready: list[Message] = []
        self.consumers: deque[Consumer] = deque()
        self.unacked: dict[int, tuple[Message, Consumer | None]] = {}
        self.accepted: list[int] = []
        self.rejected: list[int] = []
        self.asked: list[Method] = []
        self.is_there = True
        self.has_single_active = has_single_active
        self._say = say
        self._is_lazy = is_lazy
        self._soft_limit = soft_limit
        #: Deliveries, and ends of consumers.
        self._coming: list[tuple[Consumer, Message] | amqp.BasicCancel] = []
        #: Not heard yet.
        self._settlements: deque[Method] = deque()
        self._overtaken = 0
        self._prefetch = 0
        self._positions = 0
        self._tags = 0
        #: The one that is consumed on.
        self._main = 0

    def publish(self, body: bytes) -> int:
        self._positions += 1
        self.ready.append(Message(self._positions, body))
        self._dispatch()
        return self._positions

    def delete(self) -> None:
        """Gone with all that is in it."""
        self.is_there = False
        self.ready.clear()
        for consumer in self.consumers:
            self._coming.append(amqp.BasicCancel(consumer.tag))
        self.consumers.clear()
        self.tick()

    def tick(self) -> None:
        """All that is on its way arrives."""
        self._hear_settlements()
        self._bring()

    def _bring(self) -> None:
        coming, self._coming = self._coming, []
        for one in coming:
            if isinstance(one, amqp.BasicCancel):
                self._say(self._main, FromBroker(self._main, one))
                continue
            consumer, message = one
            tag = self._take(message, consumer)
            deliver = amqp.BasicDeliver(consumer.tag, tag, message.redelivered, "", QUEUE)
            header = plain_header(message.body)
            self._say(self._main, FromBroker(self._main, deliver, header, message.body))

    def hear(self, channel: int, method: Method) -> None:
        self.asked.append(method)
        if method.CLASS_ID == amqp.BasicGet.CLASS_ID:
            self._main = channel
        if isinstance(method, _SETTLEMENTS):
            self._settlements.append(method)
            if not self._is_lazy:
                self.tick()
            return
        if isinstance(method, amqp.QueueDeclare):
            self._hear_settlements(0 if self._soft_limit else self._overtaken)
        elif self._soft_limit and isinstance(method, amqp.BasicGet | amqp.BasicConsume):
            self._hear_settlements(self._soft_limit)
        elif not isinstance(method, amqp.BasicQos):
            self._hear_settlements()
        if not isinstance(method, amqp.BasicGet | amqp.QueueDeclare):
            self._bring()
        answer = self._answer(method)
        if answer is not None:
            told = answer if isinstance(answer, FromBroker) else FromBroker(channel, answer)
            self._say(channel, told)
        if isinstance(method, amqp.QueueDeclare):
            self._overtaken = len(self._settlements)
        self._dispatch()
        if self._soft_limit and isinstance(method, amqp.BasicGet):
            self._hear_settlements()

    def _hear_settlements(self, most: int | None = None) -> None:
        self._overtaken = 0
        while self._settlements and most != 0:
            self._answer(self._settlements.popleft())
            self._dispatch()
            most = None if most is None else most - 1

    def _answer(self, method: Method) -> Method | FromBroker | None:
        match method:
            case amqp.ChannelOpen():
                return amqp.ChannelOpenOk()
            case amqp.QueueDeclare(passive=False, arguments=arguments):
                # What is asked for is never what is there.
                ((asked, _),) = arguments.entries
                now = "current is 'true'" if self.has_single_active else "current is none"
                return amqp.ChannelClose(
                    406, f"inequivalent arg '{asked}' for queue 'q' in vhost '/': {now}", 50, 10
                )
            case amqp.QueueDeclare(queue=name):
                if name != QUEUE or not self.is_there:
                    return amqp.ChannelClose(404, "no queue", 50, 10)
                return amqp.QueueDeclareOk(QUEUE, len(self.ready), len(self.consumers))
            case amqp.QueueDelete():
                return amqp.QueueDeleteOk(0)
            case amqp.BasicQos(prefetch_count=count):
                self._prefetch = count
                return amqp.BasicQosOk()
            case amqp.BasicConsume(consumer_tag=tag, exclusive=exclusive):
                if exclusive and self.consumers:
                    return amqp.ChannelClose(403, "in exclusive use", 60, 20)
                self.consumers.append(Consumer(tag, self._prefetch))
                return amqp.BasicConsumeOk(tag)
            case amqp.BasicCancel(consumer_tag=tag):
                self.consumers = deque(one for one in self.consumers if one.tag != tag)
                return amqp.BasicCancelOk(tag)
            case amqp.BasicGet() if self.has_single_active:
                return amqp.ChannelClose(405, "basic.get operations are not supported", 60, 70)
            case amqp.BasicGet():
                if not self.ready:
                    return amqp.BasicGetEmpty()
                message = self.ready.pop(0)
                tag = self._take(message, None)
                got = amqp.BasicGetOk(tag, message.redelivered, "", QUEUE, 0)
                return FromBroker(self._main, got, plain_header(message.body), message.body)
            case amqp.BasicAck(delivery_tag=tag, multiple=multiple):
                for one in [one for one in self.unacked if one <= tag] if multiple else [tag]:
                    self.accepted.append(self._settle(one).position)
            case (
                amqp.BasicReject(delivery_tag=tag, requeue=requeue)
                | amqp.BasicNack(delivery_tag=tag, requeue=requeue)
            ):
                message = self._settle(tag)
                if requeue:
                    message.redelivered = True
                    self.ready.append(message)
                    self.ready.sort()
                else:
                    self.rejected.append(message.position)
        return None

    def _settle(self, tag: int) -> Message:
        message, consumer = self.unacked.pop(tag)
        if consumer is not None:
            consumer.unacked -= 1
        return message

    def _take(self, message: Message, consumer: Consumer | None) -> int:
        self._tags += 1
        self.unacked[self._tags] = message, consumer
        return self._tags

    def _dispatch(self) -> None:
        while self.ready:
            may_get = list(self.consumers)[: 1 if self.has_single_active else None]
            consumer = next((one for one in may_get if one.unacked < one.prefetch), None)
            if consumer is None:
                break
            if not self.has_single_active:
                self.consumers.remove(consumer)
                self.consumers.append(consumer)
            consumer.unacked += 1
            self._coming.append((consumer, self.ready.pop(0)))
        if not self._is_lazy:
            self._bring()


@define(eq=False)
class Transfer:
    """What the client got."""

    number: int
    command: amqp10.MessageTransfer
    structs: Sequence[Struct | Unknown]
    body: bytes

    @property
    def name(self) -> bytes:
        return self.command.destination or b""

    @property
    def size(self) -> int:
        return len(encode_header(self.structs)) + len(self.body)


class Client(AttachedSession):
    """The client's end of a session: what it is told."""

    def __init__(self) -> None:
        self.transfers: list[Transfer] = []
        self.finished: list[int] = []
        self.results: list[Command] = []
        self.violation: ProtocolViolation | None = None
        #: Called for each.
        self.on_transfer: Callable[[Transfer], None] = lambda transfer: None
        self.on_finish: Callable[[int], None] = lambda number: None
        self.next = 0

    def send(
        self,
        command: Command,
        structs: Sequence[Struct] | None = None,
        body: bytes = b"",
        *,
        sync: bool = False,
        goes_on: bool = False,
    ) -> int:
        self.results.append(command)
        return self._number()

    def send_message(self, command: bytes, header: bytes, body: bytes = b"", *, goes_on: bool = False) -> int:
        number = self._number()
        said, _ = decode_command(command)
        assert isinstance(said, amqp10.MessageTransfer)
        transfer = Transfer(number, said, decode_header(header), body)
        self.transfers.append(transfer)
        self.on_transfer(transfer)
        return number

    def _number(self) -> int:
        number = self.next
        self.next = (number + 1) & 0xFFFF_FFFF
        return number

    def finish(self, first: int, last: int | None = None, *, tell: bool = False) -> None:
        self.finished.append(first)
        self.on_finish(first)

    def fail(
        self,
        violation: ProtocolViolation,
        command_id: int | None = None,
        command: type[Command] | None = None,
    ) -> None:
        self.violation = violation


class _Writer(CanonicalWriter):
    def __init__(self, hear: Callable[[int, Method], None]) -> None:
        super().__init__()
        self._hear = hear

    def method(self, channel: int, method: Method) -> None:
        self._hear(channel, method)


class Stage:
    """The client says something, the broker's answers arrive when the test lets them."""

    def __init__(
        self,
        *,
        is_lazy: bool = False,
        soft_limit: int = 0,
        first_id: int = 0,
        has_nacks: bool = False,
        has_single_active: bool = False,
    ) -> None:
        self.client = Client()
        self.client.next = first_id
        #: What the broker has said, and is not heard yet.
        self.said: deque[tuple[int, FromBroker]] = deque()
        self.queue = ScriptedQueue(
            lambda channel, told: self.said.append((channel, told)),
            is_lazy=is_lazy,
            soft_limit=soft_limit,
            has_single_active=has_single_active,
        )
        self._asked: deque[tuple[int, Method]] = deque()
        link = BrokerLink(
            ClientOptions(),
            KnownTopology(),
            _Writer(lambda number, method: self._asked.append((number, method))),
        )
        link.numbers.allow(16)
        link.meets(nacks=has_nacks)
        self.link = link
        self.session = ClientSession(self.client, link)
        self._commands = 0

    def say(self, *commands: Command) -> int:
        """Commands in one read; the id of the last one."""
        for command in commands:
            number = self._commands
            self._commands += 1
            self.session.receive(IncomingCommand(0, number, command, False, False))
            self._ask()
        self.session.rest()
        self._ask()
        return self._commands - 1

    def end(self) -> None:
        """The client detaches."""
        self.session.ended()
        self._ask()

    def complete(self, *ids: int) -> None:
        """session.completed."""
        for number in ids:
            self.session.receive(CommandsCompleted(0, SequenceSet(((number, number),))))
        self.session.rest()
        self._ask()

    def hear(self, most: int | None = None) -> None:
        """So much of what the broker has said arrives; None: all, until it has nothing to say."""
        while most != 0:
            if not self.said and most is None:
                self.queue.tick()
            if not self.said:
                break
            number, told = self.said.popleft()
            channel = self.link.numbers.at(number)
            if channel is not None:
                channel.hear(channel, told)
            self._ask()
            self.session.rest()
            self._ask()
            most = None if most is None else most - 1

    def do(self, *commands: Command) -> list[bytes]:
        """The same, and all that comes of it; the bodies that it brings."""
        before = len(self.client.transfers)
        last = self.say(*commands)
        self.hear()
        assert self.client.violation is not None or last in self.client.finished
        return [one.body for one in self.client.transfers[before:]]

    def publish(self, *bodies: bytes) -> list[bytes]:
        """Messages, and what the client gets then."""
        before = len(self.client.transfers)
        for body in bodies:
            self.queue.publish(body)
        self.hear()
        return [one.body for one in self.client.transfers[before:]]

    def take_asked(self) -> list[Method]:
        """What the broker was asked since the last time."""
        asked = list(self.queue.asked)
        self.queue.asked.clear()
        return asked

    def _ask(self) -> None:
        while self._asked:
            number, method = self._asked.popleft()
            self.queue.hear(number, method)


def subscribe(name: bytes = b"d", **more: object) -> amqp10.MessageSubscribe:
    return amqp10.MessageSubscribe(queue=QUEUE.encode(), destination=name, **{"accept_mode": 0, **more})  # type: ignore[arg-type]


def messages(value: int, name: bytes = b"d") -> amqp10.MessageFlow:
    return amqp10.MessageFlow(destination=name, unit=0, value=value)


def byte_credit(value: int = 0xFFFF_FFFF, name: bytes = b"d") -> amqp10.MessageFlow:
    return amqp10.MessageFlow(destination=name, unit=1, value=value)


def mode(value: int, name: bytes = b"d") -> amqp10.MessageSetFlowMode:
    return amqp10.MessageSetFlowMode(destination=name, flow_mode=value)


def ids(lower: int, upper: int | None = None) -> SequenceSet:
    return SequenceSet(((lower, lower if upper is None else upper),))

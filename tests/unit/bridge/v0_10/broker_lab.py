"""A 0-10 broker that does as it is told, its translator, and the gateway behind it, in memory."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from amqpgate.bridge.v0_10.broker import BrokerTranslator
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    Frame,
    FrameDecoder,
    encode_frame,
    method_frame,
)
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    ConnectionClosed,
    ConnectionControl,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    SessionBegun,
    SessionFailed,
)
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.codec import encode_struct32
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Struct
from amqpgate.wire.v0_10.types import Array, Map, Value
from tests.support.frames import content_frames
from tests.support.talk_0_10 import control

START = amqp10.ConnectionStart(
    server_properties=Map(((b"product", Value(TypeCode.STR16, b"qpid-cpp")),)),
    mechanisms=Array(TypeCode.STR16, (b"DIGEST-MD5", b"PLAIN", b"ANONYMOUS")),
    locales=Array(TypeCode.STR16, (b"en_US",)),
)
START_OK = amqp.ConnectionStartOk(
    client_properties=Table.of({"capabilities": {"consumer_cancel_notify": True}}),
    mechanism="PLAIN",
    response=b"\0guest\0guest",
    locale="en_US",
)
EMPTY = amqp.BasicProperties()


@frozen
class Heard:
    """What the gateway was told on a channel: a method, and the message that it carries."""

    channel: int
    method: Method
    properties: amqp.BasicProperties | None = None
    body: bytes = b""


@frozen
class Asked:
    """What the broker was told on a channel (that of 0-10): a command and its content."""

    channel: int
    command_id: int
    command: Command
    sync: bool
    structs: tuple = ()
    body: bytes = b""


class BrokerLab:
    """``is_live``: the broker finishes each command once it is whole, and answers queries by ``results``,
    which are given for names; nothing is bound but what is in ``bindings``. ``cut`` is how many bytes the
    translator is given at once; None: all.
    """

    #: What both sides say of themselves.
    start = START
    start_ok = START_OK

    def __init__(self, *, is_live: bool = True, cut: int | None = None, tuning: Tuning | None = None) -> None:
        self.translator = BrokerTranslator("gate")
        self.broker = SessionConnection(Role.SERVER)
        self.is_live = is_live
        self.results: dict[bytes, Struct] = {}
        #: Exchanges and keys.
        self.bindings: set[tuple[bytes, bytes]] = set()
        #: Exceptions by the names of commands.
        self.faults: dict[str, amqp10.ExecutionException] = {}
        self.heard: list[Heard] = []
        self.asked: list[Asked] = []
        self.controls: list[object] = []
        self.beats = 0
        self._cut = cut
        self._tuning = tuning or Tuning(channel_max=32767)
        self._frames = FrameDecoder(0)
        self._open: dict[int, list] = {}
        self._parts: dict[int, Asked] = {}
        list(self.broker.receive(PROTOCOL_HEADER))
        self.broker.take_output()

    # The set-up.

    def login(self) -> BrokerLab:
        self.broker.send(self.start)
        self.settle()
        self.say(0, self.start_ok)
        self.broker.send(self._tuning.offer())
        self.settle()
        tune = self.heard[-1].method
        assert isinstance(tune, amqp.ConnectionTune)
        self.say(
            0,
            amqp.ConnectionTuneOk(min(tune.channel_max, 2047), tune.frame_max, tune.heartbeat),
            amqp.ConnectionOpen("/"),
        )
        self.broker.send(amqp10.ConnectionOpenOk())
        self.settle()
        assert isinstance(self.heard[-1].method, amqp.ConnectionOpenOk)
        self.heard.clear()
        return self

    def open(self, channel: int = 1) -> BrokerLab:
        assert self.say(channel, amqp.ChannelOpen()) == [Heard(channel, amqp.ChannelOpenOk())]
        return self

    # The gateway.

    def say(self, channel: int, *methods: Method) -> list[Heard]:
        """What the gateway says, and what it hears then."""
        return self.give(b"".join(method_frame(channel, method) for method in methods))

    def publish(
        self,
        body: bytes = b"",
        key: str = "q",
        exchange: str = "",
        channel: int = 1,
        properties: amqp.BasicProperties = EMPTY,
        *,
        mandatory: bool = False,
        frame_max: int = 4096,
    ) -> list[Heard]:
        method = amqp.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
        return self.give(content_frames(channel, method, properties, body, frame_max))

    def give(self, frames: bytes) -> list[Heard]:
        before = len(self.heard)
        decoder = FrameDecoder(0)
        decoder.feed(frames)
        while (frame := decoder.next()) is not None:
            self.translator.from_gateway(_again(frame))
            if self._cut is not None:
                self.settle()
        self.settle()
        return self.heard[before:]

    def call(self, method: Method, channel: int = 1) -> Method:
        """One method that has one answer."""
        heard = self.say(channel, method)
        assert len(heard) == 1
        return heard[0].method

    def commands(self) -> list[Command]:
        """What the broker was told since the last time."""
        asked, self.asked = self.asked, []
        return [one.command for one in asked]

    # The broker.

    def session(self, channel: int = 1):
        return self.broker.sessions[channel - 1]

    def tell(self, *commands: Command, channel: int = 1) -> list[Heard]:
        """Commands of the broker's."""
        before = len(self.heard)
        for command in commands:
            self.session(channel).send(command)
        self.settle()
        return self.heard[before:]

    def transfer(
        self, destination: str, body: bytes = b"", *structs: Struct, channel: int = 1
    ) -> list[Heard]:
        before = len(self.heard)
        transfer = amqp10.MessageTransfer(destination.encode(), 0, 0)
        self.session(channel).send(transfer, structs or (amqp10.DeliveryProperties(),), body)
        self.settle()
        return self.heard[before:]

    def finish(self, first: int, last: int | None = None, channel: int = 1) -> list[Heard]:
        before = len(self.heard)
        self.session(channel).finish(first, last, tell=True)
        self.settle()
        return self.heard[before:]

    def tell_completed(self, first: int, last: int, channel: int = 1) -> None:
        """session.completed with just these ids."""
        ids = SequenceSet(((first, last),))
        self.translator.from_peer(control(amqp10.SessionCompleted(commands=ids), channel - 1))
        self._take()

    def fail(self, exception: amqp10.ExecutionException, channel: int = 1) -> list[Heard]:
        """As qpidd: an exception, and detach."""
        before = len(self.heard)
        session = self.session(channel)
        session.send(exception)
        session.detach()
        self.settle()
        return self.heard[before:]

    # Between the two.

    def settle(self) -> None:
        while self._to_broker() | self._to_gateway():
            pass

    def _to_broker(self) -> bool:
        data = self.translator.bytes_for_peer()
        for event in self.broker.receive(data):
            self._hear(event)
        return bool(data)

    def _to_gateway(self) -> bool:
        data = self.broker.take_output()
        step = self._cut or len(data) or 1
        for at in range(0, len(data), step):
            self.translator.from_peer(data[at : at + step])
            self._take()
        self._take()
        return bool(data)

    def _take(self) -> None:
        while self.translator.has_frames:
            self._frames.feed(self.translator.frames_for_gateway(self._cut or 1 << 20))
        while (frame := self._frames.next()) is not None:
            if frame.type == FRAME_HEARTBEAT:
                self.beats += 1
            elif frame.type == FRAME_METHOD:
                method = decode_method(frame.payload)
                if method.CONTENT:
                    self._open[frame.channel] = [method, None, b"", 0]
                else:
                    self.heard.append(Heard(frame.channel, method))
                continue
            elif frame.type == FRAME_HEADER:
                header = decode_header(frame.payload)
                self._open[frame.channel][1] = header.properties
                self._open[frame.channel][3] = header.body_size
            elif frame.type == FRAME_BODY:
                self._open[frame.channel][2] += frame.payload
            method, properties, body, size = self._open.get(frame.channel, (None, None, b"", -1))
            if properties is not None and len(body) == size:
                del self._open[frame.channel]
                self.heard.append(Heard(frame.channel, method, properties, body))

    def _hear(self, event: object) -> None:
        match event:
            case ConnectionControl(control=control):
                self.controls.append(control)
            case ConnectionClosed() | SessionFailed():
                self.controls.append(event)
            case IncomingCommand(channel, command_id, command, sync, has_content):
                asked = Asked(channel, command_id, command, sync)
                if has_content:
                    self._parts[channel] = asked
                else:
                    self._do(asked)
            case IncomingHeader(channel, command_id, structs, has_body):
                part = self._parts.pop(channel)
                asked = Asked(channel, command_id, part.command, part.sync, structs)
                if has_body:
                    self._parts[channel] = asked
                else:
                    self._do(asked)
            case IncomingBody(channel, command_id, chunk, is_last):
                part = self._parts.pop(channel)
                asked = Asked(channel, command_id, part.command, part.sync, part.structs, part.body + chunk)
                if is_last:
                    self._do(asked)
                else:
                    self._parts[channel] = asked
            case SessionBegun() | CommandsCompleted():
                pass

    def _do(self, asked: Asked) -> None:
        self.asked.append(asked)
        if not self.is_live:
            return
        session, command = self.broker.sessions[asked.channel], asked.command
        fault = self.faults.get(command.NAME)
        if fault is not None:
            session.send(fault)
            session.detach()
            return
        match command:
            case amqp10.QueueQuery(queue=name):
                result = self.results.get(name, amqp10.QueueQueryResult())
                session.send(amqp10.ExecutionResult(asked.command_id, encode_struct32(result)))
            case amqp10.ExchangeQuery(name=name):
                result = self.results.get(name, amqp10.ExchangeQueryResult(not_found=True))
                session.send(amqp10.ExecutionResult(asked.command_id, encode_struct32(result)))
            case amqp10.ExchangeBound(exchange=name, binding_key=key):
                bound = amqp10.ExchangeBoundResult(key_not_matched=(name, key) not in self.bindings)
                session.send(amqp10.ExecutionResult(asked.command_id, encode_struct32(bound)))
        if not isinstance(command, amqp10.ExecutionSync):
            session.finish(asked.command_id)


def _again(frame: Frame) -> bytes:
    return encode_frame(*frame)


def queue(
    name: bytes,
    messages: int = 0,
    consumers: int = 0,
    *,
    auto_delete: bool = False,
    durable: bool = False,
) -> Struct:
    """The result of a query for a queue that is there."""
    return amqp10.QueueQueryResult(
        queue=name,
        message_count=messages,
        subscriber_count=consumers,
        auto_delete=auto_delete,
        durable=durable,
    )


def exchange(kind: bytes = b"direct", *, durable: bool = False) -> Struct:
    return amqp10.ExchangeQueryResult(type=kind, durable=durable)


def steps(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]

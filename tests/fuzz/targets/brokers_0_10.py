"""A hostile broker of AMQP 0-10 behind its login, its translator, and a gateway, all of them in memory.

Whatever the broker says, and however it is cut: nothing but a violation comes out, the gateway gets whole
frames that a broker may send, in which each message is followed by all of its body, and what waits is
bounded. The broker hears controls and commands that decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from amqpgate.bridge.v0_10.broker import MOST_KEPT, BrokerTranslator
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, Frame, FrameDecoder, method_frame
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import ConnectionEvent, IncomingBody, IncomingCommand, IncomingHeader
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import encode_struct32
from amqpgate.wire.v0_10.sequences import SequenceSet, serial_add
from amqpgate.wire.v0_10.structs import Command, Control, Struct
from tests.fuzz.choices import Choices
from tests.support.broker_0_10 import START
from tests.support.frames import content_frames
from tests.support.said_0_10 import Splitter
from tests.support.talk_0_10 import ALONE, command, control, frame

MOST = 400
TOKENS = (b"\0\0", b"\1\0", b"\2\0", b"\3\0", b"\0\6", b"\xff\xff")
STEPS: Final = 60
FRAME_MAX: Final = 4096

_Method = Callable[[Choices], Method]
METHODS: Final[Sequence[_Method]] = (
    lambda c: amqp.BasicQos(0, c.below(4), c.flag()),
    lambda c: amqp.QueueDeclare(0, c.pick(("", "q")), c.flag(), exclusive=c.flag(), no_wait=c.flag()),
    lambda c: amqp.BasicConsume(0, "q", c.pick(("", "t", "u")), no_ack=c.flag(), no_wait=c.flag()),
    lambda c: amqp.BasicCancel("t", c.flag()),
    lambda c: amqp.BasicGet(0, "q", c.flag()),
    lambda c: amqp.BasicAck(c.below(5), c.flag()),
    lambda c: amqp.BasicNack(c.below(5), c.flag(), c.flag()),
    lambda c: amqp.BasicReject(c.below(5), c.flag()),
    lambda _: amqp.BasicRecover(True),
    lambda c: amqp.ConfirmSelect(c.flag()),
    lambda _: amqp.TxSelect(),
    lambda _: amqp.TxCommit(),
    lambda _: amqp.TxRollback(),
    lambda c: amqp.ChannelFlow(c.flag()),
    lambda _: amqp.QueueBind(0, "q", "e", "k"),
    lambda _: amqp.QueueUnbind(0, "q", "e", "k"),
    lambda _: amqp.QueuePurge(0, "q"),
    lambda _: amqp.QueueDelete(0, "q"),
    lambda c: amqp.ExchangeDeclare(0, "e", "topic", c.flag()),
    lambda _: amqp.ExchangeDelete(0, "e"),
    lambda _: amqp.ExchangeBind(0, "e", "f", "k"),
    lambda _: amqp.ChannelClose(200, "bye"),
    lambda _: amqp.ChannelCloseOk(),
    lambda _: amqp.ChannelOpen(),
)
RESULTS: Final[Sequence[Struct]] = (
    amqp10.QueueQueryResult(b"q", message_count=3, subscriber_count=1),
    amqp10.QueueQueryResult(),
    amqp10.ExchangeQueryResult(b"topic"),
    amqp10.ExchangeQueryResult(not_found=True),
    amqp10.ExchangeBoundResult(key_not_matched=True),
    amqp10.DeliveryProperties(),
)
HEADERS: Final[Sequence[Sequence[Struct] | None]] = (
    (amqp10.DeliveryProperties(routing_key=b"k", exchange=b"e"),),
    (amqp10.MessageProperties(correlation_id=b"c" * 300), amqp10.DeliveryProperties(redelivered=True)),
    (amqp10.DeliveryProperties(routing_key=b"\xff", exchange=b"x" * 255, priority=9),),
    (amqp10.MessageProperties(content_length=1 << 63),),
    (),
    None,
)


def _ids(choices: Choices) -> SequenceSet:
    lower = serial_add(choices.below(14), -2)
    return SequenceSet(((lower, serial_add(lower, choices.pick((0, 0, 1, 3, 9)))),))


def _control(choices: Choices) -> Control:
    name = choices.pick((b"fuzz.1", b"fuzz.2", b"x"))
    return choices.pick(
        (
            lambda: amqp10.SessionCompleted(_ids(choices), choices.flag()),
            lambda: amqp10.SessionCompleted(_ids(choices)),
            lambda: amqp10.SessionAttached(name),
            lambda: amqp10.SessionCommandPoint(choices.below(4), 0),
            lambda: amqp10.SessionDetach(name),
            lambda: amqp10.SessionDetached(name, choices.below(6)),
            lambda: amqp10.SessionFlush(True, True, True),
            lambda: amqp10.SessionKnownCompleted(_ids(choices)),
            lambda: amqp10.SessionExpected(_ids(choices)),
            lambda: amqp10.SessionConfirmed(_ids(choices)),
            lambda: amqp10.SessionTimeout(choices.byte()),
            lambda: amqp10.SessionRequestTimeout(choices.byte()),
            lambda: amqp10.SessionGap(_ids(choices)),
        )
    )()


def _command(choices: Choices) -> Command:
    return choices.pick(
        (
            lambda: amqp10.ExecutionResult(choices.below(9), encode_struct32(choices.pick(RESULTS))),
            lambda: amqp10.ExecutionResult(choices.below(9), choices.some(9)),
            lambda: amqp10.ExecutionException(
                choices.pick((404, 403, 405, 409, 501, 530, 541, 999)), choices.below(9), 8, 1, 0, b"why\xff"
            ),
            lambda: amqp10.ExecutionSync(),
            lambda: amqp10.MessageAccept(_ids(choices)),
            lambda: amqp10.MessageReject(_ids(choices), choices.below(4), b"no"),
            lambda: amqp10.MessageRelease(_ids(choices)),
            lambda: amqp10.MessageFlow(b"", choices.below(3), choices.byte()),
            lambda: amqp10.MessageStop(b""),
            lambda: amqp10.MessageSetFlowMode(b"", 1),
            lambda: amqp10.MessageCancel(b"t"),
            lambda: amqp10.QueueDeclare(b"q"),
        )
    )()


def _said(choices: Choices) -> bytes:
    """Something that the broker says, mostly right."""
    channel = choices.below(2)
    match choices.below(12):
        case 0 | 1 | 2:
            return control(_control(choices), channel)
        case 3 | 4 | 5:
            return command(_command(choices), sync=choices.flag(), channel=channel)
        case 6 | 7 | 8:
            transfer = amqp10.MessageTransfer(choices.pick((b"t", b"u", b"", b"get-1", b"get-2")), 0, 0)
            body = b"y" * choices.pick((0, 1, 9, 9000))
            return command(transfer, choices.pick(HEADERS), body, channel=channel)
        case 9:
            return frame(choices.below(16), choices.below(4), choices.some(20), channel=channel)
        case 10:
            return frame(ALONE, choices.below(2), choices.some(20), channel=channel)
        case _:
            if choices.rarely():
                return choices.some(30)
            close = amqp10.ConnectionClose(choices.pick((200, 320, 501, 7)), b"bye")
            return control(close if choices.rarely() else amqp10.ConnectionHeartbeat())


#: What the gateway says, whole frames; or what the broker says.
_Step = tuple[bool, bytes]


def _steps(choices: Choices) -> Iterator[_Step]:
    for _ in range(STEPS):
        if not choices:
            return
        if choices.below(3):
            yield False, _said(choices)
            continue
        channel = 1 + choices.below(2)
        if choices.below(4):
            yield True, method_frame(channel, choices.pick(METHODS)(choices))
        else:
            publish = amqp.BasicPublish(0, choices.pick(("", "e")), "q", choices.flag())
            body = b"z" * choices.pick((0, 1, 9000))
            yield True, content_frames(channel, publish, amqp.BasicProperties(), body, FRAME_MAX)


class _Play:
    """One run; ``cut`` is how many bytes the translator is given at once. A broker that ``is_live`` also does
    what it is told.
    """

    def __init__(self, cut: int | None, *, is_live: bool) -> None:
        self.translator = BrokerTranslator("fuzz")
        self.heard: list[Frame] = []
        self.written: list[bytes] = []
        self._broker = SessionConnection(Role.SERVER)
        self._frames = FrameDecoder(0)
        self._is_over = False
        self._cut = cut
        self._is_live = is_live
        self._log_in()

    def _log_in(self) -> None:
        self._answer(PROTOCOL_HEADER)
        # The header was heard before there was a translator.
        self._broker.take_output()
        start_ok = amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0a\0b", locale="en_US")
        tune_ok = amqp.ConnectionTuneOk(10, FRAME_MAX, 0)
        for said, answer in (
            (START, method_frame(0, start_ok)),
            (
                Tuning(channel_max=10).offer(),
                method_frame(0, tune_ok) + method_frame(0, amqp.ConnectionOpen("/")),
            ),
        ):
            self._broker.send(said)
            self.give(self._broker.take_output())
            self.tell(answer)
            self._heard_at_login()
        self._broker.send(amqp10.ConnectionOpenOk())
        self.give(self._broker.take_output())
        for channel in (1, 2):
            self.tell(method_frame(channel, amqp.ChannelOpen()))
            self._heard_at_login()
            self.give(self._broker.take_output())
        self.written.clear()

    def _heard_at_login(self) -> None:
        if not self._is_live:
            self._answer(self.written[-1])

    def _answer(self, data: bytes) -> list[ConnectionEvent]:
        return list(self._broker.receive(data))

    def _do(self, data: bytes) -> None:
        """What the broker was told is complete."""
        for event in self._answer(data):
            match event:
                case (
                    IncomingCommand(has_content=True)
                    | IncomingHeader(has_body=True)
                    | IncomingBody(is_last=False)
                ):
                    continue
                case IncomingCommand(command=asked):
                    pass
                case IncomingHeader() | IncomingBody():
                    asked = None
                case _:
                    continue
            session = self._broker.sessions.get(event.channel)
            if session is not None:
                if isinstance(asked, amqp10.QueueQuery):
                    session.send(amqp10.ExecutionResult(event.command_id, encode_struct32(RESULTS[0])))
                session.finish(event.command_id, tell=True)
        self.give(self._broker.take_output())

    def give(self, data: bytes) -> None:
        """The broker says it."""
        size = self._cut or len(data) or 1
        for at in range(0, len(data), size):
            if self._is_over:
                return
            try:
                self.translator.from_peer(data[at : at + size])
            except ProtocolViolation:
                self._is_over = True
            self._take()
        self.written.append(self.translator.bytes_for_peer())

    def tell(self, frames: bytes) -> None:
        """The gateway says it, if it may."""
        if not self.translator.wants_frames:
            return
        decoder = FrameDecoder(0)
        decoder.feed(frames)
        at = 0
        while (one := decoder.next()) is not None:
            end = at + len(one.payload) + 8
            self.translator.from_gateway(frames[at:end])
            at = end
        self._take()
        self.written.append(self.translator.bytes_for_peer())
        if self._is_live:
            self._do(self.written[-1])

    def end(self) -> None:
        """The gateway closes, and is gone."""
        self.tell(method_frame(0, amqp.ConnectionClose(200, "bye")))
        self.translator.peer_ended()
        self.translator.gateway_ended()
        self._take()
        self.written.append(self.translator.bytes_for_peer())

    def _take(self) -> None:
        while self.translator.has_frames:
            self._frames.feed(self.translator.frames_for_gateway(self._cut or 1 << 20))
        while (one := self._frames.next()) is not None:
            self.heard.append(Frame(one.type, one.channel, bytes(one.payload)))
        assert not len(self._frames), "a frame is cut"


def _check_frames(heard: list[Frame]) -> None:
    """Whole messages, and methods that a broker sends."""
    due: dict[int, int | None] = {}
    for one in heard:
        if one.type == FRAME_METHOD:
            assert one.channel not in due, f"on {one.channel} a message is cut short"
            method = decode_method(one.payload)
            assert method.NAME not in _CLIENTS, method
            if method.CONTENT:
                due[one.channel] = None
        elif one.type == FRAME_HEADER:
            assert due.get(one.channel, 0) is None, f"on {one.channel} no header is due"
            due[one.channel] = decode_header(one.payload).body_size
        elif one.type == FRAME_BODY:
            left = due.get(one.channel)
            assert left is not None, f"on {one.channel} no body is due"
            assert len(one.payload) + 8 <= FRAME_MAX
            due[one.channel] = left - len(one.payload)
        if due.get(one.channel) == 0:
            del due[one.channel]
        assert (due.get(one.channel) or 0) >= 0, "there is more than the header said"
    assert not due, f"messages are cut short: {due}"


#: What a client says, and a broker does not.
_CLIENTS: Final = frozenset(
    ("basic.publish", "basic.consume", "basic.get", "basic.qos", "queue.declare", "channel.open", "tx.select")
)


def seeds() -> Iterator[bytes]:
    """Each thing that either says, after something has been asked."""
    for is_live in range(2):
        for number in range(len(METHODS)):
            yield bytes((is_live, 0, 0, 1, number, 1, 0, 1, 0)) + bytes((1, 0, 0, 0, 0, 0, 0)) * 3
        for kind in range(12):
            for which in range(13):
                # A consumer with the tag "t".
                consumes = bytes((0, 0, 1, 2, 1, 0, 0))
                yield bytes((is_live,)) + consumes + bytes((1, 0, kind, which, 1, 0, 2)) * 4
        # What comes for it.
        yield bytes((is_live,)) + consumes + bytes((1, 6, 0, 0, 3, 0)) * 3


def check(data: bytes) -> None:
    """The same steps whole, and cut into single bytes."""
    choices = Choices(data)
    is_live = choices.flag()
    steps = list(_steps(choices))
    runs = []
    for cut in (None, 1):
        play = _Play(cut, is_live=is_live)
        for is_gateways, said in steps:
            (play.tell if is_gateways else play.give)(said)
            assert play.translator._held.size <= MOST_KEPT + len(said)
        play.end()
        _check_frames(play.heard)
        for one in Splitter(header=False).feed(b"".join(play.written)):
            assert (one.control is None) != (one.command is None)
        runs.append((play.heard, b"".join(play.written)))
    assert runs[0] == runs[1]

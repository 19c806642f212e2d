"""Conversations for the tests of this room: bytes as a peer writes them, and a broker that answers.

:class:`PlaybookBroker` is the smallest owner of a server-side connection that answers as RabbitMQ does
where the protocol room gives it the chance; what it says is written down in one line per method, so that
a conversation reads like a playbook and can be held against what a real broker says.
"""

from __future__ import annotations

from struct import pack

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import ContentReceived, Event, HeaderReceived, HeaderRefused, MethodReceived
from amqpgate.broker.amqp.limits import ConnectionLimits
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FrameDecoder, encode_frame, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

HEADER = b"AMQP\x00\x00\x09\x01"

START_OK = amqp.ConnectionStartOk(
    client_properties=Table.of({"capabilities": {"authentication_failure_close": True}}),
    mechanism="PLAIN",
    response=b"\x00guest\x00guest",
    locale="en_US",
)
TUNE = amqp.ConnectionTune(channel_max=2047, frame_max=131_072, heartbeat=60)
TUNE_OK = amqp.ConnectionTuneOk(channel_max=2047, frame_max=131_072, heartbeat=0)
OPEN = amqp.ConnectionOpen(virtual_host="/")
CLOSE = amqp.ConnectionClose(reply_code=200)
CLOSE_OK = amqp.ConnectionCloseOk()
CHANNEL_OPEN = amqp.ChannelOpen()
CHANNEL_CLOSE = amqp.ChannelClose(reply_code=200)
CHANNEL_CLOSE_OK = amqp.ChannelCloseOk()
PUBLISH = amqp.BasicPublish(routing_key="nowhere")
DECLARE = amqp.QueueDeclare(exclusive=True)
#: A passive declare of a queue that is not there: the broker closes the channel with 404.
MISSING = amqp.QueueDeclare(queue="nope", passive=True)


def m(channel: int, method: Method) -> bytes:
    """A method frame."""
    return method_frame(channel, method)


def raw(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    """A method frame with arguments as bytes."""
    return encode_frame(1, channel, pack(">HH", class_id, method_id) + arguments)


def header(channel: int, size: int, class_id: int = 60, weight: int = 0) -> bytes:
    """A content header without properties."""
    return encode_frame(2, channel, pack(">HHQH", class_id, weight, size, 0))


def body(channel: int, data: bytes) -> bytes:
    """A content body."""
    return encode_frame(3, channel, data)


def head(frame_type: int, channel: int, size: int) -> bytes:
    """The first seven bytes of a frame, without the rest."""
    return pack(">BHI", frame_type, channel, size)


def settings(channel_max: int = 2047, frame_max: int = 131_072) -> bytes:
    """A tune-ok."""
    return m(0, amqp.ConnectionTuneOk(channel_max=channel_max, frame_max=frame_max, heartbeat=0))


def line(channel: int, method: Method) -> str:
    """A method as one line of a playbook."""
    if isinstance(method, amqp.ConnectionClose | amqp.ChannelClose):
        ids = f"({method.class_id}, {method.method_id})"
        return f"{channel} {method.NAME} {method.reply_code} {ids} {method.reply_text}"
    return f"{channel} {method.NAME}"


def lines(data: bytes) -> list[str]:
    """What a peer sent, one line per frame."""
    told = []
    if data.startswith(b"AMQP"):
        told.append(f"header {data[4:8].hex(' ')}")
        data = data[8:]
    decoder = FrameDecoder(0)
    decoder.feed(data)
    while frame := decoder.next():
        told.append(line(frame.channel, decode_method(frame.payload)) if frame.type == 1 else str(frame))
    assert not decoder.take_rest()
    return told


def close_for(error: ProtocolViolation) -> Method:
    """The close that a violation asks for."""
    cls = amqp.ConnectionClose if error.scope == "connection" else amqp.ChannelClose
    return cls(
        reply_code=error.code,
        reply_text=error.reply_text,
        class_id=error.class_id,
        method_id=error.method_id,
    )


class PlaybookBroker:
    """Answers what it is told; ``events`` are what the connection reported, ``said`` what it answered.

    A violation before tune-ok is not answered; it is written down as "silence" with its code and text.
    """

    def __init__(self, limits: ConnectionLimits | None = None, tune: amqp.ConnectionTune = TUNE) -> None:
        self.connection = Connection("server", limits=limits or ConnectionLimits())
        self.tune = tune
        self.events: list[Event] = []
        self.said: list[str] = []
        self.hung_up = False

    def hear(self, *pieces: bytes) -> PlaybookBroker:
        """Take bytes as they come from a socket."""
        for piece in pieces:
            if self.hung_up:
                break
            self._hear(piece)
        return self

    def _hear(self, data: bytes) -> None:
        events = self.connection.receive(data)
        while not self.hung_up:
            try:
                event = next(events, None)
            except ProtocolViolation as error:
                self._refuse(error)
                events = self.connection.receive()
                continue
            if event is None:
                return
            self.events.append(event)
            self._answer(event)

    def _refuse(self, error: ProtocolViolation) -> None:
        if self.connection.is_silent:
            self.said.append(f"silence {error.code} ({error.class_id}, {error.method_id}) {error.text}")
            self.hung_up = True
            return
        self._say(0 if error.scope == "connection" else error.channel, close_for(error))

    def _answer(self, event: Event) -> None:
        if isinstance(event, HeaderRefused):
            self.said += lines(event.answer)
            self.hung_up = True
        elif isinstance(event, HeaderReceived):
            self._say(0, amqp.ConnectionStart(version_minor=9, mechanisms=b"PLAIN", locales=b"en_US"))
        elif isinstance(event, MethodReceived | ContentReceived):
            self._answer_method(event.channel, event.method)

    def _answer_method(self, channel: int, method: Method) -> None:
        if method == MISSING:
            text = "NOT_FOUND - no queue 'nope' in vhost '/'"
            self._say(channel, amqp.ChannelClose(404, text, method.CLASS_ID, method.METHOD_ID))
        elif isinstance(method, amqp.ConnectionStartOk):
            self._say(0, self.tune)
        elif isinstance(method, amqp.ConnectionTuneOk):
            pass
        elif method.REPLIES:
            replies = [amqp.METHODS[index] for index in method.REPLIES]
            self._say(channel, next(reply for reply in replies if not reply.CONTENT)())

    def _say(self, channel: int, method: Method) -> None:
        self.said += lines(self.connection.send(channel, method))


#: What a client sends to get there, and how many lines the broker says meanwhile.
STAGES: dict[str, tuple[bytes, ...]] = {
    "new": (),
    "start": (HEADER,),
    "tune": (HEADER, m(0, START_OK)),
    "tuned": (HEADER, m(0, START_OK), m(0, TUNE_OK)),
    "open": (HEADER, m(0, START_OK), m(0, TUNE_OK), m(0, OPEN)),
    "channel": (HEADER, m(0, START_OK), m(0, TUNE_OK), m(0, OPEN), m(1, CHANNEL_OPEN)),
}


def broker_at(stage: str, limits: ConnectionLimits | None = None) -> PlaybookBroker:
    """A broker whose conversation has come this far; what was said until then is forgotten."""
    broker = PlaybookBroker(limits).hear(*STAGES[stage])
    broker.said.clear()
    broker.events.clear()
    return broker

"""One AMQP connection without I/O: bytes in and events out, methods in and bytes out.

The owner brings the socket, the clock and the decisions::

    for event in connection.receive(data):      # lazy: one frame at a time
        ...                                     # answer with connection.send(...), which gives bytes

Both roles are here: ``Role.SERVER`` talks to a client, ``Role.CLIENT`` to a broker. What is legal when,
say the tables in ``handshake`` and ``channel``; ``content`` puts messages together. Nothing is answered
by itself: every close, every open-ok is the owner's to send.

Error handling
    The peer breaks the protocol: ``receive`` raises :class:`ProtocolViolation` where the event would have
    been; what came before it has been reported. If ``error.scope`` is "channel", send a channel.close and
    go on. If it is "connection", send a connection.close (unless ``is_silent``, as RabbitMQ is before
    tune-ok) and go on until ``is_closed``, but do not wait for the close-ok if ``is_broken``. As long
    as the close is not sent, the same violation is raised again.

    The owner breaks the protocol: :class:`LocalProtocolError` from the sending methods, and nothing has
    changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, cast

from amqpgate.broker.amqp.channels import PeerChannels, decode, method_class_of
from amqpgate.broker.amqp.events import (
    Event,
    HeaderReceived,
    HeaderRefused,
    HeartbeatReceived,
    MethodReceived,
)
from amqpgate.broker.amqp.limits import DEFAULT_LIMITS, ConnectionLimits
from amqpgate.errors import AmqpgateError, ProtocolViolation
from amqpgate.protocol import handshake
from amqpgate.protocol.frames import (
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    HEARTBEAT,
    Frame,
    FrameDecoder,
    body_frames,
    encode_frame,
    method_frame,
)
from amqpgate.protocol.handshake import CLOSING_STATES, ConnectionState, Tune
from amqpgate.protocol.header import HEADER_MAGIC, HEADER_SIZE, RABBITMQ_HEADERS, REFUSAL
from amqpgate.protocol.methods import Role
from amqpgate.protocol.violations import unexpected_frame, unknown_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.method import Method, Properties


class LocalProtocolError(AmqpgateError):
    """The owner asked for something that may not be sent now, or does not fit into a frame."""


class Connection:
    """See the module. ``headers`` are the protocol headers that a server accepts, with the dialect of
    each; by default those after which RabbitMQ speaks ``dialect``.
    """

    def __init__(
        self,
        role: Role | Literal["client", "server"],
        dialect: Dialect = RABBITMQ_0_9_1,
        *,
        limits: ConnectionLimits = DEFAULT_LIMITS,
        headers: Mapping[bytes, Dialect] | None = None,
    ) -> None:
        self.role = Role(role)
        self.dialect = dialect
        self.limits = limits
        self.state = ConnectionState.HEADER
        #: What tune and tune-ok agreed on; None before.
        self.tune: Tune | None = None
        if headers is None:
            headers = {data: known for data, known in RABBITMQ_HEADERS.items() if known is dialect}
            headers.setdefault(dialect.header, dialect)
        self._headers = headers
        self._decoder = FrameDecoder(limits.frame_max_before_tune)
        self._channels = PeerChannels(self.role, limits)
        self._offer = Tune()
        self._violation: ProtocolViolation | None = None

    # What the owner may ask.

    @property
    def is_open(self) -> bool:
        """Whether channels may be used."""
        return self.state is ConnectionState.OPEN

    @property
    def is_closed(self) -> bool:
        """Whether all is said: close the socket."""
        return self.state is ConnectionState.CLOSED

    @property
    def is_paused(self) -> bool:
        """Whether the peer is not read on before it is answered (``receive(b"")`` goes on afterwards)."""
        return self.role is Role.SERVER and self.state in handshake.SERVER_TURN

    @property
    def is_silent(self) -> bool:
        """Whether RabbitMQ would hang up now instead of answering a violation with connection.close."""
        return self.state in handshake.SILENT_STATES

    @property
    def is_broken(self) -> bool:
        """Whether the peer's bytes make no frames any more: no close-ok will be understood."""
        return self._decoder.is_broken

    @property
    def open_channels(self) -> tuple[int, ...]:
        """The numbers of all channels that are not closed."""
        return self._channels.numbers()

    # What the peer sends.

    def receive(self, data: bytes | bytearray | memoryview = b"") -> Iterator[Event]:
        """The events in ``data`` and in what was received before, one frame at a time.

        The bytes are kept at once; the frames are looked at while the result is iterated, so that each
        event can be answered before the next frame is judged. What is left over comes with the next call.
        """
        if not (self.is_closed or self.is_broken):
            self._decoder.feed(data)
        return iter(self.next_event, None)

    def next_event(self) -> Event | None:
        """The next event, or None until more is received, or sent if ``is_paused``."""
        try:
            while not self.is_closed:
                if self._violation is not None:
                    raise self._violation
                if self.is_paused:
                    if len(self._decoder) > self.limits.ahead:
                        raise ProtocolViolation(506, "too much was sent ahead of the handshake")
                    return None
                if self._header_is_due():
                    return self._receive_header()
                frame = self._next_frame()
                if frame is None:
                    return None
                event = self._receive_frame(frame)
                if event is not None:
                    return event
        except ProtocolViolation as error:
            if error.scope == "connection":
                self._violation = error
            raise
        return None

    def _header_is_due(self) -> bool:
        if self.role is Role.SERVER:
            return self.state is ConnectionState.HEADER
        # A server that does not speak our version answers with its own header instead of start.
        return self.state is ConnectionState.GREETED and self._decoder.peek() == HEADER_MAGIC[0]

    def _receive_header(self) -> Event | None:
        data = self._decoder.take(HEADER_SIZE)
        if data is None:
            return None
        accepted = self._headers.get(data) if self.role is Role.SERVER else None
        if accepted is None:
            self.state = ConnectionState.CLOSED
            return HeaderRefused(data, REFUSAL if self.role is Role.SERVER else b"")
        self.dialect = accepted
        self.state = ConnectionState.GREETED
        return HeaderReceived(data, accepted.version)

    def _next_frame(self) -> Frame | None:
        while True:
            try:
                return self._decoder.next()
            except ProtocolViolation:
                if self.state not in CLOSING_STATES:
                    raise
                # A peer that is being closed hears no more complaints.
                if self.is_broken:
                    self._decoder.take_rest()
                    return None

    def _receive_frame(self, frame: Frame) -> Event | None:
        if self.state in CLOSING_STATES:
            return self._receive_while_closing(frame)
        if frame.channel:
            if self.state is not ConnectionState.OPEN:
                raise unexpected_frame(*frame)
            return self._channels.receive(frame, self.dialect)
        if frame.type == FRAME_HEARTBEAT:
            if frame.payload:
                raise unknown_frame(*frame)
            return HeartbeatReceived()
        if frame.type != FRAME_METHOD:
            raise unexpected_frame(*frame)
        return self._receive_method(frame)

    def _receive_while_closing(self, frame: Frame) -> Event | None:
        if frame.channel or frame.type != FRAME_METHOD:
            return None
        try:
            return self._receive_method(frame)
        except ProtocolViolation:
            return None

    def _receive_method(self, frame: Frame) -> Event | None:
        following = handshake.step(self.state, self.role.peer, method_class_of(frame, self.dialect))
        if following is None:
            return None
        method = decode(frame, self.dialect)
        if method.NAME == "connection.tune":
            self._offer = _tune_of(method)
        elif method.NAME == "connection.tune-ok":
            self._settle(method)
        self._enter(following)
        return MethodReceived(0, method)

    # What the owner sends.

    def send_header(self) -> bytes:
        """The protocol header that opens the conversation (client)."""
        following = handshake.TRANSITIONS[self.state].get((self.role, handshake.PROTOCOL_HEADER_SENT))
        if following is None:
            raise LocalProtocolError("a client sends its protocol header once, and first")
        self.state = following
        return self.dialect.header

    def send(self, channel: int, method: Method) -> bytes:
        """The bytes of a method without content; ``channel`` is 0 for those of the connection."""
        if method.CONTENT:
            raise LocalProtocolError(f"{method.NAME} carries content")
        data = method_frame(channel, method, self.dialect)
        self._check_fits(method, data)
        self._note_sent(channel, method)
        return data

    def send_content(self, channel: int, method: Method, properties: Properties, body: bytes) -> bytes:
        """The bytes of a method with content, the body in as many frames as frame-max asks for."""
        if not method.CONTENT or channel == 0:
            raise LocalProtocolError(f"{method.NAME} carries no content on channel {channel}")
        header = ContentHeader(class_id=method.CLASS_ID, body_size=len(body), properties=properties)
        method_bytes = method_frame(channel, method, self.dialect)
        header_bytes = encode_frame(FRAME_HEADER, channel, encode_header(header, self.dialect))
        self._check_fits(method, method_bytes)
        self._check_fits(method, header_bytes)
        self._note_sent(channel, method)
        frame_max = self.tune.frame_max if self.tune else self.limits.frame_max_before_tune
        return b"".join((method_bytes, header_bytes, *body_frames(channel, body, frame_max)))

    def send_heartbeat(self) -> bytes:
        """A heartbeat frame; legal between the protocol header and the end."""
        if self.state in (ConnectionState.HEADER, ConnectionState.CLOSED):
            raise LocalProtocolError("no heartbeats outside a connection")
        return HEARTBEAT

    def tuned(self, frame_max: int, channel_max: int, heartbeat: int) -> None:
        """Set what was agreed: bytes, channels, seconds. Done by itself when tune-ok passes."""
        self.tune = Tune(frame_max=frame_max, channel_max=channel_max, heartbeat=heartbeat)
        self._decoder.frame_max = frame_max
        self._channels.channel_max = channel_max

    def _note_sent(self, channel: int, method: Method) -> None:
        try:
            if channel:
                if self.state is not ConnectionState.OPEN:
                    raise ProtocolViolation(504, f"the connection is {self.state.value}")
                self._channels.send(channel, type(method))
                return
            following = handshake.step(self.state, self.role, type(method))
            if following is None:
                raise ProtocolViolation(503, f"the connection is {self.state.value}")
            if method.NAME == "connection.tune":
                self._offer = _tune_of(method)
            elif method.NAME == "connection.tune-ok":
                self._settle(method)
        except ProtocolViolation as error:
            raise LocalProtocolError(f"{method.NAME} on channel {channel}: {error.text}") from None
        if method.NAME == "connection.close":
            self._violation = None
        self._enter(following)

    # Both ways.

    def _settle(self, tune_ok: Method) -> None:
        caps = Tune(frame_max=self.limits.frame_max, channel_max=self.limits.channel_max)
        settled = self._offer.settle(_tune_of(tune_ok), caps)
        self.tuned(settled.frame_max, settled.channel_max, settled.heartbeat)

    def _enter(self, following: ConnectionState) -> None:
        self.state = following
        if following in CLOSING_STATES:
            self._channels.clear()

    def _check_fits(self, method: Method, data: bytes) -> None:
        if self.tune is not None and len(data) > self.tune.frame_max > 0:
            raise LocalProtocolError(
                f"{method.NAME} needs a frame of {len(data)} bytes, frame-max is {self.tune.frame_max}"
            )


class _TuneMethod(Protocol):
    """connection.tune and tune-ok of every version."""

    channel_max: int
    frame_max: int
    heartbeat: int


def _tune_of(method: Method) -> Tune:
    tune = cast(_TuneMethod, method)
    return Tune(frame_max=tune.frame_max, channel_max=tune.channel_max, heartbeat=tune.heartbeat)

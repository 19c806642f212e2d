"""One 0-10 connection without I/O, in either role: bytes in and events out, calls in and bytes out.

The owner brings the socket, the clock and the decisions::

    for event in connection.receive(data):      # lazy: one frame at a time
        ...                                     # connection.send(...), session.send(...), session.finish(...)
    socket.send(connection.take_output())       # once for each read

What the protocol itself asks for happens here: the protocol header is echoed, sessions are attached, counted
and told what is complete, a close is answered. What a connection or a command is *for* is the owner's: it
says start, tune and open-ok, and finishes commands. It sends connection.heartbeat, too, when
`protocol.heartbeat` says that one is due: any bytes count as a sign of life.

Error handling
    The peer breaks the protocol: if a session can end by it, the session ends (exception, then detach, told
    as `SessionFailed`). Else the connection is closed (`ConnectionFailed`). Then go on until `is_over`, and
    hang up after a while if it does not come to that.

    The owner breaks the protocol: :class:`ValueError`, and nothing has changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.handshake import CLOSING_STATES, PROTOCOL_HEADER_SENT, SERVER_TURN, ConnectionState
from amqpgate.protocol.header import HEADER_SIZE
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.attachments import Attachments
from amqpgate.protocol.v0_10.build import SegmentFrameDecoder
from amqpgate.protocol.v0_10.codes import TO_ERROR_CODE, close_of, violation_of_close
from amqpgate.protocol.v0_10.connection import TRANSITIONS, Tuning, offered, step
from amqpgate.protocol.v0_10.events import (
    ConnectionClosed,
    ConnectionControl,
    ConnectionEvent,
    ConnectionFailed,
    IncomingMessage,
    PeerHeader,
)
from amqpgate.protocol.v0_10.frames import (
    CONTROL,
    CONTROL_TRACK,
    MOST_FRAME_SIZE,
    SegmentFrame,
    WholeMessage,
)
from amqpgate.protocol.v0_10.names import SessionNames
from amqpgate.protocol.v0_10.segments import CONNECTION_CLASS, Assembler, AssemblyEvent, ControlIn
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.protocol.v0_10.writer import FrameWriter
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.structs import Control

_OPEN: Final = ConnectionState.OPEN
#: How a transfer begins.
_TRANSFER: Final = bytes((amqp.MessageTransfer.CLASS_CODE, amqp.MessageTransfer.CODE))


def _nothing() -> None:
    pass


class SessionConnection:
    """See the module. ``names`` are shared by all connections to the same broker, for servers; ``wake`` is as
    in `Attachments`. With ``joins`` a transfer is one event (`IncomingMessage`) where all its frames are
    there.
    """

    __slots__ = (
        "_assembler",
        "_attachments",
        "_decoder",
        "_events",
        "_is_header_due",
        "_joins",
        "_offer",
        "_writer",
        "role",
        "state",
        "tune",
    )

    def __init__(
        self,
        role: Role,
        *,
        names: SessionNames | None = None,
        wake: Callable[[], None] = _nothing,
        joins: bool = False,
    ) -> None:
        self.role = role
        self.state = ConnectionState.HEADER
        #: What tune and tune-ok agreed on; None before.
        self.tune: Tuning | None = None
        self._offer = Tuning()
        self._is_header_due = True
        self._joins = joins
        self._decoder = SegmentFrameDecoder()
        self._assembler = Assembler()
        self._writer = FrameWriter()
        self._events: deque[ConnectionEvent] = deque()
        if names is None:
            names = SessionNames()
        self._attachments = Attachments(role, self._assembler, self._writer, self._events, names, wake)

    # What the owner may ask.

    @property
    def sessions(self) -> Mapping[int, AttachedSession]:
        """The sessions, by channel, from their attach to their end."""
        return self._attachments.sessions

    @property
    def is_paused(self) -> bool:
        """Whether the peer is not read on before it is answered (``receive(b"")`` goes on afterwards)."""
        return self.role is Role.SERVER and self.state in SERVER_TURN

    @property
    def is_over(self) -> bool:
        """Whether all is said, or nothing more can be understood: send what there is, and hang up."""
        if self.state in CLOSING_STATES and self._decoder.is_broken:
            return True
        return self.state is ConnectionState.CLOSED

    # What the peer sends.

    def receive(self, data: bytes | bytearray | memoryview = b"") -> Iterator[ConnectionEvent]:
        """The events in ``data`` and in what was received before.

        The bytes are kept at once; frames are looked at while the result is iterated, so that each event can
        be answered before the next frame is judged. What is left over comes with the next call.
        """
        if self.state is _OPEN or not self.is_over:
            self._decoder.feed(data)
        return iter(self.next_event, None)

    def next_event(self) -> ConnectionEvent | None:
        """The next event, or None until more is received, or sent if `is_paused`."""
        while not self._events:
            try:
                if self.state is _OPEN:
                    if self._joins:
                        whole = self._decoder.message(_TRANSFER)
                        if whole is not None:
                            message = self._join(whole)
                            if message is not None:
                                return message
                    frame = self._decoder.next()
                    if frame is None:
                        return None
                    self._receive(frame)
                elif not self._go_on_elsewhere():
                    return None
            except ProtocolViolation as violation:
                if self.state not in CLOSING_STATES:
                    self._events.append(ConnectionFailed(violation))
                    self.close(violation.code, violation.text)
        return self._events.popleft()

    def _join(self, whole: WholeMessage) -> IncomingMessage | None:
        """The transfer that comes next, if nothing else is to be said of it."""
        if self._assembler.assemblies:
            return None
        channel, payload, header, body, size = whole
        session = self._attachments.sessions.get(channel)
        if session is None:
            return None
        try:
            command, sync = self._assembler.command(channel, payload)
        except ProtocolViolation:
            return None
        command_id = session.receive_message(sync=sync)
        if command_id is None:
            return None
        self._decoder.skip(size)
        # One call less than by its name.
        return tuple.__new__(IncomingMessage, (channel, command_id, command, header, body))

    def _go_on_elsewhere(self) -> bool:
        """Before open-ok and after close, look at the next frame, or at the protocol header: only controls on
        channel 0 are looked at. False if it has not come.
        """
        if self.is_over:
            self._decoder.clear()
            return False
        if self.is_paused:
            if len(self._decoder) > MOST_FRAME_SIZE:
                raise ProtocolViolation(506, "too much was sent ahead of the handshake")
            return False
        if self._is_header_due:
            return self._receive_header()
        frame = self._decoder.next()
        if frame is None:
            return False
        if frame.segment_type == CONTROL and frame.track == CONTROL_TRACK and frame.channel == 0:
            event = self._assemble_early(frame)
            if not isinstance(event, ControlIn):
                return True
            if event.control.CLASS_CODE == CONNECTION_CLASS:
                self._receive_control(event.control)
                return True
        if self.state not in CLOSING_STATES:
            raise ProtocolViolation(501, f"unexpected frame in connection state {self.state.value}")
        return True

    def _assemble_early(self, frame: SegmentFrame) -> AssemblyEvent | None:
        """What a frame completes while no session could end by what is wrong in it."""
        try:
            return self._assembler.feed(frame)
        except ProtocolViolation as violation:
            if violation.code != 503:
                raise
            raise ProtocolViolation(501, violation.text) from None

    def _receive_header(self) -> bool:
        header = self._decoder.take(HEADER_SIZE)
        if header is None:
            return False
        self._is_header_due = False
        is_accepted = header == PROTOCOL_HEADER
        if self.role is Role.SERVER:
            # The same again, or the one that is spoken here.
            self._writer.raw(PROTOCOL_HEADER)
            self.state = TRANSITIONS[self.state][Role.CLIENT, PROTOCOL_HEADER_SENT]
        if not is_accepted:
            self.state = ConnectionState.CLOSED
        self._events.append(PeerHeader(header, is_accepted))
        return True

    def _receive(self, frame: SegmentFrame) -> None:
        assert self.tune is not None
        channel = frame.channel
        if channel >= self.tune.channel_max:
            raise ProtocolViolation(501, f"channel {channel} is above channel-max", channel=channel)
        try:
            event = self._assembler.feed(frame)
            if event is None:
                return
            if isinstance(event, ControlIn) and event.control.CLASS_CODE == CONNECTION_CLASS:
                if channel:
                    raise ProtocolViolation(501, f"{event.control.NAME} on channel {channel}")
                self._receive_control(event.control)
            else:
                self._attachments.receive(event)
        except ProtocolViolation as violation:
            if violation.code not in TO_ERROR_CODE:
                raise
            self._attachments.fail(channel, frame.segment_type, violation)

    def _receive_control(self, control: Control) -> None:
        before = self.state
        following = step(before, self.role.peer, control.NAME)
        if following is None or isinstance(control, amqp.ConnectionHeartbeat):
            return
        if isinstance(control, amqp.ConnectionTune):
            self._offer = offered(control)
        elif isinstance(control, amqp.ConnectionTuneOk):
            self._settle(control)
        self._enter(following)
        if isinstance(control, amqp.ConnectionClose):
            self.send(amqp.ConnectionCloseOk())
            self._events.append(ConnectionClosed(violation_of_close(control, before)))
        else:
            self._events.append(ConnectionControl(control))

    # What the owner sends.

    def send_header(self) -> None:
        """The protocol header that opens the conversation (client)."""
        following = TRANSITIONS[self.state].get((self.role, PROTOCOL_HEADER_SENT))
        if following is None:
            raise ValueError("a client sends its protocol header once, and first")
        self._writer.raw(PROTOCOL_HEADER)
        self.state = following

    def send(self, control: Control) -> None:
        """A control of the connection's. Nothing happens once somebody has asked to close."""
        try:
            following = step(self.state, self.role, control.NAME)
            if following is None:
                return
            if isinstance(control, amqp.ConnectionTune):
                self._offer = offered(control)
            elif isinstance(control, amqp.ConnectionTuneOk):
                self._settle(control)
            self._writer.control(0, control)
        except ProtocolViolation as violation:
            raise ValueError(f"{control.NAME}: {violation.text}") from None
        self._enter(following)

    def close(self, code: int, text: str) -> None:
        """Close the connection; ``code`` is one of 0-9-1's or a violation's (see `codes`).

        Its sessions hear before it what of theirs is complete: else a client would send that again.
        """
        if self.state is _OPEN:
            for session in self.sessions.values():
                session.tell()
        self.send(close_of(code, text))

    def log_in(self, user: bytes) -> None:
        """Names of sessions are this user's (server, once it knows who it is)."""
        self._attachments.log_in(user)

    def attach(self, channel: int, name: bytes, *, force: bool = False) -> AttachedSession:
        """Begin a session (client). It may be used at once; the answer is `SessionBegun` or `SessionEnded`.

        :class:`ValueError` if the channel is not free: it is once `SessionEnded` was told.
        """
        if self.state is not _OPEN or self.tune is None or channel >= self.tune.channel_max:
            raise ValueError(f"no session can be attached to channel {channel}")
        return self._attachments.attach(channel, name, force=force)

    def take_output(self) -> bytes:
        """What is to be sent. What was asked and finished since the last call is answered in it, once."""
        if self._attachments.strays:
            self._attachments.read()
        writer = self._writer
        return writer.take() if writer.frames or writer.owing else b""

    def take_rest(self) -> bytes:
        """What was received and not looked at yet, for somebody who goes on with it."""
        return self._decoder.take(len(self._decoder)) or b""

    def lost(self) -> None:
        """The peer is gone: let go of the sessions' names."""
        self._enter(ConnectionState.CLOSED)

    # Both ways.

    def _settle(self, answer: amqp.ConnectionTuneOk) -> None:
        self.tune = self._offer.settle(answer)
        # What is taken is more than what is tuned: see Tuning.
        self._decoder.allow(MOST_FRAME_SIZE)
        self._writer.allow(self.tune.max_frame_size)

    def _enter(self, following: ConnectionState) -> None:
        self.state = following
        if following in CLOSING_STATES:
            self._attachments.clear()

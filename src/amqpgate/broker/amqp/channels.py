"""All channels of one connection: their states, and the content that is under way on each."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from amqpgate.broker.amqp.content import ReceivedContent, no_content
from amqpgate.broker.amqp.events import ContentReceived, Event, MethodReceived
from amqpgate.broker.amqp.limits import ConnectionLimits
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.channel import ChannelState, step, too_many_channels
from amqpgate.protocol.frames import FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, Frame
from amqpgate.protocol.methods import Role
from amqpgate.protocol.violations import located, unexpected_frame, unknown_frame
from amqpgate.wire.codec import decode_method, methods
from amqpgate.wire.dialects import Dialect
from amqpgate.wire.method import Method

_IDS: Final = 4


@define
class PeerChannel:
    """One channel that is not closed. ``content`` is the peer's message under way, if any."""

    state: ChannelState = ChannelState.CLOSED
    content: ReceivedContent | None = None


@define
class PeerChannels:
    """The channels of a connection whose own end is ``role``; a closed channel takes no memory."""

    role: Role
    limits: ConnectionLimits
    #: Most channels that may be open at once; set when tune is settled.
    channel_max: int = 0
    _open: dict[int, PeerChannel] = field(factory=dict)
    #: Bytes of all unfinished bodies.
    _held: int = 0

    def numbers(self) -> tuple[int, ...]:
        """The channels that are not closed."""
        return tuple(self._open)

    def clear(self) -> None:
        """Forget them all: the connection is closing."""
        self._open.clear()
        self._held = 0

    def receive(self, frame: Frame, dialect: Dialect) -> Event | None:
        """Take a frame of a channel other than 0; None if it completes nothing, or is dropped.

        Raises :class:`ProtocolViolation` as ``channel`` and ``content`` list it.
        """
        number = frame.channel
        if frame.type == FRAME_HEARTBEAT:
            raise unexpected_frame(*frame)
        if self.limits.strict_channel_numbers and number > self.channel_max:
            raise ProtocolViolation(
                504,
                f"channel {number} is above the negotiated channel_max ({self.channel_max})",
                channel=number,
            )
        channel = self._open.get(number)
        content = channel.content if channel else None
        if frame.type == FRAME_METHOD:
            if content is not None:
                raise content.unexpected()
            return self._receive_method(frame, channel or PeerChannel(), dialect)
        if channel is None or content is None:
            raise no_content(number)
        return self._receive_content(frame, channel, content, dialect)

    def send(self, number: int, method: type[Method]) -> None:
        """Note that our end sends ``method``.

        Raises :class:`ProtocolViolation`, as the peer would answer, if it may not; nothing has changed then.
        """
        channel = self._open.get(number) or PeerChannel()
        following = step(channel.state, self.role, method, number)
        if following is None:
            raise ProtocolViolation(503, f"the channel is {channel.state.value}", channel=number)
        self._check_count(channel, following)
        if method.NAME == "channel.close" and channel.content is not None:
            self._held -= channel.content.held
            channel.content.drop()
        self._move(number, channel, following)

    def _receive_method(self, frame: Frame, channel: PeerChannel, dialect: Dialect) -> Event | None:
        number = frame.channel
        method_class = method_class_of(frame, dialect)
        following = step(channel.state, self.role.peer, method_class, number)
        method = None
        if following is not None:
            method = decode(frame, dialect)
            self._check_count(channel, following)
            self._move(number, channel, following)
        if method_class.CONTENT:
            channel.content = ReceivedContent(number, method_class.CLASS_ID, method_class.METHOD_ID, method)
            return None
        return MethodReceived(number, method) if method is not None else None

    def _receive_content(
        self, frame: Frame, channel: PeerChannel, content: ReceivedContent, dialect: Dialect
    ) -> Event | None:
        held = content.held
        if frame.type == FRAME_HEADER:
            complete = content.add_header(frame.payload, dialect, self.limits.body)
        else:
            complete = content.add_body(frame.payload)
            self._held += content.held - held
            if self._held > self.limits.body_total:
                raise ProtocolViolation(506, "too many unfinished messages", channel=frame.channel)
        if not complete:
            return None
        channel.content = None
        self._held -= content.held
        if content.method is None or content.header is None:
            return None
        return ContentReceived(frame.channel, content.method, content.header, content.body())

    def _move(self, number: int, channel: PeerChannel, following: ChannelState) -> None:
        channel.state = following
        if following is ChannelState.CLOSED:
            del self._open[number]
        else:
            self._open[number] = channel

    def _check_count(self, channel: PeerChannel, following: ChannelState) -> None:
        opens = channel.state is ChannelState.CLOSED and following is ChannelState.OPENING
        if opens and len(self._open) >= self.channel_max:
            raise too_many_channels(len(self._open), self.channel_max)


def method_class_of(frame: Frame, dialect: Dialect) -> type[Method]:
    """What kind of method a method frame holds. Raises 501 if it is too short, 540 if nobody knows it."""
    if len(frame.payload) < _IDS:
        raise unknown_frame(*frame)
    method_class = methods(dialect).get(int.from_bytes(frame.payload[:_IDS], "big"))
    return method_class or type(decode(frame, dialect))


def decode(frame: Frame, dialect: Dialect) -> Method:
    """The method in a method frame. Raises what ``wire.codec.decode_method`` raises, with the channel."""
    try:
        return decode_method(frame.payload, dialect)
    except ProtocolViolation as error:
        raise located(error, frame.channel) from None

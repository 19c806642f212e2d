"""What is said on one open connection to a mirror: messages to frames, the broker's answers to counters.

No I/O: time and frames are arguments, what must be said besides messages is in ``control``.

Each exchange has a channel of its own, with confirms, so that a channel which the mirror closes (there is no
such exchange, or no permission) takes no other exchange's messages with it. Its messages are refused for a
while then, longer each time. What had not been confirmed counts as refused: the cause is not told.
"""

from __future__ import annotations

import functools
import logging
from itertools import takewhile
from zlib import crc32

import attrs

from amqpgate.errors import AmqpgateError
from amqpgate.gateway.observers.mirror.queue import MirroredMessage
from amqpgate.protocol.frames import (
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    HEARTBEAT,
    Frame,
    body_frames,
    encode_frame,
    method_frame,
)
from amqpgate.telemetry.mirrors import MirrorAccount
from amqpgate.wire.codec import decode_header, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)

#: Messages that may wait for their confirms, some 100 bytes each.
WINDOW = 2048
#: Channels at most. Further exchanges share them.
CHANNELS = 128
#: Seconds for which a closed channel stays closed, the first time and at most.
FIRST_PENALTY = 1.0
LAST_PENALTY = 30.0
#: Seconds between two log lines about one channel.
_QUIET = 60.0


class MirrorFaultError(AmqpgateError):
    """The connection cannot go on, or did not come about."""


@attrs.define
class _Lane:
    """One channel."""

    number: int
    is_open: bool = False
    #: Publishes since it was opened.
    published: int = 0
    #: Number among the confirms to bytes of body, in order.
    unconfirmed: dict[int, int] = attrs.field(factory=dict)
    closed_until: float = 0.0
    penalty: float = 0.0
    quiet_until: float = 0.0

    def open(self) -> None:
        """The channel is opened, and its confirms number from 1."""
        self.is_open, self.published = True, 0

    def publish(self, size: int) -> None:
        """A message with a body of so many bytes goes out."""
        self.published += 1
        self.unconfirmed[self.published] = size

    def proven(self) -> None:
        """The mirror has taken a message."""
        self.penalty = 0.0

    def close(self, now: float) -> bool:
        """The mirror has closed it: it stays closed for a while, longer each time. Whether to log that."""
        self.is_open = False
        self.penalty = min(2 * self.penalty or FIRST_PENALTY, LAST_PENALTY)
        self.closed_until = now + self.penalty
        is_loud = now >= self.quiet_until
        if is_loud:
            self.quiet_until = now + _QUIET
        return is_loud


@functools.lru_cache(1024)
def _publish(number: int, exchange: str, routing_key: str) -> bytes:
    """The frame of a publish's method."""
    return method_frame(number, amqp.BasicPublish(exchange=exchange, routing_key=routing_key))


@attrs.define(eq=False)
class MirrorLine:
    """One connection, from its open-ok on."""

    #: The mirror, for logs.
    name: str
    user: str
    frame_max: int
    channel_max: int
    account: MirrorAccount
    #: Frames that go out before the next message.
    control: bytearray = attrs.field(factory=bytearray, init=False)
    #: The broker wants no messages.
    blocked: bool = attrs.field(default=False, init=False)
    #: Messages that it has not answered.
    in_flight: int = attrs.field(default=0, init=False)
    #: Whether it has confirmed any.
    proven: bool = attrs.field(default=False, init=False)
    _lanes: list[_Lane] = attrs.field(factory=list, init=False)
    _by_exchange: dict[str, _Lane] = attrs.field(factory=dict, init=False)

    def takes(self, more: int) -> bool:
        """Whether one can be sent besides so many."""
        return not self.blocked and self.in_flight + more < WINDOW

    def beat(self) -> None:
        """A heartbeat is due."""
        self.control += HEARTBEAT

    def take_control(self) -> bytes:
        """What goes out now."""
        control = bytes(self.control)
        self.control.clear()
        return control

    def encode(self, message: MirroredMessage, now: float) -> bytes:
        """The frames of a message; none if it is dropped, which is counted."""
        lane = self._lane(message.exchange)
        if now < lane.closed_until:
            self.account.dropped("refused")
            return b""
        number, header = lane.number, message.header
        if message.user is not None and message.user != self.user:
            # A broker refuses messages of other users than the one who is logged in.
            content = decode_header(header)
            assert isinstance(content.properties, amqp.BasicProperties)
            properties = attrs.evolve(content.properties, user_id=None)
            header = encode_header(attrs.evolve(content, properties=properties))
        publish = _publish(number, message.exchange, message.routing_key)
        if max(len(publish), len(header) + FRAME_OVERHEAD) > self.frame_max:
            self.account.dropped("too_large")
            return b""
        opening = b""
        if not lane.is_open:
            lane.open()
            opening = method_frame(number, amqp.ChannelOpen()) + method_frame(number, amqp.ConfirmSelect())
        lane.publish(message.body_size)
        self.in_flight += 1
        bodies = body_frames(number, bytes(message.body), self.frame_max)
        return b"".join((opening, publish, encode_frame(FRAME_HEADER, number, header), *bodies))

    def _lane(self, exchange: str) -> _Lane:
        lane = self._by_exchange.get(exchange)
        if lane is not None:
            return lane
        if len(self._lanes) < min(CHANNELS, self.channel_max):
            lane = self._by_exchange[exchange] = _Lane(len(self._lanes) + 1)
            self._lanes.append(lane)
            return lane
        return self._lanes[crc32(exchange.encode(errors="surrogateescape")) % len(self._lanes)]

    def take(self, frame: Frame, now: float) -> None:
        """What the broker says. Raises ``MirrorFaultError`` and ``ProtocolViolation``."""
        if frame.type == FRAME_HEARTBEAT:
            return
        if frame.type != FRAME_METHOD or frame.channel > len(self._lanes):
            raise MirrorFaultError(f"sent a frame of type {frame.type} on channel {frame.channel}")
        method = decode_method(frame.payload)
        if frame.channel:
            self._take(self._lanes[frame.channel - 1], method, now)
        elif isinstance(method, amqp.ConnectionClose):
            raise MirrorFaultError(f"closed the connection: {method.reply_code} {method.reply_text}")
        elif isinstance(method, amqp.ConnectionBlocked):
            self.blocked = True
            log.warning("mirror %s blocks publishers: %s", self.name, method.reason)
        elif isinstance(method, amqp.ConnectionUnblocked):
            self.blocked = False
            log.info("mirror %s does not block publishers any more", self.name)

    def _take(self, lane: _Lane, method: object, now: float) -> None:
        if isinstance(method, amqp.BasicAck):
            self.proven = True
            lane.proven()
            for byte_count in self._answered(lane, method.delivery_tag, multiple=method.multiple):
                self.account.mirrored(byte_count)
        elif isinstance(method, amqp.BasicNack):
            refused = self._answered(lane, method.delivery_tag, multiple=method.multiple)
            self.account.dropped("refused", len(refused))
        elif isinstance(method, amqp.ChannelClose):
            self.control += method_frame(lane.number, amqp.ChannelCloseOk())
            self.account.dropped("refused", len(self._answered(lane, 0, multiple=True)))
            if lane.close(now):
                text = f"{method.reply_code} {method.reply_text}"
                log.warning("mirror %s refuses messages: %s", self.name, text)

    def _answered(self, lane: _Lane, tag: int, *, multiple: bool) -> list[int]:
        """The sizes of those that an answer is about; ``multiple`` with 0 means all."""
        known = lane.unconfirmed
        if multiple:
            tags = list(takewhile(lambda one: not tag or one <= tag, known))
        else:
            tags = [tag] if tag in known else []
        self.in_flight -= len(tags)
        return [known.pop(one) for one in tags]

    def lost(self) -> None:
        """The connection is over."""
        for lane in self._lanes:
            self.account.dropped("lost", len(self._answered(lane, 0, multiple=True)))

"""How far a client's bytes may go to a link that others share: to where none of its messages is half there.

A half message on a link would be everybody's: the next frame of its channel is a violation there, and the
broker ends the connection. So whatever the broker would take for a violation of a message is found here,
before the scanner passes any of it, with the scanner's results. That includes what the scanner leaves to the
broker of one client: the weight and the properties of a content header, the length of an ack.

What belongs to no message is walked over: the scanner says what it is.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.flows import is_publish
from amqpgate.datapath.framing import CONTENT, CONTENT_MIN, METHOD, Buffer, check_frame
from amqpgate.datapath.properties import are_properties
from amqpgate.datapath.reference import Lane
from amqpgate.datapath.tables import HALF_MESSAGES, HEADER_NEXT, OPEN, ScanResult
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)
from amqpgate.wire.generated import v0_9_1 as amqp

#: class and method, delivery tag, bits.
_ANSWER_SIZE = 13
_ANSWERS = frozenset({amqp.BasicAck.INDEX, amqp.BasicNack.INDEX, amqp.BasicReject.INDEX})


@attrs.define
class Half:
    """A message that has begun and not ended."""

    #: Where its method frame begins.
    first: int
    #: HEADER_NEXT, or bytes of body that are still to come.
    due: int = HEADER_NEXT


@attrs.define(eq=False)
class Walk:
    """How far one client's bytes have been walked. Positions count from the first byte that is kept."""

    #: All before it is in whole messages.
    quiet: int = 0
    #: All before it has been looked at.
    at: int = 0
    #: By channel.
    half: dict[int, Half] = attrs.field(factory=dict)
    #: Where a channel.open was seen: behind it any channel may carry messages. Below zero: nowhere.
    opens: int = -1
    #: Of ``LARGE``: where the message begins.
    large: int = 0

    def restart(self) -> None:
        """Look at all of it again."""
        self.quiet = self.at = 0
        self.half.clear()
        self.opens = -1

    def passed(self, count: int) -> None:
        """The scanner has dealt with so many bytes, up to the quiet place at most."""
        self.quiet -= count
        self.at -= count
        self.opens = max(-1, self.opens - count)
        for half in self.half.values():
            half.first -= count

    def look(self, lane: Lane, buf: Buffer, start: int, end: int, whole: int) -> tuple[ScanResult, int, int]:
        """Go on with the bytes ``buf[start:end]``: ``(result, first, stop)``, counted from ``start``.

        ``MORE``: ``first`` is the beginning of a frame that ends at ``stop``, as far as that is known.
        ``LARGE``, ``OVERSIZE``, or a violation: the frame ``[first, stop)``. ``whole`` is how many bytes of
        body a message may have here, ``lane.most_body`` anywhere. Too many messages that are half there, or
        too much that waits for them, is ``LARGE``, too, with the first of them.

        Whatever it is, it is so for the channels as they are now. Who has walked a part before must
        ``restart`` and look again to be sure, and first deal with what is before the quiet place.
        """
        # Two messages of the largest size with their headers, or more frames of smaller ones.
        room = 2 * (whole + lane.frame_max)
        pos = start + self.at
        while True:
            if self.half and self.at - self.quiet > room:
                result, self.large = ScanResult.LARGE, self.quiet
                break
            found, kind, _number, _size, stop = check_frame(buf, pos, end, lane.frame_max)
            if found is None and kind != FRAME_HEARTBEAT:
                found = self._frame(lane, buf, start, pos, whole)
            if found is not None:
                result = found
                break
            pos = stop
            self.at = pos - start
            if not self.half:
                self.quiet = self.at
        if result is ScanResult.LARGE:
            pos = start + self.large
            stop = pos + FRAME_HEAD.unpack_from(buf, pos)[2] + FRAME_OVERHEAD
        return result, pos - start, stop - start

    def _frame(self, lane: Lane, buf: Buffer, start: int, pos: int, whole: int) -> ScanResult | None:
        """What is wrong with a frame that is well-formed, and no heartbeat; None: nothing."""
        kind, number, size = FRAME_HEAD.unpack_from(buf, pos)
        is_open = lane.channels.state(number) == OPEN
        half = self.half.get(number)
        if half is not None and not is_open and self.opens < 0:
            # It was refused or closed meanwhile: nothing of the message will pass.
            del self.half[number]
            half = None
        if half is not None:
            result = _content(half, lane, buf, pos)
            if result is None and kind == FRAME_HEADER and is_open:
                if half.due > lane.most_body:
                    return ScanResult.OVERSIZE
                if half.due > whole:
                    self.large = half.first
                    return ScanResult.LARGE
            if not half.due:
                del self.half[number]
            return result
        if kind != FRAME_METHOD or size < 4:
            return None
        (index,) = METHOD.unpack_from(buf, pos + 7)
        if index == amqp.ChannelOpen.INDEX:
            self.opens = pos - start
        elif not is_open and (self.opens < 0 or not number):
            return None
        elif index == amqp.BasicPublish.INDEX:
            if not is_publish(buf, pos, pos + size + FRAME_OVERHEAD):
                return ScanResult.MALFORMED
            if size > lane.out_frame_max - FRAME_OVERHEAD:
                return ScanResult.UNSPLITTABLE
            if len(self.half) == HALF_MESSAGES:
                self.large = self.quiet
                return ScanResult.LARGE
            self.half[number] = Half(pos - start)
        elif index in _ANSWERS and size != _ANSWER_SIZE:
            return ScanResult.MALFORMED
        return None


def _content(half: Half, lane: Lane, buf: Buffer, pos: int) -> ScanResult | None:
    """Likewise, on the channel of a message that has begun."""
    kind, _number, size = FRAME_HEAD.unpack_from(buf, pos)
    if half.due == HEADER_NEXT:
        if kind != FRAME_HEADER:
            return ScanResult.HEADER_DUE
        if size < CONTENT_MIN:
            return ScanResult.MALFORMED
        class_id, weight, body = CONTENT.unpack_from(buf, pos + 7)
        if weight:
            # To RabbitMQ it is no content header then.
            return ScanResult.HEADER_DUE
        if class_id != amqp.BasicPublish.CLASS_ID:
            return ScanResult.CLASS_DIFFERS
        if size > lane.out_frame_max - FRAME_OVERHEAD:
            return ScanResult.UNSPLITTABLE
        if not are_properties(buf, pos + 7 + CONTENT.size, pos + 7 + size):
            return ScanResult.MALFORMED
        half.due = body
    elif kind != FRAME_BODY:
        return ScanResult.BODY_DUE
    elif size > half.due:
        return ScanResult.BODY_OVERRUN
    else:
        half.due -= size
    return None

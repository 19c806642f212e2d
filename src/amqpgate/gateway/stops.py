"""Channels whose client has asked for no more deliveries (channel.flow with active=false).

RabbitMQ refuses that with 540, so the gateway does it: what is delivered meanwhile is kept here, in order,
and goes on when the client asks for more. The broker delivers as far as the consumer's prefetch lets it.

::

    client: flow(active=false) ──▶ flow-ok; deliveries are kept
    client: flow(active=true)  ──▶ what was kept, then flow-ok; deliveries pass again
                                   (first the broker's recover-ok, where that is due)

One session keeps `ROOM` octets. What is more ends the stop: all that was kept goes to the client, and the
channel is closed with 406. So nothing is lost, of consumers that do not acknowledge neither, and the client
hears why; a prefetch count that keeps to `ROOM` never comes to that.

==========================================  ================================================================
meanwhile to the client                     what was kept
==========================================  ================================================================
basic.get-ok                                goes first: an ack of several may mean all before it
basic.cancel-ok, basic.cancel               of that consumer goes first: nothing may come after
basic.recover-ok                            of consumers that acknowledge is dropped: the broker has it again
channel.close, connection.close             goes first; the gateway's own connection.close as well
channel.close-ok                            is dropped: the client has left
all else                                    stays
==========================================  ================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from amqpgate.datapath.endpoint import Bytes
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.closes import Closes
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Octets of deliveries that one session keeps, `_EACH` more for each: a prefetch of 500 messages of 8 KiB.
ROOM: Final = 1 << 22
_EACH: Final = 256


@attrs.define
class _Kept:
    """One message, or as much of it as has come."""

    tag: str
    #: The broker counts it as acknowledged. Also where that is not known: then it is never dropped.
    is_acked: bool
    frames: bytearray = attrs.field(factory=bytearray)


@attrs.define
class _Stop:
    kept: list[_Kept] = attrs.field(factory=list)
    #: The content that comes next belongs to the last one of them.
    is_under_way: bool = False
    #: The client has asked for more, and the broker is still recovering.
    is_ending: bool = False


@attrs.define(eq=False)
class Stops:
    """Of one session."""

    closes: Closes
    #: Called when the first channel is stopped, and when none is any more.
    on_change: Callable[[], None]
    _stops: dict[int, _Stop] = attrs.field(factory=dict, init=False)
    #: What is kept for all of them.
    _octets: int = attrs.field(default=0, init=False)

    def __bool__(self) -> bool:
        """Whether any channel is stopped."""
        return bool(self._stops)

    def __contains__(self, number: int) -> bool:
        """Whether this channel is stopped."""
        return number in self._stops

    def stop(self, number: int) -> None:
        """Keep what is delivered from now on. A message that is under way goes to its end."""
        if number not in self._stops:
            self._stops[number] = _Stop()
            if len(self._stops) == 1:
                self.on_change()

    def resume(self, number: int) -> bytes:
        """Deliver again; what was kept."""
        stop = self._stops.pop(number, None)
        if stop is None:
            return b""
        if not self._stops:
            self.on_change()
        return self._take(stop)

    def resume_all(self) -> bytes:
        """All of them."""
        return b"".join(self.resume(number) for number in list(self._stops))

    def rest(self) -> bytes:
        """What was kept of all of them, when the session has left the data path."""
        return b"".join(self._take(stop) for stop in self._stops.values())

    def postpone(self, number: int) -> None:
        """Deliver again once the broker has recovered."""
        self._stops[number].is_ending = True

    def recovered(self, number: int) -> bool:
        """The broker has taken back all that was delivered and not acknowledged.

        Whether the client waits for that to have deliveries again.
        """
        stop = self._stops.get(number)
        if stop is None:
            return False
        self._take(stop, lambda one: one.is_acked)
        return stop.is_ending

    def meets(self, number: int, method: Method, frame: Bytes) -> bytes:
        """What goes to the client of a stopped channel, given a method for it. Empty: the method is kept."""
        stop = self._stops[number]
        stop.is_under_way = isinstance(method, amqp.BasicDeliver)
        match method:
            case amqp.BasicDeliver(consumer_tag=tag):
                consuming = self.closes.channels[number].consuming
                consumer = None if consuming is None else consuming.tags.get(tag)
                stop.kept.append(_Kept(tag, is_acked=consumer is None or consumer.no_ack))
                self._octets += _EACH
                return self.keeps(number, frame)
            case amqp.BasicGetOk():
                return self._take(stop) + bytes(frame)
            case amqp.BasicCancelOk(consumer_tag=tag) | amqp.BasicCancel(consumer_tag=tag):
                return self._take(stop, lambda one: one.tag != tag) + bytes(frame)
            case amqp.ChannelClose():
                return self.resume(number) + bytes(frame)
            case amqp.ChannelCloseOk():
                self.resume(number)
        return bytes(frame)

    def keeps(self, number: int, frame: Bytes) -> bytes:
        """What goes to the client of a stopped channel, given a piece of a message. Empty: it is kept."""
        stop = self._stops[number]
        if not stop.is_under_way:
            return bytes(frame)
        stop.kept[-1].frames += frame
        self._octets += len(frame)
        if self._octets <= ROOM:
            return b""
        text = f"more than {ROOM} octets were delivered while channel.flow was off: set a prefetch count"
        why = ProtocolViolation(406, text, class_id=20, method_id=20, channel=number)
        released = self.resume(number)
        self.closes.refuse(number, why)
        return released

    def _take(self, stop: _Stop, keeps: Callable[[_Kept], bool] = lambda _: False) -> bytes:
        """The frames of all messages but those that it ``keeps``."""
        taken = [one.frames for one in stop.kept if not keeps(one)]
        stop.kept = [one for one in stop.kept if keeps(one)]
        self._octets -= sum(len(frames) + _EACH for frames in taken)
        return b"".join(taken)

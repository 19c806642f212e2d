"""Channels whose deliveries wait here: their client wants none now, or has as many as it asked for.

channel.flow(active=false): RabbitMQ refuses that with 540, so the gateway does it. What is delivered
meanwhile is kept here, in order, and goes on when the client asks for more. The broker delivers as far as the
consumer's prefetch lets it.

::

    client: flow(active=false) ──▶ flow-ok; deliveries are kept
    client: flow(active=true)  ──▶ what was kept, then flow-ok; deliveries pass again
                                   (first the broker's recover-ok, where that is due)

A limit (basic.qos) that the broker does not keep to (``bridge.prefetch``): deliveries of consumers that
acknowledge are kept while the client has as many that it has not acknowledged; each that it acknowledges lets
the next one pass. Messages of basic.get do not count.

One session keeps `ROOM` bytes. What is more ends it, and the channel is closed with 406, so the client hears
why; a prefetch count that keeps to `ROOM` never comes to that. After channel.flow all that was kept goes to
the client first, so nothing is lost, of consumers that do not acknowledge neither. Beyond a limit nothing
does: the broker has it again when the channel is closed.

==========================================  ================================================================
meanwhile to the client                     what was kept
==========================================  ================================================================
basic.get-ok                                after channel.flow goes first: an ack of several may mean all
                                            before it; beyond a limit stays
basic.cancel-ok, basic.cancel               of that consumer goes first: nothing may come after; beyond a
                                            limit it is given back to the broker (basic.reject with requeue)
basic.recover-ok                            of consumers that acknowledge is dropped: the broker has it again
channel.close, connection.close             goes first; the gateway's own connection.close as well; beyond a
                                            limit it is dropped: the broker has it again
channel.close-ok                            is dropped: the client has left
all else                                    stays
==========================================  ================================================================

==========================================  ================================================================
meanwhile from the client                   the broker hears
==========================================  ================================================================
ack or nack of several, or of all           of no message that the client does not have; where it is not known
                                            which those are, they are given back to the broker first
ack, nack or reject of one that was kept    channel.close 406, as of one that does not exist
==========================================  ================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from amqpgate.datapath.engine import Bytes
from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.datapath.unacked import Unacked
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.held_deliveries import HeldDeliveries, HeldDelivery
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Bytes of deliveries that one session keeps, `_EACH` more for each: a prefetch of 500 messages of 8 KiB.
ROOM: Final = 1 << 22
_EACH: Final = 256

Settling = amqp.BasicAck | amqp.BasicNack | amqp.BasicReject


@attrs.define(eq=False)
class ChannelFlows:
    """Of one session."""

    channels: SessionChannels
    #: Called when the first channel is stopped, and when none is any more.
    on_change: Callable[[], None]
    #: Whether somebody else wants to be shown what clients settle.
    are_settles_watched: Callable[[], bool] = lambda: False
    #: Deliveries that the client may have and not acknowledge on all channels; 0: any number.
    limit_of_all: int = 0
    _stops: dict[int, HeldDeliveries] = attrs.field(factory=dict, init=False)
    #: What is kept for all of them.
    _bytes: int = attrs.field(default=0, init=False)

    def __bool__(self) -> bool:
        """Whether any channel is stopped, or limited here."""
        return bool(self._stops)

    def __contains__(self, number: int) -> bool:
        """Whether this channel is."""
        return number in self._stops

    def is_off(self, number: int) -> bool:
        """Whether its client wants no deliveries."""
        stop = self._stops.get(number)
        return stop is not None and stop.is_off

    def stop(self, number: int) -> None:
        """Keep what is delivered from now on. A message that is under way goes to its end."""
        self._of(number).stop()

    def limits(self, number: int, count: int) -> None:
        """Keep what is delivered beyond so many; 0: there is the connection's limit only."""
        self._of(number).limit_to(count)

    def limit_all(self, count: int) -> None:
        """So many may the client have on all channels from now on; 0: any number."""
        self.limit_of_all = count

    def lifts(self, number: int) -> None:
        """There is no limit any more, or the broker keeps to it."""
        stop = self._stops.get(number)
        if stop is not None:
            stop.lift()

    def resume(self, number: int) -> bytes:
        """Deliver again; what may go of what was kept."""
        stop = self._stops.get(number)
        if stop is None:
            return b""
        stop.resume()
        return self._passed(number, stop)

    def release(self, number: int) -> bytes:
        """What may go now; nothing within another message to the client."""
        stop = self._stops.get(number)
        if stop is None or stop.is_off:
            return b""
        table = self.channels.table
        stop.wait_for_end(is_due=table.due(Side.UPSTREAM, number) != METHOD_NEXT and not stop.is_under_way)
        if stop.is_due:
            table.show_rest(Side.UPSTREAM, number)
            return b""
        return self._passed(number, stop)

    def message_ended(self, number: int) -> bytes:
        """A message to the client has ended: what waited for that."""
        stop = self._stops.get(number)
        return self.release(number) if stop is not None and stop.is_due else b""

    def end_all(self) -> bytes:
        """The connection closes: what the client gets before."""
        return b"".join(self._end(number) for number in self.numbers)

    def rest(self) -> bytes:
        """The same, when the session has left the data path."""
        return b"".join(self._rest(stop) for stop in self._stops.values())

    @property
    def numbers(self) -> tuple[int, ...]:
        """The channels."""
        return tuple(self._stops)

    def postpone(self, number: int) -> None:
        """Deliver again once the broker has recovered."""
        self._stops[number].postpone()

    def recovered(self, number: int) -> bool:
        """The broker has taken back all that was delivered and not acknowledged.

        Whether the client waits for that to have deliveries again.
        """
        stop = self._stops.get(number)
        if stop is None:
            return False
        self._take(stop, lambda one: one.is_acked)
        stop.out.recovered()
        return stop.is_ending

    # -- from the client ---------------------------------------------------------------------

    def asks(self, number: int, method: Method) -> None:
        """The client's transaction begins or ends."""
        stop = self._stops.get(number)
        if stop is None:
            return
        if isinstance(method, amqp.TxRollback):
            stop.out.rolled_back()
        elif isinstance(method, amqp.TxCommit | amqp.TxSelect):
            stop.out.committed()

    def settles(self, number: int, method: Settling) -> Iterator[Settling]:
        """What the broker is told of an ack, nack or reject. Raises ``ProtocolViolation``."""
        stop = self._stops[number]
        # Somebody else may have had enough of them.
        self.channels.table.show_settles(number)
        for told in self._spared(number, stop, method):
            multiple = not isinstance(told, amqp.BasicReject) and told.multiple
            stop.out.settled(told.delivery_tag, multiple)
            yield told

    def _spared(self, number: int, stop: HeldDeliveries, method: Settling) -> list[Settling]:
        """The same without what the client does not have."""
        waiting = stop.waiting
        tag = method.delivery_tag
        if any(one.number == tag for one in waiting):
            raise ProtocolViolation(
                406,
                f"unknown delivery tag {tag}",
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
                channel=number,
            )
        if isinstance(method, amqp.BasicReject) or not method.multiple or not waiting:
            return [method]
        if 0 < tag < waiting[0].number:
            return [method]
        top = stop.top() if self.channels.states[number].gets is None else None
        if top is not None:
            return [attrs.evolve(method, delivery_tag=top)] if top else []
        self._give_back(number, stop, lambda _: True)
        return [method]

    # -- to the client -----------------------------------------------------------------------

    def meets(self, number: int, method: Method, frame: Bytes) -> bytes:
        """What goes to the client of a stopped channel, given a method for it. Empty: the method is kept."""
        stop = self._stops[number]
        stop.begin()
        match method:
            case amqp.BasicDeliver(consumer_tag=tag, delivery_tag=delivery):
                consuming = self.channels.states[number].consuming
                consumer = None if consuming is None else consuming.tags.get(tag)
                is_acked = consumer is None or consumer.no_ack
                if not stop.is_off and (is_acked or (not stop.waiting and self._has_room(number, stop))):
                    if not is_acked:
                        stop.out.delivered(delivery)
                    return bytes(frame)
                stop.keep(HeldDelivery(tag, delivery, is_acked))
                self._bytes += _EACH
                return self.keeps(number, frame)
            case amqp.BasicGetOk() if stop.is_off:
                return self._take(stop) + bytes(frame)
            case amqp.BasicCancelOk(consumer_tag=tag) | amqp.BasicCancel(consumer_tag=tag):
                if stop.is_limited:
                    self._give_back(number, stop, lambda one: one.tag == tag)
                return self._take(stop, lambda one: one.tag != tag) + bytes(frame)
            case amqp.ChannelClose():
                return self._end(number) + bytes(frame)
            case amqp.ChannelCloseOk():
                self._end(number)
        return bytes(frame)

    def keeps(self, number: int, frame: Bytes) -> bytes:
        """What goes to the client of a stopped channel, given a piece of a message. Empty: it is kept."""
        stop = self._stops[number]
        if not stop.is_under_way:
            return bytes(frame)
        if stop.is_dropping:
            return b""
        stop.kept[-1].add(frame)
        self._bytes += len(frame)
        return b"" if self._bytes <= ROOM else self._overflows(number, stop)

    def _overflows(self, number: int, stop: HeldDeliveries) -> bytes:
        if stop.is_off:
            text = f"more than {ROOM} bytes were delivered while channel.flow was off: set a prefetch count"
            method: type[Method] = amqp.ChannelFlow
            stop.lift()
            released = self.resume(number)
        else:
            text = f"more than {ROOM} bytes were delivered beyond the limit: set it before a consumer"
            method = amqp.BasicQos
            stop.drop_rest()
            self._take(stop)
            released = b""
        why = ProtocolViolation(
            406, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=number
        )
        self.channels.refuse(number, why)
        return released

    # -- one channel -------------------------------------------------------------------------

    def _of(self, number: int) -> HeldDeliveries:
        """What there is of the channel, or something new."""
        stop = self._stops.get(number)
        if stop is None:
            tags = self.channels.table.unacked_tags(number)
            out = Unacked(stretches=tags or [], next=tags[-1][1] if tags else 0)
            out.blurred = 0 if tags is not None else None
            stop = self._stops[number] = HeldDeliveries(out)
            self.channels.table.show_settles(number)
            if len(self._stops) == 1:
                self.on_change()
        return stop

    def _has_room(self, number: int, stop: HeldDeliveries) -> bool:
        if stop.limit and stop.count(transacts=self.channels.states[number].transacts) >= stop.limit:
            return False
        return not self.limit_of_all or self._count() < self.limit_of_all

    def _count(self) -> int:
        """What the client has on all channels."""
        channels = self.channels.states
        return sum(
            stop.count(transacts=number in channels and channels[number].transacts)
            for number, stop in self._stops.items()
        )

    def _passed(self, number: int, stop: HeldDeliveries) -> bytes:
        """What was kept and may go; then the channel is left alone, if it may be."""
        passing: list[HeldDelivery] = []
        is_full = False
        for one in stop.kept:
            if not one.is_acked:
                is_full = is_full or not self._has_room(number, stop)
                if is_full:
                    continue
                stop.out.delivered(one.number)
            passing.append(one)
        # What is under way is the last one: the rest of it follows.
        if stop.is_under_way and passing and passing[-1] is stop.kept[-1]:
            stop.pass_rest()
        went = {id(one) for one in passing}
        taken = self._take(stop, lambda one: id(one) not in went)
        if not stop.is_limited and not stop.is_off:
            self._leave(number)
        return taken

    def _leave(self, number: int) -> None:
        del self._stops[number]
        if self.channels.table.state(number) and not self.are_settles_watched():
            self.channels.table.show_settles(number, False)
        if not self._stops:
            self.on_change()

    def _end(self, number: int) -> bytes:
        """The channel closes: what the client gets before."""
        stop = self._stops.get(number)
        if stop is None:
            return b""
        rest = self._rest(stop)
        self._leave(number)
        return rest

    def _rest(self, stop: HeldDeliveries) -> bytes:
        if not stop.is_off:
            self._take(stop, lambda one: one.is_acked)
        return self._take(stop)

    def _give_back(self, number: int, stop: HeldDeliveries, which: Callable[[HeldDelivery], bool]) -> None:
        """The broker is to deliver them again, to whom it likes."""
        given = [one for one in stop.waiting if which(one)]
        stop.drop_rest_of(given)
        self._take(stop, lambda one: one not in given)
        for one in given:
            reject = amqp.BasicReject(one.number, requeue=True)
            settlement.settled(self.channels.table, number, reject)
            self.channels.send(Side.UPSTREAM, number, reject)

    def _take(self, stop: HeldDeliveries, keeps: Callable[[HeldDelivery], bool] = lambda _: False) -> bytes:
        """The frames of all messages but those that it ``keeps``."""
        taken = stop.take(keeps)
        self._bytes -= sum(len(frames) + _EACH for frames in taken)
        return b"".join(taken)

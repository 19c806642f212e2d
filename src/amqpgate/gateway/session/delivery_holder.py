"""What passes to the client of a channel that is stopped or limited (`channel_flow`), and what is kept.

One session keeps `held_deliveries.ROOM` bytes. What is more ends it, and the channel is closed with 406, so
the client hears why; a prefetch count that keeps to that never comes to it. Where the gateway chooses what
consumers get (`channel_prefetch`) it makes them narrower instead, and gives the broker back what was kept; a
channel is closed only where single messages are more than `held_deliveries.MOST`. After channel.flow all
that was kept goes to the client first, so nothing is lost, of consumers that do not acknowledge neither.
Beyond a limit nothing does: the broker has it again when the channel is closed.

==========================================  ================================================================
meanwhile to the client                     what was kept
==========================================  ================================================================
basic.get-ok                                after channel.flow goes first: an ack of several may mean all
                                            before it; beyond a limit stays
basic.cancel-ok, basic.cancel               of that consumer goes first: nothing may come after; beyond a
                                            limit it is given back to the broker: by basic.nack with requeue,
                                            which is no failed delivery to quorum queues of RabbitMQ 4, or by
                                            basic.reject where the broker has no other. In a transaction the
                                            broker has it with the commit, and is told
                                            again behind a rollback
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
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.channel_flow import ChannelFlows
from amqpgate.gateway.session.held_deliveries import (
    MOST_GIVEN,
    ROOM,
    HeldBytes,
    HeldDeliveries,
    HeldDelivery,
)
from amqpgate.gateway.session.held_references import HeldReferences, before_references
from amqpgate.gateway.session.settlement import Settling
from amqpgate.protocol.frames import method_frame
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Why a channel is closed whose client cancels and does not commit.
_TOO_MANY_GIVEN: Final = f"more than {MOST_GIVEN} deliveries went back to the queue in one transaction"


@define(eq=False)
class DeliveryHolder:
    """Keeps deliveries of one session, and lets them pass."""

    flows: ChannelFlows
    #: How a message is given back to the broker.
    gives_back: type[amqp.BasicNack | amqp.BasicReject]
    #: Sends the broker frames of a channel, but not within a message of the client's.
    tells_broker: Callable[[int, bytes], None]
    #: Called with a channel whose consumers are to be made narrower.
    on_narrowed: Callable[[int], None]
    #: Whether the broker has a part of a message of the client's on this channel, and waits for the rest.
    is_sending: Callable[[int], bool]
    _bytes: HeldBytes = attrs.field(factory=HeldBytes, init=False)
    references: HeldReferences = attrs.field(
        default=attrs.Factory(lambda self: HeldReferences(self.flows, self._bytes), takes_self=True),
        init=False,
    )

    def resume(self, number: int) -> bytes:
        """The client wants deliveries again; what may go of what was kept."""
        held = self.flows.get(number)
        if held is None:
            return b""
        held.resume()
        return self.release(number)

    def release(self, number: int) -> bytes:
        """What may go now; nothing within another message to the client."""
        held = self.flows.get(number)
        if held is None or held.is_off:
            return b""
        table = self.flows.channels.table
        held.wait_for_end(is_due=table.due(Side.UPSTREAM, number) != METHOD_NEXT and not held.is_under_way)
        if held.is_due:
            table.show_rest(Side.UPSTREAM, number)
            return b""
        return self._passed(number, held)

    def message_ended(self, number: int) -> bytes:
        """A message to the client has ended: what waited for that."""
        held = self.flows.get(number)
        return self.release(number) if held is not None and held.is_due else b""

    def recovered(self, number: int) -> bool:
        """The broker has taken back all that was delivered and not acknowledged.

        Whether the client waits for that to have deliveries again.
        """
        held = self.flows.get(number)
        if held is None:
            return False
        self._bytes.take(held, lambda one: one.is_acked)
        held.shown.recover()
        return held.is_ending

    def end_all(self) -> bytes:
        """The connection closes: what the client gets before."""
        return b"".join(self._end(number) for number in self.flows.numbers)

    def rest(self) -> bytes:
        """The same, when the session has left the data path."""
        return b"".join(self._rest(self._held(number)) for number in self.flows.numbers)

    def give_back(self, number: int, tags: frozenset[str]) -> None:
        """What is kept of these consumers is for others."""
        if tags:
            self._give_back(number, self._held(number), lambda one: one.tag in tags)

    # -- from the client ---------------------------------------------------------------------

    def settles(self, number: int, method: Settling) -> Iterator[Settling]:
        """What the broker is told of an ack, nack or reject. Raises ``ProtocolViolation``."""
        held = self._held(number)
        # Somebody else may have had enough of them.
        self.flows.channels.table.show_settles(number)
        for told in self._spared(number, held, method):
            multiple = not isinstance(told, amqp.BasicReject) and told.multiple
            held.shown.unacked.settled(told.delivery_tag, multiple)
            yield told

    def _spared(self, number: int, held: HeldDeliveries, method: Settling) -> list[Settling]:
        """The same without what the client does not have."""
        waiting = held.kept.waiting
        tag = method.delivery_tag
        if tag in waiting:
            raise ProtocolViolation(
                406,
                f"unknown delivery tag {tag}",
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
                channel=number,
            )
        if isinstance(method, amqp.BasicReject) or not method.multiple or not waiting:
            return [method]
        if 0 < tag < held.kept.first_waiting.number:
            return [method]
        top = held.shown.top() if self.flows.channels.states[number].gets is None else None
        if top is not None:
            return [attrs.evolve(method, delivery_tag=top)] if top else []
        self._give_back(number, held, lambda _: True)
        return [method]

    # -- to the client -----------------------------------------------------------------------

    def on_method(self, number: int, method: Method, frame: Bytes) -> bytes:
        """What goes to the client now that there is a method for it. Empty: the method is kept."""
        held = self._held(number)
        held.begin()
        match method:
            case amqp.BasicDeliver(consumer_tag=tag, delivery_tag=delivery):
                is_acked = self.flows.is_acked(number, tag)
                if not held.is_off and (is_acked or (not held.kept.waiting and self.flows.room(number) > 0)):
                    if not is_acked:
                        held.shown.delivered(delivery)
                    return bytes(frame)
                self._bytes.keep(held, HeldDelivery(tag, delivery, is_acked))
                return self.on_content(number, frame)
            case amqp.BasicGetOk() if held.is_off:
                return self._bytes.take_these(held, before_references(held)) + bytes(frame)
            case amqp.BasicCancelOk(consumer_tag=tag) | amqp.BasicCancel(consumer_tag=tag):
                is_limited = held.is_limited
                self._give_back(
                    number, held, lambda one: one.tag == tag and (is_limited or one.fetch is not None)
                )
                return self._bytes.take(held, lambda one: one.tag != tag) + bytes(frame)
            case amqp.ChannelClose():
                return self._end(number) + bytes(frame)
            case amqp.ChannelCloseOk():
                self._end(number)
        return bytes(frame)

    def on_content(self, number: int, frame: Bytes) -> bytes:
        """What goes to the client now that there is a piece of a message for it. Empty: it is kept."""
        held = self._held(number)
        if not held.is_under_way:
            return bytes(frame)
        if held.is_dropping:
            return b""
        self._bytes.add(held, frame)
        return self.kept(number)

    def kept(self, number: int) -> bytes:
        """More is kept than before. What goes to the client where that is too much."""
        held = self._held(number)
        if not self._bytes.are_too_many or self._narrows(number, held):
            return b""
        return self._overflow(number, held)

    def _narrows(self, number: int, held: HeldDeliveries) -> bool:
        """Whether less is to come from now on, or what there is cannot be less and still fits."""
        prefetch = self.flows.prefetch(number)
        if prefetch is None or held.is_off:
            return False
        tags = frozenset(tag for tag in held.kept.consumers if prefetch.narrow(tag))
        if not tags:
            return not self._bytes.are_far_too_many
        self.give_back(number, tags)
        self.on_narrowed(number)
        return True

    def _overflow(self, number: int, held: HeldDeliveries) -> bytes:
        if held.is_off:
            text = f"more than {ROOM} bytes were delivered while channel.flow was off: set a prefetch count"
            method: type[Method] = amqp.ChannelFlow
        else:
            text = f"more than {ROOM} bytes were delivered beyond the limit: set it before a consumer"
            method = amqp.BasicQos
            held.drop_rest()
            self._bytes.take(held)
        why = ProtocolViolation(
            406, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=number
        )
        held.refuse_later(why)
        released = b""
        if held.is_off:
            held.lift()
            released = self.resume(number)
        self.published(number)
        return released

    def published(self, number: int) -> None:
        """A frame of the client's has gone on: if it was a message's last, its channel may be closed now."""
        held = self.flows.get(number)
        if held is None or held.refusal is None:
            return
        if self.is_sending(number):
            # Within its message the broker would end the connection (505).
            self.flows.channels.table.show_rest(Side.CLIENT, number)
            return
        self.flows.channels.refuse(number, held.refusal)
        if not held.is_limited:
            self.flows.leave(number)

    # -- one channel -------------------------------------------------------------------------

    def _held(self, number: int) -> HeldDeliveries:
        held = self.flows.get(number)
        assert held is not None, "it is stopped or limited"
        return held

    def _passed(self, number: int, held: HeldDeliveries) -> bytes:
        """What was kept and may go; then the channel is left alone, if it may be."""
        passing: list[HeldDelivery] = []
        is_full, room = False, self.flows.room(number)
        acked = len(held.kept) - len(held.kept.waiting)
        for one in held.kept:
            if is_full and not acked:
                break
            if one.is_acked:
                acked -= 1
            else:
                is_full = is_full or held.fetching is not None or room <= 0
                if is_full:
                    continue
                if one.fetch is not None:
                    # What is behind it waits.
                    is_full = True
                    self.references.fetch(number, held, one)
                    continue
                held.shown.delivered(one.number)
                room -= 1
            passing.append(one)
        # What is under way is the last one: the rest of it follows.
        if held.is_under_way and not held.is_dropping and passing and passing[-1] is held.kept.last:
            held.pass_rest()
        taken = self._bytes.take_these(held, passing)
        if not (held.is_limited or held.is_off or held.refusal or held.kept or held.given):
            self.flows.leave(number)
        return taken

    def _end(self, number: int) -> bytes:
        """The channel closes: what the client gets before."""
        held = self.flows.get(number)
        if held is None:
            return b""
        rest = self._rest(held)
        self.flows.leave(number)
        return rest

    def _rest(self, held: HeldDeliveries) -> bytes:
        is_off = held.is_off
        self._bytes.take(held, lambda one: one.is_acked or (is_off and one.fetch is None))
        return self._bytes.take(held)

    def _give_back(self, number: int, held: HeldDeliveries, which: Callable[[HeldDelivery], bool]) -> None:
        """The broker is to deliver them again, to whom it likes."""
        given = [one for one in held.kept.waiting.values() if which(one)]
        if not given:
            return
        if self.flows.transacts(number):
            held.give(given)
        held.drop_rest_of(given)
        self._bytes.take_these(held, given)
        frames = bytearray()
        for one in given:
            told = self.gives_back(one.number, requeue=True)
            settlement.settled(self.flows.channels.table, number, told)
            frames += method_frame(number, told)
        self.tells_broker(number, bytes(frames))
        if len(held.given) > MOST_GIVEN and held.refusal is None:
            held.refuse_later(ProtocolViolation(406, _TOO_MANY_GIVEN, channel=number))
            self.published(number)

"""Deliveries that the gateway holds back in the broker's place: channel.flow, and limits of basic.qos.

`channel_flow` says of which channels, `delivery_holder` what may pass; what both sides are told is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from amqpgate.bridge import Crossing
from amqpgate.datapath.engine import Bytes
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import OPEN, Side
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.channel_flow import ChannelFlows
from amqpgate.gateway.session.delivery_holder import DeliveryHolder
from amqpgate.gateway.session.held_deliveries import HeldDelivery
from amqpgate.gateway.session.publish_denial import PublishDenials
from amqpgate.gateway.session.settlement import Settling
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_METHOD, FRAME_OVERHEAD, method_frame
from amqpgate.values import define
from amqpgate.wire.codec import decode_method, methods
from amqpgate.wire.dialects import RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: The methods of the canonical model.
INDEXES: Final = frozenset(methods(RABBITMQ_0_9_1))


@define(eq=False)
class FlowControl:
    """Holds back, and lets pass, what one session's client is sent."""

    relay: Relay
    crossing: Crossing
    flows: ChannelFlows
    publish_denial: PublishDenials
    #: Whether channel.flow off is done here, and not by the broker.
    stops_channels: bool
    #: Sends the broker frames of a channel, but not within a message of the client's.
    tells_broker: Callable[[int, bytes], None]
    #: Whether the broker has a part of a message of the client's on this channel, and waits for the rest.
    is_sending: Callable[[int], bool]
    _holder: DeliveryHolder = attrs.field(
        default=attrs.Factory(
            lambda self: DeliveryHolder(
                self.flows, _gives_back(self.crossing), self.tells_broker, self.resize, self.is_sending
            ),
            takes_self=True,
        ),
        init=False,
    )
    #: What goes to the client has waited, and does so no more.
    is_releasing: bool = attrs.field(default=False, init=False)

    def release(self) -> None:
        """The session is over: what leads back here, or to it, is nobody's any more."""
        del self._holder, self.tells_broker

    def flow(self, channel: int, *, active: bool) -> bool:
        """The client wants deliveries, or none: whether that has been done here."""
        if not active and not self.stops_channels:
            return False
        if active and not self.flows.is_off(channel):
            return False
        if not active:
            self.flows.stop(channel)
            _answer_flow(self, channel, active=False)
        elif self.crossing.is_recovering(channel):
            self.flows.postpone(channel)
        else:
            self._resume(channel)
        return True

    def recovered(self, channel: int) -> None:
        """The broker has recovered a channel."""
        self.relay.channels.recovered(channel)
        if self._holder.recovered(channel) and not self.crossing.is_recovering(channel):
            self._resume(channel)

    def _resume(self, channel: int) -> None:
        self._release(self._holder.resume(channel))
        _answer_flow(self, channel, active=True)

    def _release(self, data: bytes) -> None:
        """What was kept goes to the client."""
        self.is_releasing = True
        try:
            self.relay.send(Side.CLIENT, data)
        finally:
            self.is_releasing = False

    def settles(self, channel: int, method: Settling, instead: bytes | None = None) -> None:
        """The client acks, nacks or rejects on a channel that is stopped or limited here.

        The broker gets the frames that are ``instead`` of the method; None: what is left of it.
        """
        for told in self._holder.settles(channel, method):
            settlement.settled(self.relay.channels, channel, told)
            self.relay.send(Side.UPSTREAM, method_frame(channel, told) if instead is None else instead)
        self.go_on(channel)

    def asks(self, channel: int, method: Method) -> None:
        """The client's method is about to pass."""
        if channel not in self.flows:
            return
        if isinstance(method, amqp.TxSelect | amqp.TxCommit | amqp.TxRollback):
            self.flows.transact(channel, method)
            self.go_on(channel)

    def published(self, channel: int) -> None:
        """A frame of the client's was shown: if it was a message's last, its channel may be closed now."""
        self._holder.published(channel)

    def sent(self, channel: int) -> None:
        """A message to the client has ended."""
        data = self._holder.message_ended(channel)
        if data:
            self._release(data)

    def limit(self, channel: int, *, is_global: bool) -> None:
        """Limits have changed, or there are more consumers."""
        prefetch = self.crossing.prefetch
        self.flows.limit_all(prefetch.all)
        for number in prefetch.numbers if is_global else (channel,):
            if self.relay.channels.state(number) != OPEN:
                continue
            if prefetch.is_kept_here(number):
                self.flows.limit_to(number, prefetch.limit(number))
            else:
                self.flows.lift(number)
        self.go_on(channel)

    def keep(self, channel: int, limit: int | None, *, has_deliveries: bool = True) -> None:
        """The client may have so many deliveries of the channel, 0: any number; None: the broker sees to it.

        ``has_deliveries``: it may have some now.
        """
        if limit is not None:
            self.flows.limit_to(channel, limit, has_deliveries=has_deliveries)
        else:
            self.flows.lift(channel)
        self.go_on(channel)

    def resize(self, channel: int) -> None:
        """Consumers of the channel may have to be wider, or narrower, at the broker (`channel_prefetch`)."""
        channels = self.flows.channels
        prefetch = self.flows.prefetch(channel)
        if prefetch is None or self.relay.channels.state(channel) != OPEN:
            return
        if channels.states[channel].close is not None:
            return
        told = b""
        for method in prefetch.resize():
            channels.upstream.request(channel, method, None)
            told += method_frame(channel, method)
        if told:
            self.tells_broker(channel, told)
        self.narrowed(channel)

    def narrowed(self, channel: int) -> None:
        """What is kept of consumers that are narrower now is for others."""
        prefetch = self.flows.prefetch(channel)
        if prefetch is not None and channel in self.flows:
            self._holder.give_back(channel, prefetch.take_narrowed())

    def go_on(self, channel: int) -> None:
        """The client may have room for more, or what waited may pass."""
        for number in self.flows.numbers if self.flows.limit_of_all else (channel,):
            data = self._holder.release(number)
            if data:
                self._release(data)

    def keep_reference(
        self,
        channel: int,
        method: amqp.BasicDeliver,
        header: memoryview,
        fetch: Callable[[HeldDelivery], None],
        *,
        is_here: bool,
    ) -> HeldDelivery | None:
        """A reference to a body in an object store has come. None: it is not kept.

        ``fetch`` is called when its body is to be got; maybe now. ``is_here``: it has been got already.
        """
        references = self._holder.references
        if not references.takes(channel, method):
            return None
        one = references.keep(channel, method, header, fetch)
        if is_here:
            references.is_here(channel, one)
        self._release(self._holder.kept(channel))
        self.go_on(channel)
        return one

    def shows(self, channel: int, one: HeldDelivery, show: Callable[[], None]) -> bool:
        """The body of a reference is here: whether the client gets it now, by ``show``."""
        if not self._holder.references.shows(channel, one):
            return False
        self.is_releasing = True
        try:
            show()
        finally:
            self.is_releasing = False
        return True

    def lose(self, channel: int, one: HeldDelivery) -> None:
        """The body of a reference is lost, and the client does not get it."""
        self._holder.references.lose(channel, one)

    def rest(self) -> Iterator[memoryview]:
        """What the client gets of what was kept when the session has left the data path."""
        return frames_of(self._holder.rest())

    def released(self, frame: Bytes) -> Iterator[Bytes]:
        """What goes to the client now, where its channel may be stopped."""
        kind, number, _ = FRAME_HEAD.unpack_from(frame)
        if kind == FRAME_METHOD and method_index(frame) == amqp.ConnectionClose.INDEX:
            yield from frames_of(self._holder.end_all())
        if number not in self.flows or self.is_releasing:
            yield frame
        elif kind != FRAME_METHOD:
            yield from frames_of(self._holder.on_content(number, frame))
        elif method_index(frame) in INDEXES:
            method = decode_method(frame[7:-1])
            if isinstance(method, amqp.BasicDeliver):
                named = self.flows.for_client(number, method)
                if named is not method:
                    method, frame = named, method_frame(number, named)
            yield from frames_of(self._holder.on_method(number, method, frame))
        else:
            yield frame


def behind(
    flows: ChannelFlows, crossing: Crossing, channel: int, method: Method
) -> Iterator[amqp.BasicNack | amqp.BasicReject]:
    """What the broker is told behind a method of the client's: of a rollback, what it has again all the same.

    The client has never had it, and its next ack of several would be one of that, too.
    """
    held = flows.get(channel) if isinstance(method, amqp.TxRollback) else None
    for tag in () if held is None else held.given:
        told = _gives_back(crossing)(tag, requeue=True)
        settlement.settled(flows.channels.table, channel, told)
        yield told


def _answer_flow(control: FlowControl, channel: int, *, active: bool) -> None:
    control.crossing.answers_flow(channel)
    control.publish_denial.tell(channel, method_frame(channel, amqp.ChannelFlowOk(active)))


def _gives_back(crossing: Crossing) -> type[amqp.BasicNack | amqp.BasicReject]:
    return amqp.BasicNack if crossing.broker.speaks(amqp.BasicNack) else amqp.BasicReject


def frames_of(data: Bytes) -> Iterator[memoryview]:
    """Whole frames, one by one."""
    view = memoryview(data)
    at = 0
    while at < len(view):
        stop = at + FRAME_HEAD.unpack_from(view, at)[2] + FRAME_OVERHEAD
        yield view[at:stop]
        at = stop


def method_index(frame: Bytes) -> int:
    """The class and method of a method frame, as one number."""
    return int.from_bytes(frame[7:11], "big")

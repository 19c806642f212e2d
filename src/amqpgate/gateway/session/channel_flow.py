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

Which channels these are, and which of them have room, is here; `delivery_holder` has what passes meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs

from amqpgate.datapath.unacked import Unacked
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.channel_prefetch import ChannelPrefetch
from amqpgate.gateway.session.held_deliveries import HeldDeliveries
from amqpgate.gateway.session.shown_deliveries import ShownDeliveries
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@define(eq=False)
class ChannelFlows:
    """The channels of one session that are stopped, or limited here."""

    channels: SessionChannels
    #: Called when a channel is stopped or limited, and when it is not any more.
    on_change: Callable[[], None]
    #: Whether somebody else wants to be shown what the client of a channel settles.
    are_settles_watched: Callable[[int], bool] = lambda _: False
    #: The delivery tag from which on the client of a channel has seen none. None: it has seen all.
    hidden_from: Callable[[int], int | None] = lambda _: None
    #: Deliveries that the client may have and not acknowledge on all channels; 0: any number.
    limit_of_all: int = 0
    _held: dict[int, HeldDeliveries] = attrs.field(factory=dict, init=False)

    def __bool__(self) -> bool:
        """Whether any channel is stopped, or limited here."""
        return bool(self._held)

    def __contains__(self, number: int) -> bool:
        """Whether this channel is."""
        return number in self._held

    @property
    def numbers(self) -> tuple[int, ...]:
        """The channels."""
        return tuple(self._held)

    def get(self, number: int) -> HeldDeliveries | None:
        """What is kept for a channel; None: it is neither stopped nor limited."""
        return self._held.get(number)

    def prefetch(self, number: int) -> ChannelPrefetch | None:
        """What is told the broker of the channel's limits; None: what the client says."""
        state = self.channels.states.remembered(number)
        return None if state is None or state.consuming is None else state.consuming.prefetch

    def is_acked(self, number: int, tag: str) -> bool:
        """Whether the broker counts what a consumer is sent as acknowledged. Also where that is not known."""
        consuming = self.channels.states[number].consuming
        return consuming is None or consuming.is_acked(tag)

    def for_client(self, number: int, method: amqp.BasicDeliver) -> amqp.BasicDeliver:
        """The delivery with the client's name of the consumer (`channel_prefetch`)."""
        prefetch = self.prefetch(number)
        if prefetch is None:
            return method
        tag = prefetch.client_tag(method.consumer_tag)
        return method if tag == method.consumer_tag else attrs.evolve(method, consumer_tag=tag)

    def _of(self, number: int, *, has_deliveries: bool = True) -> HeldDeliveries:
        """What there is of the channel, or something new. ``has_deliveries``: the client may have some."""
        held = self._held.get(number)
        if held is None:
            table, hidden = self.channels.table, self.hidden_from(number)
            tags = table.unacked_tags(number) if has_deliveries else []
            if tags and hidden is not None:
                tags = [(first, min(end, hidden)) for first, end in tags if first < hidden]
            out = Unacked(stretches=tags or [], next=tags[-1][1] if tags else 0)
            out.blurred = 0 if tags is not None else None
            held = self._held[number] = HeldDeliveries(ShownDeliveries(out))
            if self.transacts(number):
                held.shown.join_transaction(table.uncommitted(number) if has_deliveries else 0)
            table.show_settles(number)
            self.on_change()
        return held

    def leave(self, number: int) -> None:
        """Nothing is kept for the channel any more, nor will be."""
        del self._held[number]
        if self.channels.table.state(number) and not self.are_settles_watched(number):
            self.channels.table.show_settles(number, False)
        self.on_change()

    # -- what the client wants ---------------------------------------------------------------

    def is_off(self, number: int) -> bool:
        """Whether its client wants no deliveries."""
        held = self._held.get(number)
        return held is not None and held.is_off

    def stop(self, number: int) -> None:
        """Keep what is delivered from now on. A message that is under way goes to its end."""
        self._of(number).stop()

    def postpone(self, number: int) -> None:
        """Deliver again once the broker has recovered."""
        self._held[number].postpone()

    def limit_to(self, number: int, count: int, *, has_deliveries: bool = True) -> None:
        """Keep what is delivered beyond so many; 0: there is the connection's limit only.

        ``has_deliveries``: the client may have some now.
        """
        self._of(number, has_deliveries=has_deliveries).limit_to(count)

    def limit_all(self, count: int) -> None:
        """So many may the client have on all channels from now on; 0: any number."""
        self.limit_of_all = count

    def lift(self, number: int) -> None:
        """There is no limit any more, or the broker keeps to it."""
        held = self._held.get(number)
        if held is not None:
            held.lift()

    def transact(self, number: int, method: Method) -> None:
        """The client's transaction begins or ends."""
        held = self._held.get(number)
        if held is None:
            return
        if isinstance(method, amqp.TxRollback):
            held.shown.roll_back()
        elif isinstance(method, amqp.TxCommit | amqp.TxSelect):
            held.shown.begin_transaction()
            held.commit()

    # -- what it has room for ----------------------------------------------------------------

    def room(self, number: int) -> float:
        """How many more deliveries the client may have on the channel."""
        held = self._held[number]
        here = held.limit - self._count(number, held) if held.limit else math.inf
        return min(here, self.limit_of_all - self._count_all()) if self.limit_of_all else here

    def transacts(self, number: int) -> bool:
        """Whether the channel has transactions."""
        state = self.channels.states.get(number)
        return state is not None and state.transacts

    def _count(self, number: int, held: HeldDeliveries) -> int:
        """What the client has on the channel."""
        return held.count(transacts=self.transacts(number))

    def _count_all(self) -> int:
        """What it has on all channels."""
        return sum(self._count(number, held) for number, held in self._held.items())

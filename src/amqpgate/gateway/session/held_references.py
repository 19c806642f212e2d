"""References to bodies in an object store (`claim_delivery`) among the deliveries that wait on a channel.

What waits is the reference, not the body: a limit of the channel may hold back as many large messages as
the broker delivers, in little memory. The body is asked for when the client may have the message, one at a
time on a channel, and what is behind it waits.

::

    a reference comes ──▶ kept ── has room, is not off ──▶ fetching ── the body is here ──▶ to the client
                           ▲ │                               │  │
                           │ └─ consumer ends, or narrower ──│──┴─▶ the broker has it again
                           └──── channel.flow off ───────────┘

Consumers that do not acknowledge have no limit. While their client wants no deliveries their messages are
kept with their bodies: the broker could not give them again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.gateway.session.channel_flow import ChannelFlows
from amqpgate.gateway.session.held_deliveries import HeldBytes, HeldDeliveries, HeldDelivery
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp


@define(eq=False)
class HeldReferences:
    """Those of one session."""

    flows: ChannelFlows
    bytes: HeldBytes

    def takes(self, number: int, method: amqp.BasicDeliver) -> bool:
        """Whether a delivery would be kept as a reference, on a channel that is stopped or limited."""
        return number in self.flows and not self.flows.is_acked(number, method.consumer_tag)

    def keep(
        self,
        number: int,
        method: amqp.BasicDeliver,
        header: memoryview,
        fetch: Callable[[HeldDelivery], None],
    ) -> HeldDelivery:
        """One has come, with this frame as its header. ``fetch`` asks for its body, when it may go."""
        held = self.flows.get(number)
        assert held is not None, "it is stopped or limited"
        one = HeldDelivery(method.consumer_tag, method.delivery_tag, is_acked=False, fetch=fetch)
        self.bytes.keep(held, one)
        self.bytes.add(held, header)
        # No content follows.
        held.begin()
        return one

    def is_here(self, number: int, one: HeldDelivery) -> None:
        """The body of one that is kept last has been got already: it may go now, if it is the next one."""
        held = self.flows.get(number)
        if (
            held is not None
            and not held.is_off
            and held.kept.first_waiting is one
            and self.flows.room(number) > 0
        ):
            held.begin_fetch(one)

    def fetch(self, number: int, held: HeldDeliveries, one: HeldDelivery) -> None:
        """Ask for the body of one that may go, but not within a message from the broker."""
        table = self.flows.channels.table
        if table.due(Side.UPSTREAM, number) == METHOD_NEXT:
            held.begin_fetch(one)
            assert one.fetch is not None, "it is a reference"
            one.fetch(one)
        else:
            held.wait_for_end(is_due=True)
            table.show_rest(Side.UPSTREAM, number)

    def shows(self, number: int, one: HeldDelivery) -> bool:
        """The body is here: whether the client gets it now.

        If not, the message waits until the client wants deliveries, or the broker has it again.
        """
        held = self.flows.get(number)
        if held is None or held.fetching is not one:
            return False
        held.end_fetch()
        if held.is_off:
            return False
        self.bytes.take_these(held, [one])
        held.shown.delivered(one.number)
        held.begin()
        return True

    def lose(self, number: int, one: HeldDelivery) -> None:
        """The body is lost, and the client does not get the message."""
        held = self.flows.get(number)
        if held is not None:
            self.bytes.take_these(held, [one])


def before_references(held: HeldDeliveries) -> list[HeldDelivery]:
    """Of what is kept, that which comes before the first reference."""
    return list(takewhile(lambda one: one.fetch is None, held.kept))

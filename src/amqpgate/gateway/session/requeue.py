"""basic.nack with requeue as basic.reject, so that it counts towards the delivery limit of a quorum queue.

To RabbitMQ 4.3 a message that is given back by basic.nack has not failed, so one that nobody can use goes
round for ever; by basic.reject it has. To classic queues both are the same. What a nack of several means are
the deliveries that the client has and has not settled, up to its tag (AMQP 0-9-1, basic.nack.multiple): the
data path counts them (``datapath.unacked``).

Where it is not known which those are, or there are more than `MOST`, or the tag is none of them, the broker
gets the nack as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.protocol.frames import FRAME_END, FRAME_METHOD
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session

#: Messages of one nack that are rejected one by one: a third of a MiB.
MOST: Final = 1 << 14

#: basic.reject with requeue: type, channel and size of the frame, class and method, delivery tag, flags, end.
_REJECT: Final = struct.Struct("!BHIHHQBB")
_SIZE: Final = 13


@frozen
class Stretches:
    """Delivery tags, as a first one and the one behind the last of each, oldest first; without ``but``."""

    stretches: Iterable[tuple[int, int]]
    but: frozenset[int] = frozenset()

    def through(self, tag: int) -> Iterator[int]:
        """Those up to a tag; of 0 all."""
        for first, end in self.stretches:
            for one in range(first, min(end, tag + 1) if tag else end):
                if one not in self.but:
                    yield one


def rejected(nack: amqp.BasicNack, unsettled: Stretches | None) -> list[int] | None:
    """The delivery tags that are rejected in a nack's place; None: it passes as it is.

    ``unsettled`` are those that the client has not settled, if they are known.
    """
    if not nack.requeue:
        return None
    if not nack.multiple:
        return [nack.delivery_tag]
    if unsettled is None:
        return None
    tags: list[int] = []
    for tag in unsettled.through(nack.delivery_tag):
        if len(tags) == MOST:
            return None
        tags.append(tag)
    is_known = bool(tags) and nack.delivery_tag in (0, tags[-1])
    return tags if is_known else None


def nacks(session: Session, channel: int, nack: amqp.BasicNack) -> bool:
    """The client gives messages back: whether that has been done here."""
    profile = session.session_policies.compatibility
    if profile is None or not profile.counts_nacks or not session.facts.is_native:
        return False
    table = session.relay.channels
    held = None if session.bridge is None else session.bridge.channel_flows.get(channel)
    unacked = table.unacked_tags(channel) if nack.multiple else None
    waiting = frozenset() if held is None else frozenset(one.number for one in held.waiting)
    tags = rejected(nack, None if unacked is None else Stretches(unacked, waiting))
    if tags is None:
        return False
    told = Adapted(nack, ("requeue",))
    for observer in session.session_policies.observers:
        observer.adapted(channel, nack, profile.policy, told)
    if held is not None and session.bridge is not None:
        for tag in tags:
            session.bridge.flow_control.settles(channel, amqp.BasicReject(tag, requeue=True))
        return True
    settlement.settled(table, channel, nack)
    session.relay.send(Side.UPSTREAM, b"".join(_reject(channel, tag) for tag in tags))
    return True


def _reject(channel: int, tag: int) -> bytes:
    kind = amqp.BasicReject
    return _REJECT.pack(FRAME_METHOD, channel, _SIZE, kind.CLASS_ID, kind.METHOD_ID, tag, 1, FRAME_END)

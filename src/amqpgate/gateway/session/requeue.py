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
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.protocol.frames import FRAME_END, FRAME_METHOD
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session.held_deliveries import HeldDeliveries
    from amqpgate.gateway.session.session import Session

#: Messages of one nack that are rejected one by one: a third of a MiB.
MOST: Final = 1 << 14

#: basic.reject with requeue: type, channel and size of the frame, class and method, delivery tag, flags, end.
_REJECT: Final = struct.Struct("!BHIHHQBB")
_SIZE: Final = 13
#: Where its delivery tag is.
_TAG: Final = 11


def rejected(nack: amqp.BasicNack, unsettled: Iterable[tuple[int, int]] | None) -> list[int] | None:
    """The delivery tags that are rejected in a nack's place; None: it passes as it is.

    ``unsettled`` are those that the client has and has not settled, if they are known: as a first one and the
    one behind the last of each stretch, oldest first.
    """
    if not nack.requeue:
        return None
    if not nack.multiple:
        return [nack.delivery_tag]
    if unsettled is None:
        return None
    through, tags = nack.delivery_tag, list[int]()
    for first, end in unsettled:
        some = range(first, min(end, through + 1) if through else end)
        if len(tags) + len(some) > MOST:
            return None
        tags.extend(some)
    is_known = bool(tags) and through in (0, tags[-1])
    return tags if is_known else None


def nacks(session: Session, channel: int, nack: amqp.BasicNack) -> bool:
    """The client gives messages back: whether that has been done here."""
    profile = session.session_policies.compatibility
    if profile is None or not profile.counts_nacks or not session.facts.is_native:
        return False
    table = session.relay.channels
    held = None if session.bridge is None else session.bridge.channel_flows.get(channel)
    tags = rejected(nack, _unsettled(session, channel, held) if nack.multiple else None)
    if tags is None:
        return False
    told = Adapted(nack, ("requeue",))
    for observer in session.session_policies.observers:
        observer.adapted(channel, nack, profile.policy, told)
    rejects = _rejects(channel, tags)
    if held is not None and session.bridge is not None:
        session.bridge.flow_control.settles(channel, nack, rejects)
        return True
    settlement.settled(table, channel, nack)
    session.relay.send(Side.UPSTREAM, rejects)
    return True


def _unsettled(
    session: Session, channel: int, held: HeldDeliveries | None
) -> Iterable[tuple[int, int]] | None:
    """What the client of a channel has and has not settled; None: that is not known."""
    unsettled = session.relay.channels.unacked_tags(channel)
    if held is None or not held.kept.waiting or unsettled is None:
        return unsettled
    shown = held.shown.unacked
    if session.channels.states[channel].gets is None and shown.blurred == 0 and not shown.is_lost:
        return shown.stretches
    # It is not known what was got: all that waits goes back to the broker then (`delivery_holder`).
    return list(_without(held.kept.waiting, unsettled))


def _without(waiting: Container[int], stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for first, end in stretches:
        for tag in range(first, end):
            if tag in waiting:
                if first < tag:
                    yield first, tag
                first = tag + 1
        if first < end:
            yield first, end


def _rejects(channel: int, tags: list[int]) -> bytes:
    """basic.reject with requeue of each: there may be thousands, and others wait meanwhile."""
    kind = amqp.BasicReject
    one = _REJECT.pack(FRAME_METHOD, channel, _SIZE, kind.CLASS_ID, kind.METHOD_ID, 0, 1, FRAME_END)
    frames = bytearray(one * len(tags))
    numbers = struct.pack(f"!{len(tags)}Q", *tags)
    for at in range(8):
        frames[_TAG + at :: len(one)] = numbers[at::8]
    return bytes(frames)

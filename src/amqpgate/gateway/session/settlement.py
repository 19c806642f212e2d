"""What the data path must be told to count a channel's unacknowledged deliveries (``datapath.unacked``).

It sees deliveries, acks, and answers to basic.get. What it cannot see there is told here: which of them want
an ack, and what else settles them, or does not after all.

A consumer says by no-ack in its basic.consume whether its deliveries want acks. As long as all consumers of a
channel say the same, that is all. With both kinds the data path goes by consumer tags, from the broker's
consume-ok on, before which it delivers nothing of that consumer. Where that does not tell, nobody knows the
number: a consumer asked for with no-wait, one with another's tag whose cancel is not answered yet, one that
is not remembered (``consumers.ROOM``), one for direct replies that is asked for at once with others.
"""

from __future__ import annotations

from typing import Final

from amqpgate.datapath.scanner import Channels
from amqpgate.gateway.session.channel_consumers import ACKS, SILENT, ChannelConsumers
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: How a client settles deliveries.
Settling = amqp.BasicAck | amqp.BasicNack | amqp.BasicReject

_BOTH: Final = ACKS | SILENT


def consumes(table: Channels, number: int, consuming: ChannelConsumers, method: amqp.BasicConsume) -> None:
    """The client asks for a consumer, which is not yet among those of the channel."""
    was_silent = consuming.kinds == SILENT
    consuming.add_kind(SILENT if method.no_ack else ACKS)
    if consuming.kinds == ACKS:
        consuming.count_acks()
        table.acks_deliveries(number)
    elif consuming.kinds == _BOTH:
        is_used_again = method.consumer_tag in consuming.cancels
        has_nameless = was_silent and bool(consuming.nameless)
        if method.no_wait or consuming.has_more or is_used_again or has_nameless:
            table.lose_unacked(number)


def named(table: Channels, number: int, consuming: ChannelConsumers, tag: str) -> None:
    """The broker has said that it is there."""
    if consuming.kinds != _BOTH:
        return
    consumer = consuming.tags.get(tag)
    if consumer is None or consuming.has_more or len(consumer.operations) > 1:
        table.lose_unacked(number)
    elif consumer.no_ack:
        table.silence(number, _bytes(tag))
    elif consuming.acks:
        table.unsilence(number, _bytes(tag))
    else:
        # The first that acks: all that was delivered until now is of others, which do not.
        consuming.count_acks()
        table.acks_deliveries(number)
        for other in (*consuming.tags, *consuming.cancels):
            if other != tag and (other in consuming.cancels or consuming.tags[other].no_ack):
                table.silence(number, _bytes(other))


def gone(table: Channels, number: int, consuming: ChannelConsumers, tag: str) -> None:
    """Nothing is delivered to it any more: the broker has said so."""
    if consuming.kinds == _BOTH:
        table.unsilence(number, _bytes(tag))


def asked(table: Channels, number: int, method: Method, *, transacts: bool) -> None:
    """What the client has asked for goes on. ``transacts``: it had selected transactions before."""
    match method:
        case amqp.BasicGet(no_ack=no_ack):
            table.gets(number, not no_ack)
        case amqp.BasicRecoverAsync():
            table.recovers_unheard(number)
        case amqp.TxCommit():
            table.committed(number)
        case amqp.TxSelect() if not transacts:
            table.committed(number)
        case amqp.TxRollback():
            table.rolled_back(number)


def settled(table: Channels, number: int, method: Method) -> None:
    """What the data path has shown goes on."""
    match method:
        case (
            amqp.BasicAck(delivery_tag=tag, multiple=multiple)
            | amqp.BasicNack(delivery_tag=tag, multiple=multiple)
        ):
            table.settled(number, tag, multiple)
        case amqp.BasicReject(delivery_tag=tag):
            table.settled(number, tag, False)


def _bytes(tag: str) -> bytes:
    return tag.encode("utf-8", "surrogateescape")

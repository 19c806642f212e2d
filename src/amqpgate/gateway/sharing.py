"""Which operations a shared link cannot carry, for what they do is kept by connection, or ends it.

=====================================  ===============================================  ==================
operation                              why                                              if it cannot be had
=====================================  ===============================================  ==================
queue.declare exclusive                the queue is the connection's, and ends with it  `exclusives`
basic.consume no-ack, or no prefetch   nothing bounds what comes to a client that does  ``maxWaiting``
count; direct reply-to                 not read
basic.consume, ``consumers: own``      a link that is blocked for who publishes blocks  it waits with them
                                       who consumes
basic.publish immediate                RabbitMQ ends the connection                     540, as RabbitMQ
basic.recover without requeue          likewise                                         540, as RabbitMQ
basic.qos with a prefetch size         likewise                                         540, as RabbitMQ
channel.flow off                       likewise, unless ``channelFlow: gateway``         540, as RabbitMQ
basic.qos global, not of RabbitMQ      it is about the whole connection                 406
exchange.declare of an unusual type    likewise, where it lacks the type                503; 406 for ``x-``
connection.update-secret               it is the connection's login that changes        540
a message above ``maxBody``            half of it must not stay if its client vanishes  ``maxCollected``
=====================================  ===============================================  ==================

Before them a session gets a connection of its own, if it can (`why_fixed`).

A consumer tag that is in use (530) is refused here: what RabbitMQ would end is the client's own connection.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.consumers import REPLIES
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.closes import Channel
    from amqpgate.gateway.session import Session

#: Exchange types that every broker has (AMQP 0-9-1, section 3.1.3).
_EXCHANGE_TYPES: Final = frozenset({"direct", "fanout", "topic", "headers"})


class Needs(Enum):
    """Whether an operation needs a connection of its own."""

    NOTHING = "nothing"
    #: It is better there.
    RATHER = "rather"
    MUST = "must"


def asks_for(
    method: Method,
    state: Channel | None,
    *,
    may_consume: bool,
    is_rabbitmq: bool,
    keeps_deliveries: bool = False,
) -> Needs:
    """What a client's method needs; ``may_consume``: a consumer that acknowledges may share;
    ``keeps_deliveries``: channel.flow off is done here.

    Raises ``ProtocolViolation`` for what would end the link.
    """
    match method:
        case amqp.QueueDeclare(exclusive=True, passive=False, no_wait=no_wait):
            return Needs.MUST if no_wait else Needs.RATHER
        case amqp.BasicConsume():
            _check_tag(method, state)
            is_bounded = may_consume and not method.no_ack and not method.queue.startswith(REPLIES)
            return Needs.NOTHING if is_bounded else Needs.RATHER
        case amqp.BasicPublish(immediate=True):
            return Needs.MUST
        case amqp.BasicRecover(requeue=False) | amqp.BasicRecoverAsync(requeue=False):
            return Needs.MUST
        case amqp.ChannelFlow(active=False) if not keeps_deliveries:
            return Needs.MUST
        case amqp.BasicQos(prefetch_size=size, global_=is_global):
            # By the standard global means the connection, in RabbitMQ the channel.
            return Needs.MUST if size or (is_global and not is_rabbitmq) else Needs.NOTHING
        case amqp.ExchangeDeclare(passive=False, type=kind) if kind not in _EXCHANGE_TYPES:
            return Needs.MUST
        case amqp.ConnectionUpdateSecret():
            return Needs.MUST
    return Needs.NOTHING


def refusal_of(method: Method, channel: int, why: str | None) -> ProtocolViolation:
    """What a client hears whose operation needs a connection of its own, which it cannot have."""
    ids = {"class_id": method.CLASS_ID, "method_id": method.METHOD_ID}
    match method:
        case amqp.BasicPublish():
            return ProtocolViolation(540, "immediate=true", **ids)
        case amqp.BasicRecover() | amqp.BasicRecoverAsync():
            return ProtocolViolation(540, "requeue=false", **ids)
        case amqp.BasicQos(prefetch_size=size) if size:
            return ProtocolViolation(540, f"prefetch_size!=0 ({size})", **ids)
        case amqp.ChannelFlow():
            return ProtocolViolation(540, "active=false", **ids)
        case amqp.ExchangeDeclare(type=kind) if not kind.startswith("x-"):
            return ProtocolViolation(503, f"unknown exchange type '{kind}'", **ids)
    text = f"'{method.NAME}' needs a connection to the broker that is not shared, and {why}"
    return ProtocolViolation(406 if channel else 540, text, channel=channel, **ids)


def _check_tag(method: amqp.BasicConsume, state: Channel | None) -> None:
    consuming = None if state is None else state.consuming
    if consuming is not None and method.consumer_tag in consuming.tags:
        raise ProtocolViolation(
            530,
            f"attempt to reuse consumer tag '{method.consumer_tag}'",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
        )


def why_fixed(session: Session) -> str | None:
    """Why a session cannot leave its link any more without its client's seeing it; None: it can."""
    for number, state in session.closes.channels.items():
        if state.transacts:
            return "a transaction is under way"
        if state.consuming is not None and any(state.consuming):
            return "it consumes"
        if state.ledger is not None:
            return "publishes were refused"
        if session.relay.channels.messages(Side.UPSTREAM, number):
            return "messages have been delivered to it"
        if session.relay.channels.due(Side.CLIENT, number) != METHOD_NEXT:
            return "a message is under way"
    return None

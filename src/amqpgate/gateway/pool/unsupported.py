"""Which operations a shared connection cannot carry, for what they do is kept by connection, or ends it.

=====================================  ===============================================  ==================
operation                              why                                              if it cannot be had
=====================================  ===============================================  ==================
queue.declare exclusive                the queue is the connection's, and ends with it  `exclusives`
basic.consume no-ack, or no prefetch   nothing bounds what comes to a client that does  ``maxWaiting``
count; direct reply-to                 not read
basic.consume, ``consumers: own``      one that is blocked for who publishes blocks     it waits with them
                                       who consumes
basic.publish immediate                RabbitMQ ends the connection                     540, as RabbitMQ
basic.recover without requeue          likewise                                         540, as RabbitMQ
basic.qos with a prefetch size         likewise                                         540, as RabbitMQ
channel.flow off                       likewise, unless ``channelFlow: gateway``         540, as RabbitMQ
basic.qos global, not of RabbitMQ      it is about the whole connection                 406
exchange.declare of an unusual type    likewise, where it lacks the type                503; 406 for ``x-``
queue.declare, neither durable nor     RabbitMQ 4 may end the connection; but where a   406
exclusive                              compatibility policy makes it durable
arguments that are unusual             likewise, where they are wrong (`queue_types`)   406
queue.delete if unused or if empty     likewise, of a quorum queue; but where a          540; 406
                                       compatibility policy asks about it
basic.get, queue.purge; basic.consume  likewise, of a stream                            540 where it is one
without acknowledgements
basic.consume with a global qos        likewise, of a quorum queue or a stream          540 where it is one
basic.get, ``consumers: own``          as basic.consume                                 it shares
basic.get of an unknown queue          it may be a stream (`queue_types`)               it shares
connection.update-secret               it is the connection's login that changes        540
a message above ``maxBody``            half of it must not stay if its client vanishes  ``maxCollected``
=====================================  ===============================================  ==================

Before them a session gets a connection of its own, if it can (`why_fixed`).

A consumer tag that is in use (530) is refused here: what RabbitMQ would end is the client's own connection.
So is an answer that the broker has not asked for (503), and a consumer where so many are there that their
tags are not known any more (406).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.queue_types import QUORUM, STREAM, is_usual
from amqpgate.gateway.session.channel_consumers import REPLIES
from amqpgate.policy.engine.operations import SERVER_NAMED
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.session.channel_close import SessionChannel
    from amqpgate.gateway.session.session import Session

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
    state: SessionChannel | None,
    *,
    channel: int = 0,
    may_consume: bool,
    is_rabbitmq: bool,
    may_deny_transients: bool = False,
    consumers_share: bool = True,
    kind: str | None = None,
    is_known: bool = True,
    is_limited: bool = False,
    keeps_deliveries: bool = False,
) -> Needs:
    """What a client's method needs; ``may_consume``: a consumer that acknowledges may share;
    ``keeps_deliveries``: channel.flow off is done here.

    ``kind`` is the type of the method's queue, if it is known to be a quorum queue or a stream; not
    ``is_known``: it may be one;
    ``is_limited``: the channel has a global qos. Raises ``ProtocolViolation`` for what would end
    the connection.
    """
    match method:
        case amqp.QueueDeclare(exclusive=True, passive=False, no_wait=True):
            return Needs.MUST
        case amqp.QueueDeclare(passive=False) | amqp.BasicConsume() if not is_usual(method):
            _check_tag(method, channel, state)
            return Needs.MUST
        case amqp.QueueDeclare(exclusive=True, passive=False):
            return Needs.RATHER
        case amqp.QueueDeclare(durable=False, passive=False) if may_deny_transients:
            return Needs.MUST
        case amqp.BasicConsume():
            _check_tag(method, channel, state)
            if (kind is not None and is_limited) or (kind == STREAM and method.no_ack):
                return Needs.MUST
            is_bounded = may_consume and not method.no_ack and not method.queue.startswith(REPLIES)
            return Needs.NOTHING if is_bounded and not (is_limited and is_rabbitmq) else Needs.RATHER
        case amqp.BasicGet() | amqp.QueuePurge() if kind == STREAM:
            return Needs.MUST
        case amqp.QueuePurge() if is_rabbitmq:
            return Needs.RATHER
        case amqp.BasicGet() if is_rabbitmq and not is_known:
            return Needs.RATHER
        case amqp.BasicGet():
            return Needs.NOTHING if consumers_share else Needs.RATHER
        case amqp.QueueDelete(if_unused=if_unused, if_empty=if_empty) if is_rabbitmq:
            return Needs.MUST if if_unused or if_empty else Needs.NOTHING
        case amqp.BasicPublish(immediate=True):
            return Needs.MUST
        case amqp.BasicRecover(requeue=False) | amqp.BasicRecoverAsync(requeue=False):
            return Needs.MUST
        case amqp.ChannelFlow(active=False) if not keeps_deliveries:
            return Needs.MUST
        case amqp.BasicQos(prefetch_size=size, global_=is_global):
            # By the standard global means the connection, in RabbitMQ the channel.
            return Needs.MUST if size or (is_global and not is_rabbitmq) else Needs.NOTHING
        case amqp.ExchangeDeclare(passive=False, type=type_):
            return Needs.NOTHING if type_ in _EXCHANGE_TYPES and is_usual(method) else Needs.MUST
        case amqp.ConnectionUpdateSecret():
            return Needs.MUST
    return Needs.NOTHING


def refusal_of(
    method: Method, channel: int, why: str | None, *, queue: str = "", kind: str | None = None
) -> ProtocolViolation:
    """What a client hears whose operation needs a connection of its own, which it cannot have.

    ``queue`` is the method's, as RabbitMQ names it with its virtual host; ``kind`` is its type, if known.
    """
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
        case amqp.ExchangeDeclare(type=type_) if type_ not in _EXCHANGE_TYPES and not type_.startswith("x-"):
            return ProtocolViolation(503, f"unknown exchange type '{type_}'", **ids)
        case amqp.BasicGet() | amqp.QueuePurge() if kind is not None:
            return ProtocolViolation(540, f"{method.NAME} not supported by {kind} queues {queue}", **ids)
        case amqp.BasicConsume(no_ack=True) if kind == STREAM:
            text = f"automatic acknowledgement not supported by stream queues {queue}"
            return ProtocolViolation(540, text, **ids)
        case amqp.BasicConsume() if kind is not None:
            return ProtocolViolation(540, f"{queue} does not support global qos", **ids)
        case amqp.QueueDelete(if_unused=if_unused) if kind == QUORUM:
            flag = "if-unused" if if_unused else "if-empty"
            text = (
                f"cannot delete {queue}. queue.delete operations with {flag} flag set are not supported by "
                "quorum queues"
            )
            return ProtocolViolation(540, text, **ids)
    text = f"'{method.NAME}' needs a connection to the broker that is not shared, and {why}"
    return ProtocolViolation(406 if channel else 540, text, channel=channel, **ids)


def _check_tag(method: Method, channel: int, state: SessionChannel | None) -> None:
    consuming = None if state is None else state.consuming
    if consuming is None or not isinstance(method, amqp.BasicConsume):
        return
    if consuming.has_more:
        raise ProtocolViolation(
            406,
            "more consumers than a connection that is shared may have",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
            channel=channel,
        )
    if method.consumer_tag in consuming.tags:
        raise ProtocolViolation(
            530,
            f"attempt to reuse consumer tag '{method.consumer_tag}'",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
        )


def why_fixed(session: Session) -> str | None:
    """Why a session cannot leave its connection any more without its client's seeing it; None: it can."""
    for number, state in session.channels.states.items():
        if state.last_queue == SERVER_NAMED and not (state.declares and state.declares.due):
            return "a queue was declared whose name nobody has been told"
        if state.transacts:
            return "a transaction is under way"
        if state.consuming is not None and any(state.consuming):
            return "it consumes"
        if state.confirm_numbers is not None:
            return "publishes were refused"
        if session.relay.channels.messages(Side.UPSTREAM, number):
            return "messages have been delivered to it"
        if session.relay.channels.due(Side.CLIENT, number) != METHOD_NEXT:
            return "a message is under way"
    return None

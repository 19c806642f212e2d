"""Which operations a shared link cannot carry, for what they do is kept by connection, or ends it.

=====================================  =======================================================================
operation                              why it needs a link of its own
=====================================  =======================================================================
queue.declare exclusive                the queue is the connection's, and ends with it
basic.consume no-ack                   nothing bounds what the broker sends to a client that does not read
basic.consume, direct reply-to         it is always no-ack
basic.publish immediate                RabbitMQ ends the connection (540)
basic.recover without requeue          likewise (540)
basic.qos with a prefetch size         likewise (540); without, and global, RabbitMQ keeps it by channel
exchange.declare of an unusual type    RabbitMQ ends the connection where it lacks the type (503)
connection.update-secret               it is the connection's login that changes
a message above ``largestBody``        half of it must not stay on a link if its client vanishes
=====================================  =======================================================================

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


class Verdict(Enum):
    """Where an operation may go."""

    SHARED = "shared"
    OWN = "own"


def asks_for(method: Method, state: Channel | None) -> Verdict:
    """What a client's method needs. Raises ``ProtocolViolation`` for what would end the link."""
    match method:
        case amqp.QueueDeclare(exclusive=True, passive=False):
            return Verdict.OWN
        case amqp.BasicConsume():
            _check_tag(method, state)
            is_bounded = not method.no_ack and not method.queue.startswith(REPLIES)
            return Verdict.SHARED if is_bounded else Verdict.OWN
        case amqp.BasicPublish(immediate=True):
            return Verdict.OWN
        case amqp.BasicRecover(requeue=False) | amqp.BasicRecoverAsync(requeue=False):
            return Verdict.OWN
        case amqp.BasicQos(prefetch_size=size) if size:
            return Verdict.OWN
        case amqp.ExchangeDeclare(passive=False, type=kind) if kind not in _EXCHANGE_TYPES:
            return Verdict.OWN
        case amqp.ConnectionUpdateSecret():
            return Verdict.OWN
    return Verdict.SHARED


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

"""What a session asks of the broker on a link, and is answered, as far as the link or its pool must know."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from amqpgate.gateway.pool.channel_close import CloseStep
from amqpgate.gateway.pool.queue_types import type_of
from amqpgate.gateway.pool.unsupported import Needs, asks_for
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.pool.channel_mapping import ChannelMapping
    from amqpgate.gateway.pool.pooled_session import PooledSession
    from amqpgate.gateway.pool.shared_connection import SharedConnection

#: Methods for which a queue's type may matter.
_OF_A_QUEUE = amqp.BasicConsume | amqp.BasicGet | amqp.QueuePurge | amqp.QueueDelete

#: What a session says and hears of a channel's end.
SAID: Final[Mapping[type[Method], CloseStep]] = {
    amqp.ChannelClose: CloseStep.CLOSE,
    amqp.ChannelCloseOk: CloseStep.ANSWER,
}
_HEARD: Final[Mapping[type[Method], CloseStep]] = {
    amqp.ChannelClose: CloseStep.CLOSED,
    amqp.ChannelCloseOk: CloseStep.ANSWERED,
}


def is_exclusive(declare: amqp.QueueDeclare) -> bool:
    """Whether it asks for an exclusive queue."""
    return declare.exclusive and not declare.passive


def needs_of(
    riding: PooledSession, channel: int, method: Method, seat: ChannelMapping | None
) -> tuple[Needs, str | None, str]:
    """What a method needs; the type of its queue, if it matters, and how RabbitMQ names that.

    Raises ``ProtocolViolation`` as `sharing.asks_for`.
    """
    state = riding.session.closes.channels.get(channel)
    consumers_share = riding.pool.settings.consumers == "shared"
    kind, name, is_known = None, "", True
    if isinstance(method, _OF_A_QUEUE) and seat is not None and state is not None:
        name = riding.session.at_broker(method.queue or state.last_queue)
        kind = seat.pending_type(name) or riding.pool.queue_types.at(name)
        is_known = seat.is_pending(name) or riding.pool.queue_types.knows(name)
    needs = asks_for(
        method,
        state,
        channel=channel,
        may_consume=seat is not None and seat.has_prefetch and consumers_share,
        is_rabbitmq=riding.pool.is_rabbitmq,
        consumers_share=consumers_share,
        kind=kind,
        is_known=is_known,
        is_limited=seat is not None and seat.is_limited,
        keeps_deliveries=riding.session.keeps_deliveries,
    )
    return needs, kind, f"queue '{name}' in vhost '{riding.pool.identity.vhost}'"


def note_request(riding: PooledSession, link: SharedConnection, seat: ChannelMapping, method: Method) -> None:
    """The method goes to the broker, with the broker's names."""
    match method:
        case amqp.BasicQos(global_=is_global):
            seat.limits_due = seat.limits_due or deque()
            seat.limits_due.append(True)
            if is_global:
                seat.all = method
            else:
                seat.each = method
        case amqp.QueueDeclare(no_wait=False):
            seat.declares_due = seat.declares_due or deque()
            seat.declares_due.append(method)
            if is_exclusive(method):
                link.exclusives.declares(riding, method)
        case amqp.QueueDelete(no_wait=False):
            seat.deletes_due = seat.deletes_due or deque()
            seat.deletes_due.append(method.queue)
        case amqp.BasicConsume(no_wait=False, consumer_tag=tag) if tag:
            seat.tags_due = seat.tags_due or []
            seat.tags_due.append(tag)


def note_answer(riding: PooledSession, link: SharedConnection, seat: ChannelMapping, method: Method) -> None:
    """The broker has said something on a channel."""
    relay = riding.session.relay
    if (step := _HEARD.get(type(method))) is not None:
        link.closes.step(seat.number, step)
        seat.tags_due = None
        relay.pump.retry(relay)
    elif isinstance(method, amqp.QueueDeclareOk) and seat.declares_due:
        declare = seat.declares_due.popleft()
        if is_exclusive(declare):
            link.exclusives.declared(riding, declare, method.queue)
        if not declare.passive:
            riding.pool.queue_types.declared(method.queue, type_of(declare.arguments))
    elif isinstance(method, amqp.QueueDeleteOk) and seat.deletes_due:
        name = seat.deletes_due.popleft()
        link.exclusives.deleted(riding, name)
        riding.pool.queue_types.deleted(name)
    elif isinstance(method, amqp.BasicConsumeOk) and seat.tags_due and method.consumer_tag in seat.tags_due:
        seat.tags_due.remove(method.consumer_tag)
        relay.pump.retry(relay)

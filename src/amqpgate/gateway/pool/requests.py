"""What a session asks of the broker, and is answered, as far as the connection or the pool must know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from amqpgate.gateway.pool.channel_close import CloseStep
from amqpgate.gateway.pool.exclusive_queues import is_exclusive
from amqpgate.gateway.pool.unsupported import Needs, asks_for
from amqpgate.gateway.session.compatibility import without_delay
from amqpgate.gateway.session.conditional_delete import is_asked, unconditional
from amqpgate.gateway.session.session_policies import may_delay
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.pool.channel_mapping import ChannelMapping
    from amqpgate.gateway.pool.pooled_session import PooledSession
    from amqpgate.gateway.session.session import Session

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


def needs_of(
    member: PooledSession, channel: int, method: Method, mapping: ChannelMapping | None
) -> tuple[Needs, str | None, str]:
    """What a method needs; the type of its queue, if it matters, and how RabbitMQ names that.

    Raises ``ProtocolViolation`` as `unsupported.asks_for`.
    """
    session, pool = member.session, member.pool
    if isinstance(method, amqp.QueueDelete) and is_asked(session, channel, method):
        method = unconditional(method)
    state = session.channels.states.get(channel)
    consumers_share = pool.settings.consumers == "shared"
    kind, name, is_known = None, "", True
    if isinstance(method, _OF_A_QUEUE) and mapping is not None and state is not None:
        name = _at_broker(session, method.queue or state.last_queue)
        kind = mapping.pending_type(name) or pool.broker.queue_types.at(name)
        is_known = mapping.is_pending(name) or pool.broker.queue_types.knows(name)
    needs = asks_for(
        _as_declared(session, method),
        state,
        channel=channel,
        may_consume=mapping is not None and mapping.has_prefetch and consumers_share,
        is_rabbitmq=pool.broker.is_rabbitmq,
        may_deny_transients=pool.broker.may_deny_transients and _declares_transients(session),
        consumers_share=consumers_share,
        kind=kind,
        is_known=is_known,
        is_limited=mapping is not None and mapping.is_limited,
        keeps_deliveries=session.facts.keeps_deliveries,
    )
    return needs, kind, f"queue '{name}' in vhost '{pool.identity.vhost}'"


def _at_broker(session: Session, queue: str) -> str:
    """A queue's name as the broker knows it."""
    naming = None if session.rewriter is None else session.rewriter.transform.naming
    return queue if naming is None or not queue else naming.queue_up(queue)


def _declares_transients(session: Session) -> bool:
    """Whether its queues that are neither durable nor exclusive stay so."""
    compatibility = session.session_policies.compatibility
    return compatibility is None or compatibility.transient_expiry is None


def _as_declared(session: Session, method: Method) -> Method:
    """A declare of an exchange that delays: with the type that it becomes, where RabbitMQ surely has that."""
    if not isinstance(method, amqp.ExchangeDeclare) or not may_delay(
        session.session_policies, method.exchange
    ):
        return method
    return without_delay(method)


def note_request(member: PooledSession, mapping: ChannelMapping, method: Method) -> None:
    """The client's method goes to the broker, with the broker's names."""
    mapping.requests(method)
    if isinstance(method, amqp.QueueDeclare) and not method.no_wait and is_exclusive(method):
        assert member.connection is not None, "its channel is there"
        member.connection.exclusives.declares(member, method)


def note_answer(member: PooledSession, mapping: ChannelMapping, method: Method) -> None:
    """The broker has said something on a channel."""
    connection, relay, types = member.connection, member.session.relay, member.pool.broker.queue_types
    if connection is None:
        return
    if (step := _HEARD.get(type(method))) is not None:
        connection.channels.closes.step(mapping.number, step)
        mapping.closes()
        relay.pump.retry(relay)
    elif isinstance(method, amqp.QueueDeclareOk) and mapping.declares_due is not None:
        declare = mapping.declares_due.answered()
        if declare is None:
            return
        if declare.exclusive is not None:
            connection.exclusives.declared(member, declare.exclusive, method.queue)
        if not declare.passive:
            types.declared(method.queue, declare.type)
    elif isinstance(method, amqp.QueueDeleteOk) and mapping.deletes_due:
        name = mapping.deletes_due.popleft()
        connection.exclusives.deleted(member, name)
        types.deleted(name)
    elif isinstance(method, amqp.BasicConsumeOk) and mapping.names(method.consumer_tag):
        relay.pump.retry(relay)

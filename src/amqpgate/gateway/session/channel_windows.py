"""basic.qos for a whole channel as RabbitMQ 3 has it, for sessions whose compatibility policy says so.

``channel_prefetch`` says what the broker is told, and which of its answers are the client's; `flow_control`
keeps the window where the broker does not. What a client of another version asks for is `bridge.prefetch`'s.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.datapath.tables import OPEN
from amqpgate.gateway.session.channel_prefetch import ChannelPrefetch
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session

#: What limits and consumers come about by, and end.
ASKING: Final = amqp.BasicQos | amqp.BasicConsume | amqp.BasicCancel | amqp.BasicGet

#: Those of them that are of no importance on a channel that has not been limited.
_OF_LIMITED: Final = amqp.BasicCancel | amqp.BasicGet

#: What the broker says of them.
ANSWERS: Final = (amqp.BasicQosOk, amqp.BasicConsumeOk, amqp.BasicCancelOk, amqp.BasicCancel)


def new_tag() -> str:
    """A consumer tag as RabbitMQ gives them."""
    return f"amq.ctag-{secrets.token_urlsafe(16)}"


def limits_of(session: Session, channel: int, method: Method) -> ChannelPrefetch | None:
    """The limits that a client's method is about; None: they are the broker's alone."""
    if not channel or not isinstance(method, ASKING):
        return None
    known = _known(session, channel)
    if known is not None or isinstance(method, _OF_LIMITED):
        return known
    profile = session.session_policies.compatibility
    if profile is None or not profile.keeps_windows or not session.facts.is_native:
        return None
    state = session.channels.states[channel]
    consuming = state.consumers()
    limits = ChannelPrefetch(new_tag, is_always_kept=bool(consuming.kinds) or state.gets is not None)
    consuming.limit_by(limits)
    return limits


def _known(session: Session, channel: int) -> ChannelPrefetch | None:
    state = session.channels.states.remembered(channel)
    return None if state is None or state.consuming is None else state.consuming.prefetch


def asks(session: Session, channel: int, limits: ChannelPrefetch, method: Method) -> tuple[Method, ...]:
    """What the broker is told; ``method`` is the client's, with the broker's names."""
    match method:
        case amqp.BasicQos():
            return limits.qos(method, has_consumers=bool(session.channels.states[channel].consumers().kinds))
        case amqp.BasicConsume():
            # Those are bounded: of more it is not known what they have asked for.
            has_more = session.channels.states[channel].consumers().has_more
            return limits.consume(method, is_remembered=not has_more)
        case amqp.BasicCancel():
            return (limits.cancel(method),)
        case amqp.BasicGet(no_ack=False):
            limits.get()
    return (method,)


def asked(session: Session, channel: int, limits: ChannelPrefetch, method: Method) -> None:
    """The client's method has gone to the broker, as far as it does."""
    profile = session.session_policies.compatibility
    if isinstance(method, amqp.BasicQos) and method.global_ and profile is not None:
        told = Adapted(attrs.evolve(method, global_=False), ("global-prefetch",))
        for observer in session.session_policies.observers:
            observer.adapted(channel, method, profile.policy, told)
    _follow(session, channel, limits)


def heard(session: Session, channel: int, method: Method) -> Method | None:
    """What the client is told of an answer; None: it is the gateway's."""
    limits, told = _known(session, channel), method
    if limits is None:
        return method
    tag: str | None
    match method:
        case amqp.BasicQosOk():
            return method if limits.answered() else None
        case amqp.BasicConsumeOk(consumer_tag=tag):
            if limits.consumed(tag):
                # The limit has changed since the client asked for it, and maybe nothing was kept here so far.
                session.build_bridge()
        case amqp.BasicCancelOk(consumer_tag=tag):
            tag = limits.cancel_answered(tag)
            told = attrs.evolve(method, consumer_tag=tag or "")
        case amqp.BasicCancel(consumer_tag=tag):
            tag = limits.cancelled(tag)
            told = attrs.evolve(method, consumer_tag=tag or "")
        case _:
            return method
    if session.bridge is not None:
        session.bridge.flow_control.resize(channel)
    return None if tag is None else told


def passed_on(session: Session, channel: int) -> None:
    """The client has the answer to its limit, which is in force now."""
    limits = _known(session, channel)
    if limits is not None:
        _follow(session, channel, limits, has_deliveries=limits.had_consumers)


def _follow(session: Session, channel: int, limits: ChannelPrefetch, *, has_deliveries: bool = True) -> None:
    """Keep the channel's window, or leave that to the broker.

    ``has_deliveries``: its consumers, if there are some, may have sent something.
    """
    if session.relay.channels.state(channel) != OPEN:
        return
    if session.bridge is not None:
        session.bridge.flow_control.narrowed(channel)
    if limits.is_kept_here:
        flow_control = session.build_bridge().flow_control
        may_have = has_deliveries and bool(session.channels.states[channel].consumers().kinds)
        flow_control.keep(channel, limits.limit, has_deliveries=may_have)
        flow_control.resize(channel)
    elif session.bridge is not None:
        session.bridge.flow_control.keep(channel, None)

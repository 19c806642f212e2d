"""What a client asks for, method by method: whether it may, and what follows when it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session import access_tickets, channel_windows, settlement
from amqpgate.gateway.session.channel_close import check_declares, check_name
from amqpgate.gateway.session.conditional_delete import answered
from amqpgate.gateway.session.content import expect_content
from amqpgate.gateway.session.declared_here import ask_broker
from amqpgate.gateway.session.observer import Denial
from amqpgate.gateway.session.rewriter import fitting
from amqpgate.policy import denial_text
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


def decide(session: Session, channel: int, method: Method, frame: memoryview) -> None:
    """It goes on, or its client is told. Raises ``ProtocolViolation``."""
    if isinstance(method, amqp.BasicPublish):
        flow = expect_content(session.relay, Side.CLIENT, channel, frame)
        session.publishes.hold(channel, method, frame, flow)
        return
    if not allows(session, channel, method):
        return
    if isinstance(method, amqp.ConnectionUpdateSecret) and session.token is not None:
        session.token.renewed(session, method)
        if session.token.answers(method):
            passed(session, channel, method)
            return
    if isinstance(method, amqp.AccessRequest) and session.bridge is not None:
        if session.bridge.crossing.gives_tickets:
            access_tickets.check(channel, method, session.session_policies.access.enforced)
    elif isinstance(method, amqp.ChannelFlow | amqp.BasicRecover | amqp.BasicRecoverAsync):
        bridge = session.build_bridge()
        if isinstance(method, amqp.ChannelFlow) and bridge.flow_control.flow(channel, active=method.active):
            passed(session, channel, method)
            return
    last_queue = ""
    if channel:
        state = session.channels.states.remembered(channel)
        if state is not None:
            check_declares(state, channel, method)
            last_queue, named = state.last_queue, state.named(method)
            check_name(state, channel, named)
            if named is not method:
                method, frame = named, memoryview(method_frame(channel, named))
    limits = channel_windows.limits_of(session, channel, method)
    if limits is not None and isinstance(method, amqp.BasicConsume):
        method = limits.named(method)
    changed: bytes | memoryview = frame
    around = None
    if channel:
        other = session.session_policies.change(channel, answered(session, channel, method), last_queue)
        if limits is not None:
            changed = _all_told(session, channel, channel_windows.asks(session, channel, limits, other))
        elif other is not method:
            changed = fitting(session.relay.up.out_frame_max, channel, method_frame(channel, other))
            delays = session.session_policies.delays
            if delays is not None:
                around = delays.around(
                    channel, session.channels.states[channel].declaring().ladder, method, other
                )
    if limits is None:
        session.upstream.request(channel, method, None if changed is frame else changed)
    passed(session, channel, method)
    _note(session, channel, method, len(frame))
    is_answered = not (isinstance(method, amqp.ConfirmSelect) and session.upstream.confirms(channel, method))
    for observer in session.session_policies.observers:
        observer.asked(channel, method, last_queue, is_answered)
    if is_answered:
        if around is not None:
            ask_broker(session.channels, channel, around.answers)
            changed = around.before + bytes(changed) + around.behind
        session.relay.send(Side.UPSTREAM, changed)
    if limits is not None:
        channel_windows.asked(session, channel, limits, method)


def _all_told(session: Session, channel: int, told: tuple[Method, ...]) -> bytes:
    """The frames of what the broker is asked. Raises ``ProtocolViolation`` where it cannot be."""
    frames = b""
    for one in told:
        session.upstream.request(channel, one, None)
        frames += fitting(session.relay.up.out_frame_max, channel, method_frame(channel, one))
    return frames


def _note(session: Session, channel: int, method: Method, size: int) -> None:
    """What must be known of it later. ``size``: bytes of its frame."""
    if channel:
        if session.bridge is not None:
            session.bridge.asks(channel, method)
        state = session.channels.states.remembered(channel)
        transacts = state is not None and state.transacts
        settlement.asked(session.relay.channels, channel, method, transacts=transacts)
    if isinstance(method, amqp.QueueDeclare):
        session.channels.states[channel].declare(method)
    elif isinstance(method, amqp.BasicConsume):
        session.consumers.consume(channel, method, session.principal, size)
        if session.relay.down.flows is not None and session.session_policies.sees:
            # Observers know a delivery's queue by its consumer, whose tag may have been another's.
            session.relay.down.flows.flush()
    elif isinstance(method, amqp.BasicCancel):
        session.consumers.cancel(channel, method)
    elif isinstance(method, amqp.ConfirmSelect):
        published = session.relay.channels.messages(Side.CLIENT, channel)
        if session.channels.states[channel].select_confirms(published):
            session.relay.channels.count_confirms(channel)
    elif isinstance(method, amqp.TxSelect):
        session.channels.states[channel].select_transactions()
    elif isinstance(method, amqp.TxCommit):
        session.channels.states[channel].committing(1)


def allows(session: Session, channel: int, method: Method) -> bool:
    """Ask the policy; if it says no, the client is told. Raises ``ProtocolViolation``."""
    if session.session_policies.access.is_unrestricted:
        return True
    state = session.channels.states.remembered(channel)
    operation = operation_of(method, session.principal, state.last_queue if state is not None else "")
    operation = session.channels.told_apart(operation)
    verdict = session.session_policies.judge(operation)
    if verdict.allowed:
        return True
    denial = Denial(channel, method, operation, verdict, denial_text(operation, verdict))
    session.session_policies.denied(denial)
    if channel not in session.channels.states:
        # Of the connection, or of a channel that is not there yet: 530, as for a vhost.
        raise ProtocolViolation(530, denial.text, class_id=method.CLASS_ID, method_id=method.METHOD_ID)
    session.channels.refuse(channel, session.session_policies.channel_error(denial, method))
    return False


def passed(session: Session, channel: int, method: Method) -> None:
    """What was allowed, passes."""
    if isinstance(method, amqp.BasicGet) and (state := session.channels.states.get(channel)) is not None:
        session.channels.asks(channel, method.queue or state.last_queue)
    for observer in session.session_policies.observers:
        observer.passed(channel, method)

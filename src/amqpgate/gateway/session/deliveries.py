"""Messages that the broker sends to the client: delivered, got, returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Show, Side
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.session import deaths
from amqpgate.gateway.session.claim_reference import REFERENCES
from amqpgate.gateway.session.content import begin_message, expect_content
from amqpgate.gateway.session.delays import SENT
from amqpgate.gateway.session.observer import Message, Sent
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.policy import Peek
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


def delivery_flow(session: Session, channel: int, method: amqp.BasicDeliver) -> Flow:
    """The flow of messages that are delivered with these arguments."""
    limits = session.limits if session.closing is CloseState.NO else SessionLimits(())
    peek, rewrite, bridge = None, None, session.bridge
    if session.rewriter is not None and bridge is not None:
        peek = session.rewriter.admit_delivery(method)
    elif session.rewriter is not None:
        peek, rewrite = session.rewriter.compile_delivery(method)
    if session.session_policies.delays is not None:
        peek = (peek or Peek()) | SENT
    if bridge is not None:
        peek = bridge.peek(Side.UPSTREAM, peek)
    if deaths.are_counted(session.session_policies.compatibility):
        peek = (peek or Peek()) | deaths.PEEK_DELIVERED
    if session.session_policies.claims is not None:
        peek = (peek or Peek()) | REFERENCES
    message = Message(channel, method, None)
    peek = session.session_policies.peek(message, peek)
    is_kept = bridge is not None and channel in bridge.channel_flows
    flow = limits.kept_flow() if is_kept else limits.delivery_flow(peek)
    if rewrite is not None:
        flow.rewrite_by(rewrite)
    session.session_policies.meter(message, flow)
    return flow


def send_message(session: Session, channel: int, method: Sent, frame: memoryview) -> None:
    """What is shown of it begins, and goes on."""
    session_policies = session.session_policies
    queue: str | None = None
    if isinstance(method, amqp.BasicDeliver):
        flow = expect_content(session.relay, Side.UPSTREAM, channel, frame)
        is_shown = flow is not None and flow.show >= Show.HEADER
        if flow is not None and session_policies.watchers:
            session_policies.show(Message(channel, method, None), flow)
    else:
        queue = session.channels.got(channel) if isinstance(method, amqp.BasicGetOk) else None
        flow = None
        for observer in session_policies.watchers:
            flow = observer.came(channel, method, queue, flow)
        is_shown = session.reads_sent or (flow is not None and flow.show >= Show.HEADER)
        show = Show.HEADER if is_shown else Show.NOTHING
        session.relay.channels.expect_header(Side.UPSTREAM, channel, flow, show)
    if session.session_policies.claims is not None and is_shown:
        is_named = session.bridge is not None and isinstance(method, amqp.BasicDeliver)
        # A consumer may have another tag at the broker.
        kept = memoryview(method_frame(channel, method) if is_named else bytes(frame))
        session.session_policies.claims.deliveries.expect(
            channel, method, lambda: begin_message(session, channel, method, kept, queue)
        )
    else:
        begin_message(session, channel, method, frame, queue)

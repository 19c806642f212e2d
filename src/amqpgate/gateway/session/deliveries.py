"""Messages that the broker sends to the client: delivered, got, returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.datapath import tables
from amqpgate.datapath.scanner import Flow, Meter
from amqpgate.datapath.tables import Side
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.session.connection_close import CloseState
from amqpgate.gateway.session.content import expect_content
from amqpgate.policy import Peek
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session
    from amqpgate.gateway.session.session_policies import SessionPolicies

SENT = amqp.BasicDeliver | amqp.BasicGetOk | amqp.BasicReturn


def delivery_flow(session: Session, channel: int, method: amqp.BasicDeliver) -> Flow:
    """The flow of messages that are delivered with these arguments."""
    throttle = session.throttle if session.closing is CloseState.NO else SessionLimits(())
    peek = session.rewriter.admit_delivery(method) if session.rewriter is not None else None
    bridge, traces = session.bridge, session.judging.traces
    if bridge is not None:
        peek = bridge.peek(Side.UPSTREAM, peek)
    decision = None if traces is None else traces.delivery(channel, method.consumer_tag)
    if decision is not None:
        peek = (peek or Peek()) | decision.peek
    flow = throttle.kept_flow() if bridge is not None and bridge.stops else throttle.delivery_flow(peek)
    flow.meter = _meter_of(session, channel, method)
    if session.judging.tapper is not None:
        session.judging.tapper.sent.delivers(flow, channel, method)
    session.judging.enlist(flow, session.judging.samplers(None, decision, flow))
    return flow


def send_message(session: Session, channel: int, method: SENT, frame: memoryview) -> None:
    """What is shown of it begins, and goes on."""
    judging = session.judging
    if isinstance(method, amqp.BasicDeliver):
        flow = expect_content(session.relay, Side.UPSTREAM, channel, frame)
        if flow is not None:
            _sample(judging, channel, method, flow)
    else:
        queue = session.closes.got(channel) if isinstance(method, amqp.BasicGetOk) else None
        flow, is_shown = None, session.reads_sent
        if judging.tapper is not None:
            flow, is_tapped = judging.tapper.sent.came(channel, method, queue)
            is_shown = is_shown or is_tapped
        if judging.auditor is not None:
            flow = flow or Flow()
            flow.meter = _meter_of(session, channel, method, queue)
        show = tables.Show.HEADER if is_shown else tables.Show.NOTHING
        session.relay.channels.expect_header(Side.UPSTREAM, channel, flow, show)
    if session.rewriter is None or not session.rewriter.hold(channel, method):
        session.relay.send(Side.CLIENT, frame)


def _meter_of(session: Session, channel: int, method: SENT, queue: str | None = None) -> Meter | None:
    """Where such a message is counted; ``queue`` is that of one that was got."""
    auditor, rewriter = session.judging.auditor, session.rewriter
    if auditor is None:
        return None
    naming = None if rewriter is None else rewriter.transform.naming
    return auditor.delivers(method, session.closes.channels.get(channel), naming, queue)


def _sample(judging: SessionPolicies, channel: int, method: amqp.BasicDeliver, flow: Flow) -> None:
    traces, tapper = judging.traces, judging.tapper
    if traces is None and tapper is None:
        return
    decision = None if traces is None else traces.delivery(channel, method.consumer_tag)
    samplers = judging.samplers(None, decision, flow)
    weight = judging.weigh(flow, samplers)
    if traces is not None and decision is not None:
        traces.arriving(channel, method, decision, flow, weight)
    if tapper is not None:
        tapper.sent.arriving(channel, method, flow, weight, samplers)

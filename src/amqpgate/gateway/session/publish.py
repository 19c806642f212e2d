"""One session's publishes that the data path shows: they are judged, passed on, or refused (`publishing`)."""

from __future__ import annotations

import attrs

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.observers.audit.columns import TOO_LARGE
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.operation_limits import OperationLimits, message_refusal
from amqpgate.gateway.session.publish_refusal import (
    LARGEST_RETURN,
    HeldPublish,
    PublishRefuser,
    ReturnedPublish,
)
from amqpgate.gateway.session.session_policies import SessionPolicies, denial
from amqpgate.policy import Operation, Peek, Verdict
from amqpgate.policy.engine.from_method import content_of, operation_of
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp


@attrs.define(eq=False, weakref_slot=False)
class PublishHandler:
    """Of one session."""

    relay: Relay
    closes: SessionChannels
    refuser: PublishRefuser
    judging: SessionPolicies
    rations: OperationLimits
    #: Publishes that were refused.
    refused: int = attrs.field(default=0, init=False)

    def flow(self, channel: int, method: amqp.BasicPublish, peek: Peek | None = None) -> Flow | None:
        """The flow of those with these arguments. None: they are refused, and the client is told.

        ``peek`` says which must be shown in any case.
        """
        judging = self.judging
        verdict = UNRESTRICTED
        operation = operation_of(method, judging.principal, "")
        if not judging.is_free:
            verdict, judged = judging.admit(operation)
            if judged is not None:
                peek = (peek or Peek()) | judged
            if not verdict.allowed:
                self._refuse_at_method(channel, method, verdict, operation)
                return None
        if judging.rewriter is not None:
            peek = (peek or Peek()) | judging.rewriter.admit(channel, method)
        if judging.auditor is not None and judging.auditor.decide(operation).reads_messages:
            peek = (peek or Peek()) | Peek(always=True)
        decision = None if judging.traces is None else judging.traces.decide(operation)
        if decision is not None:
            peek = (peek or Peek()) | decision.peek
        flow = judging.throttle.flow(peek)
        if judging.tapper is not None:
            judging.tapper.published.begins(flow, operation, verdict)
        judging.enlist(flow, judging.samplers(method.exchange, decision, flow))
        if judging.auditor is not None:
            judging.auditor.meter(flow, verdict, operation)
        return flow

    def hold(
        self,
        channel: int,
        method: amqp.BasicPublish,
        frame: memoryview,
        flow: Flow | None,
        *,
        is_apart: bool = False,
    ) -> None:
        """A publish that is shown. Its method waits for the content header.

        ``is_apart``: it is, but not because its flow says so.
        """
        if flow is None:
            flow = Flow()
        judging = self.judging
        operation = operation_of(method, judging.principal, "")
        audited = None if judging.auditor is None else judging.auditor.decide(operation)
        decision = None if judging.traces is None else judging.traces.decide(operation)
        samplers = judging.samplers(method.exchange, decision, flow)
        weight = bool(samplers) if is_apart else judging.weigh(flow, samplers)
        if judging.tapper is not None:
            judging.tapper.watches.shows(flow, samplers)
        self.closes.channels[channel].held = HeldPublish(
            method,
            bytes(frame),
            operation,
            flow,
            weight,
            audited,
            decision,
            self.relay.up.held_since,
        )

    def take_content(self, channel: int, frame: memoryview) -> bool:
        """A header or body that is shown: whether it is of a publish that is held, or refused."""
        state = self.closes.channels.get(channel)
        if state is None:
            return False
        if state.returning is not None:
            self._collect(channel, state.returning, frame)
            return True
        if state.held is not None:
            held, state.held = state.held, None
            self._release(channel, held, frame)
            return True
        return False

    def refuses_size(self, channel: int, frame: memoryview) -> bool:
        """Whether a content header declares more than a message may have; then the client is told.

        In RabbitMQ's words, which it says once it has got the whole of such a message.
        """
        size, most = _size_of(frame), self.relay.up.most_body
        if size <= most:
            return False
        state = self.closes.channels[channel]
        held, is_told = state.held, state.returning is not None
        state.held = state.returning = None
        self.refused += 1
        text = f"message size {size} is larger than configured max size {most}"
        if not is_told:
            self._tell_size(channel, held, frame, text)
        self.closes.refuse(channel, ProtocolViolation(406, text, class_id=60, method_id=40, channel=channel))
        return True

    def _tell_size(self, channel: int, held: HeldPublish | None, frame: memoryview, why: str) -> None:
        """A publish is too large. ``held`` is None on a link that is shared: its method was not shown."""
        judging = self.judging
        operation = Operation(judging.principal, "basic.publish") if held is None else held.operation
        if judging.auditor is not None:
            judging.auditor.too_large(operation, _size_of(frame), why)
        if judging.traces is not None and held is not None:
            chosen = judging.traces.choose(held, frame)
            if chosen is not None:
                judging.traces.refuse(held, chosen, TOO_LARGE, is_limit=True)
        if judging.tapper is not None:
            judging.tapper.denied(channel, None if held is None else held.method, operation, TOO_LARGE, frame)

    def _release(self, channel: int, held: HeldPublish, frame: memoryview) -> None:
        """The header of a publish that was held: does it go on?"""
        judging = self.judging
        operation, verdict, size = held.operation, UNRESTRICTED, _size_of(frame)
        header = None
        is_read = held.audited is not None and held.audited.reads_messages
        if not judging.is_free or judging.rewriter is not None or is_read:
            header = decode_header(frame[7:-1])
        if header is not None and not judging.is_free:
            operation = attrs.evolve(held.operation, content=content_of(header))
            verdict = judging.judge(operation)
        over = self.rations.publish(channel) if verdict.allowed else None
        traces = judging.traces
        chosen = None if traces is None else traces.choose(held, frame)
        if verdict.allowed and over is None:
            frames = held.frame + bytes(frame)
            if judging.rewriter is not None and header is not None:
                frames = judging.rewriter.publish(channel, held.method, header, frames)
            if traces is None or chosen is None:
                self.relay.send(Side.UPSTREAM, frames)
            else:
                span, frames = traces.publish(held, chosen, frames)
                self.relay.send(Side.UPSTREAM, frames)
                if span is not None:
                    traces.under_way.published(channel, span)
            if judging.copier is not None and judging.copier.sampler(held.method.exchange) is not None:
                transacts = self.closes.channels[channel].transacts
                judging.copier.copy(self.relay.channels, channel, frames, held.weight, held.flow, transacts)
            if judging.auditor is not None:
                judging.auditor.released(held, verdict, header, self.relay.channels, channel)
            if judging.tapper is not None:
                judging.tapper.published.passed(channel, held, verdict, frame)
            return
        if over is not None and judging.auditor is not None:
            judging.auditor.over_limit(operation, over)
        if traces is not None and chosen is not None:
            traces.refuse(held, chosen, over or verdict, is_limit=over is not None)
        if judging.tapper is not None:
            judging.tapper.denied(channel, held.method, operation, over or verdict, frame)
        self.refused += 1
        if self.refuser.can_answer(channel, over or verdict, size):
            self.refuser.at_header(channel, held.method, frame, over or verdict, operation)
        elif over is not None:
            self.closes.refuse(channel, message_refusal(channel))
        else:
            self.closes.refuse(channel, denial(channel, held.method, verdict, operation))

    def _refuse_at_method(
        self, channel: int, method: amqp.BasicPublish, verdict: Verdict, operation: Operation
    ) -> None:
        """To return a message it must be seen how large it is: that is found at the header."""
        self.judging.denied(verdict, operation)
        self.refused += 1
        if self.judging.traces is not None:
            self.judging.traces.denied(operation, verdict)
        if self.judging.tapper is not None:
            self.judging.tapper.denied(channel, method, operation, verdict)
        if self.refuser.can_answer(channel, verdict):
            self.refuser.at_method(channel, method, verdict, operation)
        else:
            self.closes.refuse(channel, denial(channel, method, verdict, operation))

    def _collect(self, channel: int, returning: ReturnedPublish, frame: memoryview) -> None:
        """A piece of a message that is refused and given back whole."""
        if frame[0] == amqp.FRAME_HEADER and _size_of(frame) > LARGEST_RETURN:
            why = ProtocolViolation(403, returning.why, class_id=60, method_id=40, channel=channel)
            self.closes.refuse(channel, why)
            return
        self.refuser.collect(channel, frame)


def _size_of(header: memoryview) -> int:
    """Octets of body, by the frame of its content header (AMQP 0-9-1, section 4.2.6.1)."""
    return int.from_bytes(header[11:19], "big")

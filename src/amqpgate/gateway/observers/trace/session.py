"""The spans of one session, from what begins one to what ends it.

::

    publish ── chosen ──▶ span; traceparent into the header, if there is none ── the broker's confirm ──▶ end
               each sample of a flow is chosen ──▶ the data path puts it there, and tells of many: captured
               a context that may be sampled comes with it ──▶ captured likewise, and passes as it came
    deliver ── chosen ──▶ span, of the trace that the message carries ── the client's ack ──▶ end
    declare, bind, ... ─▶ span ── the broker's answer ──▶ end
    denied by a policy, rejected by a limit ──▶ span with that event, and its end

Samplers (`limits.sampler`) choose messages, unless the context that they carry does; `under_way` knows
what has not ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs

from amqpgate.datapath.captures import Captured
from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.gateway.observers.trace.injection import ADDED, header_at, injected
from amqpgate.gateway.observers.trace.session_spans import SessionSpans, StampedKind, TracedMessage
from amqpgate.gateway.observers.trace.tracer import Tracer, identity, peer_of
from amqpgate.gateway.observers.trace.under_way import UnderWay
from amqpgate.gateway.session.observer import Denial, Message, Release, RuleKey, Sees, SessionObserver
from amqpgate.gateway.session.operation_limits import Turn
from amqpgate.gateway.session.publish_denial import HeldPublish
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.session_policies import tell_used
from amqpgate.policy import OPERATIONS, Operation, Peek, SessionTraces, TraceDecision
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.policy.kinds.trace import TRACE
from amqpgate.telemetry.tracing.open_span import OpenSpan
from amqpgate.telemetry.tracing.semconv import DENIED, THROTTLED
from amqpgate.telemetry.tracing.spans import Sort
from amqpgate.wire.codec import ContentHeader, decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@attrs.frozen
class _TracedDelivery:
    """A delivery whose header comes next."""

    method: amqp.BasicDeliver
    queue: str
    no_ack: bool
    decision: TraceDecision
    flow: Flow
    weight: int


@attrs.define(eq=False)
class TraceObserver(SessionObserver):
    """The spans of one session."""

    part = "traces"

    tracing: Tracer
    session: Session
    spans: SessionSpans
    #: None: nothing is traced any more.
    rules: SessionTraces | None
    under_way: UnderWay
    #: By channel: of a publish that waits for its header.
    _held: dict[int, TraceDecision] = attrs.field(factory=dict, init=False)
    _arriving: dict[int, _TracedDelivery] = attrs.field(factory=dict, init=False)
    #: What the rules say of the message that is being dealt with.
    _decided: tuple[Message | None, TraceDecision | None] = attrs.field(default=(None, None), init=False)
    #: Since when the client's next method waits for a limit, in nanoseconds since 1970; 0: it does not.
    _waits_since: int = attrs.field(default=0, init=False)

    @classmethod
    def of(cls, tracing: Tracer, session: Session, rules: SessionTraces) -> TraceObserver:
        """That of a session, with the connection to the broker that it has now."""
        broker = session.relay.endpoints[Side.UPSTREAM].peer_name()
        values = {**identity(session.principal, session.id), **peer_of(broker)}
        under_way = UnderWay(tracing, session.relay, session.channels)
        return cls(tracing, session, SessionSpans(tracing, values), rules, under_way)

    def follow(self, rules: SessionTraces | None) -> None:
        """These hold from now on, for what is not under way."""
        self.rules = rules

    def ended(self) -> None:
        self.under_way.end()

    # -- what is traced ------------------------------------------------------------------------

    def sees(self) -> Sees:
        seen = Sees.SETTLES
        if self._is_about("basic.publish"):
            seen |= Sees.PUBLISHES
        if self._is_about("basic.consume"):
            seen |= Sees.DELIVERIES
        return seen

    def _is_about(self, operation: str) -> bool:
        return self.rules is not None and operation in self.rules.operations

    def _decide(self, operation: Operation) -> TraceDecision | None:
        """Which share of such operations is traced; None: nothing."""
        return None if self.rules is None else self.rules.decide(operation)

    def _decision(self, message: Message) -> TraceDecision | None:
        """As ``_decide``, of a message; one is asked for several times in an upcall."""
        if self._decided[0] is not message:
            operation = message.operation
            if isinstance(message.method, amqp.BasicDeliver):
                operation = self._consumed(message.channel, message.method.consumer_tag)
            self._decided = message, None if operation is None else self._decide(operation)
        return self._decided[1]

    def _consumed(self, channel: int, tag: str) -> Operation | None:
        """What a consumer was asked for with."""
        state = self.session.channels.states.get(channel)
        consumer = None if state is None or state.consuming is None else state.consuming.tags.get(tag)
        return None if consumer is None else consumer.operations[0]

    def admits(self, message: Message) -> Peek | None:
        decision = self._decision(message)
        return None if decision is None else decision.peek

    def samplers(self, message: Message, flow: Flow) -> Sequence[Sampler]:
        decision = self._decision(message)
        return () if decision is None else (self.tracing.sampler(decision),)

    def shows(self, message: Message, flow: Flow, weight: int, samplers: Sequence[Sampler]) -> bool:
        decision = self._decision(message)
        channel = message.channel
        if isinstance(message.method, amqp.BasicDeliver):
            if decision is not None:
                self._arrives(channel, message.method, decision, flow, weight)
        elif decision is not None:
            self._held[channel] = decision
        else:
            self._held.pop(channel, None)
        return False

    # -- publishes -----------------------------------------------------------------------------

    def meters(self, message: Message, flow: Flow) -> None:
        decision, method, session = self._decision(message), message.method, self.session
        if decision is not None:
            tell_used(session.session_policies, _key(decision), flow)
        if (
            decision is not None
            and isinstance(method, amqp.BasicPublish)
            and flow.rewrite is None
            # What a bridge makes of it has its frames apart.
            and session.bridge is None
        ):
            stamped = self.spans.stamped(decision, self.tracing.sampler(decision), method)
            if stamped is not None and flow.capture_samples(self.part, stamped.kind, 0):
                flow.rewrite_by(stamped.rewrite)
                flow.capture_contexts()

    def captured(self, side: Side, messages: Sequence[Captured]) -> None:
        now = time.time_ns()
        for flow, channel, header, _body, sample in messages:
            kind = (flow.notes or {}).get(self.part)
            if sample is None or not isinstance(kind, StampedKind):
                continue
            # Where there is no room, nothing is told of a span that the message names.
            if sample[2] and self.under_way.has_room():
                span = self.spans.captured(kind, header, sample, now)
                self.under_way.published(channel, span, sample[1])
            elif not sample[0] and self.under_way.has_room():
                made = self.spans.carried(kind, flow, header, sample[3], now)
                if made is not None:
                    self.under_way.published(channel, made, sample[1])

    def _chosen(
        self, channel: int, held: HeldPublish, frame: memoryview, header: ContentHeader | None = None
    ) -> TracedMessage | None:
        """Whether a publish is traced whose content header has come. One that cannot be read is not.

        ``header`` is what others have read.
        """
        decision = self._held.pop(channel, None)
        if decision is None:
            return None
        if header is None:
            try:
                header = decode_header(frame[7:-1])
            except ProtocolViolation:
                return None
        return self.spans.choose(decision, header, len(frame) - 8, held.flow, held.weight)

    def released(self, release: Release, frames: bytes) -> bytes:
        """With a trace context in them."""
        held = release.held
        chosen = self._chosen(release.channel, held, release.frame, release.header)
        if chosen is None or not self.under_way.has_room():
            return frames
        fits = len(frames) - header_at(frames) + ADDED <= self.under_way.relay.up.out_frame_max
        if not chosen.carries and not fits:
            self.tracing.counters.not_injected()
        injects = fits and not chosen.carries
        span = self.spans.publish(Sort.CREATE if injects else Sort.SEND, held, chosen)
        context = span.get_span_context()
        # Of an SDK that the environment has switched off there is none.
        changed = injected(frames, context) if injects and context.is_valid else frames
        self.under_way.published(release.channel, span)
        return changed

    def denied(self, denial: Denial) -> None:
        held, header = denial.held, denial.header
        if held is not None and header is not None:
            chosen = self._chosen(denial.channel, held, header)
            if chosen is not None:
                event = THROTTLED if denial.is_limit else DENIED
                self.spans.refused(self.spans.publish(Sort.SEND, held, chosen), denial.verdict, event)
        elif denial.method is not None:
            # Of its message, if it has one, nothing is known.
            decision = self._decide(denial.operation)
            if decision is not None and self.spans.is_chosen(decision):
                self.spans.refused(
                    self.spans.operation(denial.operation, decision, 0), denial.verdict, DENIED
                )

    def rejected(self, denial: Denial) -> None:
        if denial.held is not None:
            self.denied(denial)

    # -- deliveries ----------------------------------------------------------------------------

    def _arrives(
        self, channel: int, method: amqp.BasicDeliver, decision: TraceDecision, flow: Flow, weight: int
    ) -> None:
        """A delivery that is shown; its header comes next."""
        consuming = self.session.channels.states[channel].consuming
        consumer = None if consuming is None else consuming.tags.get(method.consumer_tag)
        if consumer is not None:
            queue = consumer.operations[0].queue or ""
            self._arriving[channel] = _TracedDelivery(method, queue, consumer.no_ack, decision, flow, weight)

    def content(self, side: Side, channel: int, frame: memoryview) -> bool:
        if side is Side.UPSTREAM:
            self._arrived(channel, frame)
        return False

    def _arrived(self, channel: int, frame: memoryview) -> None:
        """The header of a message to the client."""
        coming = self._arriving.pop(channel, None)
        if coming is None:
            return
        try:
            header = decode_header(frame[7:-1])
        except ProtocolViolation:
            return
        chosen = self.spans.choose(coming.decision, header, len(frame) - 8, coming.flow, coming.weight)
        if chosen is None or not self.under_way.has_room():
            return
        method = coming.method
        span = self.spans.delivery(method, coming.queue, chosen)
        if coming.no_ack:
            span.end()
            return
        self.under_way.delivered(channel, method.delivery_tag, span)

    # -- whatever has an answer ----------------------------------------------------------------

    def turned(self, channel: int, method: Method, turn: Turn) -> None:
        if turn is Turn.WAIT:
            self._waits_since = self._waits_since or time.time_ns()
            return
        self._waits_since = 0
        state = self.session.channels.states.get(channel)
        span = self._request(method, "" if state is None else state.last_queue, 0)
        if span is not None:
            self.spans.refused(span, None, THROTTLED)

    def asked(self, channel: int, method: Method, last_queue: str, is_answered: bool) -> None:
        since, self._waits_since = self._waits_since, 0
        if isinstance(method, amqp.ChannelOpen):
            # It has nothing of its last use.
            self._arriving.pop(channel, None)
            self.under_way.abandon(channel, "channel-closed")
        elif isinstance(method, amqp.BasicRecoverAsync):
            # It has no answer.
            self.under_way.recovered(channel)
        span = self._request(method, last_queue, since) if is_answered else None
        if span is not None:
            self.under_way.requested(channel, method, span)

    def settled(self, channel: int, method: Method) -> None:
        self.under_way.settled(channel, method)

    def answered(self, channel: int, method: Method) -> None:
        self.under_way.heard(channel, method)

    def _request(self, method: Method, last_queue: str, since: int) -> OpenSpan | None:
        name = amqp.BasicRecover.NAME if isinstance(method, amqp.BasicRecoverAsync) else method.NAME
        if name not in OPERATIONS or not self._is_about(name):
            return None
        operation = operation_of(method, self.session.principal, last_queue)
        decision = self._decide(operation)
        if decision is not None:
            tell_used(self.session.session_policies, _key(decision))
        if decision is None or not self.spans.is_chosen(decision) or not self.under_way.has_room():
            return None
        return self.spans.operation(operation, decision, since)


def _key(decision: TraceDecision) -> RuleKey:
    return TRACE.name, decision.policy, decision.rule

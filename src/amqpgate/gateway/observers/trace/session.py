"""The spans of one session, from what begins one to what ends it.

::

    publish ── chosen ──▶ span; traceparent into the header, if there is none ── the broker's confirm ──▶ end
    deliver ── chosen ──▶ span, of the trace that the message carries ── the client's ack ──▶ end
    declare, bind, ... ─▶ span ── the broker's answer ──▶ end
    denied by a policy, rejected by a limit ──▶ span with that event, and its end

Samplers (`limits.sampler`) choose messages, unless the context that they carry does; `under_way` knows
what has not ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import attrs
from opentelemetry.trace import Span, SpanContext

from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler, stands_for
from amqpgate.gateway.observers.trace.tracer import Tracer, identity, peer_of
from amqpgate.gateway.observers.trace.under_way import UnderWay
from amqpgate.gateway.session.observer import Denial, Message, Release, Sees, SessionObserver
from amqpgate.gateway.session.operation_limits import Turn
from amqpgate.gateway.session.publish_refusal import HeldPublish
from amqpgate.gateway.session.session import Session
from amqpgate.policy import OPERATIONS, Operation, Peek, SessionTraces, TraceDecision, Verdict
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.policy.kinds.trace import TRACEPARENT
from amqpgate.protocol.frames import encode_frame
from amqpgate.telemetry.tracing.context import context_in, headers_of
from amqpgate.telemetry.tracing.semconv import DENIED, THROTTLED, Key, Value, destination
from amqpgate.telemetry.tracing.spans import Sort
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table

#: Bytes that a trace context adds to a content header: name, type, length and value; and an empty table.
ADDED: Final = 12 + 1 + 4 + 55 + 4
#: What server-named queues begin with.
_ANONYMOUS: Final = "amq.gen-"


@attrs.frozen
class TracedMessage:
    """A message that is traced."""

    decision: TraceDecision
    header: ContentHeader
    #: Whose span made it, as far as it says so.
    maker: SpanContext | None
    #: Whether it carries a trace context, be it valid or not.
    carries: bool


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
    #: What each of its spans says.
    values: dict[Key, Value | None]
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
        broker = session.relay.endpoints[Side.UPSTREAM].sock
        values = {**identity(session.principal, session.id), **peer_of(broker)}
        return cls(tracing, session, values, rules, UnderWay(tracing, session.relay, session.closes))

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
        state = self.session.closes.channels.get(channel)
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

    def _is_chosen(self, decision: TraceDecision) -> bool:
        """A request, which carries no context."""
        return self.tracing.sampler(decision).count(1)

    def _choose(
        self, decision: TraceDecision, header: ContentHeader, size: int, flow: Flow, weight: int
    ) -> TracedMessage | None:
        """A message that was shown."""
        properties = header.properties
        assert isinstance(properties, amqp.BasicProperties)
        headers = properties.headers or EMPTY_TABLE
        carries = TRACEPARENT in headers
        maker = context_in(headers.to_python()) if carries else None
        if decision.respects_parent and maker is not None:
            is_chosen = maker.trace_flags.sampled
        else:
            messages = stands_for(weight, flow, header, size)
            is_chosen = messages > 0 and self.tracing.sampler(decision).count(messages)
        return TracedMessage(decision, header, maker, carries) if is_chosen else None

    # -- publishes -----------------------------------------------------------------------------

    def _chosen(self, channel: int, held: HeldPublish, frame: memoryview) -> TracedMessage | None:
        """Whether a publish is traced whose content header has come. One that cannot be read is not."""
        decision = self._held.pop(channel, None)
        if decision is None:
            return None
        try:
            header = decode_header(frame[7:-1])
        except ProtocolViolation:
            return None
        return self._choose(decision, header, len(frame) - 8, held.flow, held.weight)

    def released(self, release: Release, frames: bytes) -> bytes:
        """With a trace context in them."""
        held = release.held
        chosen = self._chosen(release.channel, held, release.frame)
        if chosen is None or not self.under_way.has_room():
            return frames
        fits = len(frames) - _header_at(frames) + ADDED <= self.under_way.relay.up.out_frame_max
        if not chosen.carries and not fits:
            self.tracing.counters.not_injected()
        injects = fits and not chosen.carries
        span = self._message(Sort.CREATE if injects else Sort.SEND, held, chosen)
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
                self._refused(self._message(Sort.SEND, held, chosen), denial.verdict, event)
        elif denial.method is not None:
            # Of its message, if it has one, nothing is known.
            decision = self._decide(denial.operation)
            if decision is not None and self._is_chosen(decision):
                self._refused(self._operation(denial.operation, decision, 0), denial.verdict, DENIED)

    def rejected(self, denial: Denial) -> None:
        if denial.held is not None:
            self.denied(denial)

    def _message(self, sort: Sort, held: HeldPublish, chosen: TracedMessage) -> Span:
        method = held.method
        waited = time.monotonic() - held.since if held.since else 0.0
        at = time.time_ns() - int(waited * 1e9)
        span = self._start(
            sort,
            chosen,
            "publish",
            destination(method.exchange),
            {
                Key.DESTINATION: destination(method.exchange, method.routing_key),
                Key.ROUTING_KEY: method.routing_key or None,
            },
            at,
        )
        if waited:
            self.tracing.spans.happened(span, THROTTLED, {Key.WAITED: waited}, at)
        return span

    def _start(
        self,
        sort: Sort,
        chosen: TracedMessage,
        operation: str,
        target: str,
        more: dict[Key, Value | None],
        at: int,
    ) -> Span:
        decision, properties = chosen.decision, chosen.header.properties
        assert isinstance(properties, amqp.BasicProperties)
        return self.tracing.spans.start(
            sort,
            operation,
            target,
            {
                **self.values,
                **more,
                Key.MESSAGE_ID: properties.message_id,
                Key.CORRELATION_ID: properties.correlation_id,
                Key.BODY_SIZE: chosen.header.body_size,
                Key.TRACE_RULE: f"{decision.policy}/{decision.rule}",
            },
            parent=chosen.maker if decision.respects_parent else None,
            link=chosen.maker,
            at=at,
        )

    # -- deliveries ----------------------------------------------------------------------------

    def _arrives(
        self, channel: int, method: amqp.BasicDeliver, decision: TraceDecision, flow: Flow, weight: int
    ) -> None:
        """A delivery that is shown; its header comes next."""
        consuming = self.session.closes.channels[channel].consuming
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
        chosen = self._choose(coming.decision, header, len(frame) - 8, coming.flow, coming.weight)
        if chosen is None or not self.under_way.has_room():
            return
        method, queue = coming.method, coming.queue
        is_anonymous = queue.startswith(_ANONYMOUS)
        span = self._start(
            Sort.PROCESS,
            chosen,
            "deliver",
            "" if is_anonymous else queue,
            {
                Key.DESTINATION: destination(method.exchange, method.routing_key, queue),
                Key.ANONYMOUS: is_anonymous or None,
                Key.ROUTING_KEY: method.routing_key or None,
                Key.DELIVERY_TAG: method.delivery_tag,
            },
            time.time_ns(),
        )
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
        state = self.session.closes.channels.get(channel)
        span = self._request(method, "" if state is None else state.last_queue, 0)
        if span is not None:
            self._refused(span, None, THROTTLED)

    def asked(self, channel: int, method: Method, last_queue: str, *, is_answered: bool) -> None:
        since, self._waits_since = self._waits_since, 0
        if isinstance(method, amqp.ChannelOpen):
            # It has nothing of its last use.
            self._arriving.pop(channel, None)
            self.under_way.abandon(channel, "channel-closed")
        span = self._request(method, last_queue, since) if is_answered else None
        if span is not None:
            self.under_way.requested(channel, method, span)

    def settled(self, channel: int, method: Method) -> None:
        self.under_way.settled(channel, method)

    def answered(self, channel: int, method: Method) -> None:
        self.under_way.heard(channel, method)

    def _request(self, method: Method, last_queue: str, since: int) -> Span | None:
        name = amqp.BasicRecover.NAME if isinstance(method, amqp.BasicRecoverAsync) else method.NAME
        if name not in OPERATIONS or not self._is_about(name):
            return None
        operation = operation_of(method, self.session.principal, last_queue)
        decision = self._decide(operation)
        if decision is None or not self._is_chosen(decision) or not self.under_way.has_room():
            return None
        return self._operation(operation, decision, since)

    def _operation(self, operation: Operation, decision: TraceDecision, since: int) -> Span:
        queue = operation.queue or ""
        is_anonymous = queue.startswith(_ANONYMOUS)
        exchange = operation.destination or operation.exchange
        sort, name, target = Sort.REQUEST, operation.name, queue or exchange or ""
        if name == amqp.BasicPublish.NAME:
            sort, name, target = Sort.SEND, "publish", destination(exchange)
        now = time.time_ns()
        span = self.tracing.spans.start(
            sort,
            name,
            "" if is_anonymous else target,
            {
                **self.values,
                Key.DESTINATION: destination(exchange, operation.routing_key, queue) if target else None,
                Key.ANONYMOUS: is_anonymous or None,
                Key.ROUTING_KEY: operation.routing_key or None,
                Key.TRACE_RULE: f"{decision.policy}/{decision.rule}",
            },
            at=since or now,
        )
        if since:
            self.tracing.spans.happened(span, THROTTLED, {Key.WAITED: (now - since) / 1e9}, since)
        return span

    def _refused(self, span: Span, verdict: Verdict | None, event: str) -> None:
        why = {} if verdict is None else {Key.POLICY: verdict.policy, Key.RULE: verdict.rule}
        self.tracing.spans.happened(span, event, why)
        self.tracing.spans.failed(span, "access-refused" if event == DENIED else "over-limit")
        span.end()


def injected(frames: bytes, context: SpanContext) -> bytes:
    """A publish's method and header frames, with a trace context among the headers; all else stays."""
    at = _header_at(frames)
    header = decode_header(frames[at + 7 : -1])
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    entries = (properties.headers or EMPTY_TABLE).entries
    more = tuple((name, Field("S", value)) for name, value in headers_of(context).items())
    properties = attrs.evolve(properties, headers=Table(entries + more))
    channel = int.from_bytes(frames[at + 1 : at + 3], "big")
    payload = encode_header(attrs.evolve(header, properties=properties))
    return frames[:at] + encode_frame(amqp.FRAME_HEADER, channel, payload)


def _header_at(frames: bytes) -> int:
    """Where the header frame begins."""
    return 8 + int.from_bytes(frames[3:7], "big")

"""The spans of one session, from what begins one to what ends it.

::

    publish ── chosen ──▶ span; traceparent into the header, if there is none ── the broker's confirm ──▶ end
    deliver ── chosen ──▶ span, of the trace that the message carries ── the client's ack ──▶ end
    declare, bind, ... ─▶ span ── the broker's answer ──▶ end
    refused by a policy or a limit ──▶ span with that event, and its end

`sampling` chooses messages, unless the context that they carry does; `underway` knows what has not ended.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import attrs
from opentelemetry.trace import Span, SpanContext

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Flow
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import stands_for
from amqpgate.gateway.observers.trace.under_way import UnderWay
from amqpgate.policy import OPERATIONS, Operation, Principal, SessionTraces, TraceDecision, Verdict
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.policy.kinds.trace import TRACEPARENT
from amqpgate.protocol.frames import encode_frame
from amqpgate.telemetry.faults import FAULTS, contained
from amqpgate.telemetry.tracing.context import context_in, headers_of
from amqpgate.telemetry.tracing.semconv import DENIED, THROTTLED, Key, Value, destination
from amqpgate.telemetry.tracing.spans import Sort
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table

if TYPE_CHECKING:
    from amqpgate.gateway.observers.trace.tracer import Tracer
    from amqpgate.gateway.session.channel_close import SessionChannels
    from amqpgate.gateway.session.publish_refusal import HeldPublish

#: Octets that a trace context adds to a content header: name, type, length and value; and an empty table.
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
class TraceObserver:
    """Of one session."""

    tracing: Tracer
    principal: Principal
    #: What each of its spans says.
    values: dict[Key, Value | None]
    #: None: nothing is traced any more.
    rules: SessionTraces | None
    under_way: UnderWay = attrs.field(init=False)
    _arriving: dict[int, _TracedDelivery] = attrs.field(factory=dict, init=False)
    #: Since when the client's next method waits for a limit, in nanoseconds since 1970; 0: it does not.
    _waits_since: int = attrs.field(default=0, init=False)

    def enter(self, relay: Relay, closes: SessionChannels) -> None:
        """The session goes on the data path."""
        self.under_way = UnderWay(self.tracing, relay, closes)

    # -- what is traced ------------------------------------------------------------------------

    def is_about(self, operation: str) -> bool:
        """Whether some rule is."""
        return self.rules is not None and operation in self.rules.operations

    @contained("traces", None)
    def decide(self, operation: Operation) -> TraceDecision | None:
        """Which share of such operations is traced; None: nothing."""
        return None if self.rules is None else self.rules.decide(operation)

    @contained("traces", None)
    def delivery(self, channel: int, tag: str) -> TraceDecision | None:
        """As ``decide``, of what is delivered to a consumer."""
        state = self.under_way.closes.channels.get(channel)
        consumer = None if state is None or state.consuming is None else state.consuming.tags.get(tag)
        return None if consumer is None else self.decide(consumer.operations[0])

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

    @contained("traces", None)
    def choose(self, held: HeldPublish, frame: memoryview) -> TracedMessage | None:
        """Whether a publish is traced whose content header has come. One that cannot be read is not."""
        if held.decision is None:
            return None
        try:
            header = decode_header(frame[7:-1])
        except ProtocolViolation:
            return None
        return self._choose(held.decision, header, len(frame) - 8, held.flow, held.weight)

    def publish(self, held: HeldPublish, chosen: TracedMessage, frames: bytes) -> tuple[Span | None, bytes]:
        """A publish goes to the broker, with these frames of its method and header: its span, if there is
        room for one, and the frames with the context in them."""
        try:
            return self._publish(held, chosen, frames)
        except Exception:
            FAULTS.caught("traces", "the span of a publish")
            return None, frames

    def _publish(self, held: HeldPublish, chosen: TracedMessage, frames: bytes) -> tuple[Span | None, bytes]:
        if not self.under_way.has_room():
            return None, frames
        fits = len(frames) - _header_at(frames) + ADDED <= self.under_way.relay.up.out_frame_max
        if not chosen.carries and not fits:
            self.tracing.counters.not_injected()
        injects = fits and not chosen.carries
        span = self._message(Sort.CREATE if injects else Sort.SEND, held, chosen)
        context = span.get_span_context()
        # Of an SDK that the environment has switched off there is none.
        return span, injected(frames, context) if injects and context.is_valid else frames

    @contained("traces", None)
    def refuse(self, held: HeldPublish, chosen: TracedMessage, verdict: Verdict, *, is_limit: bool) -> None:
        """The publish is refused: by a policy, or by a limit."""
        span = self._message(Sort.SEND, held, chosen)
        self._refused(span, verdict, THROTTLED if is_limit else DENIED)

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

    @contained("traces", None)
    def arriving(
        self, channel: int, method: amqp.BasicDeliver, decision: TraceDecision, flow: Flow, weight: int
    ) -> None:
        """A delivery that is shown; its header comes next."""
        consuming = self.under_way.closes.channels[channel].consuming
        consumer = None if consuming is None else consuming.tags.get(method.consumer_tag)
        if consumer is not None:
            queue = consumer.operations[0].queue or ""
            self._arriving[channel] = _TracedDelivery(method, queue, consumer.no_ack, decision, flow, weight)

    @contained("traces", None)
    def arrived(self, channel: int, frame: memoryview) -> None:
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

    @contained("traces", None)
    def limited(self, channel: int, method: Method, *, waits: bool) -> None:
        """A method of the client's waits for a limit, or is refused by one."""
        if waits:
            self._waits_since = self._waits_since or time.time_ns()
            return
        self._waits_since = 0
        state = self.under_way.closes.channels.get(channel)
        span = self._request(method, "" if state is None else state.last_queue, 0)
        if span is not None:
            self._refused(span, None, THROTTLED)

    @contained("traces", None)
    def request(self, channel: int, method: Method, last_queue: str, *, is_answered: bool = True) -> None:
        """A method of the client's goes to the broker, whose answer will be heard or not.

        A channel that opens has nothing of its last use.
        """
        since, self._waits_since = self._waits_since, 0
        down = self.under_way.relay.down.flows
        if isinstance(method, amqp.BasicConsume) and down is not None:
            # They know a consumer by its tag, which may have been another one's.
            down.flush()
        if isinstance(method, amqp.ChannelOpen):
            self._arriving.pop(channel, None)
            self.under_way.abandon(channel, "channel-closed")
        span = self._request(method, last_queue, since) if is_answered else None
        if span is not None:
            self.under_way.requested(channel, method, span)

    @contained("traces", None)
    def denied(self, operation: Operation, verdict: Verdict) -> None:
        """A policy refuses an operation, of whose message, if it has one, nothing is known."""
        decision = self.decide(operation)
        if decision is not None and self._is_chosen(decision):
            self._refused(self._operation(operation, decision, 0), verdict, DENIED)

    def _request(self, method: Method, last_queue: str, since: int) -> Span | None:
        name = amqp.BasicRecover.NAME if isinstance(method, amqp.BasicRecoverAsync) else method.NAME
        if name not in OPERATIONS or not self.is_about(name):
            return None
        operation = operation_of(method, self.principal, last_queue)
        decision = self.decide(operation)
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

"""The spans of one session: which messages are chosen, and what a span says."""

from __future__ import annotations

import time
from typing import Final

import attrs
from opentelemetry.trace import SpanContext

from amqpgate.datapath.captures import Sample
from amqpgate.datapath.properties import PROPERTIES
from amqpgate.datapath.scanner import Flow, Rewrite
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler, stands_for
from amqpgate.gateway.observers.trace.tracer import Tracer
from amqpgate.gateway.session.publish_denial import HeldPublish
from amqpgate.policy import Operation, TraceDecision, Verdict
from amqpgate.policy.engine.conditions import TRACEPARENT
from amqpgate.policy.engine.operations import PROPERTY_FLAGS
from amqpgate.telemetry.tracing.context import context_in, headers_of
from amqpgate.telemetry.tracing.open_span import OpenSpan, SpanMaker
from amqpgate.telemetry.tracing.semconv import DENIED, THROTTLED, Key, Value, destination
from amqpgate.telemetry.tracing.spans import Sort
from amqpgate.wire.codec import ContentHeader, decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.primitives import get_shortstr_lenient
from amqpgate.wire.tables import EMPTY_TABLE, Table

#: What adding up shares may lose.
_EXACT: Final = 1e-6
#: Properties that a span tells.
_TEXTS: Final = {"message_id": Key.MESSAGE_ID, "correlation_id": Key.CORRELATION_ID}
#: Of the payload of a content header: the size of the body, and the property flags.
_SIZE: Final = slice(4, 12)
_FLAGS: Final = slice(12, 14)
#: Bytes of property flags, and of a table's length.
_BEFORE_ENTRIES: Final = 2 + 4
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


@attrs.frozen(eq=False)
class StampedKind:
    """Publishes of one flow, whose samples the data path gives a trace context."""

    maker: SpanMaker
    decision: TraceDecision
    method: amqp.BasicPublish
    name: str
    #: What each of them says.
    attributes: dict[str, Value]
    #: The names of what each says of itself.
    body_size: tuple[str, ...]
    texts: tuple[tuple[int, tuple[str, ...]], ...]


@attrs.frozen(eq=False)
class Stamped:
    """The same, and what becomes of them."""

    kind: StampedKind
    rewrite: Rewrite


@attrs.frozen
class SessionSpans:
    """Makes them."""

    tracing: Tracer
    #: What each of them says.
    values: dict[Key, Value | None]
    #: The same, by their names, and what each of a kind of message says.
    _named: dict[Sort, dict[str, Value]] = attrs.field(factory=dict, init=False)

    def is_chosen(self, decision: TraceDecision) -> bool:
        """Whether a request is chosen, which carries no context."""
        return self.tracing.sampler(decision).count(1)

    def choose(
        self, decision: TraceDecision, header: ContentHeader, size: int, flow: Flow, weight: int
    ) -> TracedMessage | None:
        """A message that was shown, if it is chosen."""
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

    def publish(self, sort: Sort, held: HeldPublish, chosen: TracedMessage) -> OpenSpan:
        """That of a publish, from when it began to wait for a limit, if it did."""
        waited = time.monotonic() - held.since if held.since else 0.0
        return self._published(sort, held.method, chosen, waited, time.time_ns())

    def carried(
        self, kind: StampedKind, flow: Flow, header: bytes, waited: float, now: int
    ) -> OpenSpan | None:
        """That of a publish which has passed with the context that it carries, if it is chosen."""
        try:
            chosen = self.choose(kind.decision, decode_header(header), len(header), flow, 1)
        except ProtocolViolation:
            return None
        return None if chosen is None else self._published(Sort.SEND, kind.method, chosen, waited, now)

    def _published(
        self, sort: Sort, method: amqp.BasicPublish, chosen: TracedMessage, waited: float, now: int
    ) -> OpenSpan:
        at = now - int(waited * 1e9)
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

    def stamped(self, decision: TraceDecision, sampler: Sampler, method: amqp.BasicPublish) -> Stamped | None:
        """For publishes like this one, of which each sample is chosen that carries no context; None: not each
        is, or they must be seen."""
        spans, every = self.tracing.spans, sampler.every
        maker = spans.export.maker
        is_each = every and abs(every * decision.ratio - 1) < _EXACT
        if maker is None or not is_each or not (decision.respects_parent or every == 1):
            return None
        names = spans.names
        kind = StampedKind(
            maker,
            decision,
            method,
            f"publish {destination(method.exchange)}",
            self._of_kind(Sort.CREATE, "publish")
            | names.attributes(
                {
                    Key.DESTINATION: destination(method.exchange, method.routing_key),
                    Key.ROUTING_KEY: method.routing_key or None,
                    Key.TRACE_RULE: f"{decision.policy}/{decision.rule}",
                }
            ),
            names.of(Key.BODY_SIZE),
            tuple([(PROPERTY_FLAGS[name], names.of(key)) for name, key in _TEXTS.items()]),
        )
        headers = Table.of({name: str(text) for name, text in headers_of(maker.blank).items()})
        entries = amqp.BasicProperties(headers=headers).encode()[_BEFORE_ENTRIES:]
        return Stamped(kind, Rewrite(method.encode(), (None,) * len(PROPERTIES), 0, entries, every))

    def captured(self, kind: StampedKind, header: bytes, sample: Sample, now: int) -> OpenSpan:
        """That of a publish which has passed with its context, and whose properties are well-formed."""
        _weight, _number, ids, waited = sample
        attributes = kind.attributes.copy()
        for name in kind.body_size:
            attributes[name] = int.from_bytes(header[_SIZE], "big")
        for flag, names in kind.texts:
            text = text_of(header, flag)
            if text is not None:
                for name in names:
                    attributes[name] = text
        at = now - int(waited * 1e9)
        span = kind.maker.stamped(kind.name, Sort.CREATE.value[1], attributes, ids, at)
        if waited:
            self.tracing.spans.happened(span, THROTTLED, {Key.WAITED: waited}, at)
        return span

    def _of_kind(self, sort: Sort, operation: str) -> dict[str, Value]:
        named = self._named.get(sort)
        if named is None:
            named = self._named[sort] = self.tracing.spans.named(sort, operation, self.values)
        return named

    def delivery(self, method: amqp.BasicDeliver, queue: str, chosen: TracedMessage) -> OpenSpan:
        """That of a delivery from a queue."""
        is_anonymous = queue.startswith(_ANONYMOUS)
        return self._start(
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

    def _start(
        self,
        sort: Sort,
        chosen: TracedMessage,
        operation: str,
        target: str,
        more: dict[Key, Value | None],
        at: int,
    ) -> OpenSpan:
        decision, properties, spans = chosen.decision, chosen.header.properties, self.tracing.spans
        assert isinstance(properties, amqp.BasicProperties)
        named = self._of_kind(sort, operation)
        more |= {
            Key.MESSAGE_ID: properties.message_id,
            Key.CORRELATION_ID: properties.correlation_id,
            Key.BODY_SIZE: chosen.header.body_size,
            Key.TRACE_RULE: f"{decision.policy}/{decision.rule}",
        }
        return spans.start_message(
            sort,
            f"{operation} {target}" if target else operation,
            named | spans.names.attributes(more),
            chosen.maker,
            at,
            is_parent=decision.respects_parent,
        )

    def operation(self, operation: Operation, decision: TraceDecision, since: int) -> OpenSpan:
        """That of a request, which waits for a limit since then (ns since 1970); 0: it does not."""
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

    def refused(self, span: OpenSpan, verdict: Verdict | None, event: str) -> None:
        """What it is of is denied or rejected, and so it ends."""
        why = {} if verdict is None else {Key.POLICY: verdict.policy, Key.RULE: verdict.rule}
        self.tracing.spans.happened(span, event, why)
        self.tracing.spans.failed(span, "access-refused" if event == DENIED else "over-limit")
        span.end()


def text_of(header: bytes, flag: int) -> str | None:
    """The property with this flag, a short string, of a header whose properties are well-formed."""
    flags = int.from_bytes(header[_FLAGS], "big")
    if not flags & flag:
        return None
    at = _FLAGS.stop
    for place, size in enumerate(PROPERTIES):
        here = 0x8000 >> place
        if not flags & here:
            continue
        if here == flag:
            return get_shortstr_lenient(header, at, len(header))[0]
        if size >= 0:
            at += size
        elif size == -1:
            at += 1 + header[at]
        else:
            at += 4 + int.from_bytes(header[at : at + 4], "big")
    return None

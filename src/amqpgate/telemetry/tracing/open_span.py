"""A message's span that is under way, as compact as can be: the SDK's own takes five times as long to make.

It becomes one of the SDK's when it ends. Where the environment limits spans, or switches the SDK off, they
are the SDK's from the start. So are those of requests and set-ups, of which there are few.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import attrs
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace import Tracer as SdkTracer
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from amqpgate.telemetry.tracing.context import NOTHING
from amqpgate.telemetry.tracing.semconv import Value

#: Environment variables of the SDK that change what a span says, or whether there is any.
_CHANGES: Final = ("OTEL_SDK_DISABLED", "_LIMIT")
_UNSET: Final = Status()


class OpenSpan(Protocol):
    """What is asked of a span that is under way; OpenTelemetry's own have these, too."""

    def get_span_context(self) -> SpanContext: ...
    def add_event(
        self, name: str, attributes: Mapping[str, Value] | None = None, timestamp: int | None = None, /
    ) -> None: ...
    def set_attribute(self, key: str, value: Value, /) -> None: ...
    def set_status(self, status: Status, /) -> None: ...
    def end(self, end_time: int | None = None, /) -> None: ...


@attrs.define(eq=False)
class _CompactSpan:
    maker: SpanMaker
    name: str
    kind: SpanKind
    context: SpanContext
    parent: SpanContext | None
    link: SpanContext | None
    start: int
    attributes: dict[str, Value]
    events: tuple[Event, ...] = ()
    status: Status = _UNSET

    def get_span_context(self) -> SpanContext:
        return self.context

    def add_event(
        self, name: str, attributes: Mapping[str, Value] | None = None, timestamp: int | None = None, /
    ) -> None:
        self.events += (Event(name, attributes, timestamp),)

    def set_attribute(self, key: str, value: Value, /) -> None:
        self.attributes[key] = value

    def set_status(self, status: Status, /) -> None:
        self.status = status

    def end(self, end_time: int | None = None, /) -> None:
        maker = self.maker
        maker.take(
            ReadableSpan(
                self.name,
                self.context,
                self.parent,
                maker.resource,
                self.attributes,
                self.events,
                () if self.link is None else (Link(self.link),),
                self.kind,
                None,
                self.status,
                self.start,
                time.time_ns() if end_time is None else end_time,
                maker.scope,
            )
        )


def began_at(span: OpenSpan) -> int | None:
    """When it began, in nanoseconds since 1970; None: it is not recorded."""
    if isinstance(span, _CompactSpan):
        return span.start
    return span.start_time if isinstance(span, SdkSpan) else None


@attrs.frozen
class SpanMaker:
    """Makes those of one process, with the numbers and flags that the SDK would give them."""

    take: Callable[[ReadableSpan], None]
    ids: IdGenerator
    resource: Resource
    scope: InstrumentationScope | None
    #: Of a span without a parent; of one whose parent has a random trace number; and of one whose has not.
    _flags: tuple[TraceFlags, TraceFlags, TraceFlags]

    @classmethod
    def of(cls, tracer: Tracer, take: Callable[[ReadableSpan], None]) -> SpanMaker | None:
        """As this tracer makes them; None: leave it to the tracer."""
        if not isinstance(tracer, SdkTracer) or any(
            change in name for name in os.environ if name.startswith("OTEL_") for change in _CHANGES
        ):
            return None
        asked = [tracer.start_span("")]
        for flags in (TraceFlags.SAMPLED | TraceFlags.RANDOM_TRACE_ID, TraceFlags.SAMPLED):
            parent = SpanContext(1, 1, is_remote=True, trace_flags=TraceFlags(flags))
            asked.append(tracer.start_span("", set_span_in_context(NonRecordingSpan(parent), NOTHING)))
        root, random, other = asked
        if not isinstance(root, SdkSpan):
            return None
        given = (one.get_span_context().trace_flags for one in (root, random, other))
        return cls(take, tracer.id_generator, root.resource, root.instrumentation_scope, tuple(given))  # type: ignore[arg-type]

    @property
    def blank(self) -> SpanContext:
        """The context of a span without a parent whose numbers are not known yet."""
        return SpanContext(1, 1, False, self._flags[0])

    def stamped(
        self, name: str, kind: SpanKind, attributes: dict[str, Value], ids: bytes, at: int
    ) -> OpenSpan:
        """As ``start``, of one without a parent. ``ids``: of its trace, in 16 bytes, and its own."""
        trace, span = int.from_bytes(ids[:16], "big"), int.from_bytes(ids[16:], "big")
        context = SpanContext(trace, span, False, self._flags[0])
        return _CompactSpan(self, name, kind, context, None, None, at, attributes)

    def start(
        self,
        name: str,
        kind: SpanKind,
        attributes: dict[str, Value],
        parent: SpanContext | None,
        link: SpanContext | None,
        at: int,
    ) -> OpenSpan:
        """One that begins ``at`` that time, in nanoseconds since 1970. The attributes are its own."""
        ids = self.ids
        span = ids.generate_span_id()
        if parent is None:
            context = SpanContext(ids.generate_trace_id(), span, False, self._flags[0])
        else:
            is_random = parent.trace_flags & TraceFlags.RANDOM_TRACE_ID
            flags = self._flags[1 if is_random else 2]
            context = SpanContext(parent.trace_id, span, False, flags, parent.trace_state)
        return _CompactSpan(self, name, kind, context, parent, link, at, attributes)

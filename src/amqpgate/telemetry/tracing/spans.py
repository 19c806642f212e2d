"""Spans: what one says, from its start to its end.

Kinds and names follow OpenTelemetry's conventions for messaging spans::

    send      publish until its confirm            PRODUCER if the message carries its context, else CLIENT
    process   deliver until its acknowledgement    CONSUMER
    (none)    any other method until its answer    CLIENT
    (none)    the set-up of a connection           SERVER, and INTERNAL for its stages

The name is the operation and what it is done to, the exchange or the queue: routing keys, which may be many,
are in the attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    set_span_in_context,
)

from amqpgate.telemetry.tracing.context import NOTHING
from amqpgate.telemetry.tracing.export import Export
from amqpgate.telemetry.tracing.open_span import OpenSpan
from amqpgate.telemetry.tracing.semconv import Key, Names, Value
from amqpgate.values import frozen

_FAILED: Final = Status(StatusCode.ERROR)


class Sort(Enum):
    """What a span is about: the operation's type in the conventions, and the kind of the span."""

    #: A publish whose message carries the span's own context.
    CREATE = ("send", SpanKind.PRODUCER)
    #: A publish whose message carries its publisher's.
    SEND = ("send", SpanKind.CLIENT)
    PROCESS = ("process", SpanKind.CONSUMER)
    REQUEST = (None, SpanKind.CLIENT)
    SETUP = (None, SpanKind.SERVER)
    STAGE = (None, SpanKind.INTERNAL)


@frozen
class Spans:
    """Starts spans of one process."""

    export: Export
    names: Names

    def start(
        self,
        sort: Sort,
        operation: str,
        target: str,
        values: Mapping[Key, Value | None],
        *,
        parent: SpanContext | None = None,
        link: SpanContext | None = None,
        at: int | None = None,
    ) -> OpenSpan:
        """``target`` is what stands in the name behind the operation, if anything; ``link`` the span that has
        made the message; ``at`` in nanoseconds since 1970, else now."""
        kind_of_operation, kind = sort.value
        given: dict[Key, Value | None] = {Key.OPERATION_TYPE: kind_of_operation}
        if sort is not Sort.STAGE:
            given[Key.OPERATION] = operation
        return self.export.tracer.start_span(
            f"{operation} {target}" if target else operation,
            context=NOTHING if parent is None else set_span_in_context(NonRecordingSpan(parent), NOTHING),
            kind=kind,
            attributes=self.names.attributes({**given, **values}),
            links=[] if link is None else [Link(link)],
            start_time=at,
        )

    def named(self, sort: Sort, operation: str, values: Mapping[Key, Value | None]) -> dict[str, Value]:
        """Attributes that the spans of messages have alike."""
        return self.names.attributes({Key.OPERATION_TYPE: sort.value[0], Key.OPERATION: operation, **values})

    def start_message(
        self,
        sort: Sort,
        name: str,
        attributes: dict[str, Value],
        maker: SpanContext | None,
        at: int,
        *,
        is_parent: bool,
    ) -> OpenSpan:
        """As ``start``, of a message, of which there may be many. The attributes are the span's own.

        ``maker`` is the span that has made the message, and its parent where ``is_parent``.
        """
        parent, compact = maker if is_parent else None, self.export.maker
        if compact is not None:
            return compact.start(name, sort.value[1], attributes, parent, maker, at)
        return self.export.tracer.start_span(
            name,
            context=NOTHING if parent is None else set_span_in_context(NonRecordingSpan(parent), NOTHING),
            kind=sort.value[1],
            attributes=attributes,
            links=[] if maker is None else [Link(maker)],
            start_time=at,
        )

    def happened(
        self, span: OpenSpan, event: str, values: Mapping[Key, Value | None], at: int | None = None
    ) -> None:
        """Something that is told in an event."""
        span.add_event(event, self.names.attributes(values), at)

    def failed(self, span: OpenSpan, why: str) -> None:
        """The operation has failed; ``why`` is one of few: a reply code's name, or a word."""
        span.set_status(_FAILED)
        for name, value in self.names.attributes({Key.ERROR: why}).items():
            span.set_attribute(name, value)

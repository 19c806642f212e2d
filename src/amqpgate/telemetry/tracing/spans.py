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

import attrs
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


@attrs.frozen
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
        named = self.named(sort, operation, values)
        return self.begin(sort, f"{operation} {target}" if target else operation, named, parent, link, at)

    def named(self, sort: Sort, operation: str, values: Mapping[Key, Value | None]) -> dict[str, Value]:
        """The attributes of such spans."""
        given: dict[Key, Value | None] = {Key.OPERATION_TYPE: sort.value[0]}
        if sort is not Sort.STAGE:
            given[Key.OPERATION] = operation
        return self.names.attributes({**given, **values})

    def begin(
        self,
        sort: Sort,
        name: str,
        attributes: dict[str, Value],
        parent: SpanContext | None,
        link: SpanContext | None,
        at: int | None,
    ) -> OpenSpan:
        """As ``start``, with the name and the attributes of the span, which are its own."""
        kind = sort.value[1]
        maker = self.export.maker
        if maker is not None:
            return maker.start(name, kind, attributes, parent, link, at)
        return self.export.tracer.start_span(
            name,
            context=NOTHING if parent is None else set_span_in_context(NonRecordingSpan(parent), NOTHING),
            kind=kind,
            attributes=attributes,
            links=[] if link is None else [Link(link)],
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

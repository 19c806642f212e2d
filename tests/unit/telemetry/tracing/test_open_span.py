"""Spans under way say what the SDK's own would, with the same flags.

Where the environment asks for more, they are the SDK's own."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, TraceFlags, TraceState
from prometheus_client import CollectorRegistry

from amqpgate.config import HttpUrl, Tracing
from amqpgate.telemetry.tracing.counters import TraceCounters
from amqpgate.telemetry.tracing.export import Export
from amqpgate.telemetry.tracing.open_span import SpanMaker
from amqpgate.telemetry.tracing.semconv import THROTTLED, Key, Names
from amqpgate.telemetry.tracing.spans import Sort, Spans

STATE = TraceState([("vendor", "1")])


def context(flags: int) -> SpanContext:
    return SpanContext(0xA0, 0xB0, is_remote=True, trace_flags=TraceFlags(flags), trace_state=STATE)


class Way:
    """Spans that are made one way, and kept when they end."""

    def __init__(self, *, is_compact: bool) -> None:
        self.ended: list[ReadableSpan] = []
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        self.exporter = exporter
        self.tracer = provider.get_tracer("amqpgate", "1.2.3")
        self.maker = SpanMaker.of(self.tracer, self.ended.append) if is_compact else None
        assert is_compact == (self.maker is not None)
        # What is asked of ``Export``.
        self.spans = Spans(self, Names())  # type: ignore[arg-type]

    def take(self) -> ReadableSpan:
        [span] = self.ended or self.exporter.get_finished_spans()
        return span


@pytest.mark.parametrize("sort", [Sort.CREATE, Sort.SEND, Sort.PROCESS])
@pytest.mark.parametrize("maker", [None, 1, 3], ids=["nobody's", "somebody's", "of a random trace"])
@pytest.mark.parametrize("is_parent", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_both_ways_say_the_same(sort: Sort, maker: int | None, is_parent: bool, fails: bool) -> None:
    said = []
    for is_compact in (True, False):
        way = Way(is_compact=is_compact)
        named = way.spans.named(sort, "publish", {Key.USER: "guest", Key.BODY_SIZE: 7, Key.VHOST: None})
        span = way.spans.start_message(
            sort,
            "publish orders",
            named,
            None if maker is None else context(maker),
            1_000,
            is_parent=is_parent,
        )
        if fails:
            way.spans.happened(span, THROTTLED, {Key.WAITED: 0.5}, 1_500)
            way.spans.failed(span, "not-found")
        span.end(2_000)
        one = way.take()
        mine = one.context
        assert mine is not None
        assert mine == span.get_span_context()
        assert mine.is_valid
        said.append(
            (
                *(one.name, one.kind, one.parent, dict(one.attributes or {}), list(one.attributes or {})),
                *(one.start_time, one.end_time, one.status.status_code, one.status.description),
                [(event.name, dict(event.attributes or {}), event.timestamp) for event in one.events],
                [(link.context, dict(link.attributes or {})) for link in one.links],
                *(mine.trace_flags, mine.trace_state, mine.is_remote),
                mine.trace_id if is_parent and maker is not None else None,
                one.instrumentation_scope,
            )
        )
    assert said[0] == said[1]


def test_no_two_have_one_number() -> None:
    way = Way(is_compact=True)
    contexts = [
        way.spans.start_message(Sort.SEND, "publish", {}, None, 1, is_parent=True).get_span_context()
        for _ in range(100)
    ]
    assert len({one.span_id for one in contexts}) == len({one.trace_id for one in contexts}) == 100


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "3"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3"),
    ],
)
def test_what_the_environment_asks_for_is_the_sdks(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    settings = Tracing(endpoint=HttpUrl.parse("http://127.0.0.1:1/v1/traces"))
    export = Export(settings, "1", TraceCounters(CollectorRegistry()))
    try:
        assert export.maker is None
        spans = Spans(export, Names())
        span = spans.start_message(Sort.SEND, "publish", {"user": "guest" * 10}, None, 1, is_parent=True)
        assert span.get_span_context().is_valid == (name != "OTEL_SDK_DISABLED")
    finally:
        export.close(0)

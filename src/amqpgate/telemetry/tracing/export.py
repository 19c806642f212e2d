"""The way of ended spans to the collector: a bounded queue, and a thread of the SDK's that sends.

::

    end of a span ── room in the queue ──▶ SDK's queue ── thread: OTLP over HTTP ──▶ collector
                       └─ none: dropped, counted                 └─ not taken: dropped, counted

Nobody waits for a collector: what it does not take in time is lost and counted. At the end of the gateway
what waits is sent, for a while, in a thread of its own, since the SDK's ``shutdown`` waits for an answer.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer

from amqpgate.config import Tracing
from amqpgate.telemetry.tracing.counters import TraceCounters
from amqpgate.telemetry.tracing.open_span import SpanMaker

#: Spans in one request, at most: some hundred KiB.
_BATCH = 512


class _Counting(SpanExporter):
    """Counts what the collector takes. Called by the sending thread only."""

    def __init__(self, exporter: SpanExporter, counters: TraceCounters) -> None:
        self._exporter, self._counters = exporter, counters
        #: Spans that have left the queue, and those of which it is known what became of them.
        self.begun = self.settled = 0
        #: What is left has been given up, and counted so.
        self.is_over = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.begun += len(spans)
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if not self.is_over:
                self._settle(len(spans), result is SpanExportResult.SUCCESS)
        return result

    def _settle(self, spans: int, is_sent: bool) -> None:
        if is_sent:
            self._counters.sent(spans)
        else:
            self._counters.dropped("refused", spans)
        self.settled += spans

    def shutdown(self) -> None:
        """No more tries. The SDK says so only after it has waited for its thread."""
        if not self.is_over:
            self.is_over = True
            self._exporter.shutdown()


class _Queue(SpanProcessor):
    """The SDK's queue, in which there is room or not; the SDK itself would drop the oldest and log each time.

    Spans end in one thread, the gateway's.
    """

    def __init__(self, exporter: _Counting, settings: Tracing, counters: TraceCounters) -> None:
        self._counting, self._counters = exporter, counters
        self._room = settings.queue
        self._batches = BatchSpanProcessor(
            exporter,
            max_queue_size=settings.queue,
            schedule_delay_millis=settings.interval * 1000,
            max_export_batch_size=min(_BATCH, settings.queue),
        )
        #: Spans that came in.
        self._taken = 0
        self._is_closed = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing to do."""

    def on_end(self, span: ReadableSpan) -> None:
        if self._is_closed:
            self._counters.dropped("stopped")
        elif self._taken - self._counting.begun >= self._room:
            self._counters.dropped("queue")
        else:
            self._taken += 1
            self._batches.on_end(span)

    def close(self, timeout: float) -> None:
        """Send what waits, for so many seconds; what is left then is dropped. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        # It does not end while the collector keeps a request waiting, and must not keep the process.
        closing = threading.Thread(target=self._batches.shutdown, name="tracing shutdown", daemon=True)
        closing.start()
        closing.join(timeout)
        self._counting.shutdown()
        self._counters.dropped("stopped", self._taken - self._counting.settled)


class Export:
    """Of one process. ``tracer`` starts spans; those that end are sent."""

    def __init__(self, settings: Tracing, version: str, counters: TraceCounters) -> None:
        """Raises ``ConfigError`` where the file with the headers cannot be read."""
        exporter = OTLPSpanExporter(
            endpoint=str(settings.endpoint),
            headers=dict(settings.headers()),
            timeout=settings.timeout,
            certificate_file=None if settings.ca is None else str(settings.ca),
        )
        self._queue = _Queue(_Counting(exporter, counters), settings, counters)
        resource = Resource.create(
            {
                "service.name": settings.service_name,
                "service.version": version,
                "service.instance.id": str(uuid.uuid4()),
                "process.pid": os.getpid(),
            }
        )
        # What is to be traced has been chosen before; and the gateway says itself when it ends.
        provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(self._queue)
        self.tracer: Tracer = provider.get_tracer("amqpgate", version)
        #: None: the tracer is to make them.
        self.maker: Final = SpanMaker.of(self.tracer, self._queue.on_end)

    def close(self, timeout: float) -> None:
        """Send what waits, for so many seconds at most, in which it blocks. Idempotent."""
        self._queue.close(timeout)

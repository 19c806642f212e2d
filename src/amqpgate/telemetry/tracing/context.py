"""The trace context that a message carries in its headers: W3C Trace Context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_TRACEPARENT: Final = "traceparent"
_TRACESTATE: Final = "tracestate"
_W3C: Final = TraceContextTextMapPropagator()
#: Nobody's.
NOTHING: Final = Context()


def context_in(headers: Mapping[str, object]) -> SpanContext | None:
    """Whose span the headers name; None: no valid one."""
    carrier = {
        name: value for name in (_TRACEPARENT, _TRACESTATE) if isinstance(value := headers.get(name), str)
    }
    if _TRACEPARENT not in carrier:
        return None
    found = get_current_span(_W3C.extract(carrier, NOTHING)).get_span_context()
    return found if found.is_valid else None


def headers_of(context: SpanContext) -> dict[str, str]:
    """What a message carries whose trace goes on from a span."""
    if not context.trace_state:
        # As the propagator below does, at a tenth of the time.
        return {_TRACEPARENT: f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"}
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, set_span_in_context(NonRecordingSpan(context), NOTHING))
    return carrier

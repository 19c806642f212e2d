"""The trace context in a message's headers."""

from __future__ import annotations

import pytest

from amqpgate.telemetry.tracing.context import context_in, headers_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_context_there_and_back() -> None:
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1,other=2"}
    context = context_in(headers)
    assert context is not None
    assert (f"{context.trace_id:032x}", f"{context.span_id:016x}") == (TRACE, SPAN)
    assert context.trace_flags.sampled
    assert headers_of(context) == headers
    unsampled = context_in({"traceparent": f"00-{TRACE}-{SPAN}-00"})
    assert unsampled is not None
    assert not unsampled.trace_flags.sampled


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"tracestate": "vendor=1"},
        {"traceparent": b"00"},
        {"traceparent": 1},
        {"traceparent": ""},
        {"traceparent": f"00-{TRACE}-{SPAN}"},
        {"traceparent": f"ff-{TRACE}-{SPAN}-01"},
        {"traceparent": f"00-{'0' * 32}-{SPAN}-01"},
        {"traceparent": f"00-{TRACE}-{'0' * 16}-01"},
        {"traceparent": f"00-{TRACE.upper()}-{SPAN}-01-more"},
        {"Traceparent": f"00-{TRACE}-{SPAN}-01"},
    ],
)
def test_what_is_no_context(headers: dict[str, object]) -> None:
    assert context_in(headers) is None

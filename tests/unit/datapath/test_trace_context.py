"""Trace contexts as both engines see them; OpenTelemetry's own reader is the oracle."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath import trace_context as plain
from amqpgate.datapath.trace_context import Carried
from amqpgate.telemetry.tracing.context import context_in
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

ENGINES: list[ModuleType] = [plain] if compiled is None else [plain, compiled]
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
UNSAMPLED, SAMPLED = f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-01"


def header(*entries: tuple[str, object], **properties: object) -> bytes:
    table = Table(tuple((name, Field.of(value)) for name, value in entries)) if entries else None
    made = amqp.BasicProperties(headers=table, **properties)  # type: ignore[arg-type]
    return encode_header(ContentHeader(60, 1, made))


def seen(payload: bytes) -> Carried:
    answers = {Carried(engine.carried(payload)) for engine in ENGINES}
    assert len(answers) == 1
    return answers.pop()


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (header(("traceparent", UNSAMPLED)), Carried.UNSAMPLED),
        (header(("a", 1), ("traceparent", UNSAMPLED), app_id="x"), Carried.UNSAMPLED),
        (header(("traceparent", f"00-{TRACE}-{SPAN}-fe")), Carried.UNSAMPLED),
        (header(("traceparent", SAMPLED)), Carried.MAYBE_SAMPLED),
        (header(("traceparent", f"00-{TRACE}-{SPAN}-0b")), Carried.MAYBE_SAMPLED),
        (header(("traceparent", f"01-{TRACE}-{SPAN}-00")), Carried.MAYBE_SAMPLED),
        (header(("traceparent", f"00-{'0' * 32}-{SPAN}-00")), Carried.MAYBE_SAMPLED),
        (header(("traceparent", f"00-{TRACE}-{'0' * 16}-00")), Carried.MAYBE_SAMPLED),
        (header(("traceparent", UNSAMPLED.upper())), Carried.MAYBE_SAMPLED),
        (header(("traceparent", UNSAMPLED + " ")), Carried.MAYBE_SAMPLED),
        (header(("traceparent", UNSAMPLED[:-1] + "\n")), Carried.MAYBE_SAMPLED),
        (header(("traceparent", UNSAMPLED.encode())), Carried.MAYBE_SAMPLED),
        (header(("traceparent", 1)), Carried.MAYBE_SAMPLED),
        # The first of several counts.
        (header(("traceparent", UNSAMPLED), ("traceparent", SAMPLED)), Carried.UNSAMPLED),
        (header(("traceparent", SAMPLED), ("traceparent", UNSAMPLED)), Carried.MAYBE_SAMPLED),
        # What only looks like one.
        (header(("a", {"traceparent": UNSAMPLED})), Carried.MAYBE_SAMPLED),
        (header(("traceparents", UNSAMPLED)), Carried.NONE),
        (header(app_id="\x0btraceparent"), Carried.NONE),
        (header(), Carried.NONE),
        (b"", Carried.NONE),
        (header(("traceparent", UNSAMPLED))[:-1], Carried.MAYBE_SAMPLED),
        (b"\0\x3d" + header(("traceparent", UNSAMPLED))[2:], Carried.MAYBE_SAMPLED),
    ],
)
def test_what_a_header_carries(payload: bytes, expected: Carried) -> None:
    assert seen(payload) is expected


@given(
    st.sampled_from([UNSAMPLED, SAMPLED]),
    st.lists(st.tuples(st.integers(0, 54), st.sampled_from("0123456789abcdefAFg-\n é")), max_size=2),
)
def test_what_is_unsampled_is_so_to_opentelemetry(text: str, changes: list[tuple[int, str]]) -> None:
    for at, letter in changes:
        text = text[:at] + letter + text[at + 1 :]
    if seen(header(("traceparent", text))) is Carried.UNSAMPLED:
        context = context_in({"traceparent": text})
        assert context is not None
        assert not context.trace_flags.sampled

"""A trace context in a header frame."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.observers.trace.injection import ADDED, injected
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.telemetry.tracing.context import context_in
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.unit.gateway.observers.trace.test_session import SAMPLED
from tests.unit.wire.strategies import LONGLONG, OCTET, SHORTSTR, TABLE


@given(
    properties=st.builds(
        amqp.BasicProperties,
        headers=st.none() | TABLE,
        content_type=st.none() | SHORTSTR,
        priority=st.none() | OCTET,
        timestamp=st.none() | LONGLONG,
        reply_to=st.none() | SHORTSTR,
    ),
    channel=st.integers(1, 65535),
    body_size=st.integers(0, 2**62 - 1),
)
def test_an_injected_context_changes_nothing_else(
    properties: amqp.BasicProperties, channel: int, body_size: int
) -> None:
    context = context_in({"traceparent": SAMPLED})
    assert context is not None
    method = method_frame(channel, amqp.BasicPublish(exchange="e", routing_key="k", mandatory=True))
    content = encode_header(ContentHeader(amqp.BasicPublish.CLASS_ID, body_size, properties))
    frames = method + encode_frame(amqp.FRAME_HEADER, channel, content)
    changed = injected(frames, context)
    assert changed.startswith(method)
    header = changed[len(method) :]
    assert header[:3] == b"\x02" + channel.to_bytes(2, "big")
    assert len(changed) <= len(frames) + ADDED
    after = decode_header(header[7:-1])
    assert isinstance(after.properties, amqp.BasicProperties)
    assert after.properties.headers is not None
    *others, added = after.properties.headers.entries
    assert added == ("traceparent", Field("S", SAMPLED))
    assert tuple(others) == (() if properties.headers is None else properties.headers.entries)
    # Without it, byte by byte what it was.
    without = attrs.evolve(
        after.properties, headers=None if properties.headers is None else Table(tuple(others))
    )
    assert encode_header(attrs.evolve(after, properties=without)) == content

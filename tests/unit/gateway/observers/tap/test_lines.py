"""What a line of a tap has room for, and what is left out of it."""

from __future__ import annotations

import base64
import json

import attrs
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_9_1 import NATIVE
from amqpgate.gateway.observers.tap.lines import (
    _KEPT,
    _KEPT_BYTES,
    LONGEST,
    FlowLine,
    Told,
    _quoted,
    line_of,
    said_in,
)
from amqpgate.policy import Operation, Principal
from amqpgate.policy.engine.from_method import content_of
from amqpgate.policy.engine.regular_expressions import of_bytes
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.policy.kinds.audit import AuditDecision
from amqpgate.policy.kinds.audit_document import Redact
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.unit.gateway.observers.tap.hidden import (
    publish,
    shown_by,
)
from tests.unit.gateway.tapped import AUDIT, MakeStage, frames_in, tap

names = st.text(max_size=9) | st.sampled_from(["\udcff", 'a"b\\c', "\n", "n" * (LONGEST + 1)])
operations = st.builds(
    Operation,
    st.builds(
        Principal, st.just("guest"), names, source=st.just("10.0.0.9"), upstream_user=st.none() | names
    ),
    st.just("basic.publish"),
    exchange=names,
    routing_key=names,
)
REDACT = Redact(properties=("appId",), headers=(NamePattern("se", is_prefix=True),))
decisions = st.sampled_from(
    [
        AuditDecision("none"),
        AuditDecision("headers", "policy", "rule"),
        AuditDecision("body", "policy", "rule", 4, REDACT, ((of_bytes("[0-9]+"), b"#"),)),
        AuditDecision("body", "policy", "rule", 2 * LONGEST),
    ]
)
properties = st.builds(
    amqp.BasicProperties,
    content_encoding=st.sampled_from([None, "gzip"]),
    app_id=st.sampled_from([None, "shop", 'a"b', "\udcff"]),
    headers=st.none()
    | st.dictionaries(st.sampled_from(["secret", "a", "b"]), st.integers(-5, 5)).map(Table.of),
)
bodies = st.binary(max_size=9) | st.sampled_from([b"12 and 34", b"b" * (LONGEST + 1)])


@given(operations, decisions, st.lists(st.tuples(st.integers(1, 65535), properties, bodies), max_size=5))
def test_the_text_of_what_is_captured_is_that_of_its_line(
    operation: Operation, decision: AuditDecision, messages: list[tuple[int, amqp.BasicProperties, bytes]]
) -> None:
    line = FlowLine.of(Told(1.0, "s-1", 7, operation, UNRESTRICTED, None, NATIVE, 99))
    for channel, one, body in messages:
        header = ContentHeader(60, len(body), one)
        told = Told(1800.000001, "s-1", channel, operation, UNRESTRICTED, None, NATIVE, len(body))
        said = ""
        if decision.reads_messages:
            audited = decision.record(attrs.evolve(operation, content=content_of(header)), body)
            if audited is not None and not body:
                audited = attrs.evolve(audited, body=None)
            told = attrs.evolve(told, said=audited)
            said = said_in(decision, encode_header(header), body[: decision.reads_body])
        plain = json.dumps(line_of(told), separators=(",", ":"))
        assert f"{{{line.text('1800.000001', channel, len(body), said)}}}" == plain


def test_of_properties_so_many_are_kept_as_text() -> None:
    _quoted.cache_clear()
    decision = AuditDecision("headers", "policy", "rule")

    def tell(app_id: str) -> None:
        properties = amqp.BasicProperties(app_id=app_id, headers=Table.of({"h": "v" * (len(app_id) * 40)}))
        assert app_id in said_in(decision, encode_header(ContentHeader(60, 1, properties)), b"")

    for number in range(_KEPT + 9):
        tell(f"{number}")
    assert _quoted.cache_info().currsize == _KEPT
    misses = _quoted.cache_info().misses
    tell("a" * (_KEPT_BYTES // 40 + 1))
    assert _quoted.cache_info().misses == misses


def test_no_line_is_longer_than_it_may_be(make_stage: MakeStage) -> None:
    stage = make_stage(
        policies=AUDIT % "{id: r, operations: [basic.publish], level: body, maxBodyBytes: 1Mi}"
    )
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.publish or operation=queue.declare", frames=True)
    long = "h" * 20_000
    properties = amqp.BasicProperties(headers=Table.of({"h": long}))
    client.publish(b"b" * 20_000, "k", properties=properties)
    assert broker.expect_content(amqp.BasicPublish).header.properties == properties
    client.say(amqp.QueueDeclare(queue="q", arguments=Table.of({"x-long": long})), 1)
    broker.expect(amqp.QueueDeclare, 1)
    publish_item, declare = watch.items()
    assert len(str(publish_item["headers"])) == LONGEST + 3
    assert base64.b64decode(str(publish_item["body"])) == b"b" * LONGEST
    header = decode_header(frames_in(publish_item)[1])
    assert (header.body_size, header.properties) == (20_000, amqp.BasicProperties())
    assert len(str(declare["arguments"])) == LONGEST + 3
    assert declare["frames"] == ""


def test_headers_that_cannot_be_told_as_they_are_are_left_out(make_stage: MakeStage) -> None:
    """A time before 1970: what is redacted beside it would be in the frames, if those were the client's."""
    stage = make_stage(
        policies=AUDIT % "{id: r, operations: [basic.publish], level: headers, redact: {headers: [token]}}"
    )
    client, broker = stage.opened()
    watch = tap(stage, frames=True, match="operation=basic.publish")
    table = Table((("token", Field("S", "sec-header")), ("at", Field("T", 2**64 - 60))))
    publish(client, broker, amqp.BasicProperties(headers=table))
    [item] = watch.items()
    assert b"sec-header" not in shown_by(item)
    assert "token" in str(item["headers"])
    header = decode_header(frames_in(item)[1])
    assert header.properties == amqp.BasicProperties()

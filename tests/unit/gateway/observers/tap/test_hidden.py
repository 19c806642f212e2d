"""What the audit policy hides, no tap shows: neither in lines, nor in frames, nor in the capture."""

from __future__ import annotations

import base64
import io
import json
from typing import cast

import pytest

from amqpgate.cli.pcap import Capture
from amqpgate.cli.tap import TapLine, _add
from amqpgate.gateway.observers.audit import session
from amqpgate.gateway.observers.tap.lines import LONGEST
from amqpgate.telemetry.answers import JSON
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import AUDIT, MakeStage, frames_in, tap

#: Each is somewhere in the messages of these tests.
SECRETS = ("sec-header", "sec-nested", "sec-property", "sec-123-body", "sec-behind-the-limit")
PROPERTIES = amqp.BasicProperties(
    "text/plain",
    correlation_id="sec-property",
    headers=Table.of({"token": "sec-header", "a": {"Token": "sec-nested", "open": "open-header"}}),
)
BODY = b"open-body sec-123-body, and sec-behind-the-limit"
REDACT = "redact: {headers: [token], properties: [correlationId], bodyPatterns: [{regex: 'sec-[0-9]+-body'}]}"


def shown_by(item: dict[str, JSON]) -> bytes:
    """All that there is of an operation: its line, with what is base64 there, and its capture."""
    file = io.BytesIO()
    _add(Capture(file), cast("TapLine", item))
    parts = [base64.b64decode(str(item.get(name, ""))) for name in ("body", "frames")]
    return b"".join([json.dumps(item, ensure_ascii=False).encode(), *parts, file.getvalue()])


def publish(client: Talker, broker: Talker, properties: amqp.BasicProperties, count: int = 1) -> None:
    for _ in range(count):
        client.publish(BODY, "k", exchange="orders", properties=properties)
        message = broker.expect_content(amqp.BasicPublish)
        assert (message.body, message.header.properties) == (BODY, properties)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(
    ("level", "seen"),
    [
        (None, ()),
        ("level: metadata", ()),
        ("level: headers", (*SECRETS[:3], "open-header", "text/plain")),
        (f"level: headers, {REDACT.partition(', bodyPatterns')[0]}}}", ("open-header", "text/plain")),
        (
            f"level: body, maxBodyBytes: 24, {REDACT}",
            ("open-header", "text/plain", "open-body", "[redacted]"),
        ),
        ("level: body, maxBodyBytes: 24", (*SECRETS[:4], "open-header", "text/plain", "open-body")),
    ],
)
def test_nothing_is_anywhere_that_is_hidden(
    make_stage: MakeStage, level: str | None, seen: tuple[str, ...], every: int
) -> None:
    policies = (
        {} if level is None else {"policies": AUDIT % f"{{id: r, operations: [basic.publish], {level}}}"}
    )
    stage = make_stage(**policies)
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.publish", frames=True, every=every)
    publish(client, broker, PROPERTIES, 2 * every)
    items = watch.items()
    assert watch.counts == (2 * every, len(items)) == (2 * every, 2)
    for item in items:
        assert item["body_size"] == len(BODY)
        assert decode_header(frames_in(item)[1]).body_size == len(BODY)
        shown = shown_by(item)
        for text in {*SECRETS, "open-header", "open-body", "text/plain", *seen}:
            assert (text.encode() in shown) == (text in seen), text


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


def test_messages_to_the_client_have_metadata_only(make_stage: MakeStage) -> None:
    rule = "{id: r, operations: [basic.publish, basic.consume, basic.get], level: body}"
    stage = make_stage(policies=AUDIT % rule)
    client, broker = stage.opened()
    consume(client, broker)
    watch = tap(
        stage, "operation=basic.deliver or operation=basic.get-ok or operation=basic.return", frames=True
    )
    client.say(amqp.BasicGet(queue="q"), 1)
    broker.expect(amqp.BasicGet, 1)
    for method in (
        amqp.BasicDeliver("c", 1, False, "x", "a"),
        amqp.BasicGetOk(2, False, "x", "a", 0),
        amqp.BasicReturn(312, "NO_ROUTE", "x", "a"),
    ):
        broker.content(method, BODY, properties=PROPERTIES)
        message = client.expect_content(type(method))
        assert (message.method, message.body, message.header.properties) == (method, BODY, PROPERTIES)
    items = watch.items()
    assert [item["operation"] for item in items] == ["basic.deliver", "basic.get-ok", "basic.return"]
    for item in items:
        assert set(item).isdisjoint({"properties", "headers", "body"})
        shown = shown_by(item)
        assert not [text for text in (*SECRETS, "open-header", "open-body") if text.encode() in shown]


def consume(client: Talker, broker: Talker) -> None:
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)


@pytest.mark.parametrize("is_audited", [False, True])
def test_what_nobody_knows_the_request_of_is_not_seen_where_one_might_be_hidden(
    make_stage: MakeStage, is_audited: bool
) -> None:
    rule = AUDIT % "{id: r, operations: [basic.consume], queue: secret, level: none}"
    stage: Stage = make_stage(**({"policies": rule} if is_audited else {}))
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.deliver or operation=basic.get-ok")
    broker.content(amqp.BasicDeliver("never-asked-for", 1, False, "x", "a"), b"1")
    client.expect_content(amqp.BasicDeliver)
    broker.content(amqp.BasicGetOk(2, False, "x", "a", 0), b"1")
    client.expect_content(amqp.BasicGetOk)
    assert [item["operation"] for item in watch.items()] == (
        [] if is_audited else ["basic.deliver", "basic.get-ok"]
    )
    assert watch.counts[0] == (0 if is_audited else 2)


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


def test_of_bodies_so_much_is_read_along_at_once(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "READ_ALONG", 100)
    stage = make_stage(
        policies=AUDIT % "{id: r, operations: [basic.publish], level: body, maxBodyBytes: 1Mi}"
    )
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.publish")
    client.publish(b"b" * 300, "k")
    assert broker.expect_content(amqp.BasicPublish).body == b"b" * 300
    [item] = watch.items()
    assert (base64.b64decode(str(item["body"])), item["body_cut"]) == (b"b" * 100, True)


def test_content_is_what_the_audit_policy_lets_out(make_stage: MakeStage) -> None:
    rules = """
  - {id: never, operations: [basic.publish], routingKey: secret, level: none}
  - id: shown
    operations: [basic.publish]
    routingKey: shown
    level: body
    maxBodyBytes: 10
    redact: {headers: [token], properties: [correlationId, priority], bodyPatterns: [{regex: '[0-9]+'}]}
  - {id: half, operations: [basic.publish], routingKey: half, level: headers}
"""
    stage = make_stage(policies=AUDIT.replace("[%s]", rules))
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.publish", frames=True)
    properties = amqp.BasicProperties(
        "text/plain", correlation_id="c-1", priority=5, headers=Table.of({"token": "t", "a": 1})
    )
    for key, body in (("secret", b"s"), ("shown", b"pin 1234 and more"), ("half", b"h"), ("else", b"e")):
        client.publish(body, key, exchange="orders", properties=properties)
        message = broker.expect_content(amqp.BasicPublish)
        assert (message.body, message.header.properties) == (body, properties)
    shown, half, other = watch.items()
    assert watch.counts == (3, 3)
    assert json.loads(str(shown["headers"])) == {"token": "[redacted]", "a": 1}
    assert json.loads(str(shown["properties"])) == {
        "content_type": "text/plain",
        "correlation_id": "[redacted]",
        "priority": "[redacted]",
    }
    assert base64.b64decode(str(shown["body"])) == b"pin [redacted] a"
    assert (shown["body_cut"], shown["body_size"]) == (True, 17)
    assert decode_header(frames_in(shown)[1]).properties == amqp.BasicProperties(
        "text/plain", correlation_id="[redacted]", headers=Table.of({"token": "[redacted]", "a": 1})
    )
    assert json.loads(str(half["headers"])) == {"token": "t", "a": 1}
    assert "body" not in half
    assert set(other).isdisjoint({"headers", "properties", "body"})
    header = decode_header(frames_in(other)[1])
    assert (header.body_size, header.properties) == (1, amqp.BasicProperties())


def test_a_body_in_many_frames_is_read_along(make_stage: MakeStage) -> None:
    stage = make_stage(
        policies=AUDIT % "{id: all, operations: [basic.publish], level: body, maxBodyBytes: 1Mi}"
    )
    client, broker = stage.opened(channels=2)
    watch = tap(stage, "operation=basic.publish")
    body = bytes(range(256)) * 2000
    client.publish(body, "k")
    # One that never ends.
    client.say(amqp.BasicPublish(), 2)
    assert broker.expect_content(amqp.BasicPublish).body == body
    client.publish(b"after", "k", channel=1)
    assert broker.expect_content(amqp.BasicPublish).body == b"after"
    first, second = watch.items()
    assert base64.b64decode(str(first["body"])) == body[: 16 << 10]
    assert (first["body_size"], first["body_cut"]) == (len(body), True)
    assert (base64.b64decode(str(second["body"])), second["body_cut"]) == (b"after", False)


@pytest.mark.parametrize("rule", ["none", "metadata"])
def test_consumers_that_audit_leaves_out_are_not_seen(make_stage: MakeStage, rule: str) -> None:
    stage = make_stage(policies=AUDIT % f"{{id: r, operations: [basic.consume], queue: q, level: {rule}}}")
    client, broker = stage.opened()
    watch = tap(stage)
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    broker.content(amqp.BasicDeliver("c", 1, False, "x", "a"), b"12345")
    client.expect_content(amqp.BasicDeliver)
    assert len(watch.items()) == (2 if rule == "metadata" else 0)

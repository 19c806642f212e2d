"""What the audit policy hides, no tap shows: neither in lines, nor in frames, nor in the capture."""

from __future__ import annotations

import pytest

from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.observers.tap.hidden import (
    BODY,
    PROPERTIES,
    REDACT,
    SECRETS,
    consume,
    publish,
    shown_by,
)
from tests.unit.gateway.tapped import AUDIT, MakeStage, frames_in, tap


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

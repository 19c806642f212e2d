"""What a tap is told of published content: what the audit policy lets out, as far as there is room."""

from __future__ import annotations

import base64
import json

import pytest

from amqpgate.datapath.tables import CAPTURED_BYTES
from amqpgate.gateway.observers.audit import session
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.unit.gateway.tapped import AUDIT, MakeStage, frames_in, tap


def test_of_bodies_so_much_is_read_along_at_once(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "READ_ALONG", 100)
    stage = make_stage(
        policies=AUDIT % "{id: r, operations: [basic.publish], level: body, maxBodyBytes: 1Mi}"
    )
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.publish")
    # What is not captured on the data path.
    large = b"b" * CAPTURED_BYTES
    client.publish(large, "k")
    assert broker.expect_content(amqp.BasicPublish).body == large
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

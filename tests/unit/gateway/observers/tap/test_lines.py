"""What a line of a tap has room for, and what is left out of it."""

from __future__ import annotations

import base64

from amqpgate.gateway.observers.tap.lines import LONGEST
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.unit.gateway.observers.tap.hidden import (
    publish,
    shown_by,
)
from tests.unit.gateway.tapped import AUDIT, MakeStage, frames_in, tap


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

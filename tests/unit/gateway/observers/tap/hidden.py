"""Messages with what an audit policy hides, and all that a tap shows of them."""

from __future__ import annotations

import base64
import io
import json
from typing import cast

from amqpgate.cli.pcap import Capture
from amqpgate.cli.tap import TapLine, _add
from amqpgate.telemetry.answers import JSON
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.talker import Talker

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


def consume(client: Talker, broker: Talker) -> None:
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)

"""What the log says of sessions."""

from __future__ import annotations

import logging
import re

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage


def test_a_session_has_one_line_at_its_end(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "amqpgate.gateway")
    client, broker = stage.opened()
    client.publish(b"x" * 100, "q")
    client.publish(b"y", "q")
    for _ in range(2):
        broker.expect_content(amqp.BasicPublish)
    host, port = client.sock.getsockname()
    assert not [line for line in caplog.messages if "session" in line]
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    stage.running.wait_idle()
    (line,) = [line for line in caplog.messages if "session" in line]
    assert re.fullmatch(
        rf"session [0-9a-f]{{16}} over: closed: {host}:{port}, user 'guest', vhost '/', \d+\.\d s, "
        r"published 2 messages \(101 bytes\), delivered 0 \(0 bytes\)",
        line,
    ), line


def test_its_beginning_is_told_to_who_asks_for_more(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "amqpgate.gateway.observers.stats.reports")
    stage.opened()
    assert [line for line in caplog.messages if " open: 127.0.0.1:" in line]

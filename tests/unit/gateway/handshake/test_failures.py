"""What the log says of handshakes that fail."""

from __future__ import annotations

import io
import json
import logging

import pytest

from amqpgate.gateway.handshake.failures import INTERVAL, SAMPLE, HandshakeFailures
from amqpgate.logs import About, JsonHandler


def test_a_line_says_who_it_claims_to_be(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    who: About = {"user": "eve\n", "vhost": None, "listener": "main", "upstream": "broker", "reply_code": 403}
    HandshakeFailures().add(100.0, "s", "10.0.0.7:1", "refused", "no", who)
    line = json.loads(JsonHandler(io.StringIO()).format(caplog.records[0]))
    assert dict(list(line.items())[5:]) == {
        "session": "s",
        "client": "10.0.0.7:1",
        "user": "eve\n",
        "listener": "main",
        "upstream": "broker",
        "reply_code": 403,
    }


def test_the_log_has_the_first_ones_and_then_a_number(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lost = HandshakeFailures()
    for number in range(SAMPLE + 5):
        lost.add(100.0, f"s{number}", "10.0.0.7:1", "refused", "no")
    lost.add(101.0, "t", "[2001:db8::7]:1", "handshake_timeout", "late")
    assert caplog.messages == [f"s{number} from 10.0.0.7:1: no" for number in range(SAMPLE)]
    caplog.clear()
    lost.tick(100.0 + INTERVAL - 1)
    assert not caplog.messages
    lost.tick(100.0 + INTERVAL)
    lost.tick(100.0 + INTERVAL)
    assert caplog.messages == [
        "6 more connections did not become sessions within 10 s (refused 5, handshake_timeout 1), "
        "5 of them from 10.0.0.7"
    ]
    caplog.clear()
    lost.add(100.0 + INTERVAL, "next", "10.0.0.7:1", "refused", "no")
    lost.tick(1000.0)
    assert caplog.messages == ["next from 10.0.0.7:1: no"]

"""Where metrics and log lines go: what can be said, and what is said wrong."""

from __future__ import annotations

import pytest

from amqpgate.config import parse
from amqpgate.errors import ConfigError

REST = "listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n"


def test_nothing_is_sent_unless_it_is_said_where() -> None:
    assert parse(REST, {}).otlp is None
    otlp = parse(REST + "otlp: {metrics: 'http://c:4318/v1/metrics'}\n", {}).otlp
    assert otlp is not None
    assert (str(otlp.metrics), otlp.logs, otlp.interval, otlp.queue) == (
        "http://c:4318/v1/metrics",
        None,
        30,
        2048,
    )
    assert otlp.headers() == {}


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("{}", "name where metrics go"),
        ("{logs: 'http://user:pass@c/'}", "belongs in headersFile"),
        ("{logs: 'http://c/', interval: 0s}", "between 0.1 and 3600"),
        ("{logs: 'http://c/', ca: ca.pem}", "ca"),
    ],
)
def test_what_is_wrong(keys: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse(f"{REST}otlp: {keys}\n", {})
    assert "pass@" not in str(caught.value)

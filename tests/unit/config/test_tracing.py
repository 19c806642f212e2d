"""Where spans go: what can be said, and what is said wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.config import parse
from amqpgate.errors import ConfigError

REST = "listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n"


def test_what_is_not_said_is_usual() -> None:
    tracing = parse(REST + "tracing: {endpoint: 'https://[::1]:4318/v1/traces'}\n", {}).tracing
    assert tracing is not None
    assert (str(tracing.endpoint), tracing.endpoint.is_tls) == ("https://[::1]:4318/v1/traces", True)
    assert (tracing.timeout, tracing.queue, tracing.service_name) == (10, 8192, "amqpgate")
    assert tracing.headers() == {}
    assert parse(REST, {}).tracing is None


def test_headers_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "headers").write_text("Authorization: Bearer x y\n# not this: one\n\nX-Tenant:blue\n")
    text = REST + "tracing: {endpoint: 'http://c/', headersFile: headers}\n"
    tracing = parse(text, {}, file=str(tmp_path / "amqpgate.yaml")).tracing
    assert tracing is not None
    assert tracing.headers() == {"authorization": "Bearer x y", "x-tenant": "blue"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("{}", "key 'endpoint' is missing"),
        ("endpoint: 'grpc://c:4317'", "expected http://host:port/path, or https://"),
        ("endpoint: 'http://c:99999/'", "expected http://host:port/path"),
        ("endpoint: 'http://c/?key=1'", "expected http://host:port/path"),
        ("endpoint: 'http://me:secret@c/'", "a login belongs in headersFile"),
        ("endpoint: 'http://c/', queue: 0", "must be between 1"),
        ("endpoint: 'http://c/', serviceName: ''", "must not be empty"),
        ("endpoint: 'http://c/', ca: headers", "is for https:// only"),
        ("endpoint: 'http://c/', headersFile: headers", "line 2: expected 'name: value'"),
        ("endpoint: 'http://c/', headersFile: nowhere", "no such file"),
    ],
)
def test_what_is_wrong_is_said_and_no_secret_with_it(tmp_path: Path, keys: str, message: str) -> None:
    (tmp_path / "headers").write_text("a: b\nBearer secret\n")
    with pytest.raises(ConfigError) as caught:
        parse(
            REST + "tracing: " + (keys if keys == "{}" else f"{{{keys}}}") + "\n",
            {},
            file=str(tmp_path / "amqpgate.yaml"),
        )
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)

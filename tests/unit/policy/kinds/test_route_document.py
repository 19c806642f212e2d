"""What a route document may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.errors import ConfigError
from tests.unit.policy.routes import document, load, to


@pytest.mark.parametrize(
    ("upstream", "words"),
    [
        ("{}", "say cluster or clusters"),
        ("{cluster: a, clusters: [{cluster: b}]}", "say cluster or clusters"),
        ("{clusters: [{cluster: a}, {cluster: a}]}", "'a' is listed already"),
        ("{clusters: [{cluster: a, weight: 0}]}", "between 1 and 1000"),
        ("{cluster: a, user: u}", "a user needs passwordFile or passwordEnv"),
        ("{cluster: a, passwordEnv: P}", "a password needs a user"),
        ("{cluster: a, user: u, password: p}", "would be a secret in a policy"),
        ("{cluster: a, user: u, passwordFile: none}", "no such file"),
        ("{cluster: a, vhost: ''}", "must not be empty"),
        ("{cluster: a, connections: share}", "expected one of own, pooled; not 'share'"),
        ("{cluster: a, pool: {}}", "unknown key 'pool'"),
        ("{cluster: a, mirror: {}}", "key 'cluster' is missing"),
        ("{cluster: a, mirror: {cluster: b, percent: 101}}", "between 0 and 100"),
        ("{cluster: a, mirror: {cluster: b, user: u}}", "a user needs passwordFile or passwordEnv"),
        ("{cluster: a, mirror: {cluster: b, user: u, password: p}}", "would be a secret in a policy"),
        ("{cluster: a, mirror: {cluster: b, passwordEnv: P}}", "a password needs a user"),
        ("{cluster: a, mirror: {cluster: b, exchanges: []}}", "must not be empty"),
        ("{cluster: a, mirror: {cluster: b, exchanges: ['a*b']}}", "asterisk stands only at the end"),
        ("{cluster: a, mirror: {cluster: b, buffer: 1Ki}}", "between"),
        ("{cluster: a, mirror: {cluster: b, buffer: 1Mi, maxBodyBytes: 2Mi}}", "larger than the buffer"),
        ("{cluster: a, mirror: {cluster: b, share: 1}}", "unknown key 'share'"),
    ],
)
def test_refused_targets(upstream: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        load(document(f"upstream: {upstream}"))
    assert refused.value.line == 6


def test_a_password_comes_from_one_place(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    text = document(f"upstream: {{cluster: a, user: u, passwordFile: {tmp_path}/secret, passwordEnv: P}}")
    with pytest.raises(ConfigError, match="exclude each other"):
        load(text)


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        (("id: x, " + to("a"), "id: x, " + to("b")), "two routes of this policy have the id 'x'"),
        (("id: a/b, " + to("a"),), "letters, digits"),
    ],
)
def test_refused_ids(routes: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(document(*routes))

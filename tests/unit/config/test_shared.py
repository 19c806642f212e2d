"""Where limits are counted together: the settings, and policies that need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.app import wiring
from amqpgate.config import RedisUrl, SharedLimits, parse
from amqpgate.errors import ConfigError

TEXT = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: rabbit, host: 127.0.0.1}]
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: p}
spec:
  subjects: [{user: guest}]
  limits: [{id: l, messages: 1/s, shared: true}]
"""


def shared(text: str) -> SharedLimits:
    settings = parse(TEXT + f"sharedLimits: {{{text}}}\n", {"SECRET": "hush"})
    assert settings.shared_limits is not None
    return settings.shared_limits


def test_what_it_says() -> None:
    found = shared(
        "redis: 'rediss://redis.corp:6380/2', replicas: 3, password: '${SECRET}', whenAway: closed"
    )
    assert found.redis == RedisUrl("rediss://redis.corp:6380/2", "redis.corp", 6380, 2, True)
    assert found.password is not None
    assert found.password.reveal() == "hush"
    assert (found.when_away, found.replicas, found.prefix) == ("closed", 3, "amqpgate:")
    assert "hush" not in repr(found)
    found = shared("redis: 'redis://[::1]', replicas: 1")
    assert (found.redis.host, found.redis.port, found.redis.database) == ("::1", 6379, 0)
    assert found.when_away == "local"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("redis: 'http://a', replicas: 1", "expected redis://"),
        ("redis: 'redis://', replicas: 1", "expected redis://"),
        ("redis: 'redis://a/x', replicas: 1", "expected redis://"),
        ("redis: 'redis://a:99999', replicas: 1", "expected redis://"),
        ("redis: 'redis://a?b=c', replicas: 1", "expected redis://"),
        ("redis: 'redis://:hush@a', replicas: 1", "have keys of their own"),
        ("redis: 'redis://a'", "'replicas' is missing"),
        ("redis: 'redis://a', replicas: 0", "must be"),
        ("redis: 'redis://a', replicas: 1, user: bob", "needs a password"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        shared(text)
    assert message in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_limit_that_is_shared_with_nobody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(POLICY)
    text = TEXT + f"policies: {tmp_path}\n"
    with pytest.raises(ConfigError, match="add sharedLimits to the configuration"):
        wiring.load_policies(parse(text, {}))
    assert wiring.load_policies(parse(text + "sharedLimits: {redis: 'redis://a', replicas: 1}\n", {})).rates

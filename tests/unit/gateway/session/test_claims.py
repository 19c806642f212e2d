"""What is too large follows the policies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.claiming import LARGE, make
from tests.unit.gateway.conftest import Stage


def test_a_session_without_such_a_policy_has_none(stage: Stage) -> None:
    stage.opened()
    (session,) = stage.running.gateway.sessions.values()
    assert session.claims is None
    assert session.relay.down.flows is None


def test_what_is_too_large_follows_the_policy(
    make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = make(make_stage, monkeypatch)
    client, broker = claims.stage.opened()
    running = claims.stage.running
    (session,) = running.gateway.sessions.values()
    assert session.relay.up.most_body == 64 * 1024

    def switch_off() -> None:
        session.session_policies.adapt_by(None)
        assert session.claims is not None
        session.claims.follow()

    running.call(switch_off)
    client.publish(LARGE, "k")
    assert broker.expect_content(amqp.BasicPublish).body == LARGE
    assert claims.store.objects == {}

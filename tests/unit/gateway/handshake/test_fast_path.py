"""Who takes the fast path."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

STRANGERS = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: logins}
spec:
  subjects: [{sourceCIDR: [127.0.0.0/8]}]
  limits: [{id: logins, per: [sourceIP], logins: 100/s}]
"""


def test_where_logins_are_limited_each_is_judged(make_stage: MakeStage) -> None:
    stage = make_stage(policies=STRANGERS)
    assert stage.running.gateway.acceptor.context.policies.are_asked_first


def test_where_none_is(stage: Stage) -> None:
    (path,) = stage.running.gateway.acceptor._fast.values()
    assert not path.context.policies.are_asked_first
    assert not path.verifies_tokens


@pytest.mark.parametrize(
    ("listener", "upstream", "seconds"),
    [("", "", 5), ("", "connectTimeout: 2s", 2), ("", "connectTimeout: 4s, handshakeTimeout: 3s", 3)],
)
def test_deadlines_are_looked_at_when_the_first_may_have_passed(
    make_stage: MakeStage, listener: str, upstream: str, seconds: int
) -> None:
    stage = make_stage(listener=listener, upstream=upstream)
    (path,) = stage.running.gateway.acceptor._fast.values()
    assert path.first_look == seconds


def test_behind_a_balancer_there_is_none(make_stage: MakeStage) -> None:
    stage = make_stage(listener="proxyProtocol: v2")
    assert not stage.running.gateway.acceptor._fast

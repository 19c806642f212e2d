"""What all handshakes of a gateway share: there is one of each, for all its listeners and all its clients."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.gateway.handshake.context import HandshakeContext
from tests.support.inprocess import eventually
from tests.unit.gateway.conftest import Stage

TWO = """
listeners:
- {{name: main, bind: 127.0.0.1:0}}
- {{name: other, bind: 127.0.0.1:0}}
- {{name: balanced, bind: 127.0.0.1:0, proxyProtocol: v2}}
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}}}]
limits: {{maxHandshakes: 2, {limits}}}
"""


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage(text=TWO)


@pytest.fixture
def context(stage: Stage) -> HandshakeContext:
    return stage.running.gateway.acceptor.context


def test_it_is_the_gateways(stage: Stage, context: HandshakeContext) -> None:
    gateway = stage.running.gateway
    assert context.settings is gateway.settings
    assert context.router is gateway.router
    assert context.policies.in_force.now is gateway.policies
    assert [path.context is context for path in gateway.acceptor._fast.values()] == [True, True]


def test_without_issuers_no_token_is_verified(context: HandshakeContext) -> None:
    assert context.identities is None


def test_handshakes_of_all_listeners_have_room_together(stage: Stage, context: HandshakeContext) -> None:
    """Those that are led step by step, and conversations."""
    first = stage.client("main")
    stage.client("balanced")
    eventually(lambda: len(context.pending) == 2)
    stage.client("other")
    # The one that has been silent for longest gives way.
    first.expect_end()
    assert len(context.pending) == 2

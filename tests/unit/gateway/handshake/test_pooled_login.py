"""Who shares connections to the broker, and how one is told that the broker does not want it."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.config import Secret
from amqpgate.gateway.handshake.pooled_login import PooledLogin, needs_own
from amqpgate.policy import PolicySet, Principal, SelectedPolicies, Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.talker import CAPABILITIES, Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.handshake.clients import asking, client_of
from tests.unit.gateway.pool.pooled import knocks

CLAIMS = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {{name: claims}}
spec:
  subjects: [{{}}]
  as: rabbitmq-3.13
  upstreams: [{upstream}]
  claimCheck: {{store: "s3://bucket/prefix", above: 64Ki, timeout: 5s}}
"""
#: What a client that does not hear of refusals says of itself.
DEAF = Table.of({"capabilities": {"basic.nack": True, "consumer_cancel_notify": True}})


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage(upstream="connections: pooled, pool: {spareChannels: 0}", limits="closeTimeout: 100ms")


def understands(*what: str) -> Table:
    return Table.of({"capabilities": dict.fromkeys(what, True)})


@pytest.mark.parametrize(
    ("mechanism", "properties", "is_shared"),
    [
        ("PLAIN", CAPABILITIES, True),
        ("AMQPLAIN", CAPABILITIES, True),
        # The broker's challenge is for one connection.
        ("SCRAM-SHA-256", CAPABILITIES, False),
        ("PLAIN", understands("basic.nack", "consumer_cancel_notify"), True),
        ("PLAIN", understands("basic.nack"), False),
        ("PLAIN", understands("consumer_cancel_notify"), False),
    ],
)
def test_who_may_share(stage: Stage, mechanism: str, properties: Table, is_shared: bool) -> None:
    with client_of(stage, mechanism=mechanism, properties=properties) as client:
        login = PooledLogin(client, client.context.pools)
        to = client.context.router.plain_dialler("broker", "s").destination
        assert login.may_share(to) is is_shared
        # The gateway's own login can be repeated, whatever the client's is.
        own = attrs.evolve(to, settings=attrs.evolve(to.settings, user="svc", password=Secret("x")))
        assert login.may_share(own) is (is_shared or mechanism == "SCRAM-SHA-256")
        apart = attrs.evolve(to, settings=attrs.evolve(to.settings, connections="own"))
        assert not login.may_share(apart)


@pytest.mark.parametrize(
    ("policies", "is_own"),
    [
        (PolicySet.empty(), False),
        (build([Source("p.yaml", CLAIMS.format(upstream="broker").encode())]), True),
        (build([Source("p.yaml", CLAIMS.format(upstream="other").encode())]), False),
    ],
    ids=["no policy", "of this cluster", "of another"],
)
def test_who_has_bodies_in_a_store_needs_a_connection_of_its_own(
    stage: Stage, policies: PolicySet, is_own: bool
) -> None:
    to = stage.running.gateway.router.plain_dialler("broker", "s").destination
    assert needs_own(SelectedPolicies(policies, Principal("bob", "/"), "s"), to) is is_own


def refused(stage: Stage, properties: Table) -> Talker:
    """A client whose login the broker has refused."""
    client, broker = knocks(stage, properties, b"\0bob\0wrong")
    # It comes before the client has said its virtual host.
    assert broker.expect(amqp.ConnectionStartOk).response == b"\0bob\0wrong"
    broker.say(amqp.ConnectionClose(403, "ACCESS_REFUSED - because"))
    return client


def test_a_refusal_is_told_in_the_brokers_words(stage: Stage) -> None:
    client = refused(stage, CAPABILITIES)
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (403, "ACCESS_REFUSED - because")


def test_who_does_not_understand_that_is_left_without_a_word(stage: Stage) -> None:
    refused(stage, DEAF).expect_end()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


def test_what_is_not_needed_is_closed(stage: Stage) -> None:
    """The session has turned out to need a connection of its own."""
    with client_of(stage) as client:
        login = PooledLogin(client, client.context.pools)
        dialler = client.context.router.plain_dialler("broker", "s")

        async def in_vain() -> bool:
            found = await login.preauthenticate(dialler)
            assert found is not None
            await login.part_with(found)
            return True

        with asking(stage, in_vain) as answers:
            broker = stage.broker()
            broker.greet()
            assert broker.expect(amqp.ConnectionStartOk).response == b"\0bob\0right"
            broker.say(amqp.ConnectionTune(2047, 131072, 0))
            broker.expect(amqp.ConnectionClose)
            broker.say(amqp.ConnectionCloseOk())
        assert answers == [True]

"""What there was much of, and is gone: when memory is given back, and what a session keeps no longer."""

from __future__ import annotations

import weakref

import pytest

from amqpgate.gateway.handshake.fast_handshake import FastHandshake
from amqpgate.gateway.handshake.pending import PendingHandshake
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.observers.audit.session import AuditObserver
from amqpgate.gateway.observers.tap.flows import Watched
from amqpgate.gateway.session.observer import find
from amqpgate.gateway.transport.memory_trim import FEW, MANY, Tide, collect
from amqpgate.policy import SharedLimit
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import MakeStage, audited
from tests.unit.gateway.memory import Cycle, living, uncollected
from tests.unit.gateway.tapped import tap

__all__ = ["audited", "uncollected"]


@pytest.mark.usefixtures("uncollected")
def test_cycles_are_looked_for_while_few_sessions_are_live() -> None:
    kept = weakref.ref(Cycle())
    collect(FEW + 1)
    assert kept() is not None
    collect(FEW)
    assert kept() is None


@pytest.mark.usefixtures("uncollected")
def test_a_session_that_is_over_keeps_nothing_that_taps_watched(make_stage: MakeStage) -> None:
    stage = make_stage()
    client, broker = stage.opened()
    tap(stage, "operation=basic.publish")
    for number in range(20):
        client.publish(b"x", f"key-{number}")
        broker.expect_content(amqp.BasicPublish)
    assert living(Watched) >= 20
    client.close()
    eventually(lambda: not living(Watched))


def test_a_tide_has_fallen_once_when_most_are_gone() -> None:
    tide = Tide()
    assert not tide.fell(2 * MANY)
    assert not tide.fell(MANY + 1)
    assert [tide.fell(MANY), tide.fell(MANY)] == [True, False]
    # Fewer than so many have gone since.
    assert not tide.fell(1)
    tide.rise(3 * MANY)
    assert tide.fell(0)


@pytest.mark.parametrize("is_own", [True, False])
def test_a_bucket_that_nobody_comes_back_to_is_not_kept(is_own: bool) -> None:
    token_buckets = TokenBuckets()
    limit = SharedLimit("p", "l", (), (("messages", 1.0),), 10, is_own=is_own)
    limits = token_buckets.take((limit,), 0.0)
    limits.shares[0].buckets["messages"].take(5)
    token_buckets.give_back(limits, 0.0)
    assert len(token_buckets) == (0 if is_own else 1)
    token_buckets.forget(4.0)
    assert len(token_buckets) == (0 if is_own else 1)
    token_buckets.forget(6.0)
    assert not len(token_buckets)


def test_a_session_that_is_over_keeps_no_routing_keys(audited: MakeStage) -> None:
    stage = audited()
    client, broker = stage.opened()
    for number in range(20):
        client.publish(b"x", f"key-{number}")
        broker.expect_content(amqp.BasicPublish)
    [session] = stage.running.gateway.sessions.values()
    auditor = find(session.session_policies.observers, AuditObserver)
    assert auditor is not None
    rows, flows = auditor.writer.rows, session.relay.up.flows
    assert flows is not None
    assert len(rows) >= 20
    assert len(flows) == 20
    client.close()
    eventually(lambda: not len(rows))
    eventually(lambda: session.relay.up.flows is None)


@pytest.mark.usefixtures("uncollected")
def test_a_handshake_that_is_over_is_freed_without_a_look_for_cycles(make_stage: MakeStage) -> None:
    others = living(FastHandshake), living(PendingHandshake)
    make_stage().opened()
    assert (living(FastHandshake), living(PendingHandshake)) == others

"""Faults of taps, mirrors and what operators see: real code is made to raise, and sessions go on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

import pytest

from amqpgate.gateway.handshake.failures import HandshakeFailures
from amqpgate.gateway.observers.mirror.queue import MirrorQueue
from amqpgate.gateway.observers.mirror.registry import MirrorRegistry
from amqpgate.gateway.observers.stats import reports
from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.observers.stats.confirm_latency import ConfirmLatency
from amqpgate.gateway.observers.stats.decisions import Hits
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.observers.tap.flows import Watches
from amqpgate.gateway.observers.tap.scope import Scope
from amqpgate.gateway.observers.tap.taps import CEILING, TapRegistry
from amqpgate.telemetry.events import EventSubscriber
from amqpgate.telemetry.faults import FAULTS, PARTS
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import ACCESS, confirming
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.observers.mirror.test_registry import LOGIN
from tests.unit.gateway.observers.mirror.test_registry import Stand as Mirrored
from tests.unit.gateway.observers.mirror.test_session import Stand
from tests.unit.gateway.tapped import AUDIT, pass_on, tap

#: Makes a class's method, or a module's function, raise.
Fails = Callable[[object, str], None]


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = dict.fromkeys(PARTS, 0)
    monkeypatch.setattr(FAULTS, "counts", counts)
    return cast("dict[str, int]", counts)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Fails:
    def breaks(of: object, name: str) -> None:
        def raises(*_: object, **__: object) -> None:
            raise ZeroDivisionError(name)

        monkeypatch.setattr(of, name, raises)

    return breaks


@pytest.mark.parametrize("where", ["matching", "happened", "told", "decide"])
def test_a_tap_that_fails(stage: Stage, faults: dict[str, int], fails: Fails, where: str) -> None:
    client, broker = stage.opened()
    tap(stage)
    fails(Scope, where)
    pass_on(client, broker, 3)
    client.say(amqp.BasicConsume(queue="q", consumer_tag="t"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("t"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    for method in (
        amqp.BasicDeliver("t", 1, False, "x", "k"),
        amqp.BasicReturn(312, "NO_ROUTE", "x", "k"),
    ):
        broker.content(method, b"body")
        assert client.expect_content(type(method)).body == b"body"
    assert faults["taps"]
    client.close()
    eventually(lambda: not stage.running.gateway.sessions)


def test_decisions_that_fail(make_stage: Callable[..., Stage], faults: dict[str, int], fails: Fails) -> None:
    stage = make_stage(policies=ACCESS % "nack")
    fails(Hits, "add")
    client, broker = stage.opened()
    confirming(client, broker)
    client.publish(b"1", "a", exchange="y")
    assert client.expect(amqp.BasicNack, 1).delivery_tag == 1
    client.publish(b"1", "a", exchange="x")
    assert broker.expect_content(amqp.BasicPublish).body == b"1"
    assert faults["decisions"]


def test_bindings_that_fail(stage: Stage, faults: dict[str, int], fails: Fails) -> None:
    client, broker = stage.opened()
    fails(Bindings, "change")
    client.say(amqp.QueueBind(queue="q", exchange="x", routing_key="k"), 1)
    broker.expect(amqp.QueueBind, 1)
    broker.say(amqp.QueueBindOk(), 1)
    client.expect(amqp.QueueBindOk, 1)
    assert faults["decisions"] == 1


def test_a_mirror_that_fails(faults: dict[str, int], fails: Fails) -> None:
    stand = Stand()
    fails(MirrorQueue, "reserve")
    stand.begin(10)
    assert faults["mirrors"] == 1


@pytest.mark.parametrize(
    ("of", "name", "part"),
    [
        (Reports, "_news", "decisions"),
        (reports, "detail", "decisions"),
        (Selected, "_select", "metrics"),
        (SessionTotals, "add", "metrics"),
        (ConfirmLatency, "turn", "metrics"),
    ],
)
def test_who_is_told_of_a_session_fails(
    make_stage: Callable[..., Stage],
    faults: dict[str, int],
    fails: Fails,
    caplog: pytest.LogCaptureFixture,
    of: object,
    name: str,
    part: str,
) -> None:
    stage = make_stage(limits="closeTimeout: 0.1")
    # Where nobody reads or listens nothing is told.
    caplog.set_level(logging.INFO, "amqpgate")
    stage.running.gateway.observers.events.listeners.append(EventSubscriber())
    client, broker = stage.opened()
    confirming(client, broker)
    fails(of, name)
    another, _ = stage.opened()
    for one in (client, another):
        one.close()
    # What is counted when a connection ends is counted once for each.
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"client_gone": 2}
    assert faults[part]


def test_who_is_told_of_what_is_no_session_fails(stage: Stage, faults: dict[str, int], fails: Fails) -> None:
    fails(HandshakeFailures, "tick")
    with stage.client() as client:
        client.raw(b"GET / HT")
        client.exactly(8)
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}
    assert faults["decisions"]


@pytest.mark.parametrize(("of", "name"), [(Scope, "follow"), (Watches, "forget")])
def test_a_tap_that_cannot_begin(
    make_stage: Callable[..., Stage], faults: dict[str, int], fails: Fails, of: object, name: str
) -> None:
    stage = make_stage(limits="closeTimeout: 0.1")
    before = stage.opened()
    fails(of, name)
    tap(stage)
    for client, broker in (before, stage.opened()):
        pass_on(client, broker, 3)
        client.close()
    stage.running.wait_idle()
    assert faults["taps"] == 2


def test_a_share_for_taps_that_fails(stage: Stage, faults: dict[str, int], fails: Fails) -> None:
    """It is given by a task of its own."""
    client, broker = stage.opened()
    tap(stage)
    fails(TapRegistry, "_begin_share")
    # As many as a share has, and more: somebody waits for the next one.
    pass_on(client, broker, 2 * CEILING)
    eventually(lambda: faults["taps"] > 2)
    pass_on(client, broker, 3)
    stage.opened()


def test_a_tap_that_does_not_know_other_policies(
    make_stage: Callable[..., Stage], faults: dict[str, int], fails: Fails
) -> None:
    stage = make_stage(policies=AUDIT % "{id: all, operations: [basic.publish], level: metadata}")
    client, broker = stage.opened()
    watch = tap(stage)
    pass_on(client, broker, 1)
    assert watch.items()
    fails(Scope, "follow")
    gateway = stage.running.gateway
    stage.running.call(lambda: gateway.use(gateway.policies))
    # They may allow less than those that it knows.
    pass_on(client, broker, 3)
    assert not watch.items()
    assert faults["taps"] == 1


def test_a_mirror_that_cannot_begin(faults: dict[str, int], fails: Fails) -> None:
    mirrored = Mirrored("cluster: a, mirror: {cluster: c, " + LOGIN + "}")
    fails(MirrorRegistry, "_mirror")
    assert mirrored.feed() is None
    assert faults["mirrors"] == 1

"""Faults of taps, mirrors and what operators see: real code is made to raise, and sessions go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from amqpgate.gateway.bindings import Bindings
from amqpgate.gateway.decisions import Decisions
from amqpgate.gateway.mirrorqueue import Queue
from amqpgate.gateway.tapping_scope import Scope
from amqpgate.telemetry.faults import FAULTS, PARTS
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually

from .audited import ACCESS, confirming
from .conftest import Stage
from .tapped import pass_on, tap
from .test_mirroring import Stand


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = dict.fromkeys(PARTS, 0)
    monkeypatch.setattr(FAULTS, "counts", counts)
    return cast("dict[str, int]", counts)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str], None]:
    def breaks(of: type, name: str) -> None:
        def raises(*_: object, **__: object) -> None:
            raise ZeroDivisionError(name)

        monkeypatch.setattr(of, name, raises)

    return breaks


@pytest.mark.parametrize("where", ["matching", "happened", "told", "decide"])
def test_a_tap_that_fails(
    stage: Stage, faults: dict[str, int], fails: Callable[[type, str], None], where: str
) -> None:
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


def test_decisions_that_fail(
    make_stage: Callable[..., Stage], faults: dict[str, int], fails: Callable[[type, str], None]
) -> None:
    stage = make_stage(policies=ACCESS % "nack")
    fails(Decisions, "_hit")
    client, broker = stage.opened()
    confirming(client, broker)
    client.publish(b"1", "a", exchange="y")
    assert client.expect(amqp.BasicNack, 1).delivery_tag == 1
    client.publish(b"1", "a", exchange="x")
    assert broker.expect_content(amqp.BasicPublish).body == b"1"
    assert faults["decisions"]


def test_bindings_that_fail(stage: Stage, faults: dict[str, int], fails: Callable[[type, str], None]) -> None:
    client, broker = stage.opened()
    fails(Bindings, "_change")
    client.say(amqp.QueueBind(queue="q", exchange="x", routing_key="k"), 1)
    broker.expect(amqp.QueueBind, 1)
    broker.say(amqp.QueueBindOk(), 1)
    client.expect(amqp.QueueBindOk, 1)
    assert faults["decisions"] == 1


def test_a_mirror_that_fails(faults: dict[str, int], fails: Callable[[type, str], None]) -> None:
    stand = Stand()
    fails(Queue, "reserve")
    stand.begin(10)
    assert faults["mirrors"] == 1

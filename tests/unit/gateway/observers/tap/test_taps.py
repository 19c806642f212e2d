"""How much taps are shown, and what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from amqpgate.gateway.observers.tap import taps
from amqpgate.gateway.observers.tap.session import TapObserver
from amqpgate.gateway.session.observer import find
from amqpgate.policy.engine.taps import parse
from amqpgate.telemetry.events import EventSubscriber
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import audited, told
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import MakeStage, pass_on, tap, upcalls

__all__ = ["audited"]


def test_when_it_ends_messages_are_hits_again(stage: Stage) -> None:
    client, broker = stage.opened()
    before = upcalls(stage)
    pass_on(client, broker, 20)
    assert upcalls(stage) == before
    session = next(iter(stage.running.gateway.sessions.values()))
    watch = tap(stage)
    assert session.relay.up.flows is not None
    pass_on(client, broker, 20)
    assert upcalls(stage) > before
    watch.close()
    assert (
        find(session.session_policies.observers, TapObserver),
        session.relay.up.flows,
        session.relay.down.flows,
    ) == (
        None,
        None,
        None,
    )
    before = upcalls(stage)
    pass_on(client, broker, 20)
    assert upcalls(stage) == before
    assert watch.counts == (20, 20)
    assert stage.running.gateway.observers.taps.taps == ()


@pytest.mark.parametrize("ceiling", [10, 40, 1000])
def test_what_is_not_shown_is_counted(stage: Stage, ceiling: int) -> None:
    """The ceiling, and the queue: 256 at once."""
    client, broker = stage.opened()
    watch = tap(stage, ceiling=ceiling)
    before, seen = upcalls(stage), 0
    for _ in range(5):
        pass_on(client, broker, 200)
        seen += len(watch.items())
    matched, shown = watch.counts
    assert matched == 1000
    assert 0 < shown == seen
    assert shown < 1000 or ceiling == 1000
    # Two for each that is shown; beyond the ceiling they are hits.
    if ceiling == 10:
        assert upcalls(stage) - before < 1000


def test_a_full_queue_stops_nothing(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage)
    pass_on(client, broker, 1000)
    matched, shown = watch.counts
    assert matched == 1000
    assert shown <= 256
    # There is room again, and flows show again.
    assert len(watch.items()) == shown
    eventually(lambda: pass_on(client, broker, 1) or bool(watch.items()))


def test_one_in_so_many(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, every=10)
    before = upcalls(stage)
    pass_on(client, broker, 1000)
    assert watch.counts == (1000, 100)
    # A miss: what is shown is captured, and told of many at once.
    assert upcalls(stage) - before == 1


def test_two_taps_at_once(stage: Stage) -> None:
    client, broker = stage.opened()
    some, all_of_them = tap(stage, every=10), tap(stage, "routing_key=k")
    pass_on(client, broker, 100)
    assert (some.counts, all_of_them.counts) == ((100, 10), (100, 100))
    all_of_them.close()
    pass_on(client, broker, 100)
    assert (some.counts, all_of_them.counts) == ((200, 20), (100, 100))


def test_who_taps_what_is_in_the_records(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client, broker = stage.opened()
    watch = tap(stage, "exchange=orders")
    pass_on(client, broker, 3)
    watch.close()
    events = told(stage, tmp_path, "events", kind="admin")
    assert [json.loads(str(one["detail"])) for one in events] == [
        {"action": "tap", "by": "test", "match": "exchange = orders"},
        {"action": "untap", "by": "test", "match": "exchange = orders", "matched": "3", "shown": "3"},
    ]


async def test_a_share_begins_with_the_first_that_is_shown(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    """So no timer runs where nobody waits; where somebody does, there is a new one in time."""
    now = 100.0
    monkeypatch.setattr(taps.time, "monotonic", lambda: now)
    renewed: list[float] = []
    renew = taps.TapRegistry._renew
    monkeypatch.setattr(
        taps.TapRegistry, "_renew", lambda self: (renewed.append(trio.current_time()), renew(self))
    )
    registry = taps.TapRegistry(20, lambda: (), lambda: None, lambda _what, _detail: None)
    one = registry.open(taps.TapRequest(match=parse("")), EventSubscriber())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(registry.run)
        assert registry.spend(one)
        await trio.sleep(5)
        assert renewed == []
        now += 5
        # Of a new share, and its last.
        assert registry.spend(one)
        assert one.is_open
        assert registry.spend(one)
        assert not one.is_open
        assert not registry.spend(one)
        await trio.sleep(2 * taps.SHARE)
        assert one.is_open
        assert len(renewed) == 1
        nursery.cancel_scope.cancel()

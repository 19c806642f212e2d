"""Alerts of what was refused: each minute once, late ones apart, and bounded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from amqpgate.pipeline.watch import denied as module
from amqpgate.pipeline.watch.alert import Alert
from amqpgate.pipeline.watch.course import Batch
from amqpgate.pipeline.watch.denied import Denied
from amqpgate.records import Event
from tests.support.audit_records import START, event, table_of

MINUTE = timedelta(minutes=1)
LATE = 2 * MINUTE


def batch(number: int, now: datetime, events: Iterable[Event] = ()) -> Batch:
    return Batch(number, now, {"events": table_of("events", events)})


def refused(id_: str, time: datetime, user: str = "alice", **columns: object) -> Event:
    given = {"user": user, "policy": "p", "operation": "basic.publish", "exchange": "x", "verdict": "deny"}
    return event(id_, "denied", time, **given | columns)


def brief(alerts: Iterable[Alert]) -> list[tuple[object, ...]]:
    return [(one.time, one.user, one.what, one.value, one.detail["late"]) for one in alerts]


def test_a_minute_is_told_when_no_more_is_expected() -> None:
    watch = Denied(LATE)
    first = [refused("1", START), refused("2", START + 30 * MINUTE / 60), event("3", "shadow", START)]
    assert watch.step(batch(1, START + MINUTE, first)) == []
    more = [refused("4", START + MINUTE, "bob"), refused("5", START + MINUTE / 2)]
    assert watch.step(batch(2, START + 2 * MINUTE, more)) == []
    assert not watch.is_due(START + 3 * MINUTE - MINUTE / 60)
    assert watch.is_due(START + 3 * MINUTE)
    # Nothing came, and the clock says that nothing will.
    told = watch.step(batch(3, START + 3 * MINUTE))
    assert brief(told) == [(START, "alice", "basic.publish x", 3, False)]
    assert told[0].detail["last"] == (START + MINUTE / 2).isoformat()
    # What is late is not lost, and has an id of its own.
    late = watch.step(batch(4, START + 3 * MINUTE, [refused("6", START)]))
    assert brief(late) == [(START, "alice", "basic.publish x", 1, True)]
    assert late[0].id != told[0].id
    assert brief(watch.step(batch(5, START + 9 * MINUTE))) == [
        (START + MINUTE, "bob", "basic.publish x", 1, False)
    ]


def test_a_restart_in_between_tells_the_same() -> None:
    events = [
        refused(str(number), START + number * MINUTE / 3, user=f"u{number % 2}") for number in range(12)
    ]
    whole, again = Denied(LATE), Denied(LATE)
    expected, found = [], []
    for number, one in enumerate(events):
        step = batch(number, one.time + MINUTE, [one])
        expected += whole.step(step)
        text = again.dump()
        again = Denied(LATE)
        again.load(text)
        # One that dies after a step, and begins again with what it knew before.
        other = Denied(LATE)
        other.load(text)
        told = again.step(step)
        assert other.step(step) == told
        found += told
    assert found == expected != []


def test_a_clock_that_is_ahead_ends_no_minute() -> None:
    watch = Denied(LATE)
    assert watch.step(batch(1, START, [refused("1", START), refused("2", START + timedelta(days=9))])) == []
    assert brief(watch.step(batch(2, START + MINUTE, [refused("3", START)]))) == []
    assert watch.step(batch(3, START + 4 * MINUTE))[0].value == 2


def test_an_old_backlog_is_told_by_its_own_time() -> None:
    watch = Denied(LATE)
    assert watch.step(batch(1, START + timedelta(days=9), [refused("1", START)])) == []
    told = watch.step(batch(2, START + timedelta(days=9), [refused("2", START), refused("3", START + LATE)]))
    assert brief(told) == []
    told = watch.step(batch(3, START + timedelta(days=9), [refused("4", START + 3 * MINUTE)]))
    assert brief(told) == [(START, "alice", "basic.publish x", 2, False)]


def test_what_is_open_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 10)
    watch = Denied(LATE)
    first = [refused(f"a{number}", START, exchange=f"x{number}") for number in range(8)]
    second = [refused(f"b{number}", START + MINUTE, exchange=f"x{number}") for number in range(8)]
    told = watch.step(batch(1, START + MINUTE, [*first, *second]))
    assert len(told) == 8
    assert {one.time for one in told} == {START}
    assert len(watch.step(batch(2, START + 9 * MINUTE))) == 8

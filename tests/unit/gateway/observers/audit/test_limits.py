"""What limits did in a window: one event for each session, limit and kind of thing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import attrs
import pytest

from amqpgate.gateway.observers.audit import limits
from amqpgate.gateway.observers.audit.columns import origin_of
from amqpgate.gateway.observers.audit.limits import LimitCounts
from amqpgate.policy import Principal, SharedLimit
from tests.support.audit_log import Kept

SLOW = SharedLimit("rates", "slow", ("bob",), (("messages", 1.0),), 1.0)
WHO = Principal("bob", "/", source="10.0.0.7", listener="main")
ONE, TWO = origin_of("one", WHO), origin_of("two", WHO)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in epoch seconds."""
    now = [1000.0]
    monkeypatch.setattr(limits, "time", SimpleNamespace(time=lambda: now[0]))
    return now


def test_what_is_alike_is_one_event_with_how_often_and_since_when(clock: list[float]) -> None:
    counts, kept = LimitCounts(), Kept()
    for now in (1000.0, 1001.0, 1005.0):
        clock[0] = now
        counts.note(ONE, SLOW, "delayed")
    clock[0] = 2000.0
    counts.tell(kept.log, "digest")
    [event] = kept.told("events")
    said = ("kind", "session", "policy", "rule", "policy_digest")
    assert [event[name] for name in said] == ["throttled", "one", "rates", "slow", "digest"]
    assert event["time"] == 1000.0
    assert json.loads(str(event["detail"])) == {
        "limit": SLOW.name,
        "happened": "delayed",
        "enforced": True,
        "times": 3,
        "last": datetime.fromtimestamp(1005, UTC).isoformat(),
    }


def test_sessions_limits_and_what_they_did_are_told_apart(clock: list[float]) -> None:
    counts, kept = LimitCounts(), Kept()
    shadow = attrs.evolve(SLOW, enforced=False)
    for origin, limit, what in (
        (ONE, SLOW, "delayed"),
        (TWO, SLOW, "delayed"),
        (ONE, SLOW, "refused"),
        (ONE, shadow, "refused"),
        # A connection that is no session yet.
        (None, SLOW, "refused"),
    ):
        counts.note(origin, limit, what)
    counts.tell(kept.log, "")
    told = kept.told("events")
    assert len(told) == 5
    assert [event["session"] for event in told] == ["one", "two", "one", "one", None]
    assert [json.loads(str(event["detail"]))["enforced"] for event in told][3] is False


def test_what_was_told_is_not_told_again(clock: list[float]) -> None:
    counts, kept = LimitCounts(), Kept()
    counts.note(ONE, SLOW, "delayed")
    counts.tell(kept.log, "")
    counts.tell(kept.log, "")
    counts.note(ONE, SLOW, "delayed")
    counts.tell(kept.log, "")
    assert [json.loads(str(event["detail"]))["times"] for event in kept.told("events")] == [1, 1]

"""Who looks on at a session, as policies and taps come and go."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.gateway.session.observer import SessionObserver
from amqpgate.gateway.session.registry import observers_for
from amqpgate.gateway.session.session import Session
from amqpgate.policy import PolicySet
from amqpgate.telemetry.faults import FAULTS
from tests.support.sessions import off_the_data_path

EMPTY = PolicySet.empty()


class Noting(SessionObserver):
    """Notes its end."""

    part = "noting"

    def __init__(self) -> None:
        self.ends = 0

    def ended(self) -> None:
        self.ends += 1


OF_PART = {part: type(part, (Noting,), {"part": part}) for part in "abc"}


@attrs.define
class Factory:
    """Does as it is told: a new observer, the one before, none, or it raises."""

    part: str
    does: str = "new"
    asked: int = 0

    def looks_on(self, policies: PolicySet) -> bool:
        return self.does != "idle"

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver | None:
        self.asked += 1
        if self.does == "raise":
            raise ZeroDivisionError
        if self.does == "new" or (self.does == "same" and before is None):
            return OF_PART[self.part]()
        return before if self.does == "same" else None


@pytest.fixture
def factories() -> list[Factory]:
    return [Factory(part) for part in "abc"]


def observed(session: Session, factories: list[Factory], part: str = "") -> tuple[SessionObserver, ...]:
    found = observers_for(session, EMPTY, factories, part)
    session.session_policies.observed_by(found)
    return found


def ends(*observers: SessionObserver) -> list[int]:
    return [one.ends for one in observers if isinstance(one, Noting)]


def test_they_come_in_the_order_of_their_factories(factories: list[Factory]) -> None:
    session = off_the_data_path()
    assert [one.part for one in observed(session, factories)] == ["a", "b", "c"]
    factories[1].does = "none"
    assert [one.part for one in observed(session, factories)] == ["a", "c"]
    factories[1].does = "new"
    assert [one.part for one in observed(session, factories)] == ["a", "b", "c"]


def test_who_leaves_a_session_is_told_and_who_stays_is_not(factories: list[Factory]) -> None:
    session = off_the_data_path()
    before = observed(session, factories)
    for factory, does in zip(factories, ("same", "new", "none"), strict=True):
        factory.does = does
    after = observed(session, factories)
    assert after[0] is before[0]
    assert ends(*before) == [0, 1, 1]
    assert ends(*after) == [0, 0]


def test_one_that_cannot_be_made_is_none_and_the_others_are(
    factories: list[Factory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may show what these policies keep from it: it does not stay under the last ones."""
    monkeypatch.setattr(FAULTS, "counts", {})
    session = off_the_data_path()
    before = observed(session, factories)
    factories[0].does = "same"
    factories[1].does = "raise"
    assert [one.part for one in observed(session, factories)] == ["a", "c"]
    assert ends(*before) == [0, 1, 1]
    assert FAULTS.counts == {"b": 1}


def test_where_one_part_changes_the_others_are_not_asked(factories: list[Factory]) -> None:
    session = off_the_data_path()
    before = observed(session, factories)
    after = observed(session, factories, part="b")
    assert [factory.asked for factory in factories] == [1, 2, 1]
    assert (after[0], after[2]) == (before[0], before[2])
    assert ends(*before) == [0, 1, 0]

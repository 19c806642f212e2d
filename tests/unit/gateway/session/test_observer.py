"""Who looks on at a session never harms it: each method that raises is as if it were not there."""

from __future__ import annotations

import inspect
from typing import cast

import attrs
import pytest

from amqpgate.gateway.session.observer import _HOOKS, Sees, SessionObserver, find
from amqpgate.telemetry.faults import FAULTS

WITH_RESULTS = {
    "sees": Sees.NOTHING,
    "holds_up": False,
    "admits": None,
    "samplers": (),
    "shows": False,
    "content": False,
}


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    monkeypatch.setattr(FAULTS, "counts", {})
    monkeypatch.setattr(FAULTS, "_told", set())
    return FAULTS.counts


def failing(name: str) -> type[SessionObserver]:
    def raises(*_: object) -> None:
        raise ZeroDivisionError

    return cast("type[SessionObserver]", type("Failing", (SessionObserver,), {"part": "mine", name: raises}))


@pytest.mark.parametrize("name", sorted(_HOOKS))
def test_what_raises_is_counted_and_does_nothing(
    name: str, faults: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    count = len(inspect.signature(_HOOKS[name]).parameters) - 1
    given = [object() for _ in range(count)]
    hook = getattr(failing(name)(), name)
    # The frames that go on, and the flow that counts, are those that the one before has made.
    expected = given[-1] if name in ("released", "came") else WITH_RESULTS.get(name)
    assert hook(*given) == expected == getattr(SessionObserver(), name)(*given)
    assert faults == {"mine": 1}
    hook(*given)
    assert faults == {"mine": 2}
    assert len([record for record in caplog.records if "mine failed" in record.getMessage()]) == 1


def test_what_ends_the_program_is_no_fault_of_an_observer() -> None:
    class Leaving(SessionObserver):
        part = "mine"

        def opened(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Leaving().opened()


def test_a_class_with_slots_is_contained_once(faults: dict[str, int]) -> None:
    """Attrs makes a second class of the first."""

    @attrs.define
    class Slotted(SessionObserver):
        part = "mine"

        told: list[str]

        def opened(self) -> None:
            self.told.append("opened")
            raise ZeroDivisionError

    @attrs.define
    class Heir(Slotted):
        part = "heirs"

        def ended(self) -> None:
            raise ZeroDivisionError

    one, heir = Slotted([]), Heir([])
    one.opened()
    heir.opened()
    heir.ended()
    assert one.told == heir.told == ["opened"]
    # What it inherits is the part's that has written it.
    assert faults == {"mine": 2, "heirs": 1}
    assert (Slotted.hooks, Heir.hooks) == ({"opened"}, {"opened", "ended"})


def test_one_is_found_by_its_class() -> None:
    one, other = failing("opened"), failing("ended")
    first, second = one(), other()
    assert find((first, second), other) is second
    assert find((first, second), SessionObserver) is first
    assert find((first,), other) is None

"""Confirm numbers where some publishes never reach the broker, against a model that forgets nothing."""

from __future__ import annotations

import random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.session import confirm_numbers as module
from amqpgate.gateway.session.confirm_numbers import ConfirmNumbers


@attrs.define
class Model:
    """Every publish by its number on either side, and what the client was told of it."""

    start: int
    passed: int = 0
    #: The broker's number of each publish that passed, by the client's.
    numbers: dict[int, int] = attrs.field(factory=dict)
    told: dict[int, str] = attrs.field(factory=dict)
    count: int = 0

    def publish(self, *, passes: bool) -> int:
        self.count += 1
        if passes:
            self.passed += 1
            self.numbers[self.count] = self.passed
        else:
            self.told[self.count] = "refused"
        return self.count

    def client_number(self, broker: int) -> int:
        return next(mine for mine, theirs in self.numbers.items() if theirs == broker)


def play(moves: list[tuple[str, int]], start: int) -> tuple[ConfirmNumbers, Model]:
    """``moves``: a publish that passes or not; or the broker answers one that is due, or all up to it."""
    model, numbers = Model(start), ConfirmNumbers(start)
    due: list[int] = []
    for move, which in moves:
        if move == "pass":
            model.publish(passes=True)
            due.append(model.passed)
        elif move == "refuse":
            assert numbers.refuse(start + model.passed) == model.publish(passes=False)
        elif due:
            number = due[which % len(due)]
            mine = numbers.translate(number)
            assert mine == model.client_number(number)
            numbers.answered(number, multiple=move == "all")
            if move == "all":
                for one, theirs in model.numbers.items():
                    if theirs <= number:
                        # What the client takes for acked by this are publishes of its own up to its number.
                        assert one <= mine
                        model.told[one] = "acked"
                due = [other for other in due if other > number]
            else:
                model.told[mine] = "acked"
                due.remove(number)
    for number in due:
        assert numbers.translate(number) == model.client_number(number)
    return numbers, model


MOVES = st.lists(
    st.tuples(st.sampled_from(["pass", "refuse", "one", "all"]), st.integers(0, 50)), max_size=120
)


@given(MOVES, st.sampled_from([0, 7]))
def test_numbers_are_the_clients_whatever_happens(moves: list[tuple[str, int]], start: int) -> None:
    play(moves, start)


def test_every_publish_is_answered_exactly_once_in_the_end() -> None:
    chance = random.Random(1)
    moves = [(chance.choice(["pass", "refuse", "one", "all"]), chance.randrange(50)) for _ in range(5000)]
    _, model = play([*moves, *[("one", 0)] * 5000], 0)
    assert set(model.told) == set(range(1, model.count + 1))


def test_what_no_ack_can_concern_any_more_is_folded() -> None:
    numbers = ConfirmNumbers(0)
    for number in range(1, 10_001):
        numbers.refuse(number - 1)
        assert numbers.translate(number) == 2 * number
        numbers.answered(number, multiple=number % 3 == 0)
    assert len(numbers._places) == 1
    assert numbers.refused == 10_000
    for _ in range(100_000):
        numbers.refuse(10_000)
    assert len(numbers._places) == 2


def test_a_broker_that_leaves_gaps_costs_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES", 100)
    numbers = ConfirmNumbers(0)
    for number in range(1, 102):
        assert not numbers.is_full
        numbers.refuse(number)
        if number > 2:
            numbers.answered(number, multiple=False)  # the second one is never answered
        if numbers.is_full:
            break
    assert numbers.is_full


def test_a_ledger_that_goes_on_where_the_broker_numbers_anew() -> None:
    # Two publishes passed before confirms were selected, three after; then the broker began again.
    numbers = ConfirmNumbers.continued(5, 3)
    assert [numbers.translate(number) for number in (1, 2)] == [4, 5]
    assert numbers.refuse(7) == 6
    assert numbers.translate(2) == 5
    assert numbers.translate(3) == 7

"""Channel numbers of a link: each in one state, the lowest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.pool.channel_numbers import Numbers, State


def test_all_are_free_at_first() -> None:
    numbers = Numbers(3)
    assert numbers.counts() == {state: 3 if state is State.FREE else 0 for state in State}
    assert (numbers.lowest(State.FREE), numbers.highest(State.FREE)) == (1, 3)
    assert (numbers.lowest(State.TAKEN), numbers.highest(State.TAKEN)) == (None, None)


MOVES = st.lists(st.tuples(st.integers(1, 9), st.sampled_from(State)))


@given(MOVES)
def test_each_is_where_it_was_moved_last(moves: list[tuple[int, State]]) -> None:
    numbers, model = Numbers(9), dict.fromkeys(range(1, 10), State.FREE)
    for number, state in moves:
        numbers.move(number, state)
        model[number] = state
    for state in State:
        there = [number for number, at in model.items() if at is state]
        assert numbers.count(state) == numbers.counts()[state] == len(there)
        assert numbers.lowest(state) == min(there, default=None)
        assert numbers.highest(state) == max(there, default=None)
    assert {number: numbers.at(number) for number in model} == model
    assert numbers.count(State.FREE, State.TAKEN) == sum(
        at in (State.FREE, State.TAKEN) for at in model.values()
    )

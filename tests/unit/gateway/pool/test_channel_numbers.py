"""Channel numbers of a link: each in one state, the lowest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.pool.channel_numbers import ChannelNumbers, NumberState


def test_all_are_free_at_first() -> None:
    numbers = ChannelNumbers(3)
    assert numbers.counts() == {state: 3 if state is NumberState.FREE else 0 for state in NumberState}
    assert (numbers.lowest(NumberState.FREE), numbers.highest(NumberState.FREE)) == (1, 3)
    assert (numbers.lowest(NumberState.TAKEN), numbers.highest(NumberState.TAKEN)) == (None, None)


MOVES = st.lists(st.tuples(st.integers(1, 9), st.sampled_from(NumberState)))


@given(MOVES)
def test_each_is_where_it_was_moved_last(moves: list[tuple[int, NumberState]]) -> None:
    numbers, model = ChannelNumbers(9), dict.fromkeys(range(1, 10), NumberState.FREE)
    for number, state in moves:
        numbers.move(number, state)
        model[number] = state
    for state in NumberState:
        there = [number for number, at in model.items() if at is state]
        assert numbers.count(state) == numbers.counts()[state] == len(there)
        assert numbers.lowest(state) == min(there, default=None)
        assert numbers.highest(state) == max(there, default=None)
    assert {number: numbers.at(number) for number in model} == model
    assert numbers.count(NumberState.FREE, NumberState.TAKEN) == sum(
        at in (NumberState.FREE, NumberState.TAKEN) for at in model.values()
    )

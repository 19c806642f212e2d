"""The timer wheel against a list of deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath.wheel import SLOT, Wheel

moves = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 5), st.floats(0, 10)),
        st.tuples(st.just("discard"), st.integers(0, 5), st.just(0.0)),
        st.tuples(st.just("due"), st.just(0), st.floats(0, 10)),
    ),
    max_size=40,
)


@given(moves)
def test_items_come_out_when_they_are_due_and_once(steps: list[tuple[str, int, float]]) -> None:
    wheel: Wheel[int] = Wheel()
    model: dict[int, float] = {}
    now = 0.0
    for what, item, time in steps:
        if what == "set":
            wheel.set(item, time)
            model[item] = time
        elif what == "discard":
            wheel.discard(item)
            model.pop(item, None)
        else:
            now = max(now, time)
            out = set(wheel.due(now))
            assert {i for i, when in model.items() if when + SLOT <= now} <= out
            assert out <= {i for i, when in model.items() if when <= now}
            for i in out:
                del model[i]
        assert len(wheel) == len(model)
        if model:
            assert min(model.values()) <= wheel.deadline() <= min(model.values()) + 1.1 * SLOT
        else:
            assert wheel.deadline() == float("inf")

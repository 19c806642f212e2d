"""What is remembered of channels: both engines as a dict would, and no object before somebody asks."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath import by_channel

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

IMPLEMENTATIONS = [by_channel.ByChannel, *([] if compiled is None else [compiled.ByChannel])]

NUMBERS = st.sampled_from([0, 1, 2, 3, 65535])
STEPS = st.lists(st.tuples(st.sampled_from(["add", "of", "get", "del"]), NUMBERS), max_size=30)


Kind: TypeAlias = type[by_channel.ByChannel[list[int]]]

both = pytest.mark.parametrize("kind", IMPLEMENTATIONS, ids=["plain", "compiled"][: len(IMPLEMENTATIONS)])


@both
@given(steps=STEPS)
def test_it_is_a_dict_of_what_was_asked_for(kind: Kind, steps: list[tuple[str, int]]) -> None:
    it, model, count = kind(list), dict[int, list[int] | None](), 0
    for step, number in steps:
        if step == "add":
            it.add(number)
            model.setdefault(number)
        elif step == "del":
            if number in model:
                del it[number], model[number]
            else:
                with pytest.raises(KeyError):
                    del it[number]
        else:
            found = it.of(number) if step == "of" else it.get(number)
            if step == "get" and number not in model:
                assert found is None
                with pytest.raises(KeyError):
                    it[number]
                continue
            known = model.get(number)
            assert found is not None
            if known is None:
                assert found == [], "it is new"
                count += 1
                found.append(count)
                model[number] = found
            assert found is model[number] is it[number] is it.get(number)
        assert list(it) == list(model)
        assert len(it) == len(model)
        assert [number in it for number in (0, 1, 2, 3, 65535, 7)] == [
            number in model for number in (0, 1, 2, 3, 65535, 7)
        ]
        made = [(number, one) for number, one in model.items() if one is not None]
        assert it.made() == made
        remembered = [(number, it.remembered(number)) for number in (*model, 7)]
        assert [pair for pair in remembered if pair[1] is not None] == made
        assert it.made() == made, "to look makes none"
    assert [number for number, _ in it.items()] == list(model)
    assert it.values() == [one or [] for one in model.values()]
    assert len(it.made()) == len(model)


@both
def test_channels_may_go_while_all_are_looked_at(kind: Kind) -> None:
    it = kind(list)
    for number in range(1, 4):
        it.add(number)
    for number in it:
        del it[number]
    assert not list(it)


@both
def test_a_number_that_is_no_channel_is_no_channel(kind: Kind) -> None:
    it = kind(list)
    assert -1 not in it
    assert it.get(-1) is None

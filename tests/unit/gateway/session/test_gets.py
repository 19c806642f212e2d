"""Which queue an answer to basic.get is from, against a broker that answers in order."""

from __future__ import annotations

from collections import deque
from itertools import product

import pytest

from amqpgate.gateway.session.gets import MOST, Gets

STEPS = ("q", "r", "answer", "heard", "unheard")


@pytest.mark.parametrize("is_heard", [False, True])
def test_no_queue_is_told_that_it_is_not(is_heard: bool) -> None:
    for steps in product(STEPS, repeat=6):
        check(steps, is_heard=is_heard)


def check(steps: tuple[str, ...], *, is_heard: bool) -> None:
    gets, due, queues, was_always_heard = None, deque[str](), set[str](), is_heard
    for step in steps:
        if step == "heard":
            is_heard = True
        elif step == "unheard":
            is_heard = False
            was_always_heard = was_always_heard and gets is None
            if gets is not None:
                gets.unheard()
        elif step != "answer":
            due.append(step)
            queues.add(step)
            if gets is None:
                was_always_heard = is_heard
                gets = Gets.begun(step, is_heard=is_heard)
            else:
                gets.asked(step, is_heard=is_heard)
        elif due:
            queue = due.popleft()
            if is_heard and gets is not None:
                told = gets.answered()
                assert told in (None, queue)
                if was_always_heard or len(queues) == 1:
                    assert told == queue


@pytest.mark.parametrize("other", ["q", "r"])
def test_a_client_that_reads_no_answers_costs_bounded_memory(other: str) -> None:
    gets = Gets.begun("q", is_heard=True)
    for _ in range(MOST - 1):
        gets.asked("q", is_heard=True)
    assert gets.due is not None
    assert len(gets.due) == MOST
    gets.asked(other, is_heard=True)
    assert gets.due is None
    # It is known where all were of the same, and else of none.
    assert gets.answered() == ("q" if other == "q" else None)

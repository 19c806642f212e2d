"""The timer wheel, and the compiled pump's own for heartbeats, against a list of deadlines."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from typing import Protocol, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath.endpoint import PlainRelayEndpoint
from amqpgate.datapath.scanner import Channels, Lane
from amqpgate.datapath.tables import Side
from amqpgate.datapath.wheel import SLOT, Wheel

from .rig import compiled_pump

T = TypeVar("T")

ITEMS = 40


class Deadlines(Protocol[T]):
    """What both have."""

    def __len__(self) -> int: ...

    def set(self, item: T, when: float) -> None: ...

    def discard(self, item: T) -> None: ...

    def deadline(self) -> float: ...

    def due(self, now: float) -> list[T]: ...


items = st.integers(0, ITEMS - 1)
steps = st.one_of(
    st.tuples(st.just("set"), items, st.floats(0, 10)),
    # As heartbeats are: many at once.
    st.tuples(st.just("set"), items, st.sampled_from([1.0, 2.0, 2.0005])),
    st.tuples(st.just("discard"), items, st.just(0.0)),
    st.tuples(st.just("due"), st.just(0), st.floats(0, 10)),
)
moves = st.lists(steps, max_size=100)


def check(wheel: Deadlines[T], items: Sequence[T], moves: list[tuple[str, int, float]]) -> None:
    """Whatever is done, items come out when they are due, and once."""
    model: dict[T, float] = {}
    now = 0.0
    for what, number, time in moves:
        item = items[number]
        if what == "set":
            wheel.set(item, time)
            model[item] = time
        elif what == "discard":
            wheel.discard(item)
            model.pop(item, None)
        else:
            now = max(now, time)
            out = wheel.due(now)
            assert len(out) == len(set(out))
            assert {i for i, when in model.items() if when + SLOT <= now} <= set(out)
            assert set(out) <= {i for i, when in model.items() if when <= now}
            for i in out:
                del model[i]
        assert len(wheel) == len(model)
        if model:
            assert min(model.values()) <= wheel.deadline() <= min(model.values()) + 1.1 * SLOT
        else:
            assert wheel.deadline() == float("inf")


@given(moves)
def test_wheel(moves: list[tuple[str, int, float]]) -> None:
    check(Wheel[int](), range(ITEMS), moves)


@pytest.mark.skipif(compiled_pump is None, reason="nothing was compiled")
@given(moves)
def test_heartbeats_of_the_compiled_pump(moves: list[tuple[str, int, float]]) -> None:
    lane = Lane(Side.CLIENT, 4096, 4096, Channels())
    with contextlib.closing(socket.socket()) as sock:
        endpoints: list[PlainRelayEndpoint] = [
            compiled_pump.RelayEndpoint(sock, Side.CLIENT, lane, 0.0) for _ in range(ITEMS)
        ]
        check(compiled_pump.Beats(), endpoints, moves)

"""The channel numbers of one shared connection, and what each is at.

::

    free ── open ──▶ opening ── open-ok ──▶ spare ── acquire ─▶ taken ── close ─▶ closing ── close-ok ─▶ free
      │                 └─────────────────── acquire ───────────▲
      └───────────────── acquire, and open ─────────────────────┘

So a number is used again only when the broker has said close-ok (AMQP 0-9-1, section 1.5.2.6), or the broker
has closed it, and has heard close-ok. What a channel in confirm mode goes through is the same, but for
confirm.select behind its open.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from enum import Enum

import attrs

from amqpgate.values import define


class NumberState(Enum):
    """What a number is at."""

    FREE = "free"
    #: Ahead of need: channel.open is sent.
    OPENING = "opening"
    #: Ahead of need: channel.open and confirm.select are sent.
    OPENING_CONFIRMING = "opening, confirming"
    #: Open, and nobody's yet.
    SPARE = "spare"
    #: Open, in confirm mode, and nobody's yet.
    SPARE_CONFIRMING = "spare, confirming"
    #: A client's.
    TAKEN = "taken"
    #: channel.close is sent.
    CLOSING = "closing"


@define(eq=False)
class ChannelNumbers:
    """1 to ``most``. Each is in one state; of each state the lowest and highest are at hand."""

    most: int
    #: Those that are not free.
    _states: dict[int, NumberState] = attrs.field(factory=dict, init=False, repr=False)
    #: All, in order.
    _lists: dict[NumberState, list[int]] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._lists = {state: [] for state in NumberState}
        self._lists[NumberState.FREE] = list(range(1, self.most + 1))

    def at(self, number: int) -> NumberState:
        """What it is at."""
        return self._states.get(number, NumberState.FREE)

    def count(self, *states: NumberState) -> int:
        """How many are at one of these."""
        return sum(len(self._lists[state]) for state in states)

    def counts(self) -> Mapping[NumberState, int]:
        """For operators."""
        return {state: len(numbers) for state, numbers in self._lists.items()}

    def lowest(self, state: NumberState) -> int | None:
        """The lowest that is at it."""
        numbers = self._lists[state]
        return numbers[0] if numbers else None

    def highest(self, state: NumberState) -> int | None:
        """The highest that is at it."""
        numbers = self._lists[state]
        return numbers[-1] if numbers else None

    def move(self, number: int, state: NumberState) -> None:
        """It is at that from now on."""
        numbers = self._lists[self.at(number)]
        del numbers[bisect_left(numbers, number)]
        insort(self._lists[state], number)
        if state is NumberState.FREE:
            self._states.pop(number, None)
        else:
            self._states[number] = state

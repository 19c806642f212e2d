"""A timer wheel: one deadline per item, moved and removed at constant cost."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")

#: Deadlines that fall into the same slot are handled together; seconds.
SLOT = 0.001


class Wheel(Generic[T]):
    """Items by deadline, in slots of ``SLOT`` seconds. An item is handled at its slot's end."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[T, None]] = {}
        self._order: list[int] = []
        self._slot_of: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._slot_of)

    def set(self, item: T, when: float) -> None:
        """Move the item's deadline to ``when``."""
        if item in self._slot_of:
            self.discard(item)
        slot = int(when / SLOT) + 1
        # In this order, so that a want of memory leaves no slot that is never due, and no item twice.
        if slot not in self._slots:
            heapq.heappush(self._order, slot)
            self._slots[slot] = {}
        self._slot_of[item] = slot
        self._slots[slot][item] = None

    def discard(self, item: T) -> None:
        """Forget the item, if it is there."""
        slot = self._slot_of.pop(item, None)
        if slot is not None and slot in self._slots:
            self._slots[slot].pop(item, None)

    def deadline(self) -> float:
        """The earliest deadline, infinity where there is none."""
        while self._order and not self._slots.get(self._order[0]):
            self._slots.pop(heapq.heappop(self._order), None)
        return self._order[0] * SLOT if self._order else float("inf")

    def due(self, now: float) -> list[T]:
        """Take out every item whose deadline has passed."""
        items: list[T] = []
        while self.deadline() <= now:
            items.extend(self._slots[self._order[0]])
            del self._slots[heapq.heappop(self._order)]
        for item in items:
            self._slot_of.pop(item, None)
        return items

"""Times that are counted by how long they were: bounds, and what a share of them took at most."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, TypeAlias

#: Upper bounds in seconds, from the least; what took longer than the last is counted beyond it.
Bounds: TypeAlias = tuple[float, ...]

#: Of confirms: a quarter apart, from 0.1 ms to 9 s.
CONFIRMS: Final[Bounds] = tuple(1e-4 * 1.25**number for number in range(52))
#: Of what the gateway adds: two for each doubling, from 1 us to 12 s.
ADDED: Final[Bounds] = tuple(1e-6 * 2 ** (number / 2) for number in range(48))


def bucket_of(bounds: Bounds, seconds: float) -> int:
    """Where it is counted: the number of the first bound that is not below it, or one beyond them."""
    return bisect_left(bounds, seconds)


def percentile(bounds: Bounds, counts: Sequence[int], share: float) -> float | None:
    """The seconds that this share took at most; None: nothing was timed."""
    total = sum(counts)
    if not total:
        return None
    sought = share * total
    below = 0
    for number, count in enumerate(counts):
        if count and below + count >= sought:
            if number == len(bounds):
                break
            # Evenly between the bounds.
            lower = bounds[number - 1] if number else 0.0
            return lower + (bounds[number] - lower) * (sought - below) / count
        below += count
    return bounds[-1]

"""Choosing by weight: the same key gives the same choice, at every moment and in every process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from amqpgate.digests import blake2b

T = TypeVar("T")


def by_weight(
    items: Iterable[T], key: str, name_of: Callable[[T], str], weight_of: Callable[[T], int]
) -> list[T]:
    """The items in an order of their own for each ``key``; each comes first as often as its weight says.

    Weighted rendezvous hashing: an item that is taken away moves only the keys that had it first.
    """

    def rank(item: T) -> float:
        digest = blake2b(f"{name_of(item)}\0{key}".encode(), digest_size=8).digest()
        # In (0, 1): neither end may occur, for the sake of the logarithm.
        share = (int.from_bytes(digest, "big") + 0.5) / 2**64
        return -math.log(share) / weight_of(item)

    return sorted(items, key=rank)

"""The fuzzer's bytes as decisions, so that a small change of the bytes is a small change of what is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Decisions from the front of `data`. Where nothing is left, each one is the first or the least."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        """Whether something is left."""
        return self._at < len(self._data)

    def byte(self) -> int:
        """0 to 255."""
        return self.number(1)

    def number(self, size: int) -> int:
        """A number of so many bytes."""
        return int.from_bytes(self.take(size).ljust(size, b"\0"), "big")

    def below(self, count: int) -> int:
        """0 to `count` - 1."""
        return self.number(1 if count <= 256 else 2 if count <= 65536 else 4) % count

    def flag(self) -> bool:
        """Yes or no."""
        return bool(self.byte() & 1)

    def rarely(self) -> bool:
        """Yes once in sixteen."""
        return self.byte() & 15 == 15

    def pick(self, options: Sequence[T]) -> T:
        """One of them."""
        return options[self.below(len(options))]

    def take(self, size: int) -> bytes:
        """The next bytes, at most so many."""
        taken = self._data[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def some(self, most: int) -> bytes:
        """A length, and so many bytes."""
        return self.take(self.below(most + 1))

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data))

"""What is remembered of a session's channels, by number; the compiled one is in ``_by_channel.pxi``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", covariant=True)


class ByChannel(Generic[T]):
    """An object for each channel, in the order in which they came.

    It is made when it is first asked for: of most channels it is enough to know that they are there.
    """

    __slots__ = ("_make", "_there")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        #: None where it has not been asked for.
        self._there: dict[int, T | None] = {}

    def add(self, number: int) -> None:
        """The channel is there, if it was not. Its object has not been made."""
        self._there.setdefault(number)

    def of(self, number: int) -> T:
        """Its object. The channel is there from now on."""
        self.add(number)
        return self[number]

    def __contains__(self, number: int) -> bool:
        return number in self._there

    def __len__(self) -> int:
        return len(self._there)

    def __iter__(self) -> Iterator[int]:
        """The channels that there are now: some may go, and others come, meanwhile."""
        return iter(list(self._there))

    def get(self, number: int) -> T | None:
        """Its object; None: there is no such channel."""
        if number not in self._there:
            return None
        found = self._there[number]
        if found is None:
            found = self._there[number] = self._make()
        return found

    def remembered(self, number: int) -> T | None:
        """Its object where it has been made; None: nothing is remembered of the channel, or there is none."""
        return self._there.get(number)

    def __getitem__(self, number: int) -> T:
        """Its object. Raises ``KeyError`` where there is no such channel."""
        found = self.get(number)
        if found is None:
            raise KeyError(number)
        return found

    def __delitem__(self, number: int) -> None:
        """The channel is not there any more. Raises ``KeyError`` where it was not."""
        del self._there[number]

    def made(self) -> list[tuple[int, T]]:
        """Those that have been asked for. Of the others nothing is remembered."""
        return [(number, one) for number, one in self._there.items() if one is not None]

    def items(self) -> list[tuple[int, T]]:
        """All, which makes those that have not been."""
        return [(number, self[number]) for number in self]

    def values(self) -> list[T]:
        """All, likewise."""
        return [self[number] for number in self]

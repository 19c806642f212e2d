"""A pattern with an exception: what one pattern means and another does not."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.policy.engine.matching import Matcher


class ExceptMatcher(Matcher):
    """What one pattern means and another does not."""

    __slots__ = ("_base", "_unless", "literal", "prefix")

    def __init__(self, base: Matcher, unless: Matcher) -> None:
        self._base, self._unless = base, unless
        self.literal, self.prefix = base.literal, base.prefix
        self.matches = lambda text: base.matches(text) and not unless.matches(text)

    def covers(self, key: str) -> bool:
        return self._base.covers(key) and not self._unless.overlaps(key)

    def overlaps(self, key: str) -> bool:
        """Not exact where what is left of one key is none of the other's: then the answer is yes."""
        return self._base.overlaps(key) and not self._unless.covers(key)

    def words(self) -> Iterator[tuple[int, str]]:
        return self._base.words()

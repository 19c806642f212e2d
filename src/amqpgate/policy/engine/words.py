"""Patterns over the words of routing keys, followed as automata; what they are for, `matching` says."""

from __future__ import annotations

from itertools import count
from typing import Final

from amqpgate.values import frozen

#: Pairs of places in two patterns that are looked at to see whether one lies within the other. Usual
#: patterns take a few; a hostile pair could take as many as there are sets of places.
MAX_STEPS: Final = 10_000

#: Where characters begin that hardly stand in names.
_STRANGERS: Final = 0xE000


def split(key: str) -> list[str]:
    """The words of a routing key; the empty key has none."""
    return key.split(".") if key else []


def exact(word: str) -> str:
    return "=" + word


@frozen
class Words:
    """A pattern over words: bit i of each integer says something about its element i."""

    #: Elements that are exactly this word.
    exact: dict[str, int]
    #: ``*`` elements.
    star: int
    #: ``#`` elements, never two in a row.
    hash: int
    #: The element, at most one, that is any word which starts with `start`.
    partial: int
    start: str
    #: One past the last element: reached when the whole pattern is used up.
    end: int

    @classmethod
    def of(cls, elements: list[str], start: str | None) -> Words:
        """From ``=word``, ``*``, ``#`` and ``start``."""
        exact: dict[str, int] = {}
        star = hashes = partial = 0
        bit = 1
        previous = ""
        for element in elements:
            if element == "#" == previous:
                continue
            if element == "*":
                star |= bit
            elif element == "#":
                hashes |= bit
            elif element == "start":
                partial |= bit
            else:
                exact[element[1:]] = exact.get(element[1:], 0) | bit
            previous = element
            bit <<= 1
        return cls(exact, star, hashes, partial, start or "", bit)

    def accepts(self, text: str) -> bool:
        """Whether the words of ``text`` fit."""
        state = self._skip_hash(1)
        for word in split(text):
            state = self._advance(state, self._that_are(word))
            if not state:
                return False
        return state & self.end != 0

    def covers(self, key: str) -> bool:
        """As `Matcher.covers`.

        Both patterns are automata over words; of the words that neither of them names, one that starts
        with `start` and one that does not stand for all. From each place in the key and the set of places
        here that the same words lead to, every word is tried: where the key can end, this must be able to.
        """
        words = split(key)
        letters = {word for word in (*words, *self.exact) if word not in ("*", "#")}
        stranger = next(
            letter
            for letter in map(chr, count(_STRANGERS))
            if letters.isdisjoint((letter, self.start + letter)) and not letter.startswith(self.start or " ")
        )
        letters |= {stranger, self.start + stranger}
        begin = (0, self._skip_hash(1))
        seen, to_do = {begin}, [begin]
        while to_do:
            place, state = to_do.pop()
            if place == len(words):
                if not state & self.end:
                    return False
                continue
            word = words[place]
            if word == "#":
                steps = [(place + 1, state)]  # no word at all; or one more, and again
                steps += [(place, self._advance(state, self._that_are(letter))) for letter in letters]
            elif word == "*":
                steps = [(place + 1, self._advance(state, self._that_are(letter))) for letter in letters]
            else:
                steps = [(place + 1, self._advance(state, self._that_are(word)))]
            for step in steps:
                if not step[1]:
                    return False  # whatever follows; and every place in a key can be followed to its end
                if step not in seen:
                    if len(seen) >= MAX_STEPS:
                        return False
                    seen.add(step)
                    to_do.append(step)
        return True

    def overlaps(self, key: str) -> bool:
        """As `Matcher.overlaps`: there is a text that fits both."""
        state = self._skip_hash(1)
        for word in split(key):
            if word == "#":
                # Words can be chosen so that any later element is reached from the first live one.
                lowest = state & -state
                state = (self.end << 1) - lowest
            else:
                state = self._advance(state, self.end - 1 if word == "*" else self._that_are(word))
            if not state:
                return False
        return state & self.end != 0

    def _that_are(self, word: str) -> int:
        """The elements that accept this one word (``#`` aside)."""
        fits = self.star | self.exact.get(word, 0)
        return fits | self.partial if self.partial and word.startswith(self.start) else fits

    def _advance(self, state: int, fits: int) -> int:
        return self._skip_hash(((state & fits) << 1) | (state & self.hash))

    def _skip_hash(self, state: int) -> int:
        """``#`` may stand for no word."""
        return state | ((state & self.hash) << 1)

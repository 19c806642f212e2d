"""Patterns for names and routing keys.

A pattern answers three questions about a text:

- `Matcher.matches`: is this name, or routing key, one that the pattern means?
- `Matcher.covers`: the text is a binding key, which may catch many routing keys: are all of them meant?
  (An allow rule asks this. The answer may be no where it could be yes, never the reverse.)
- `Matcher.overlaps`: is at least one of them meant? (A deny rule asks this.)

Topic patterns have the meaning that RabbitMQ's topic exchange gives them (AMQP 0-9-1, section 3.1.3.3):
words between dots, ``*`` is one word, ``#`` is any number of them, the empty key has no words. All
positions of a pattern are followed at once, as the bits of one integer, so the time is linear in the
number of words whatever the pattern; nothing ever backtracks.
"""

from __future__ import annotations

import re
from typing import Literal

import attrs

from amqpgate.yamldoc import Invalid

Form = Literal["literal", "prefix", "topic"]

#: AMQP's short strings, and so all names and routing keys, are at most this long (section 4.2.5.3).
MAX_BYTES = 255

_VARIABLE = re.compile(r"\{[A-Za-z_][A-Za-z0-9_.-]*\}")


def check_pattern(form: Form, text: str) -> None:
    """Raise `Invalid`, with ``form`` as its path, for a pattern that would not mean what it seems to."""
    if len(text.encode()) > MAX_BYTES:
        raise Invalid(f"longer than {MAX_BYTES} bytes: no name is", form)
    if _VARIABLE.search(text):
        raise Invalid("variables such as {user} or ${NAME} are not expanded in patterns", form)
    if form == "topic":
        for word in text.split("."):
            if word not in ("*", "#") and ("*" in word or "#" in word):
                raise Invalid(f"'{word}': * and # stand for whole words, alone between dots", form)
    elif form == "prefix" and text.endswith("*"):
        raise Invalid("a prefix is written without the *", form)


class Matcher:
    """A compiled pattern."""

    __slots__ = ("_binding",)

    def __init__(self, elements: list[str], start: str | None = None) -> None:
        self._binding = Words.of(elements, start)

    def matches(self, text: str) -> bool:
        """Whether ``text``, a name or a routing key, is meant."""
        return self._binding.accepts(text)

    def covers(self, key: str) -> bool:
        """Whether every routing key that the binding key ``key`` can catch is meant."""
        return self._binding.covers(key)

    def overlaps(self, key: str) -> bool:
        """Whether some routing key that the binding key ``key`` can catch is meant."""
        return self._binding.overlaps(key)


class LiteralMatcher(Matcher):
    """Exactly this text; as a binding key, exactly so written."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        super().__init__([_exact(word) for word in split(text)])
        self._text = text

    def matches(self, text: str) -> bool:
        return text == self._text

    def covers(self, key: str) -> bool:
        return key == self._text

    def overlaps(self, key: str) -> bool:
        return key == self._text or super().overlaps(key)


class PrefixMatcher(Matcher):
    """Every text that starts so."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        *words, last = text.split(".")
        elements = [_exact(word) for word in words]
        # The last, unfinished word may go on, and any words may follow; the empty prefix is just "#".
        super().__init__([*elements, "start", "#"] if text else ["#"], last if text else None)
        self._text = text

    def matches(self, text: str) -> bool:
        return text.startswith(self._text)


class TopicMatcher(Matcher):
    """A topic pattern."""

    __slots__ = ("_plain",)

    def __init__(self, text: str) -> None:
        words = split(text)
        super().__init__([word if word in ("*", "#") else _exact(word) for word in words])
        self._plain = None if "*" in words or "#" in words else text

    def matches(self, text: str) -> bool:
        return text == self._plain if self._plain is not None else super().matches(text)


def compile_pattern(form: Form, text: str) -> Matcher:
    """The matcher for one ``literal``, ``prefix`` or ``topic``."""
    if form == "literal":
        return LiteralMatcher(text)
    return PrefixMatcher(text) if form == "prefix" else TopicMatcher(text)


def split(key: str) -> list[str]:
    """The words of a routing key; the empty key has none."""
    return key.split(".") if key else []


def _exact(word: str) -> str:
    return "=" + word


@attrs.frozen
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
        """As `Matcher.covers`: a wildcard of the key must fall on one at least as wide."""
        any_word = self.star | (self.partial if not self.start else 0)
        state = self._skip_hash(1)
        for word in split(key):
            if word == "#":
                state = self._advance(state, 0)
            else:
                state = self._advance(state, any_word if word == "*" else self._that_are(word))
            if not state:
                return False
        return state & self.end != 0

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

"""Patterns for names and routing keys.

A pattern answers three questions about a text:

- `Matcher.matches`: is this name, or routing key, one that the pattern means?
- `Matcher.covers`: the text is a binding key, which may catch many routing keys: are all of them meant?
  (An allow rule asks this. Exact for topic patterns, but that the answer is no where it would take more than
  `words.MAX_STEPS`; of a regular expression no binding key with wildcards is known to be meant.)
- `Matcher.overlaps`: is at least one of them meant? (A deny rule asks this.)

Topic patterns have the meaning that RabbitMQ's topic exchange gives them (AMQP 0-9-1, section 3.1.3.3):
words between dots, ``*`` is one word, ``#`` is any number of them, the empty key has no words. All
positions of a pattern are followed at once, as the bits of one integer, so the time is linear in the
number of words whatever the pattern; nothing ever backtracks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from operator import eq, methodcaller
from typing import Final, Literal, TypeAlias

from amqpgate.policy.engine.regular_expressions import RegexError, escaped, of_text
from amqpgate.policy.engine.words import Words, exact, split
from amqpgate.yamldoc import Invalid

Form = Literal["literal", "prefix", "topic", "within", "regex", "search"]

#: What stands in for a word or a name: values of `VARIABLES`, None where the gateway does not know it.
Values: TypeAlias = "Mapping[str, str | None]"

#: Variables that patterns may hold. They stand for themselves: no character in a value is a wildcard.
VARIABLES: Final = ("user", "vhost", "listener", "sourceIP")

#: AMQP's short strings, and so all names and routing keys, are at most this long (section 4.2.5.3).
MAX_BYTES = 255

_SURROGATE = re.compile("[\ud800-\udfff]")

#: Not of a regular expression's ``\\p{Greek}``.
PLACEHOLDER: Final = re.compile(r"(?<!\\[pP])\{([A-Za-z_][A-Za-z0-9_.-]*)\}")

#: What is repeated is the whole value.
_REPEATED: Final = re.compile(r"((?<!\\[pP])\{[A-Za-z_][A-Za-z0-9_.-]*\})(?=[*+?{])")


def check_pattern(form: Form, text: str) -> None:
    """Raise `Invalid`, with ``form`` as its path, for a pattern that would not mean what it seems to."""
    if form not in ("regex", "search") and len(text.encode()) > MAX_BYTES:
        raise Invalid(f"longer than {MAX_BYTES} bytes: no name is", form)
    for name in PLACEHOLDER.findall(text):
        if name not in VARIABLES:
            known = ", ".join(f"{{{variable}}}" for variable in VARIABLES)
            raise Invalid(f"unknown variable {{{name}}}; known are {known}", form)
    if form in ("topic", "within"):
        for word in text.split("."):
            if word not in ("*", "#") and ("*" in word or "#" in word):
                raise Invalid(f"'{word}': * and # stand for whole words, alone between dots", form)
    elif form == "prefix" and text.endswith("*"):
        raise Invalid("a prefix is written without the *", form)
    elif form in ("regex", "search"):
        try:
            of_text(PLACEHOLDER.sub("x", text))
        except RegexError as error:
            raise Invalid(str(error), form) from None


def variables_in(text: str) -> frozenset[str]:
    """The variables that a pattern holds."""
    return frozenset(PLACEHOLDER.findall(text))


def expand(text: str, values: Values) -> str | None:
    """Plain text with its variables filled in; None where one is not known."""
    if any(values.get(name) is None for name in variables_in(text)):
        return None
    return _expand(text, values)


def _expand(text: str, values: Values) -> str:
    return PLACEHOLDER.sub(lambda match: values[match[1]] or "", text)


def _readable(text: str) -> str:
    """The text for RE2, which takes UTF-8 alone: U+FFFD for each byte that was not UTF-8 on the wire."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


class Matcher:
    """A compiled pattern. ``literal``, ``prefix`` and ``words`` say what an index may find it by."""

    __slots__ = ("_binding", "matches")

    #: Whether a text, a name or a routing key, is meant. Each rule asks it: of most forms it is no Python.
    matches: Callable[[str], bool]
    #: The one text that it means.
    literal: str | None = None
    #: What every text starts with that it means.
    prefix: str | None = None

    def __init__(
        self, elements: list[str], start: str | None = None, matches: Callable[[str], bool] | None = None
    ) -> None:
        self._binding = Words.of(elements, start)
        self.matches = matches or self._binding.accepts

    def covers(self, key: str) -> bool:
        """Whether every routing key that the binding key ``key`` can catch is meant."""
        return self._binding.covers(key)

    def overlaps(self, key: str) -> bool:
        """Whether some routing key that the binding key ``key`` can catch is meant."""
        return self._binding.overlaps(key)

    def words(self) -> Iterator[tuple[int, str]]:
        """Places, counted from the start or (below zero) from the end, where always the same word stands."""
        yield from ()


class LiteralMatcher(Matcher):
    """Exactly this text; as a binding key, exactly so written."""

    __slots__ = ("literal",)

    def __init__(self, text: str) -> None:
        super().__init__([exact(word) for word in split(text)], matches=partial(eq, text))
        self.literal = text

    def covers(self, key: str) -> bool:
        return key == self.literal

    def overlaps(self, key: str) -> bool:
        return key == self.literal or super().overlaps(key)


class PrefixMatcher(Matcher):
    """Every text that starts so."""

    __slots__ = ("prefix",)

    def __init__(self, text: str) -> None:
        *words, last = text.split(".")
        elements = [exact(word) for word in words]
        # The last, unfinished word may go on, and any words may follow; the empty prefix is just "#".
        super().__init__(
            [*elements, "start", "#"] if text else ["#"],
            last if text else None,
            methodcaller("startswith", text),
        )
        self.prefix: str = text


class TopicMatcher(Matcher):
    """A topic pattern, of wildcards and of words that start with ``=``."""

    __slots__ = ("_elements",)

    def __init__(self, elements: list[str]) -> None:
        is_plain = all(element[0] == "=" for element in elements)
        plain = ".".join(element[1:] for element in elements)
        super().__init__(elements, matches=partial(eq, plain) if is_plain else None)
        self._elements = elements

    def words(self) -> Iterator[tuple[int, str]]:
        for start, step in ((0, 1), (-1, -1)):
            place = start
            while -len(self._elements) <= place < len(self._elements) and self._elements[place] != "#":
                if self._elements[place] != "*":
                    yield place, self._elements[place][1:]
                place += step


class WithinMatcher(TopicMatcher):
    """As a topic pattern; but that of a binding key every catch must lie within it, in a deny rule, too."""

    __slots__ = ()

    def overlaps(self, key: str) -> bool:
        return self.covers(key)


class RegexMatcher(Matcher):
    """A regular expression of RE2 for the whole text: no text makes it slow."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        match = of_text(text).fullmatch
        self.matches = lambda name: match(_readable(name)) is not None

    def covers(self, key: str) -> bool:
        return not _has_wildcards(key) and self.matches(key)

    def overlaps(self, key: str) -> bool:
        return _has_wildcards(key) or self.matches(key)


class SearchMatcher(Matcher):
    """A regular expression of RE2 that is found anywhere in the text as it is written.

    What a binding key can catch does not count: it is how RabbitMQ reads its permissions.
    """

    __slots__ = ()

    def __init__(self, text: str) -> None:
        search = of_text(text).search
        self.matches = lambda name: search(_readable(name)) is not None

    def covers(self, key: str) -> bool:
        return self.matches(key)

    def overlaps(self, key: str) -> bool:
        return self.matches(key)


def compile_pattern(form: Form, text: str, values: Values) -> Matcher | None:
    """The matcher of a pattern; None where it holds a variable whose value is not known."""
    variables = variables_in(text)
    if not variables:
        return _compiled(form, text)
    if any(values.get(name) is None for name in variables):
        return None
    if form in ("topic", "within"):
        elements = [
            element
            for word in split(text)
            for element in (
                map(exact, _expand(word, values).split(".")) if variables_in(word) else [_element(word)]
            )
        ]
        return (TopicMatcher if form == "topic" else WithinMatcher)(elements)
    if form in ("regex", "search"):
        if any(_SURROGATE.search(values[name] or "") for name in variables):
            return None  # RE2 could not tell it from others
        expression = _REPEATED.sub(r"(?:\1)", text)
        expression = PLACEHOLDER.sub(lambda match: escaped(values[match[1]] or ""), expression)
        return RegexMatcher(expression) if form == "regex" else SearchMatcher(expression)
    return _compiled(form, _expand(text, values))


@lru_cache(maxsize=65536)
def _compiled(form: Form, text: str) -> Matcher:
    """Shared: rules by the thousand name the same few exchanges."""
    if form == "literal":
        return LiteralMatcher(text)
    if form == "prefix":
        return PrefixMatcher(text)
    if form == "regex":
        return RegexMatcher(text)
    if form == "search":
        return SearchMatcher(text)
    return (TopicMatcher if form == "topic" else WithinMatcher)([_element(word) for word in split(text)])


def _element(word: str) -> str:
    return word if word in ("*", "#") else exact(word)


def _has_wildcards(key: str) -> bool:
    return ("*" in key or "#" in key) and not {"*", "#"}.isdisjoint(split(key))

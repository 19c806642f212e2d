"""Texts that a pattern means, and texts near it that it does not: examples to try policies with.

Every text is only tried, so a poor one does no harm: what it shows is asked of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.policy.engine.conditions import Pattern
from amqpgate.policy.engine.matching import Values, compile_pattern

#: A name that no policy has.
STRANGER = "some-other-name"

#: Texts that are made of one regular expression.
_MOST = 8


def texts_for(pattern: Pattern, values: Values) -> Iterator[str]:
    """Texts that it means first, then neighbours that it may not mean."""
    matcher = pattern.compile(values)
    if matcher is None:
        return
    found = list(dict.fromkeys(_candidates(pattern, values)))
    yield from (text for text in found if matcher.matches(text))
    yield from (text for text in found if not matcher.matches(text))


def _candidates(pattern: Pattern, values: Values) -> Iterator[str]:
    form, text = pattern.given
    if form in ("literal", "prefix"):
        compiled = compile_pattern(form, text, values)
        said = (compiled.literal if form == "literal" else compiled.prefix) if compiled is not None else None
        if said is not None:
            yield said
            yield said + "x"
            yield said + ".x"
            yield said[:-1]
    elif form in ("topic", "within"):
        for star, hashed in (("x", "x.y"), ("x", ""), ("x.y", "x")):
            words = [star if word == "*" else hashed if word == "#" else word for word in text.split(".")]
            yield ".".join(word for word in words if word)
        yield text
        yield text.replace("*", "#")
        yield text + ".x"
    else:
        for one in examples_of(text):
            yield one
            yield one + "x"
            yield "x" + one
    unless = getattr(pattern, "unless", None)
    if isinstance(unless, Pattern):
        yield from _candidates(unless, values)


def examples_of(regex: str) -> list[str]:
    """Some texts that the regular expression may mean: alternatives, none and one of what may be repeated.

    Reads what is common in permissions; what it does not know (classes by name, flags) it leaves out.
    """
    try:
        return list(dict.fromkeys(_PatternReader(regex).alternatives()))[:_MOST]
    except IndexError:
        return []


class _PatternReader:
    """A regular expression, read once from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def alternatives(self) -> list[str]:
        found = self._sequence()
        while self._next_is("|"):
            self._at += 1
            found = found + self._sequence()
        return found

    def _next_is(self, letters: str) -> bool:
        return self._at < len(self._text) and self._text[self._at] in letters

    def _sequence(self) -> list[str]:
        starts = [""]
        while self._at < len(self._text) and not self._next_is("|)"):
            ends = self._repeated(self._atom())
            starts = [start + end for end in ends for start in starts][: _MOST * 2]
        return starts

    def _atom(self) -> list[str]:
        letter = self._text[self._at]
        self._at += 1
        if letter in "^$":
            return [""]
        if letter == ".":
            return ["x"]
        if letter == "[":
            return [self._class()]
        if letter == "\\":
            escaped = self._text[self._at]
            self._at += 1
            if escaped == "x" and self._text[self._at : self._at + 2] == "7b":
                self._at += 2
                return ["{"]
            return [{"d": "0", "w": "x", "s": " ", "b": "", "A": "", "z": ""}.get(escaped, escaped)]
        if letter == "(":
            if self._next_is("?"):
                while self._text[self._at] not in ":>)":
                    self._at += 1
                if self._next_is(")"):
                    self._at += 1
                    return [""]
                self._at += 1
            found = self.alternatives()
            self._at += 1
            return found
        return [letter]

    def _class(self) -> str:
        """One letter of a class that is listed, or one that is not."""
        negated = self._next_is("^")
        if negated:
            self._at += 1
        start = self._at
        self._at += 2 if self._text[self._at] == "\\" else 1  # a bracket that stands first is a letter
        while self._text[self._at] != "]":
            self._at += 2 if self._text[self._at] == "\\" else 1
        inside = self._text[start : self._at]
        self._at += 1
        if not negated:
            return inside[1] if inside[0] == "\\" else inside[0]
        return next((letter for letter in "x_0.-" if letter not in inside), "~")

    def _repeated(self, found: list[str]) -> list[str]:
        if self._next_is("*?"):
            found = [*found, ""]
            self._at += 1
        elif self._next_is("+"):
            found = [*found, *(one * 2 for one in found)]
            self._at += 1
        elif self._next_is("{") and "}" in self._text[self._at :]:
            end = self._text.index("}", self._at)
            least = self._text[self._at + 1 : end].partition(",")[0]
            if least.isdigit():
                found = [one * min(int(least), 32) for one in found]
                self._at = end + 1
        if self._next_is("?"):
            self._at += 1
        return found

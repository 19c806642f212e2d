"""What patterns of policies mean, by trying: a binding key catches the texts that it catches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from functools import lru_cache

from tests.fuzz.known import tolerates

#: Words of the longest text that is tried for a binding key.
LONGEST = 4
_VARIABLE = re.compile(r"\{(user|vhost|listener|sourceIP)\}")

Values = Mapping[str, str | None]
#: As documents have it: one form and its text, and perhaps ``unless``.
Pattern = str | Mapping[str, object]


class UnsureError(Exception):
    """A known fault decides here: nothing is said."""


def words_of(text: str) -> tuple[str, ...]:
    """The words of a key; the empty one has none."""
    return tuple(text.split(".")) if text else ()


def is_caught(elements: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Topic exchange: ``*`` is one word, ``#`` any number; ``=word`` and all else stand for themselves."""
    if not elements:
        return not words
    first, rest = elements[0], elements[1:]
    if first == "#":
        return any(is_caught(rest, words[count:]) for count in range(len(words) + 1))
    return bool(words) and first in ("*", "=" + words[0]) and is_caught(rest, words[1:])


def as_key(key: str) -> tuple[str, ...]:
    """The elements of a binding key."""
    return tuple(word if word in ("*", "#") else "=" + word for word in words_of(key))


def form_of(pattern: Pattern) -> tuple[str, str]:
    """``literal`` and so on, and the text."""
    if isinstance(pattern, str):
        return "literal", pattern
    return next((str(form), str(text)) for form, text in pattern.items() if form != "unless")


def unless_of(pattern: Pattern) -> Pattern | None:
    """Its exception."""
    return None if isinstance(pattern, str) else pattern.get("unless")  # type: ignore[return-value]


def is_known(pattern: Pattern, values: Values) -> bool:
    """Whether every variable in it, and in its exception, has a value."""
    exception = unless_of(pattern)
    names = _VARIABLE.findall(form_of(pattern)[1])
    return all(values[name] is not None for name in names) and (
        exception is None or is_known(exception, values)
    )


def _filled(text: str, values: Values) -> str:
    return _VARIABLE.sub(lambda found: values[found[1]] or "", text)


def topic_of(text: str, values: Values) -> tuple[str, ...]:
    """The elements of a topic pattern. What a variable stands for has no wildcards."""
    elements: list[str] = []
    for word in words_of(text):
        if _VARIABLE.search(word):
            elements += ("=" + one for one in _filled(word, values).split("."))
        else:
            elements.append(word if word in ("*", "#") else "=" + word)
    return tuple(elements)


def means(pattern: Pattern, text: str, values: Values) -> bool:
    """Whether the pattern means this name or routing key."""
    form, said = form_of(pattern)
    exception = unless_of(pattern)
    if exception is not None and means(exception, text, values):
        return False
    if form == "literal":
        return text == _filled(said, values)
    if form == "prefix":
        return text.startswith(_filled(said, values))
    if form in ("topic", "within"):
        return is_caught(topic_of(said, values), words_of(text))
    if ("\n" in text or "\r" in text) and tolerates("regex-line-breaks"):
        raise UnsureError
    expression = re.compile(_VARIABLE.sub(lambda found: re.escape(values[found[1]] or ""), said), re.DOTALL)
    readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    found = expression.fullmatch(readable) if form == "regex" else expression.search(readable)
    return found is not None


def _has_wildcards(key: str) -> bool:
    return bool({"*", "#"} & set(words_of(key)))


def caught_by(key: str, more: str) -> tuple[str, ...]:
    """Texts that the binding key catches, of its own words, those of ``more`` and strange ones; not all."""
    own, others = ({word for word in words_of(text) if word not in ("*", "#")} for text in (key, more))
    if "" in own | others:
        # A text of one empty word is the text without words: patterns with empty words go by words alone.
        raise UnsureError
    started = {more.split(".")[-1] + "z"} if more else set()
    return _caught(key, tuple(sorted(own)), tuple(sorted(started | others - own)[:3]))


@lru_cache(maxsize=20_000)
def _caught(key: str, own: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    letters = (*own, *others, "strange")
    elements = as_key(key)
    longest = max(LONGEST, len(elements))
    texts = (words for size in range(longest + 1) for words in itertools.product(letters, repeat=size))
    return tuple(".".join(words) for words in texts if is_caught(elements, words))


def covers(pattern: Pattern, key: str, values: Values) -> bool:
    """Whether all that the binding key catches is meant."""
    form, said = form_of(pattern)
    exception = unless_of(pattern)
    if exception is not None and overlaps(exception, key, values):
        return False
    if form == "literal":
        return key == _filled(said, values)
    base = {form: said}
    if form == "search" or not _has_wildcards(key):
        return means(base, key, values)
    if form == "regex":
        return False
    return all(means(base, text, values) for text in caught_by(key, _filled(said, values)))


def overlaps(pattern: Pattern, key: str, values: Values) -> bool:
    """Whether some of what the binding key catches is meant."""
    form, said = form_of(pattern)
    exception = unless_of(pattern)
    if exception is not None and covers(exception, key, values):
        return False
    base = {form: said}
    if form == "search" or not _has_wildcards(key):
        return means(base, key, values)
    if form == "regex":
        return True
    if form == "within":
        return covers(base, key, values)
    if form == "literal" and key == _filled(said, values):
        return True
    return any(means(base, text, values) for text in caught_by(key, _filled(said, values)))

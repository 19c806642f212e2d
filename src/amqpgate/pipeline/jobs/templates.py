"""Routing keys folded into topic patterns: ``order.4711.created`` to ``order.*.created``.

A key is its words. Words become wildcards for three reasons, in this order, and never otherwise:

``ids``     the keys are alike but for words that look like ids (numbers, UUIDs, ...), and two of those
            differ; what stands for them is of that kind
``values``  more than `TemplateBounds.values` keys are alike but for this one word
``keys``    more than `TemplateBounds.templates` are left: of those with the same number of words, the
            place with the most different words; in the end ``#`` after the words that all of them start with

Every key lies within its template. Binding keys, and the templates that gateways write, are keys whose ``*``
and ``#`` are wildcards already.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.policy.engine.matching import variables_in
from amqpgate.policy.engine.words import split


class Wild(Enum):
    """A word that stands for others."""

    ONE = "*"
    MANY = "#"


class IdKind(Enum):
    """A word that stands for ids of its kind: what all such words are like, as a regular expression."""

    NUMBER = r"[0-9]+"
    UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    HEX = r"[0-9a-fA-F]{8,}"
    DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    TEXT = r"[^.]*[0-9][^.]*"


@attrs.frozen
class Numbered:
    """A word that stands for numbers with the same letters around: ``p4711``."""

    before: str
    after: str


#: What a key is made of.
Word: TypeAlias = "str | Wild | IdKind | Numbered"
Words: TypeAlias = "tuple[Word, ...]"

#: Why a template is as wide as it is: from what was seen to the widest.
Why: TypeAlias = Literal["seen", "ids", "values", "keys"]

WHYS: Final[tuple[Why, ...]] = ("seen", "ids", "values", "keys")

#: Words that look like ids: numbers, UUIDs, hexadecimal numbers of eight digits and more, days, what has a
#: number of four digits and more and no other, what is longer than 16 characters and has a digit.
_ID: Final = re.compile(
    r"(?P<NUMBER>[0-9]+)"
    r"|(?P<UUID>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})"
    r"|(?P<HEX>(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,})"
    r"|(?P<DATE>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"|(?P<NUMBERED>[^0-9]{,16}[0-9]{4,}[^0-9]{,16})"
    r"|(?P<TEXT>(?=[^0-9]*[0-9]).{17,})",
    re.DOTALL,
)

#: What stands for any word in a shape.
MARK: Final = "\ue000"
#: What stands for an id. A key that has one of these itself has no ids, and so another shape.
_MARKS: Final = {
    IdKind.NUMBER: "\ue001",
    IdKind.UUID: "\ue002",
    IdKind.HEX: "\ue003",
    IdKind.TEXT: "\ue004",
    IdKind.DATE: "\ue005",
}
#: What stands for the number in a word with letters around it.
_NUMBER_MARK: Final = "\ue006"
_DIGITS: Final = re.compile("[0-9]+")
_WILD: Final[Mapping[str, Wild | IdKind]] = {MARK: Wild.ONE} | {mark: kind for kind, mark in _MARKS.items()}
_MARKED: Final = re.compile("[\ue000-\ue006]")


@attrs.frozen
class TemplateBounds:
    """When words are folded."""

    #: Different words at one place, all else being alike.
    values: int = 10
    #: Templates that are left.
    templates: int = 50


DEFAULT: Final = TemplateBounds()


@attrs.frozen
class Template:
    """What stands for one key or more."""

    words: Words
    why: Why

    def __str__(self) -> str:
        return text_of(self.words)


def words_of(key: str, *, wild: bool = False) -> Words:
    """The words of a key; with ``wild``, its ``*`` and ``#`` are wildcards."""
    words = split(key)
    if not wild:
        return tuple(words)
    return tuple(Wild(word) if word in ("*", "#") else word for word in words)


def text_of(words: Words) -> str:
    """As keys are written."""
    return ".".join(
        word if isinstance(word, str) else word.value if isinstance(word, Wild) else "*" for word in words
    )


def topic_of(words: Words) -> str:
    """A topic pattern: words that no pattern can hold, such as ``a*``, become wildcards, too."""
    return text_of(tuple(word if _is_plain(word) else Wild.ONE for word in words))


def _is_plain(word: Word) -> bool:
    return not isinstance(word, str) or not ("*" in word or "#" in word or variables_in(word))


def looks_like_an_id(word: Word) -> bool:
    """Whether the word is one of many of its kind."""
    return isinstance(word, str) and _ID.fullmatch(word) is not None


def _kind_of(word: Word) -> Word:
    """What kind of id a word is; itself if it is none."""
    found = _ID.fullmatch(word) if isinstance(word, str) else None
    if found is None or found.lastgroup is None:
        return word
    if found.lastgroup == "NUMBERED":
        return Numbered(*_DIGITS.split(found[0]))
    return IdKind[found.lastgroup]


def shape_of(key: str) -> tuple[str, list[str]]:
    """The key with a mark for each id, and the ids: keys with the same shape, and as many ids, are alike."""
    if _MARKED.search(key):
        return key, []
    words, ids = [], []
    for word in split(key):
        kind = _kind_of(word)
        if isinstance(kind, IdKind | Numbered):
            ids.append(word)
        words.append(_marked(kind) if isinstance(kind, IdKind | Numbered) else word)
    return (".".join(words), ids) if ids else (key, [])


def without_ids(key: str, sign: str) -> str:
    """The key with the sign for each id."""
    if _MARKED.search(key):
        return key
    return ".".join(sign if _ID.fullmatch(word) else word for word in split(key))


def _marked(kind: IdKind | Numbered) -> str:
    return _MARKS[kind] if isinstance(kind, IdKind) else f"{kind.before}{_NUMBER_MARK}{kind.after}"


def words_from_shape(shape: str, ids: Iterable[str | None], *, wild: bool = False) -> Words:
    """The words back from a shape that has ids: None for one that differs; so do those that are not given."""
    left = iter(ids)
    return tuple(
        (next(left, None) or _unmarked(word)) if isinstance(word, str) and _MARKED.search(word) else word
        for word in words_of(shape, wild=wild)
    )


def _unmarked(word: str) -> Word:
    known = _WILD.get(word)
    if known is not None:
        return known
    before, mark, after = word.partition(_NUMBER_MARK)
    return Numbered(before, after) if mark else word


def expression_of(words: Words, *, is_binding: bool) -> str | None:
    """A regular expression that says of which kind ids are; None where a topic pattern says it all.

    That of a binding key is for the key as it is written, with its wildcards.
    """
    if not any(isinstance(word, IdKind | Numbered) for word in words) or (
        Wild.MANY in words and not is_binding
    ):
        return None
    wild = {Wild.ONE: r"\*" if is_binding else "[^.]*", Wild.MANY: "#"}
    parts = [
        wild[word] if isinstance(word, Wild) else word.value if isinstance(word, IdKind) else _spelt(word)
        for word in words
    ]
    return r"\.".join(parts)


def _spelt(word: str | Numbered) -> str:
    if isinstance(word, str):
        return escaped(word)
    return escaped(word.before) + IdKind.NUMBER.value + escaped(word.after)


def escaped(text: str) -> str:
    """The text in a regular expression of RE2 that holds no variables."""
    return re.escape(text).replace(r"\{", r"\x7b")


def fold(keys: Collection[Words], bounds: TemplateBounds = DEFAULT) -> dict[Words, Template]:
    """The template of each key."""
    folding = {key: Template(key, "seen") for key in keys}
    _fold_ids(folding)
    while _fold_values(folding, bounds.values):
        pass
    _fold_to(folding, bounds.templates)
    widest: dict[Words, Why] = {}
    for template in folding.values():
        why = widest.get(template.words, "seen")
        widest[template.words] = max(why, template.why, key=WHYS.index)
    return {key: Template(one.words, widest[one.words]) for key, one in folding.items()}


def _fold_ids(folding: dict[Words, Template]) -> None:
    groups: dict[Words, list[Words]] = {}
    for key in folding:
        groups.setdefault(tuple(map(_kind_of, key)), []).append(key)
    for shape, alike in groups.items():
        places = {
            place
            for place, kind in enumerate(shape)
            if isinstance(kind, IdKind | Numbered) and len({key[place] for key in alike}) > 1
        }
        for key in alike if places else ():
            words = (kind if place in places else key[place] for place, kind in enumerate(shape))
            folding[key] = Template(tuple(words), "ids")


def _fold_values(folding: dict[Words, Template], most: int) -> bool:
    """Fold the first place that has too many words; whether there was any."""
    found = {template.words for template in folding.values()}
    for place in range(max(map(len, found), default=0)):
        groups: dict[tuple[Words, Words], set[Words]] = {}
        for words in found:
            if place < len(words) and words[place] is not Wild.MANY:
                groups.setdefault((words[:place], words[place + 1 :]), set()).add(words)
        into = {
            words: _with(words, [place], _what_all_are({one[place] for one in group}))
            for group in groups.values()
            if len(group) > most
            for words in group
        }
        if into:
            _replace(folding, into, "values")
            return True
    return False


def _fold_to(folding: dict[Words, Template], most: int) -> None:
    """Fold until there are few enough."""
    while len(found := {template.words for template in folding.values()}) > most:
        different: dict[tuple[int, int], set[Word]] = {}
        for words in found:
            for place, word in enumerate(words):
                if word is not Wild.MANY:
                    different.setdefault((len(words), place), set()).add(word)
        (length, place), widest = max(
            different.items(), key=lambda one: (len(one[1]), one[0]), default=((0, 0), set())
        )
        if len(widest) > 1:
            into = {
                words: _with(words, [place])
                for words in found
                if len(words) == length and words[place] is not Wild.MANY
            }
        else:
            start = _start_of(found)
            into = dict.fromkeys(found, (*start, Wild.MANY))
        _replace(folding, into, "keys")
        if len(widest) <= 1:
            return


def _start_of(found: Collection[Words]) -> Words:
    """The words that all start with, as far as they are no ``#``."""
    start = []
    for column in zip(*found, strict=False):
        if len(set(column)) > 1 or column[0] is Wild.MANY:
            break
        start.append(column[0])
    return tuple(start)


def _what_all_are(words: Collection[Word]) -> Wild | IdKind:
    """What stands for these words: text with a digit in it where all have one."""
    has_digits = (
        isinstance(word, IdKind | Numbered) or (isinstance(word, str) and _DIGITS.search(word) is not None)
        for word in words
    )
    return IdKind.TEXT if all(has_digits) else Wild.ONE


def _with(words: Words, places: Iterable[int], wild: Wild | IdKind = Wild.ONE) -> Words:
    folded: list[Word] = list(words)
    for place in places:
        folded[place] = wild
    return tuple(folded)


def _replace(folding: dict[Words, Template], into: dict[Words, Words], why: Why) -> None:
    for key, template in folding.items():
        words = into.get(template.words)
        if words is not None and words != template.words:
            folding[key] = Template(words, why)

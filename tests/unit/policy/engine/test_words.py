"""Patterns over words, against regular expressions that mean the same."""

from __future__ import annotations

import itertools
import re

import pytest

from amqpgate.policy.engine import words as module
from amqpgate.policy.engine.words import Words, exact, split

#: Of up to three words; the empty word is one.
KEYS = ["", *(".".join(key) for n in (1, 2, 3) for key in itertools.product(("a", "b", ""), repeat=n))]
PATTERNS = [list(key) for n in (1, 2, 3) for key in itertools.product(("a", "*", "#"), repeat=n)]


def compiled(elements: list[str]) -> Words:
    return Words.of([one if one in "*#" else exact(one) for one in elements], None)


def means(elements: list[str], key: str) -> bool:
    """Each word with a dot behind it."""
    spelled = {"*": r"[^.]*\.", "#": r"([^.]*\.)*"}
    regex = "".join(spelled.get(one, re.escape(one) + r"\.") for one in elements)
    return re.fullmatch(regex, "".join(f"{word}." for word in split(key))) is not None


def test_the_empty_key_has_no_words() -> None:
    assert split("") == []
    assert split(".") == ["", ""]


@pytest.mark.parametrize("elements", PATTERNS, ids=".".join)
def test_what_it_accepts(elements: list[str]) -> None:
    pattern = compiled(elements)
    for key in KEYS:
        assert pattern.accepts(key) is means(elements, key), key


@pytest.mark.parametrize("elements", PATTERNS, ids=".".join)
def test_what_it_covers_and_overlaps(elements: list[str]) -> None:
    pattern = compiled(elements)
    for other in PATTERNS:
        mine = {key for key in KEYS if means(elements, key)}
        theirs = {key for key in KEYS if means(other, key)}
        if pattern.covers(".".join(other)):
            assert theirs <= mine, other
        # Keys of three words are enough to show that two patterns of three elements overlap.
        assert pattern.overlaps(".".join(other)) is bool(mine & theirs), other


def test_the_start_of_a_word_is_every_word_that_begins_so() -> None:
    pattern = Words.of([exact("a"), "start"], "x")
    assert [pattern.accepts(key) for key in ("a.x", "a.xy", "a.y", "a")] == [True, True, False, False]


def test_a_pair_of_patterns_that_takes_too_long_is_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = compiled(["#", "a", "#"])
    assert wide.covers("a.*.*")
    monkeypatch.setattr(module, "MAX_STEPS", 1)
    assert not wide.covers("a.*.*")

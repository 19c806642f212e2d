"""Patterns with an exception."""

from __future__ import annotations

import pytest

from amqpgate.policy.engine.exempting import ExceptMatcher
from amqpgate.policy.engine.matching import Form, compile_pattern


def matcher(form: Form, text: str, unless_form: Form, unless: str) -> ExceptMatcher:
    base, exception = compile_pattern(form, text, {}), compile_pattern(unless_form, unless, {})
    assert base is not None
    assert exception is not None
    return ExceptMatcher(base, exception)


@pytest.mark.parametrize(
    ("key", "matches", "covers", "overlaps"),
    [
        ("a.b", True, True, True),
        ("a.secret", False, False, False),
        ("b", False, False, False),
        # Catches the exception and others.
        ("a.*", True, False, True),
        ("#", False, False, True),
    ],
)
def test_what_is_meant_but_for_the_exception(key: str, matches: bool, covers: bool, overlaps: bool) -> None:
    one = matcher("topic", "a.#", "literal", "a.secret")
    assert (one.matches(key), one.covers(key), one.overlaps(key)) == (matches, covers, overlaps)


def test_an_exception_as_wide_as_the_pattern_leaves_nothing() -> None:
    one = matcher("topic", "a.*", "topic", "a.#")
    assert not one.matches("a.b")
    assert not one.overlaps("a.*")


def test_the_index_finds_it_by_what_it_means_without_the_exception() -> None:
    assert matcher("literal", "a", "literal", "b").literal == "a"
    assert matcher("prefix", "a", "literal", "ab").prefix == "a"

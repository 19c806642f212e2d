"""Routing keys to topic patterns: every key within its template, and no template wider than said."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.pipeline.jobs.templates import (
    DEFAULT,
    MARK,
    IdKind,
    Numbered,
    TemplateBounds,
    Wild,
    Words,
    expression_of,
    fold,
    shape_of,
    text_of,
    topic_of,
    words_from_shape,
    words_of,
)
from amqpgate.policy.engine.matching import check_pattern, compile_pattern

WORD = st.one_of(
    st.sampled_from(["order", "created", "paid", "eu", "us", "", "a*", "{user}", MARK]),
    st.integers(0, 20_000).map(str),
    st.integers(0, 30).map(lambda number: f"host{number}"),
    st.integers(0, 5_000).map(lambda number: f"p{number}" if number % 2 else f"{number}-q"),
    st.dates().map(str),
)
KEYS = st.lists(st.lists(WORD, max_size=4).map(".".join), min_size=1, max_size=80, unique=True)
BINDINGS = st.lists(
    st.lists(WORD | st.sampled_from(["*", "#"]), max_size=4).map(".".join),
    min_size=1,
    max_size=60,
    unique=True,
)


def folded(*keys: str, bounds: TemplateBounds = DEFAULT) -> list[str]:
    """The templates of these keys."""
    return sorted({str(template) for template in fold([words_of(key) for key in keys], bounds).values()})


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["order.4711.created", "order.4712.created"], ["order.*.created"]),
        # One id is not many.
        (["order.4711.created"], ["order.4711.created"]),
        # An id that stays the same stays.
        (["tenant.42.order.4711", "tenant.42.order.4712"], ["tenant.42.order.*"]),
        # Both differ, but never only one of them.
        (["t.1.order.11", "t.2.order.22"], ["t.*.order.*"]),
        (["order.4711.created", "order.4711.paid"], ["order.4711.created", "order.4711.paid"]),
        # Short words with a digit are names, not ids.
        (["api.v1", "api.v2", "metrics.eu1.cpu"], ["api.v1", "api.v2", "metrics.eu1.cpu"]),
        (["f.3fa85f64-5717-4562-b3fc-2c963f66afa6.x", "f.00000000-5717-4562-b3fc-2c963f66afa6.x"], ["f.*.x"]),
        (["job.order-4711", "job.order-4712"], ["job.*"]),
        # With other letters beside the number it is another thing.
        (["job.order-4711", "job.parcel-4712"], ["job.order-4711", "job.parcel-4712"]),
        (["day.2026-11-27", "day.2026-11-28", "day.2026-11-28x"], ["day.*", "day.2026-11-28x"]),
        (["", "a"], ["", "a"]),
    ],
)
def test_folds_what_looks_like_ids(keys: list[str], expected: list[str]) -> None:
    assert folded(*keys) == expected


def test_folds_a_word_with_more_values_than_the_bound() -> None:
    names = [f"order.{name}.created" for name in ("amber", "brass", "coral", "denim")]
    assert folded(*names, bounds=TemplateBounds(values=4)) == sorted(names)
    assert folded(*names, bounds=TemplateBounds(values=3)) == ["order.*.created"]
    # Only together with what is alike: another event stays as it is.
    assert folded(*names, "order.amber.paid", bounds=TemplateBounds(values=3)) == [
        "order.*.created",
        "order.amber.paid",
    ]


def test_folds_the_place_with_most_words_when_there_are_too_many() -> None:
    keys = [f"{name}.{name}-done" for name in ("amber", "brass", "coral")] + ["amber.other"]
    assert folded(*keys, bounds=TemplateBounds(templates=3)) == ["amber.*", "brass.*", "coral.*"]
    assert folded("a", "a.b", "a.b.c", "a.d.c", bounds=TemplateBounds(templates=1)) == ["a.#"]


def test_says_why_a_template_is_wide() -> None:
    keys = [words_of(key) for key in ("a.1", "a.2", "b")]
    assert [fold(keys)[key].why for key in keys] == ["ids", "ids", "seen"]


@given(KEYS, st.integers(1, 20))
def test_every_key_matches_the_expression_of_its_template(keys: list[str], values: int) -> None:
    found = fold([words_of(key) for key in keys], TemplateBounds(values))
    for key in keys:
        expression = expression_of(found[words_of(key)].words, is_binding=False)
        matcher = None if expression is None else compile_pattern("regex", expression, {})
        assert matcher is None or matcher.matches(key)


def test_many_words_with_digits_are_folded_to_some_with_digits() -> None:
    keys = [words_of(f"code.{letter}{number}") for number, letter in enumerate("abcd", 1000)]
    (words,) = {one.words for one in fold(keys, TemplateBounds(values=3)).values()}
    assert words == ("code", IdKind.TEXT)


@given(KEYS, st.integers(1, 5), st.integers(1, 5))
def test_every_key_matches_its_template(keys: list[str], values: int, templates: int) -> None:
    found = fold([words_of(key) for key in keys], TemplateBounds(values, templates))
    assert len({template.words for template in found.values()}) <= templates
    for key in keys:
        template = found[words_of(key)]
        if template.why == "seen":
            assert str(template) == key
        else:
            pattern = topic_of(template.words)
            check_pattern("topic", pattern)
            matcher = compile_pattern("topic", pattern, {})
            assert matcher is not None
            assert matcher.matches(key), (key, pattern)


@given(BINDINGS, st.integers(1, 5), st.integers(1, 5))
def test_every_binding_key_is_covered_by_its_template(keys: list[str], values: int, templates: int) -> None:
    found = fold([words_of(key, wild=True) for key in keys], TemplateBounds(values, templates))
    for key in keys:
        matcher = compile_pattern("topic", topic_of(found[words_of(key, wild=True)].words), {})
        assert matcher is not None
        assert matcher.covers(topic_of(words_of(key, wild=True)))


@given(KEYS)
def test_a_word_is_folded_for_a_reason_only(keys: list[str]) -> None:
    """Where a template has a wildcard, its keys differ; alike but for ids, or more than the bound."""
    bounds = TemplateBounds(values=3, templates=1000)
    found = fold([words_of(key) for key in keys], bounds)
    members: dict[Words, set[Words]] = {}
    for key, template in found.items():
        members.setdefault(template.words, set()).add(key)
    for words, of_template in members.items():
        for place, word in enumerate(words):
            if word is Wild.ONE:
                here = {key[place] for key in of_template}
                assert len(here) > 1
                assert len(here) > bounds.values or found[next(iter(of_template))].why != "seen"
            elif isinstance(word, IdKind):
                here = {key[place] for key in of_template}
                assert len(here) > 1
                assert all(re.fullmatch(word.value, str(one)) for one in here)
            elif isinstance(word, Numbered):
                here = {key[place] for key in of_template}
                assert len(here) > 1
                assert all(re.fullmatch(f"{word.before}[0-9]{{4,}}{word.after}", str(one)) for one in here)
            else:
                assert {key[place] for key in of_template} == {word}


@given(KEYS)
def test_a_shape_gives_its_key_back(keys: list[str]) -> None:
    for key in keys:
        shape, ids = shape_of(key)
        words = words_from_shape(shape, ids) if ids else words_of(key)
        assert text_of(words) == key

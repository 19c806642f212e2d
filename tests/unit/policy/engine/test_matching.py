"""Patterns for names, routing keys and binding keys."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.policy.engine.matching import Form, Matcher, check_pattern, compile_pattern
from amqpgate.yamldoc import Invalid


def compiled(form: Form, text: str, **values: str | None) -> Matcher:
    """The matcher; where a variable is not known there is none."""
    matcher = compile_pattern(form, text, values)
    assert matcher is not None
    return matcher


#: What RabbitMQ 3.10.8 routed from a topic exchange: binding key, keys that it caught, keys that it missed.
MEASURED = [
    ("*", ["a"], ["", "a.", ".", "a..b"]),
    ("#", ["", "a", "a.", ".", "a..b"], []),
    ("a.*", ["a."], ["", "a", ".", "a..b"]),
    ("*.*", ["a.", "."], ["", "a", "a..b"]),
    ("#.*", ["a", "a.", ".", "a..b"], [""]),
    ("", [""], ["a", "a.", ".", "a..b"]),
]


@pytest.mark.parametrize(("pattern", "caught", "missed"), MEASURED)
def test_topics_as_rabbitmq_routes_them(pattern: str, caught: list[str], missed: list[str]) -> None:
    matcher = compiled("topic", pattern)
    assert [key for key in caught if not matcher.matches(key)] == []
    assert [key for key in missed if matcher.matches(key)] == []


@pytest.mark.parametrize(
    ("form", "pattern", "yes", "no"),
    [
        ("literal", "orders", ["orders"], ["order", "orders.", "Orders", ""]),
        ("literal", "", [""], ["a"]),
        ("literal", "a.*", ["a.*"], ["a.b"]),
        ("prefix", "demo.", ["demo.", "demo.a", "demo.a.b"], ["demo", "demox", "", "Demo.a"]),
        ("prefix", "de", ["de", "demo", "de.mo"], ["d", "ade"]),
        ("prefix", "", ["", "a"], []),
        (
            "topic",
            "order.*.created",
            ["order.1.created", "order..created"],
            ["order.created", "order.1.2.created"],
        ),
        ("topic", "order.#", ["order", "order.", "order.a.b"], ["orders", "x.order"]),
        ("topic", "#.end", ["end", "a.end", "a.b.end"], ["end.a", "aend"]),
        ("topic", "a.#.#.b", ["a.b", "a.x.y.b"], ["a", "b"]),
        ("topic", "plain.key", ["plain.key"], ["plain.keys", "plain"]),
    ],
)
def test_matches(form: Form, pattern: str, yes: list[str], no: list[str]) -> None:
    matcher = compiled(form, pattern)
    assert [text for text in yes if not matcher.matches(text)] == []
    assert [text for text in no if matcher.matches(text)] == []


@pytest.mark.parametrize(
    ("form", "pattern", "covered", "uncovered"),
    [
        ("topic", "order.*", ["order.a", "order.*"], ["order.#", "#", "*.a", "order.*.*"]),
        ("topic", "order.#", ["order", "order.#", "order.*.x", "order.#.x"], ["#", "*.x", "orders.#"]),
        ("topic", "#", ["", "#", "a.*.#"], []),
        ("topic", "*.created", ["a.created", "*.created"], ["#.created", "created"]),
        ("literal", "order.*", ["order.*"], ["order.a", "order.#"]),
        ("prefix", "order.", ["order.a", "order.*", "order.a.#"], ["order", "order.#", "#", "*.a", "ord*"]),
        ("prefix", "or", ["order", "order.#", "or.*"], ["#", "*"]),
        ("prefix", "", ["#", "*", ""], []),
    ],
)
def test_covers(form: Form, pattern: str, covered: list[str], uncovered: list[str]) -> None:
    matcher = compiled(form, pattern)
    assert [key for key in covered if not matcher.covers(key)] == []
    assert [key for key in uncovered if matcher.covers(key)] == []


@pytest.mark.parametrize(
    ("form", "pattern", "met", "missed"),
    [
        (
            "topic",
            "order.*.deleted",
            ["order.1.deleted", "order.#", "#", "*.*.deleted", "*.1.*"],
            ["order.*", "a.#"],
        ),
        (
            "literal",
            "order.created",
            ["order.created", "order.*", "#.created", "#"],
            ["order", "*", "#.deleted"],
        ),
        ("literal", "a.*", ["a.*", "a.#"], ["a.b"]),
        ("prefix", "order.", ["order.#", "*.a", "#", "order.*"], ["order", "a.#"]),
        ("prefix", "order.a.y", ["order.*.*", "order.#.x"], ["order.*.x", "order.*"]),
        ("prefix", "", ["", "#", "a"], []),
    ],
)
def test_overlaps(form: Form, pattern: str, met: list[str], missed: list[str]) -> None:
    matcher = compiled(form, pattern)
    assert [key for key in met if not matcher.overlaps(key)] == []
    assert [key for key in missed if matcher.overlaps(key)] == []


WORDS = ["a", "b", "ab", ""]
#: Every text that could tell small patterns apart: up to four words, one of them in no pattern.
TEXTS = [
    "",
    *(".".join(words) for size in range(1, 5) for words in itertools.product([*WORDS, "z"], repeat=size)),
]

# A key of one empty word cannot be written, so no pattern starts with one.
keys = st.lists(st.sampled_from(["a", "b", "ab", "*", "#"]), max_size=3).map(".".join)
names = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3).map(".".join)
patterns = st.one_of(
    st.tuples(st.just("topic"), keys),
    st.tuples(st.just("literal"), names),
    st.tuples(st.just("prefix"), names | names.map(lambda text: text + "." if text else text)),
)


def fits(words: list[str], pattern: list[str]) -> bool:
    """The definition of topic patterns, taken literally."""
    if not pattern:
        return not words
    first, *rest = pattern
    if first == "#":
        return any(fits(words[skip:], rest) for skip in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and fits(words[1:], rest)


def means(form: str, pattern: str, text: str) -> bool:
    if form == "literal":
        return text == pattern
    if form == "prefix":
        return text.startswith(pattern)
    return fits(text.split(".") if text else [], pattern.split(".") if pattern else [])


@given(patterns, st.sampled_from(TEXTS))
def test_against_the_definition(pattern: tuple[Form, str], text: str) -> None:
    form, body = pattern
    assert compiled(form, body).matches(text) is means(form, body, text)


@given(patterns, keys)
def test_binding_keys_against_all_small_texts(pattern: tuple[Form, str], key: str) -> None:
    form, body = pattern
    matcher = compiled(form, body)
    caught = [text for text in TEXTS if means("topic", key, text)]
    meant = [text for text in caught if means(form, body, text)]
    if matcher.covers(key):
        assert meant == caught
    if not any(wild in key.split(".") for wild in "*#"):
        assert matcher.covers(key) is means(form, body, key)
    if form == "topic" and len(body.split(".")) + len(key.split(".")) <= 4 and meant == caught:
        assert matcher.covers(key)
    if meant:
        assert matcher.overlaps(key)
    if len(body.split(".")) + len(key.split(".")) <= 4 and not meant:
        assert not matcher.overlaps(key)


def test_hostile_patterns_and_keys_end() -> None:
    """Backtracking would take longer than the universe has."""
    matcher = compiled("topic", ".".join(["#", "a"] * 60))
    key = ".".join(["a"] * 120 + ["b"])
    assert not matcher.matches(key)
    assert not matcher.covers(key)
    assert not matcher.overlaps(key)
    assert matcher.overlaps(".".join(["#", "*"] * 60))


@pytest.mark.parametrize(
    ("form", "pattern", "words"),
    [
        ("topic", "order*", "whole words"),
        ("topic", "a.#b", "whole words"),
        ("topic", "**", "whole words"),
        ("prefix", "demo.*", "without the *"),
        ("literal", "{team}.x", "unknown variable {team}; known are {user}"),
        ("prefix", "${TEAM}.", "unknown variable {TEAM}"),
        ("regex", r"(a)\1", "not a regular expression of RE2"),
        ("regex", "a(", "missing"),
        ("regex", "(a{1000}){1000}", "not a regular expression"),
        ("literal", "ü" * 128, "longer than 255 bytes"),
    ],
)
def test_patterns_that_would_not_mean_what_they_seem_to(form: Form, pattern: str, words: str) -> None:
    with pytest.raises(Invalid, match=re.escape(words)) as caught:
        check_pattern(form, pattern)
    assert caught.value.path == (form,)


@pytest.mark.parametrize(
    ("form", "pattern"), [("literal", "*"), ("literal", "a{1}"), ("prefix", "#"), ("topic", "#.*")]
)
def test_patterns_that_are_fine(form: Form, pattern: str) -> None:
    check_pattern(form, pattern)


class TestVariables:
    def test_they_stand_for_themselves(self) -> None:
        assert compiled("literal", "{user}.q", user="bob").matches("bob.q")
        assert not compiled("literal", "{user}.q", user="bob").matches("bobb.q")
        assert compiled("prefix", "{vhost}/", vhost="a").matches("a/x")

    @pytest.mark.parametrize("user", ["*", "#", "a.#", "a.*", ".", "{vhost}"])
    def test_a_value_is_never_a_pattern(self, user: str) -> None:
        topic = compiled("topic", "u.{user}.#", user=user)
        assert topic.matches(f"u.{user}.x")
        assert not topic.matches("u.other.x")
        assert not topic.covers("u.*.x")
        assert not topic.covers("u.#") or user == "#"
        regex = compiled("regex", "u-{user}", user=user)
        assert regex.matches(f"u-{user}")
        assert not regex.matches("u-abc")

    def test_who_is_not_known_has_no_pattern(self) -> None:
        assert compile_pattern("literal", "{user}.q", {"user": None}) is None


class TestRegex:
    def test_it_is_about_the_whole_text(self) -> None:
        matcher = compiled("regex", "a|b.*")
        assert matcher.matches("a")
        assert matcher.matches("bcd")
        assert not matcher.matches("ab")
        assert not matcher.matches("a\n")

    def test_binding_keys_with_wildcards_are_never_known_to_lie_within(self) -> None:
        matcher = compiled("regex", "order[.].*")
        assert matcher.covers("order.a")
        assert not matcher.covers("order.*")
        assert matcher.overlaps("#")
        assert not matcher.overlaps("x.y")

    def test_catastrophes_take_no_time(self) -> None:
        assert not compiled("regex", "(a+)+$").matches("a" * 250 + "b")

    def test_bytes_that_are_no_text(self) -> None:
        assert not compiled("regex", "[a-z]+").matches(b"a\xff".decode("utf-8", "surrogateescape"))


class TestWithin:
    def test_a_deny_rule_asks_the_same_as_an_allow_rule(self) -> None:
        within, topic = compiled("within", "order.*"), compiled("topic", "order.*")
        assert within.matches("order.a")
        assert within.covers("order.a")
        assert within.overlaps("order.a")
        assert topic.overlaps("order.#")
        assert not within.overlaps("order.#")

    @pytest.mark.parametrize(
        ("pattern", "key"),
        [("*.#", "#.*"), ("#.*", "*.#"), ("#.*.#", "#.*"), ("#.a.#", "#.a.#.#"), ("a.#.b", "a.*.#.b")],
    )
    def test_inclusion_is_decided(self, pattern: str, key: str) -> None:
        assert compiled("within", pattern).covers(key)

    def test_a_hostile_pair_is_refused_in_bounded_time(self) -> None:
        assert not compiled("within", "#.a" + ".*" * 60).covers("#.a.#" + ".*" * 59 + ".#")


@pytest.mark.parametrize("form", ["literal", "topic"])
def test_what_is_no_text_is_matched_by_nothing(form: Form) -> None:
    """Bytes that are compared with a text are not equal to it; "cannot tell" would count as yes."""
    nothing: Any
    for nothing in (b"a", None, 1):
        assert not compiled(form, "a").matches(nothing)


@pytest.mark.parametrize("word", ["\0", "\ue000", "p\0", "p\ue000"])
def test_no_name_stands_for_all_others(word: str) -> None:
    """Whether a pattern covers a binding key is found out with words that it does not name."""
    for pattern in (f"{word}.#", f"{word}.{word}x.#"):
        assert not compiled("topic", pattern).covers("*.#")
        assert not compiled("topic", pattern).covers("#")
    assert not compiled("prefix", f"p.{word}").covers("p.*")
    assert not compiled("prefix", word).covers("*")

"""``${NAME}`` in scalars."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from amqpgate.yamldoc import Mapping, Scalar, compose, expand

ENVIRON = {"USER": "bob", "EMPTY": "", "TRICKY": "x: [1]\n${USER} # &a", "NUMBER": "12"}


def value(text: str) -> Scalar:
    (root,) = compose(f"k: {text}\n", "f.yaml")
    expanded = expand(root, ENVIRON)
    assert isinstance(expanded, Mapping)
    scalar = expanded.entries["k"]
    assert isinstance(scalar, Scalar)
    return scalar


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${USER}", "bob"),
        ("a-${USER}-${USER}", "a-bob-bob"),
        ("'${USER}'", "bob"),
        ("${NONE:-some default}", "some default"),
        ("${NONE:-}", ""),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY}", ""),
        ("${USER:-default}", "bob"),
        ("$${USER}", "${USER}"),
        ("pa$$word$", "pa$$word$"),
        ("$USER", "$USER"),
        ("${TRICKY}", ENVIRON["TRICKY"]),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert value(text).text == expected


@pytest.mark.parametrize("text", ["${NONE}", "${}", "${USER", "'${a b}'", "${1X}", "${USER:default}"])
def test_refused_with_its_place(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        value(text)
    assert str(caught.value).startswith("f.yaml:1:4: ")


def test_messages_show_what_was_written_not_what_was_filled_in() -> None:
    scalar = value("${USER}")
    assert scalar.shown == "${USER}"
    assert scalar.expanded


def test_an_expanded_value_is_text_even_where_it_looks_like_a_number() -> None:
    assert value("${NUMBER}").kind == "string"
    assert value("12").kind == "integer"


def test_keys_are_left_alone() -> None:
    (root,) = compose("${USER}: [a, '${USER}']\n", "f")
    expanded = expand(root, ENVIRON)
    assert isinstance(expanded, Mapping)
    assert list(expanded.entries) == ["${USER}"]

"""Values as Erlang compares and prints them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from amqpgate.broker.terms import TYPE_NAMES, comparable, printed, type_class
from amqpgate.wire.dialects import RABBITMQ_0_9_1
from amqpgate.wire.tables import Field


def test_every_type_of_rabbitmq_has_a_name() -> None:
    assert TYPE_NAMES.keys() == RABBITMQ_0_9_1.decodes.keys()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (Field("b", 1), Field("l", 1)),
        ("x", b"x"),
        (None, None),
        ([1, "a"], [1, "a"]),
        ({"a": {"b": 1}}, {"a": {"b": 1}}),
        (Decimal("1.50"), Decimal("1.50")),
    ],
)
def test_equal(one: object, other: object) -> None:
    assert comparable(Field.of(one)) == comparable(Field.of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (0, None),
        ("1", 1),
        (1, 2),
        # Inside of lists and tables the types count.
        ([1], [1.0]),
        ([Field("b", 1)], [Field("l", 1)]),
        ({"a": 1}, {"b": 1}),
        (Decimal("1.5"), Decimal("1.50")),
    ],
)
def test_not_equal(one: object, other: object) -> None:
    assert comparable(Field.of(one)) != comparable(Field.of(other))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (b"data", "data"),
        (5, "5"),
        (True, "true"),
        (False, "false"),
        (None, "undefined"),
        (1.5, "1.5"),
        (Decimal("1.25"), "{2,125}"),
        ([1, "a"], '[{signedint,1},{longstr,<<"a">>}]'),
        ({"k": False}, '[{<<"k">>,bool,false}]'),
    ],
)
def test_printed(value: object, text: str) -> None:
    assert printed(Field.of(value)) == text


def test_type_classes() -> None:
    assert {type_class(Field(tag, 0)) for tag in "bBsuIilLD"} == {"int"}
    assert {type_class(Field(tag, 0.0)) for tag in "fd"} == {"float"}
    assert type_class(Field("S", "")) == "longstr"

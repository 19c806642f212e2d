"""What one value of a field table is to a rule."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from amqpgate.policy.engine.scalars import ValueMatch, number_of, words_of
from amqpgate.yamldoc import Invalid


@pytest.mark.parametrize(
    ("value", "text", "number"),
    [
        ("5", "5", 5),
        (b"5", "5", 5),
        (5, "5", 5),
        (5.0, "5", 5.0),
        (Decimal("5.00"), "5", Decimal(5)),
        (datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), "5", 5),
        (True, "true", None),
        ("five", "five", None),
        (float("nan"), "nan", None),
        (None, None, None),
        (["5"], None, None),
    ],
)
def test_a_whole_number_is_the_same_whatever_its_type(
    value: object, text: str | None, number: object
) -> None:
    assert words_of(value) == text
    assert number_of(value) == number


def test_a_number_between_bounds() -> None:
    between = ValueMatch(min=1, max=5)
    assert [between.matches(value) for value in (0, 1, "5", 6, "x")] == [False, True, True, False, False]
    assert ValueMatch(min=1).matches(1 << 62)


def test_values_within_tables_and_arrays() -> None:
    match = ValueMatch(literal="x")
    assert not match.matches({"a": ["x"]})
    assert match.matches_within({"a": [{"b": b"x"}]})
    assert not match.matches_within({"x": ["y"]})


@pytest.mark.parametrize(
    "given", [{}, {"literal": "a", "prefix": "b"}, {"literal": "a", "min": 1}, {"min": 2, "max": 1}]
)
def test_what_means_nothing(given: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        ValueMatch(**given)  # type: ignore[arg-type]

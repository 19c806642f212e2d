"""Tables of prices: what they say, and what is wrong with them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from amqpgate.errors import ConfigError
from amqpgate.pipeline.jobs.prices import parse

TABLE = """
currency: EUR
perMillionMessages: 0.5
perGigabyte: 0.021
groups: {shop: [shop-1, "shop-*"], all: ["*"]}
"""


def test_a_table() -> None:
    prices = parse(TABLE)
    assert prices.per_million_messages == Decimal("0.5")
    assert str(prices.per_gigabyte) == "0.021"
    assert prices.per_connection_hour == 0
    assert [prices.group_of(user) for user in ("shop-1", "shop-2", "bob", None)] == [
        "shop",
        "shop",
        "all",
        None,
    ]
    assert parse("{currency: EUR, perGigabyte: 1}").group_of("bob") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "prices.yaml: a table of prices is one document"),
        ("currency: EUR", "prices.yaml:1:1: there is no price"),
        ("currency: ''\nperGigabyte: 1", "prices.yaml:1:11: must not be empty"),
        ("currency: EUR\nperGigaByte: 1", r"2:1: unknown key 'perGigaByte' \(did you mean 'perGigabyte'\?\)"),
        ("currency: EUR\nperGigabyte: -1", "2:14: expected a number"),
        ("currency: EUR\nperGigabyte: 1e3", "2:14: expected a number"),
        ("currency: EUR\nperGigabyte: '1'", "2:14: expected a number"),
        ("currency: EUR\nperGigabyte: 0.1234567890", "9 behind the point"),
        ("currency: EUR\nperGigabyte: 1\ngroups:\n  a: [x]\n  b: [y, x]", "5:10: 'x' is in a already"),
        ("currency: EUR\nperGigabyte: 1\ngroups: {a: [x*y]}", "3:14: an asterisk stands only at the end"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(text)

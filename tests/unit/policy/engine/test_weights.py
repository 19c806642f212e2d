"""Choosing by weight: shares, and who moves when one goes."""

from __future__ import annotations

from collections import Counter

from amqpgate.policy.engine.weights import by_weight

WEIGHTS = {"a": 1, "b": 2, "c": 5}
KEYS = [f"session-{number}" for number in range(4000)]


def first(key: str, *names: str) -> str:
    return by_weight(names, key, str, WEIGHTS.__getitem__)[0]


def test_each_comes_first_as_often_as_its_weight_says() -> None:
    found = Counter(first(key, "a", "b", "c") for key in KEYS)
    for name, weight in WEIGHTS.items():
        assert abs(found[name] - len(KEYS) * weight / 8) < 120


def test_the_order_of_the_items_means_nothing() -> None:
    assert [first(key, "a", "b", "c") for key in KEYS] == [first(key, "c", "a", "b") for key in KEYS]


def test_only_who_had_it_moves_when_one_goes() -> None:
    for key in KEYS:
        before = by_weight("abc", key, str, WEIGHTS.__getitem__)
        assert by_weight("ac", key, str, WEIGHTS.__getitem__) == [name for name in before if name != "b"]

"""What sessions have in common is one object, and what differs in anything is not."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.bridge import NATIVE, pair_of
from amqpgate.gateway.session.session import SessionFacts
from amqpgate.gateway.session.shared_values import LONGEST, MOST, SharedFacts, SharedValues
from amqpgate.policy import Principal

BOB = Principal("bob", "prod", "10.0.0.7", "main", client={"product": "pika"}, upstream_user="bob")
FACTS = SessionFacts(pair_of(NATIVE, NATIVE), 2047)


def test_principals_that_are_alike_are_one() -> None:
    shared = SharedFacts()
    again = attrs.evolve(BOB, client=dict(BOB.client))
    assert again is not BOB
    assert shared.principal(BOB) is BOB
    assert shared.principal(again) is BOB


@pytest.mark.parametrize(
    "other",
    [
        {"user": "eve"},
        {"user": None},
        {"vhost": "test"},
        {"source": "10.0.0.8"},
        {"listener": "other"},
        {"client": {"product": "bunny"}},
        {"client": {}},
        {"upstream_user": "guest"},
        {"upstream_user": None},
    ],
)
def test_principals_that_differ_in_anything_are_not(other: dict[str, object]) -> None:
    shared = SharedFacts()
    shared.principal(BOB)
    differs = attrs.evolve(BOB, **other)
    assert shared.principal(differs) is differs
    assert shared.principal(attrs.evolve(BOB)) is BOB


def test_who_says_much_is_kept_apart() -> None:
    shared = SharedFacts()
    for much in (attrs.evolve(BOB, client={"a": "x" * LONGEST}), attrs.evolve(BOB, user="u" * (LONGEST + 1))):
        shared.principal(much)
        again = attrs.evolve(much)
        assert shared.principal(again) is again


def test_facts_that_are_alike_are_one() -> None:
    shared = SharedFacts()
    assert shared.facts(FACTS) is FACTS
    assert shared.facts(attrs.evolve(FACTS)) is FACTS
    for other in ({"channel_max": 5}, {"hears_cancels": True}, {"keeps_deliveries": True}):
        differs = attrs.evolve(FACTS, **other)
        assert shared.facts(differs) is differs


def test_the_oldest_goes_where_there_are_too_many() -> None:
    kept: SharedValues[object] = SharedValues()
    first = kept.one(0, object())
    for key in range(1, MOST):
        kept.one(key, object())
    assert kept.one(0, object()) is first
    kept.one(MOST, object())
    assert len(kept) == MOST
    assert kept.one(0, object()) is not first

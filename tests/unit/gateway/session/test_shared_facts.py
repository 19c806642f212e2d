"""What sessions have in common is one object, and what differs in anything is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import attrs
import pytest

from amqpgate.bridge import NATIVE, interpreter_for, pair_of
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.session.registry import LONGEST_CLIENT, MOST_KINDS, SharedFacts
from amqpgate.gateway.session.session import SessionFacts
from amqpgate.policy import Choice, Principal, Route
from amqpgate.wire.dialects import STANDARD_0_8

BOB = Principal("bob", "prod", "10.0.0.7", "main", client={"product": "pika"}, upstream_user="bob")
FACTS = SessionFacts(pair_of(NATIVE, NATIVE), 2047)
CAPABILITIES = frozenset({"consumer_cancel_notify", "connection.blocked"})


def test_sessions_that_are_alike_have_one_principal_and_one_set_of_facts() -> None:
    shared = SharedFacts()
    again = attrs.evolve(BOB, client=dict(BOB.client)), attrs.evolve(FACTS)
    assert again[0] is not BOB
    assert shared.of(BOB, FACTS) == (BOB, FACTS)
    principal, facts = shared.of(*again)
    assert principal is BOB
    assert facts is FACTS


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
    shared.of(BOB, FACTS)
    differs = attrs.evolve(BOB, **other)
    assert shared.of(differs, FACTS)[0] is differs
    assert shared.of(attrs.evolve(BOB), FACTS)[0] is BOB


@pytest.mark.parametrize(
    "other",
    [
        {"channel_max": 5},
        {"hears_cancels": True},
        {"keeps_deliveries": True},
        {"is_relayed": True},
        {"hears_blocked": True},
    ],
)
def test_facts_that_differ_in_anything_are_not(other: dict[str, object]) -> None:
    shared = SharedFacts()
    shared.of(BOB, FACTS)
    differs = attrs.evolve(FACTS, **other)
    assert shared.of(BOB, differs)[1] is differs


def test_other_routes_and_versions_are_other_facts() -> None:
    shared = SharedFacts()
    route, other = cast(Route, object()), cast(Route, object())
    for facts in (
        FACTS,
        attrs.evolve(FACTS, choice=Choice("p", route, "one")),
        attrs.evolve(FACTS, choice=Choice("p", route, "two")),
        attrs.evolve(FACTS, choice=Choice("p", other, "one")),
        attrs.evolve(FACTS, interpreters=(NATIVE, interpreter_for(STANDARD_0_8))),
    ):
        assert shared.of(BOB, facts)[1] is facts
    assert shared.of(BOB, attrs.evolve(FACTS, choice=Choice("p", route, "one")))[1].choice is not None


def test_who_says_much_is_kept_apart() -> None:
    shared = SharedFacts()
    for much in (
        attrs.evolve(BOB, client={"a": "x" * LONGEST_CLIENT}),
        attrs.evolve(BOB, user="u" * (LONGEST_CLIENT + 1)),
    ):
        shared.of(much, FACTS)
        again = attrs.evolve(much)
        assert shared.of(again, FACTS)[0] is again


def test_the_oldest_goes_where_there_are_too_many() -> None:
    shared = SharedFacts()
    many = [attrs.evolve(BOB, user=f"user-{number}") for number in range(MOST_KINDS + 1)]
    for principal in many[:-1]:
        shared.of(principal, FACTS)
    assert shared.of(attrs.evolve(many[0]), FACTS)[0] is many[0]
    shared.of(many[-1], FACTS)
    assert len(shared._kinds) == MOST_KINDS
    again = attrs.evolve(many[0])
    assert shared.of(again, FACTS)[0] is again


def test_sessions_whose_interpreter_remembers_what_its_peer_said_take_nobody_elses_place() -> None:
    shared = SharedFacts()
    shared.of(BOB, FACTS)
    for _ in range(MOST_KINDS + 1):
        own = attrs.evolve(FACTS, interpreters=pair_of(interpreter_for(STANDARD_0_8), NATIVE))
        assert shared.of(BOB, own)[1] is own
    assert shared.of(attrs.evolve(BOB), attrs.evolve(FACTS))[1] is FACTS


def _opening(shared: SharedFacts, principal: Principal, **differs: object) -> tuple[Principal, SessionFacts]:
    given = {"interpreters": FACTS.interpreters, "channel_max": 2047, "capabilities": CAPABILITIES}
    defaults = {"choice": None, "cluster": "one", "keeps_deliveries": False, "is_relayed": False}
    return shared.opening(principal, cast("Established", SimpleNamespace(**{**defaults, **given, **differs})))


@pytest.mark.parametrize(
    ("differs", "name", "value"),
    [
        ({"channel_max": 5}, "channel_max", 5),
        ({"cluster": "two"}, "cluster", "two"),
        ({"keeps_deliveries": True}, "keeps_deliveries", True),
        ({"is_relayed": True}, "is_relayed", True),
        ({"capabilities": frozenset({"connection.blocked"})}, "hears_cancels", False),
        ({"interpreters": pair_of(interpreter_for(STANDARD_0_8), NATIVE)}, "is_native", False),
    ],
)
def test_sessions_that_open_alike_are_found_again_and_others_are_not(
    differs: dict[str, object], name: str, value: object
) -> None:
    shared = SharedFacts()
    first = _opening(shared, BOB)
    # The second is known to be alike, the third is found without comparing.
    assert all(_opening(shared, BOB)[1] is first[1] for _ in range(3))
    for _ in range(3):
        _, other = _opening(shared, BOB, **differs)
        assert getattr(other, name) == value != getattr(first[1], name)
    eve = attrs.evolve(BOB, user="eve")
    assert [_opening(shared, eve)[0].user for _ in range(3)] == ["eve"] * 3


def test_sessions_that_are_never_the_same_objects_take_bounded_memory() -> None:
    shared = SharedFacts()
    for _ in range(3 * MOST_KINDS):
        assert _opening(shared, attrs.evolve(BOB))[0] == BOB
    assert len(shared._again) <= MOST_KINDS

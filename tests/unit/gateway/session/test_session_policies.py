"""What policies say of one session's operations, and who is told."""

from __future__ import annotations

from typing import ClassVar

import attrs
import pytest

from amqpgate.gateway.limits.token_buckets import SessionLimits, TokenBuckets
from amqpgate.gateway.session.observer import Denial, Message, Sees, SessionObserver
from amqpgate.gateway.session.session_policies import SessionPolicies, changes_deliveries
from amqpgate.policy import Operation, Peek, SharedLimit, Verdict
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.sessions import BOB, policies_of
from tests.unit.policy.build_set import document, policies
from tests.unit.policy.transforms import NAMES, transform

PUBLISH = Operation(BOB, "basic.publish", exchange="x", routing_key="k")
SHOUT = attrs.evolve(PUBLISH, exchange="loud")
METHOD = amqp.BasicPublish(exchange="x", routing_key="k")
RULES = document(
    "effect: allow, operations: [basic.publish], exchange: x",
    "effect: deny, operations: [basic.publish], exchange: loud",
)
SHADOW = document("effect: deny, operations: [basic.publish], exchange: x", name="s").replace(
    "spec:", "spec:\n  mode: shadow"
)


@attrs.define(eq=False)
class Ear(SessionObserver):
    """Notes what it is told."""

    part = "ears"
    may_hold_up: ClassVar[bool] = True

    name: str
    told: list[tuple[str, ...]]
    what: Sees = Sees.PUBLISHES
    wants: Peek | None = None
    holds: bool = False
    fails: bool = False

    def sees(self) -> Sees:
        return self.what

    def admits(self, message: Message) -> Peek | None:
        return self.wants

    def allowed(self, operation: Operation, verdict: Verdict) -> None:
        if self.fails:
            raise ZeroDivisionError
        self.told.append((self.name, "allowed", operation.exchange or ""))

    def would_differ(self, operation: Operation, verdict: Verdict) -> None:
        self.told.append((self.name, "would be", verdict.effect))

    def denied(self, denial: Denial) -> None:
        self.told.append((self.name, "denied"))

    def rejected(self, denial: Denial) -> None:
        self.told.append((self.name, "rejected"))

    def holds_up(self, method: Method) -> bool:
        self.told.append((self.name, "asked"))
        return self.holds


class Deaf(Ear):
    """Is not asked what must wait."""

    may_hold_up: ClassVar[bool] = False


def observed(*observers: SessionObserver, texts: tuple[str, ...] = (RULES,)) -> SessionPolicies:
    it = policies_of(policies(*texts))
    it.observed_by(observers)
    return it


# -- who is told


def test_who_sees_nothing_is_told_nothing_of_messages() -> None:
    told: list[tuple[str, ...]] = []
    blind, first, second = (
        Ear("blind", told, Sees.NOTHING, Peek(always=True)),
        Ear("first", told, Sees.DELIVERIES, Peek(flags=1)),
        Ear("second", told, Sees.CONTENT, Peek(flags=2)),
    )
    it = observed(blind, first, second)
    assert (it.watchers, it.sees) == ((first, second), Sees.DELIVERIES | Sees.CONTENT)
    assert it.peek(Message(1, METHOD, PUBLISH), None) == Peek(flags=3)
    assert it.peek(Message(1, METHOD, PUBLISH), Peek(max_body=9)) == Peek(flags=3, max_body=9)
    it.observed_by((blind,))
    assert (it.watchers, it.sees) == ((), Sees.NOTHING)
    assert it.peek(Message(1, METHOD, PUBLISH), None) is None
    # What is decided, it is told.
    it.judge(PUBLISH)
    assert told == [("blind", "allowed", "x")]


def test_they_are_told_in_their_order_and_one_that_fails_keeps_no_other_from_it() -> None:
    told: list[tuple[str, ...]] = []
    it = observed(Ear("one", told), Ear("bad", told, fails=True), Ear("two", told))
    assert it.judge(PUBLISH).allowed
    assert told == [("one", "allowed", "x"), ("two", "allowed", "x")]


def test_of_a_denial_they_are_told_apart_from_what_a_limit_rejects() -> None:
    told: list[tuple[str, ...]] = []
    it = observed(Ear("one", told))
    verdict = it.judge(SHOUT)
    assert not verdict.allowed
    assert told == []
    it.denied(Denial(1, METHOD, SHOUT, verdict, "no"))
    it.denied(Denial(1, METHOD, SHOUT, verdict, "", is_limit=True))
    assert told == [("one", "denied"), ("one", "rejected")]


def test_what_closes_the_channel_names_its_method() -> None:
    it = observed()
    denial = Denial(7, METHOD, SHOUT, it.judge(SHOUT), "no")
    why = it.channel_error(denial, METHOD)
    assert (why.code, why.class_id, why.method_id, why.channel) == (403, 60, 40, 7)
    assert why.text == denial.text


@pytest.mark.parametrize("holds", [(False, False), (True, False), (False, True)])
def test_each_that_may_have_a_method_wait_is_asked(holds: tuple[bool, bool]) -> None:
    told: list[tuple[str, ...]] = []
    it = observed(
        Ear("one", told, holds=holds[0]),
        Deaf("deaf", told, holds=True),
        Ear("two", told, holds=holds[1]),
    )
    assert it.holds_up(METHOD) is any(holds)
    assert told == [("one", "asked"), ("two", "asked")]


def test_nobody_looks_on_at_a_session_that_is_over() -> None:
    told: list[tuple[str, ...]] = []
    it = observed(Ear("one", told))
    it.release()
    it.judge(PUBLISH)
    assert (told, it.observers, it.watchers, it.sampling) == ([], (), (), None)


# -- what is decided


def test_what_would_be_decided_otherwise_is_told_and_not_done() -> None:
    told: list[tuple[str, ...]] = []
    it = observed(Ear("one", told), texts=(RULES, SHADOW))
    assert it.judge(PUBLISH).allowed
    assert told == [("one", "allowed", "x"), ("one", "would be", "deny")]
    told.clear()
    # Both deny it.
    assert not it.judge(SHOUT).allowed
    assert told == []


def test_publishes_that_would_be_denied_are_judged_one_by_one_and_so_counted() -> None:
    verdict, peek, rules = observed(texts=(RULES, SHADOW)).admit(PUBLISH)
    assert verdict.allowed
    assert peek is not None
    assert peek.always
    assert rules is None
    verdict, peek, _ = observed().admit(PUBLISH)
    assert verdict.allowed
    assert peek is None or not peek.always
    told: list[tuple[str, ...]] = []
    verdict, _, _ = observed(Ear("one", told), texts=(RULES, SHADOW)).admit(SHOUT)
    assert (verdict.allowed, told) == (False, [])


# -- what makes messages upcalls


def limited(*kinds: str) -> SessionLimits:
    limit = SharedLimit("p", "l", (), tuple((kind, 1.0) for kind in kinds), 10, is_own=True)
    return TokenBuckets().take((limit,), 0.0)


@pytest.mark.parametrize(
    ("texts", "kind", "spec", "publishes", "deliveries"),
    [
        ((), None, None, False, False),
        ((RULES,), None, None, True, False),
        ((SHADOW,), None, None, True, False),
        ((), "messages", None, True, False),
        ((), "deliver_messages", None, False, True),
        ((), None, NAMES % "a.", True, True),
        ((), None, "ceilings: {maxBodyBytes: 1Ki}", True, False),
        ((), None, "arguments: [{id: r, operations: [queue.declare], add: {x: {flag: true}}}]", False, False),
    ],
)
def test_what_has_messages_looked_at(
    texts: tuple[str, ...], kind: str | None, spec: str | None, publishes: bool, deliveries: bool
) -> None:
    it = observed(texts=texts)
    if kind is not None:
        it.judge_by(it.access, limited(kind))
    if spec is not None:
        it.transform_by(transform(spec))
    assert (it.is_restricted, it.judges_deliveries or changes_deliveries(it)) == (publishes, deliveries)

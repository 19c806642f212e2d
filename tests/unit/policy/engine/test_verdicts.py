"""Who may do what."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.policy import OPERATIONS, Operation, PolicySet, Principal, Verdict
from tests.unit.policy.build_set import BOB, document, policies, rules

FREE = {name for name, kind in OPERATIONS.items() if kind.free}

ALLOW_ALL = "effect: allow, operations: ['*']"


def ask(policy_set: PolicySet, name: str, principal: Principal = BOB, **attributes: str) -> Verdict:
    return policy_set.decide(Operation(principal, name, **attributes))


def publish(
    policy_set: PolicySet, exchange: str, routing_key: str = "k", principal: Principal = BOB
) -> Verdict:
    return ask(policy_set, "basic.publish", principal, exchange=exchange, routing_key=routing_key)


class TestRules:
    def test_a_deny_wins_wherever_it_stands(self) -> None:
        allow, deny = (
            "id: a, " + ALLOW_ALL,
            "id: d, effect: deny, operations: [basic.publish], exchange: {prefix: x}",
        )
        for order in ((allow, deny), (deny, allow)):
            assert publish(rules(*order), "xy") == Verdict("deny", "p", "d", "exchange")
            assert publish(rules(*order), "y") == Verdict("allow", "p", "a")

    def test_everything_that_a_rule_names_must_fit(self) -> None:
        policy_set = rules(
            "effect: allow, operations: [basic.publish], exchange: {literal: orders}, "
            "routingKey: {topic: 'order.*'}"
        )
        assert publish(policy_set, "orders", "order.a").allowed
        assert not publish(policy_set, "orders", "order.a.b").allowed
        assert not publish(policy_set, "other", "order.a").allowed

    @pytest.mark.parametrize(
        ("operations", "meant"),
        [
            ("basic.publish", {"basic.publish"}),
            ("exchange.*", {"exchange.declare", "exchange.delete", "exchange.bind", "exchange.unbind"}),
            ("'*.bind'", {"exchange.bind", "queue.bind"}),
            ("'*'", set(OPERATIONS)),
        ],
    )
    def test_operations(self, operations: str, meant: set[str]) -> None:
        policy_set = rules(f"effect: allow, operations: [{operations}]")
        everything = {"exchange": "e", "queue": "q", "destination": "d", "routing_key": "k"}
        allowed = {name for name in OPERATIONS if ask(policy_set, name, **everything).allowed}
        assert allowed == meant | FREE

    def test_a_rule_is_only_about_operations_that_have_what_it_names(self) -> None:
        policy_set = rules("effect: allow, operations: ['*'], queue: {prefix: ''}")
        about = {
            name
            for name in OPERATIONS
            if ask(policy_set, name, queue="q", exchange="e", routing_key="k").allowed
        }
        assert about - FREE == {name for name, kind in OPERATIONS.items() if "queue" in kind.attributes}

    def test_publishing_to_the_default_exchange_needs_its_own_rule(self) -> None:
        queues = "effect: allow, operations: ['*'], queue: {prefix: ''}"
        assert not publish(rules(queues), "", "payroll").allowed
        default = (
            "effect: allow, operations: [basic.publish], exchange: {literal: ''}, routingKey: {prefix: mine.}"
        )
        assert publish(rules(default), "", "mine.q").allowed
        assert not publish(rules(default), "", "payroll").allowed
        assert not publish(rules(default), "x", "mine.q").allowed

    def test_unknown_operations_are_denied_to_the_selected(self) -> None:
        assert ask(rules(ALLOW_ALL), "basic.frobnicate") == Verdict("deny", None, "default")

    def test_a_value_that_is_missing_fails_closed(self) -> None:
        name = "exchange: {literal: x}"
        assert not ask(rules(f"effect: allow, operations: [basic.publish], {name}"), "basic.publish").allowed
        both = rules(ALLOW_ALL, f"effect: deny, operations: [basic.publish], {name}")
        assert not ask(both, "basic.publish").allowed

    def test_server_named_queues(self) -> None:
        policy_set = rules("effect: allow, operations: ['queue.*', basic.consume], queue: {prefix: amq.gen-}")
        assert ask(policy_set, "queue.declare", queue="").allowed
        assert ask(policy_set, "basic.consume", queue="amq.gen-x1").allowed
        assert not ask(policy_set, "basic.consume", queue="").allowed
        assert not ask(
            rules("effect: allow, operations: ['*'], queue: {prefix: mine.}"), "queue.declare", queue=""
        ).allowed

    @pytest.mark.parametrize("name", ["pay\nroll", "pay\rroll", "\n"])
    def test_names_that_rabbitmq_would_change_are_denied(self, name: str) -> None:
        policy_set = rules(ALLOW_ALL, "effect: deny, operations: [queue.delete], queue: {literal: payroll}")
        assert ask(policy_set, "queue.delete", queue=name) == Verdict("deny", None, "default", "queue")
        assert ask(policy_set, "exchange.delete", exchange=name).attribute == "exchange"
        assert not ask(policy_set, "exchange.bind", exchange="a", destination=name, routing_key="").allowed
        assert publish(policy_set, "x", name).allowed


class TestBindings:
    def bind(self, rule: str, routing_key: str) -> bool:
        policy_set = rules(
            "effect: allow, operations: [queue.bind]" if "deny" in rule else rule, "id: x, " + rule
        )
        return ask(policy_set, "queue.bind", queue="q", exchange="e", routing_key=routing_key).allowed

    def test_an_allowed_binding_catches_no_more_than_the_rule_means(self) -> None:
        rule = "effect: allow, operations: [queue.bind], routingKey: {topic: order.*}"
        assert self.bind(rule, "order.a")
        assert self.bind(rule, "order.*")
        assert not self.bind(rule, "order.#")
        assert not self.bind(rule, "#")

    def test_a_denied_key_is_denied_to_all_bindings_that_would_catch_it(self) -> None:
        rule = "effect: deny, operations: [queue.bind], routingKey: {topic: order.*.secret}"
        assert self.bind(rule, "order.a")
        assert not self.bind(rule, "order.a.secret")
        assert not self.bind(rule, "order.#")
        assert not self.bind(rule, "*.*.*")

    def test_a_publish_with_the_same_text_is_just_a_key(self) -> None:
        policy_set = rules(ALLOW_ALL, "effect: deny, operations: ['*'], routingKey: {topic: order.*.secret}")
        assert publish(policy_set, "x", "order.#").allowed
        assert not publish(policy_set, "x", "order.a.secret").allowed

    def exchange_bind(self, policy_set: PolicySet, source: str, destination: str) -> bool:
        return ask(
            policy_set, "exchange.bind", exchange=source, destination=destination, routing_key="k"
        ).allowed

    def test_exchange_alone_means_both_exchanges(self) -> None:
        allow = rules("effect: allow, operations: ['exchange.*'], exchange: {prefix: mine.}")
        assert self.exchange_bind(allow, "mine.a", "mine.b")
        assert not self.exchange_bind(allow, "mine.a", "orders")
        assert not self.exchange_bind(allow, "orders", "mine.a")
        deny = rules(ALLOW_ALL, "effect: deny, operations: ['exchange.*'], exchange: {literal: payroll}")
        assert not self.exchange_bind(deny, "payroll", "x")
        assert not self.exchange_bind(deny, "x", "payroll")
        assert self.exchange_bind(deny, "x", "y")

    def test_destination_takes_over_the_second_one(self) -> None:
        allow = rules(
            "effect: allow, operations: [exchange.bind], exchange: {literal: orders}, "
            "destination: {prefix: mine.}"
        )
        assert self.exchange_bind(allow, "orders", "mine.a")
        assert not self.exchange_bind(allow, "mine.a", "mine.b")
        assert not self.exchange_bind(allow, "orders", "orders")


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("queue", "exchange", "key", "attribute"),
        [
            ("no", "no", "no", "queue"),
            ("q", "no", "no", "exchange"),
            ("q", "e", "no", "routing_key"),
            ("q", "e", "k", None),
        ],
    )
    def test_the_first_that_no_rule_allows(
        self, queue: str, exchange: str, key: str, attribute: str | None
    ) -> None:
        policy_set = rules(
            "effect: allow, operations: [queue.bind], queue: {literal: q}, exchange: {literal: e}, "
            "routingKey: {literal: k}",
            "effect: allow, operations: [queue.bind], queue: {literal: other}, routingKey: {literal: 'no'}",
        )
        verdict = ask(policy_set, "queue.bind", queue=queue, exchange=exchange, routing_key=key)
        assert verdict.attribute == attribute

    @pytest.mark.parametrize(
        ("names", "attribute"),
        [
            ("", "queue"),
            (", queue: {literal: q}", "queue"),
            (", exchange: {literal: e}", "exchange"),
            (", routingKey: {literal: k}, queue: {literal: q}", "routing_key"),
        ],
    )
    def test_what_a_deny_rule_is_about(self, names: str, attribute: str) -> None:
        policy_set = rules(ALLOW_ALL, "effect: deny, operations: [queue.bind]" + names)
        verdict = ask(policy_set, "queue.bind", queue="q", exchange="e", routing_key="k")
        assert verdict == Verdict("deny", "p", "r1", attribute)  # type: ignore[arg-type]


EFFECTS = st.sampled_from(["allow", "deny"])
PATTERNS = st.sampled_from(["{literal: a}", "{prefix: a}", "{topic: 'a.#'}", "{literal: ''}", "{prefix: ''}"])
RULES = st.lists(
    st.builds(
        lambda effect, operation, exchange, key: (
            f"effect: {effect}, operations: ['{operation}']"
            + (f", exchange: {exchange}" if exchange else "")
            + (f", routingKey: {key}" if key else "")
        ),
        EFFECTS,
        st.sampled_from(["*", "basic.publish", "exchange.bind", "*.bind"]),
        st.none() | PATTERNS,
        st.none() | PATTERNS,
    ),
    max_size=6,
)


@given(RULES, st.sampled_from(["", "a", "a.b", "b"]), st.sampled_from(["", "a", "a.b", "#"]), st.randoms())
def test_order_means_nothing_and_denies_win(
    some: list[str], exchange: str, key: str, shuffler: random.Random
) -> None:
    named = [f"id: n{index}, {rule}" for index, rule in enumerate(some)]
    shuffled = list(named)
    shuffler.shuffle(shuffled)
    for name in ("basic.publish", "exchange.bind"):
        operation = Operation(BOB, name, exchange=exchange, destination="a", routing_key=key)
        verdict = rules(*named).decide(operation)
        assert rules(*shuffled).decide(operation).effect == verdict.effect
        alone = [rules(rule).decide(operation) for rule in named]
        deny = [rule for rule in named if "effect: deny" in rule]
        denied = [rules("id: all, " + ALLOW_ALL, rule).decide(operation).effect == "deny" for rule in deny]
        assert verdict.allowed is (any(one.allowed for one in alone) and not any(denied))


class TestExceptions:
    def test_a_pattern_may_have_an_exception(self) -> None:
        policy_set = rules(
            "effect: allow, operations: [queue.delete], queue: {prefix: a, unless: {regex: '.*x'}}"
        )
        assert ask(policy_set, "queue.delete", queue="ab").allowed
        assert not ask(policy_set, "queue.delete", queue="abx").allowed
        assert not ask(policy_set, "queue.delete", queue="b").allowed

    @pytest.mark.parametrize(
        ("effect", "key", "matches"),
        [
            ("allow", "a.b", True),
            ("allow", "a.*", False),  # may catch a.secret
            ("allow", "a.b.*", True),
            ("deny", "a.secret", False),
            ("deny", "a.*", True),  # may catch a.b
            ("deny", "b.#", False),
        ],
    )
    def test_of_a_binding_the_exception_counts_with_all_that_it_can_catch(
        self, effect: str, key: str, matches: bool
    ) -> None:
        rule = (
            f"id: it, effect: {effect}, operations: [queue.bind], "
            "routingKey: {topic: 'a.#', unless: a.secret}"
        )
        others = () if effect == "allow" else (ALLOW_ALL,)
        verdict = ask(rules(rule, *others), "queue.bind", queue="q", exchange="x", routing_key=key)
        assert (verdict.rule == "it") is matches

    def test_an_exception_with_a_variable_that_is_not_known_allows_nothing(self) -> None:
        nobody = Principal(None, "prod")
        policy = document(
            "effect: allow, operations: [queue.delete], queue: {prefix: a, unless: '{user}'}",
            subjects="{user: '*'}",
        )
        assert not ask(policies(policy), "queue.delete", nobody, queue="ab").allowed

    def test_search_looks_anywhere_and_at_a_binding_key_as_it_is_written(self) -> None:
        policy_set = rules(
            "effect: allow, operations: [queue.bind], routingKey: {search: '^a'}",
            "effect: allow, operations: [queue.delete], queue: {search: b}",
        )
        assert ask(policy_set, "queue.delete", queue="abc").allowed
        assert not ask(policy_set, "queue.delete", queue="ac").allowed
        assert ask(policy_set, "queue.bind", queue="q", exchange="x", routing_key="a.#").allowed
        assert not ask(policy_set, "queue.bind", queue="q", exchange="x", routing_key="#").allowed


@pytest.mark.parametrize(("said", "passive", "plain"), [("true", True, False), ("false", False, True)])
def test_a_rule_may_be_about_passive_declares_or_about_the_others(
    said: str, passive: bool, plain: bool
) -> None:
    policy_set = rules(f"effect: allow, operations: [queue.declare], passive: {said}")
    asked = Operation(BOB, "queue.declare", queue="q", passive=True)
    assert policy_set.decide(asked).allowed is passive
    assert ask(policy_set, "queue.declare", queue="q").allowed is plain


def test_what_is_refused_is_told_apart_by_passive() -> None:
    policy_set = rules(
        "effect: allow, operations: [exchange.declare], passive: true",
        "effect: allow, operations: [exchange.declare], exchange: a",
    )
    assert ask(policy_set, "exchange.declare", exchange="b").attribute == "exchange"

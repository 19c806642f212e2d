"""Arguments and content headers."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.policy import MessageContent, Operation, Peek, PolicySet, Principal, Verdict
from amqpgate.policy.engine.conditions import ALWAYS_PEEKED
from amqpgate.policy.engine.operations import PROPERTY_FLAGS
from amqpgate.policy.engine.verdicts import MOST_ADMITTED
from tests.unit.policy.build_set import BOB, document, policies, rules

ALLOW_ALL = "effect: allow, operations: ['*']"


def declare(policy_set: PolicySet, **arguments: object) -> bool:
    names = {key.replace("_", "-"): value for key, value in arguments.items()}
    return policy_set.decide(Operation(BOB, "queue.declare", queue="q", arguments=names)).allowed


class TestArguments:
    @pytest.mark.parametrize(
        ("condition", "yes", "no"),
        [
            ("deny: [x-expires]", {}, {"x_expires": 1}),
            ("deny: ['x-*']", {"other": 1}, {"x_expires": 1}),
            ("allow: [x-expires]", {"x_expires": 1}, {"x_expires": 1, "x_max_length": 2}),
            ("require: [x-queue-type]", {"x_queue_type": "classic"}, {}),
            ("values: {x-queue-type: quorum}", {"x_queue_type": "quorum"}, {"x_queue_type": "classic"}),
            ("values: {x-queue-type: quorum}", {}, {"x_queue_type": 1}),
            ("values: {x-max-length: {max: 100}}", {"x_max_length": 100}, {"x_max_length": 101}),
            ("values: {x-max-length: {min: 1, max: 9}}", {"x_max_length": "5"}, {"x_max_length": "50"}),
            ("values: {x-max-length: {min: 1, max: 9}}", {"x_max_length": 5}, {"x_max_length": [5]}),
            ("values: {x-max-length: {max: 1}}", {"x_max_length": 0}, {"x_max_length": True}),
            ("values: {x-mode: {regex: 'a|b'}}", {"x_mode": "a"}, {"x_mode": "ab"}),
        ],
    )
    def test_in_an_allow_rule(self, condition: str, yes: dict[str, object], no: dict[str, object]) -> None:
        policy_set = rules(f"effect: allow, operations: [queue.declare], arguments: {{{condition}}}")
        assert declare(policy_set, **yes)
        assert not declare(policy_set, **no)

    @pytest.mark.parametrize(
        ("condition", "denied", "not_denied"),
        [
            ("require: [x-expires]", {"x_expires": 1}, {}),
            ("values: {x-queue-type: classic}", {"x_queue_type": "classic"}, {}),
            ("values: {x-queue-type: classic}", {"x_queue_type": "classic"}, {"x_queue_type": "quorum"}),
            ("values: {x-max-length: {min: 10}}", {"x_max_length": 10}, {"x_max_length": 9}),
        ],
    )
    def test_in_a_deny_rule(
        self, condition: str, denied: dict[str, object], not_denied: dict[str, object]
    ) -> None:
        policy_set = rules(
            ALLOW_ALL, f"effect: deny, operations: [queue.declare], arguments: {{{condition}}}"
        )
        assert not declare(policy_set, **denied)
        assert declare(policy_set, **not_denied)

    def test_operations_without_arguments_have_none(self) -> None:
        policy_set = rules(
            "effect: allow, operations: ['queue.*', basic.get], arguments: {deny: [x-expires]}",
            "effect: deny, operations: ['*'], queue: {prefix: ''}, arguments: {require: [x-expires]}",
        )
        assert policy_set.decide(Operation(BOB, "basic.get", queue="q")).allowed
        assert policy_set.decide(Operation(BOB, "queue.purge", queue="q")).allowed


class TestWhereDeclaresLead:
    QUEUES = "effect: allow, operations: [queue.declare], queue: {prefix: ''}"
    MINE = "effect: allow, operations: [basic.publish], exchange: {literal: mine}, routingKey: {topic: 'a.#'}"

    @pytest.mark.parametrize(
        ("arguments", "allowed"),
        [
            ({"x-dead-letter-exchange": "mine", "x-dead-letter-routing-key": "a.b"}, True),
            ({"x-dead-letter-exchange": "mine", "x-dead-letter-routing-key": "b"}, False),
            ({"x-dead-letter-exchange": "theirs", "x-dead-letter-routing-key": "a.b"}, False),
            # Messages keep their own routing key, which may be any.
            ({"x-dead-letter-exchange": "mine"}, False),
            ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "payroll"}, False),
            ({}, True),
        ],
    )
    def test_dead_letters(self, arguments: dict[str, object], allowed: bool) -> None:
        policy_set = rules(self.QUEUES, self.MINE)
        verdict = policy_set.decide(Operation(BOB, "queue.declare", queue="q", arguments=arguments))
        assert verdict.allowed is allowed
        if not allowed:
            assert verdict.about is not None
            assert (verdict.about.name, verdict.about.exchange) == (
                "basic.publish",
                arguments["x-dead-letter-exchange"],
            )

    def test_alternate_exchanges(self) -> None:
        exchanges = "effect: allow, operations: [exchange.declare], exchange: {prefix: ''}"
        anything = "effect: allow, operations: [basic.publish], exchange: {literal: open}"
        policy_set = rules(exchanges, self.MINE, anything)
        for name, allowed in (("open", True), ("mine", False), ("theirs", False)):
            operation = Operation(
                BOB, "exchange.declare", exchange="e", arguments={"alternate-exchange": name}
            )
            assert policy_set.decide(operation).allowed is allowed

    def test_a_deny_rule_for_some_keys_denies_what_may_have_any(self) -> None:
        deny = "effect: deny, operations: [basic.publish], routingKey: {topic: 'secret.#'}"
        policy_set = rules(ALLOW_ALL, deny)
        operation = Operation(BOB, "queue.declare", queue="q", arguments={"x-dead-letter-exchange": "x"})
        assert not policy_set.decide(operation).allowed


class TestWhatIsStillToCome:
    """Dead letters and what an exchange cannot route: nobody knows what is in them."""

    QUEUES = "effect: allow, operations: [queue.declare, exchange.declare]"
    SMALL = "effect: allow, operations: [basic.publish], exchange: mine, properties: {maxBodyBytes: 1Ki}"
    PLAIN = "effect: allow, operations: [basic.publish], exchange: mine, properties: {headers: {deny: [h]}}"

    @staticmethod
    def lead(policy_set: PolicySet, exchange: str = "mine") -> list[Verdict]:
        principal = BOB
        queue = Operation(
            principal, "queue.declare", queue="q", arguments={"x-dead-letter-exchange": exchange}
        )
        other = Operation(
            principal, "exchange.declare", exchange="e", arguments={"alternate-exchange": exchange}
        )
        return [policy_set.decide(one) for one in (queue, other)]

    @pytest.mark.parametrize("rule", [SMALL, PLAIN])
    def test_a_rule_with_conditions_on_messages_allows_some(self, rule: str) -> None:
        policy_set = rules(self.QUEUES, rule)
        assert all(verdict.allowed for verdict in self.lead(policy_set))
        for verdict in self.lead(policy_set, "theirs"):
            assert not verdict.allowed
            assert verdict.about is not None
            assert (verdict.about.exchange, verdict.attribute) == ("theirs", "exchange")

    @pytest.mark.parametrize("condition", ["headers: {require: [h]}", "deliveryMode: 2", "replyTo: q"])
    def test_a_denial_of_some_messages_to_an_exchange_holds(self, condition: str) -> None:
        """Or they would get there by way of a queue."""
        deny = f"effect: deny, operations: [basic.publish], exchange: mine, properties: {{{condition}}}"
        policy_set = rules(ALLOW_ALL, deny)
        assert [verdict.name for verdict in self.lead(policy_set)] == ["p/r1", "p/r1"]
        assert all(verdict.allowed for verdict in self.lead(policy_set, "theirs"))

    def test_a_denial_of_some_messages_to_anywhere_has_met_them_already(self) -> None:
        deny = "effect: deny, operations: [basic.publish], properties: {headers: {require: [h]}}"
        assert all(verdict.allowed for verdict in self.lead(rules(ALLOW_ALL, deny)))

    def test_a_publish_of_which_only_the_method_is_known_is_judged_as_before(self) -> None:
        assert (
            not rules(self.SMALL)
            .decide(Operation(BOB, "basic.publish", exchange="mine", routing_key="k"))
            .allowed
        )


def publish(policy_set: PolicySet, key: str = "k", principal: Principal = BOB, **content: object) -> Verdict:
    return policy_set.decide(
        Operation(
            principal,
            "basic.publish",
            exchange="x",
            routing_key=key,
            content=MessageContent(**content),  # type: ignore[arg-type]
        )
    )


class TestContent:
    @pytest.mark.parametrize(
        ("condition", "yes", "no"),
        [
            ("maxBodyBytes: 1Ki", {"body_size": 1024}, {"body_size": 1025}),
            ("deliveryMode: 2", {"properties": {"delivery_mode": 2}}, {"properties": {"delivery_mode": 1}}),
            ("deliveryMode: 2", {"properties": {"delivery_mode": 2}}, {}),
            ("deliveryMode: 1", {}, {"properties": {"delivery_mode": 2}}),
            (
                "replyTo: {prefix: mine.}",
                {"properties": {"reply_to": "mine.q"}},
                {"properties": {"reply_to": "q"}},
            ),
            ("replyTo: {prefix: mine.}", {}, {"properties": {"reply_to": "q"}}),
            ("userId: '{user}'", {"properties": {"user_id": "bob"}}, {"properties": {"user_id": "al"}}),
            ("require: [messageId]", {"properties": {"message_id": "1"}}, {}),
            ("headers: {deny: [CC, BCC]}", {"headers": {"x": 1}}, {"headers": {"CC": []}}),
            ("headers: {values: {x: {max: 5}}}", {"headers": {"x": 5}}, {"headers": {"x": 6}}),
            ("headers: {require: [x]}", {"headers": {"x": None}}, {"headers": {"y": 1}}),
        ],
    )
    def test_in_an_allow_rule(self, condition: str, yes: dict[str, object], no: dict[str, object]) -> None:
        policy_set = rules(f"effect: allow, operations: [basic.publish], properties: {{{condition}}}")
        assert publish(policy_set, **yes).allowed
        assert not publish(policy_set, **no).allowed

    @pytest.mark.parametrize(
        ("condition", "denied", "not_denied"),
        [
            ("replyTo: {literal: payroll}", {"properties": {"reply_to": "payroll"}}, {}),
            ("headers: {require: [trace]}", {"headers": {"trace": 1}}, {"headers": {"x": 1}}),
            ("deliveryMode: 2", {"properties": {"delivery_mode": 2}}, {}),
            ("require: [expiration]", {"properties": {"expiration": "1"}}, {}),
            ("userId: '{user}'", {"properties": {"user_id": "bob"}}, {"properties": {"user_id": "al"}}),
        ],
    )
    def test_in_a_deny_rule(
        self, condition: str, denied: dict[str, object], not_denied: dict[str, object]
    ) -> None:
        policy_set = rules(
            ALLOW_ALL, f"effect: deny, operations: [basic.publish], properties: {{{condition}}}"
        )
        assert not publish(policy_set, **denied).allowed
        assert publish(policy_set, **not_denied).allowed

    def test_a_variable_that_is_not_known_allows_nothing(self) -> None:
        rule = "effect: allow, operations: [basic.publish], properties: {userId: '{user}'}"
        policy_set = policies(document(rule, subjects="{}"))
        unknown = Principal(None, "prod")
        assert not publish(policy_set, principal=unknown, properties={"user_id": ""}).allowed
        assert publish(policy_set, principal=unknown).allowed

    @pytest.mark.parametrize("name", ["CC", "BCC"])
    def test_more_routing_keys_are_judged_like_the_first(self, name: str) -> None:
        policy_set = rules("effect: allow, operations: [basic.publish], routingKey: {prefix: a}")
        assert publish(policy_set, "a", headers={name: ["ab", "ac"]}).allowed
        refused = publish(policy_set, "a", headers={name: ["ab", "b"]})
        assert not refused.allowed
        assert refused.about is not None
        assert refused.about.routing_key == "b"


class TestLookingAhead:
    """What `admit` says of a publish of which only the method has come."""

    METHOD = Operation(BOB, "basic.publish", exchange="x", routing_key="k")

    @pytest.mark.parametrize(
        ("condition", "peek"),
        [
            ("deliveryMode: 2", Peek(always=True)),
            ("replyTo: {prefix: m}", Peek(flags=PROPERTY_FLAGS["reply_to"])),
            ("require: [expiration]", Peek(flags=PROPERTY_FLAGS["expiration"])),
            ("headers: {require: [h]}", Peek(headers=frozenset({"h"}))),
            ("headers: {values: {h: v}}", Peek(headers=frozenset({"h"}))),
        ],
    )
    @pytest.mark.parametrize("allow", [ALLOW_ALL, ALLOW_ALL + ", properties: {maxBodyBytes: 10}"])
    def test_a_message_that_a_deny_rule_may_mean_is_looked_at(
        self, condition: str, peek: Peek, allow: str
    ) -> None:
        allow = allow.replace("'*'", "basic.publish")
        deny = f"effect: deny, operations: [basic.publish], properties: {{{condition}}}"
        admission = rules(allow, deny).for_principal(BOB).admit(self.METHOD)
        assert admission.verdict.allowed
        limit = Peek(max_body=10) if "maxBodyBytes" in allow else Peek()
        assert admission.peek == ALWAYS_PEEKED | limit | peek

    def test_an_answer_is_kept_for_its_names_and_no_others(self) -> None:
        deny = "effect: deny, operations: [basic.publish], routingKey: secret"
        session = rules(ALLOW_ALL, deny).for_principal(BOB)
        first = session.admit(self.METHOD)
        assert session.admit(attrs.evolve(self.METHOD)) is first
        assert not session.admit(attrs.evolve(self.METHOD, routing_key="secret")).verdict.allowed
        # What is judged as any key is not the publish with the key that stands for it.
        hash_key = attrs.evolve(self.METHOD, routing_key="#")
        assert session.admit(hash_key).verdict.allowed
        assert not session.admit(attrs.evolve(hash_key, any_key=True)).verdict.allowed
        assert session.admit(self.METHOD) is first
        for number in range(3 * MOST_ADMITTED):
            session.admit(attrs.evolve(self.METHOD, routing_key=str(number)))
            assert len(session._admitted) <= MOST_ADMITTED
        assert session.admit(self.METHOD) == first

    def test_a_deny_rule_about_others_is_not_looked_for(self) -> None:
        deny = "effect: deny, operations: [basic.publish], exchange: y, properties: {deliveryMode: 2}"
        admission = rules(ALLOW_ALL, deny).for_principal(BOB).admit(self.METHOD)
        assert admission.peek == ALWAYS_PEEKED

    def test_a_delivery_mode_of_0_is_seen(self) -> None:
        peek = Peek(mode_0=True)
        assert peek.catches(MessageContent(properties={"delivery_mode": 0}))
        assert not peek.catches(MessageContent(properties={"delivery_mode": 1}))


CONDITIONS = st.sampled_from(
    [
        "maxBodyBytes: 10",
        "deliveryMode: 2",
        "replyTo: {prefix: m}",
        "headers: {deny: [h]}",
        "headers: {deny: ['h*']}",
        "headers: {allow: [h]}",
        "headers: {values: {h: 'v'}}",
        "headers: {require: [h]}",
        "require: [replyTo]",
    ]
)
DENIABLE = st.sampled_from(
    [
        "deliveryMode: 2",
        "replyTo: {prefix: m}",
        "headers: {values: {h: 'v'}}",
        "headers: {require: [h]}",
        "require: [replyTo]",
    ]
)
CONTENT = st.builds(
    MessageContent,
    body_size=st.sampled_from([0, 10, 11]),
    properties=st.dictionaries(st.just("reply_to"), st.sampled_from(["m", "x"]))
    | st.just({"delivery_mode": 2}),
    headers=st.dictionaries(
        st.sampled_from(["h", "hh", "CC"]), st.sampled_from(["v", "w"]) | st.just(["k2"]), max_size=2
    ),
)


@given(
    st.lists(CONDITIONS | st.none(), max_size=3),
    st.lists(DENIABLE | st.none(), max_size=2),
    CONTENT,
)
def test_what_is_not_peeked_at_would_have_been_decided_the_same(
    allow: list[str | None], deny: list[str | None], content: MessageContent
) -> None:
    """What the data path lets pass on its own is what the engine allows, whatever is in the header."""

    def rule(effect: str, condition: str | None) -> str:
        extra = f", properties: {{{condition}}}" if condition else ""
        return f"effect: {effect}, operations: [basic.publish]{extra}"

    policy_set = rules(*(rule("allow", one) for one in allow), *(rule("deny", one) for one in deny))
    session = policy_set.for_principal(BOB)
    operation = Operation(BOB, "basic.publish", exchange="x", routing_key="k")
    admission = session.admit(operation)
    whole = Operation(BOB, "basic.publish", exchange="x", routing_key="k", content=content)
    if not admission.verdict.allowed:
        assert not session.decide(whole).allowed
        return
    assert admission.peek is not None
    if not admission.peek.catches(content):
        assert session.decide(whole).allowed

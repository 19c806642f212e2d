"""Values of every type that a peer can send: none walks past a rule."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from amqpgate.policy import Entries, MessageContent, Operation, PolicySet, Verdict
from tests.unit.policy.build_set import BOB, rules

ALLOW_ALL = "effect: allow, operations: ['*']"
PUBLIC = "effect: allow, operations: [basic.publish], routingKey: {topic: 'public.#'}"
NO_SECRETS = "effect: deny, operations: [basic.publish], routingKey: {topic: 'secret.#'}"


def publish(
    policy_set: PolicySet, headers: dict[str, object] | None = None, key: str = "public.a"
) -> Verdict:
    return policy_set.decide(
        Operation(
            BOB, "basic.publish", exchange="x", routing_key=key, content=MessageContent(headers=headers or {})
        )
    )


class TestMoreRoutingKeys:
    @pytest.mark.parametrize("name", ["CC", "BCC"])
    @pytest.mark.parametrize("key", [b"secret.\xff", b"secret.a", "secret.\udcff", "secret.a"])
    @pytest.mark.parametrize("policy", [[PUBLIC], [ALLOW_ALL, NO_SECRETS]])
    def test_bytes_are_judged(self, name: str, key: object, policy: list[str]) -> None:
        verdict = publish(rules(*policy), {name: ["public.b", key]})
        assert not verdict.allowed
        assert verdict.about is not None
        assert verdict.about.routing_key == (
            key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else key
        )

    def test_bytes_that_a_rule_allows_pass(self) -> None:
        assert publish(rules(PUBLIC), {"CC": [b"public.\xff"]}).allowed

    @pytest.mark.parametrize(
        "value", ["secret.a", b"secret.a", 7, None, {"a": "secret.a"}, [], [7, None, ["secret.a"]]]
    )
    def test_what_is_no_key_to_a_broker_is_left_to_it(self, value: object) -> None:
        assert publish(rules(PUBLIC), {"CC": value}).allowed

    def test_each_of_several_headers_is_judged(self) -> None:
        headers = Entries([("CC", ["public.a"]), ("x", 1), ("CC", 1), ("CC", ["secret.a"])])
        assert not publish(rules(PUBLIC), headers).allowed
        assert publish(rules(PUBLIC), Entries([("CC", ["public.a"]), ("CC", ["public.b"])])).allowed


class TestWhereDeclaresLead:
    QUEUES = "effect: allow, operations: [queue.declare, exchange.declare]"
    MINE = "effect: allow, operations: [basic.publish], exchange: mine, routingKey: {topic: 'a.#'}"

    @pytest.mark.parametrize(
        "arguments",
        [
            {"x-dead-letter-exchange": b"theirs", "x-dead-letter-routing-key": "a"},
            {"x-dead-letter-exchange": b"mine\xff", "x-dead-letter-routing-key": "a"},
            {"x-dead-letter-exchange": "mine", "x-dead-letter-routing-key": b"b.\xff"},
            Entries(
                [
                    ("x-dead-letter-exchange", "mine"),
                    ("x-dead-letter-exchange", "theirs"),
                    ("x-dead-letter-routing-key", "a"),
                ]
            ),
            Entries(
                [
                    ("x-dead-letter-exchange", "mine"),
                    ("x-dead-letter-routing-key", "a"),
                    ("x-dead-letter-routing-key", "b"),
                ]
            ),
            Entries(
                [("x-dead-letter-routing-key", "a")]
                + [("x-dead-letter-exchange", f"other-{number}") for number in range(1000)]
            ),
        ],
    )
    def test_dead_letters(self, arguments: dict[str, object]) -> None:
        policy_set = rules(self.QUEUES, self.MINE)
        assert not policy_set.decide(Operation(BOB, "queue.declare", queue="q", arguments=arguments)).allowed

    def test_dead_letters_that_a_rule_allows(self) -> None:
        policy_set = rules(self.QUEUES, self.MINE)
        arguments = {"x-dead-letter-exchange": b"mine", "x-dead-letter-routing-key": b"a.\xff"}
        assert policy_set.decide(Operation(BOB, "queue.declare", queue="q", arguments=arguments)).allowed

    def test_alternate_exchanges(self) -> None:
        policy_set = rules(self.QUEUES, self.MINE)
        arguments = {"alternate-exchange": b"theirs\xff"}
        assert not policy_set.decide(
            Operation(BOB, "exchange.declare", exchange="e", arguments=arguments)
        ).allowed


NUMBERS = [
    7,
    7.0,
    7.5,
    Decimal("7.25"),
    datetime.fromtimestamp(7, UTC),
    "7",
    "7.0",
    " 7 ",
    "+7",
    "7e0",
    b"7",
    float("inf"),
    "1e999999999999999999999",
]


class TestValues:
    @pytest.mark.parametrize("value", NUMBERS)
    def test_a_number_is_one_whatever_its_type(self, value: object) -> None:
        deny = "effect: deny, operations: [basic.publish], properties: {headers: {values: {n: {min: 7}}}}"
        assert not publish(rules(ALLOW_ALL, deny), {"n": value}).allowed
        assert not publish(rules(ALLOW_ALL, deny), {"n": ["x", {"m": [value]}]}).allowed
        above = "effect: deny, operations: [basic.publish], properties: {headers: {values: {n: {max: 6}}}}"
        assert publish(rules(ALLOW_ALL, above), {"n": value}).allowed
        allow = "effect: allow, operations: [basic.publish], properties: {headers: {values: {n: {max: 6}}}}"
        assert not publish(rules(allow), {"n": value}).allowed

    @pytest.mark.parametrize(
        "value", ["x", "", "nan", "sNaN", float("nan"), b"\xff", "\udcff", True, None, {}, [], "0x7", "7,0"]
    )
    def test_what_is_no_number_is_neither_denied_nor_allowed(self, value: object) -> None:
        bounds = "properties: {headers: {values: {n: {min: -100, max: 100}}}}"
        assert publish(
            rules(ALLOW_ALL, f"effect: deny, operations: [basic.publish], {bounds}"), {"n": value}
        ).allowed
        assert not publish(
            rules(f"effect: allow, operations: [basic.publish], {bounds}"), {"n": value}
        ).allowed

    @pytest.mark.parametrize(
        ("said", "value"),
        [
            ("s", "s"),
            ("s", b"s"),
            ("'7'", 7),
            ("'7'", 7.0),
            ("'7'", Decimal("7.00")),
            ("'7'", datetime.fromtimestamp(7, UTC)),
            ("'7.5'", 7.5),
            ("'7.5'", Decimal("7.50")),
            ("'0'", Decimal("0.00")),
            ("'70'", Decimal(70)),
            ("'true'", True),
            ("{regex: 's.*'}", "s\n"),
            ("{regex: 's.*'}", b"s\xff"),
            ("{prefix: s}", b"s\xff"),
        ],
    )
    def test_a_text_is_one_whatever_its_type(self, said: str, value: object) -> None:
        condition = f"operations: [basic.publish], properties: {{headers: {{values: {{n: {said}}}}}}}"
        policy_set = rules(ALLOW_ALL, f"effect: deny, {condition}")
        for hidden in (value, [value], ["x", [value]], {"a": value}, [{"a": [value]}]):
            assert not publish(policy_set, {"n": hidden}).allowed
        assert publish(policy_set, {"n": ["x"], "m": value}).allowed
        assert publish(rules(f"effect: allow, {condition}"), {"n": value}).allowed
        # An allow rule about a text does not mean a list of texts.
        assert not publish(rules(f"effect: allow, {condition}"), {"n": [value]}).allowed

    @pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good")])
    def test_each_of_several_headers_is_judged(self, order: tuple[str, str]) -> None:
        headers = Entries(("n", value) for value in order)
        said = "operations: [basic.publish], properties: {headers: {values: {n: %s}}}"
        assert not publish(rules(ALLOW_ALL, f"effect: deny, {said % 'bad'}"), headers).allowed
        assert not publish(rules(f"effect: allow, {said % 'good'}"), headers).allowed
        nested = {"n": [Entries(("m", value) for value in order)]}
        assert not publish(rules(ALLOW_ALL, f"effect: deny, {said % 'bad'}"), nested).allowed

    def test_each_of_several_arguments_is_judged(self) -> None:
        deny = "effect: deny, operations: [queue.declare], arguments: {values: {x-queue-type: stream}}"
        arguments = Entries([("x-queue-type", "classic"), ("x-queue-type", b"stream")])
        operation = Operation(BOB, "queue.declare", queue="q", arguments=arguments)
        assert not rules(ALLOW_ALL, deny).decide(operation).allowed


class TestLineBreaks:
    @pytest.mark.parametrize(
        "key", ["secret.\n", "secret.\r\n", "secret.a\nb", "secret.\u2028", "secret.\x85", "secret.\0"]
    )
    @pytest.mark.parametrize(
        "form", ["regex: 'secret\\..*'", "search: '^secret\\..+$'", "topic: 'secret.#'", "prefix: secret."]
    )
    def test_they_walk_past_nothing(self, key: str, form: str) -> None:
        deny = f"effect: deny, operations: [basic.publish], routingKey: {{{form}}}"
        assert not publish(rules(ALLOW_ALL, deny), key=key).allowed
        unless = f"effect: allow, operations: [basic.publish], routingKey: {{prefix: '', unless: {{{form}}}}}"
        assert not publish(rules(unless), key=key).allowed
        assert publish(rules(unless), key="public.a").allowed

    def test_the_end_is_the_end(self) -> None:
        allow = "effect: allow, operations: [basic.publish], routingKey: {regex: 'a$'}"
        assert publish(rules(allow), key="a").allowed
        assert not publish(rules(allow), key="a\n").allowed
        assert not publish(rules(allow.replace("regex", "search")), key="a\n").allowed

    def test_a_rule_may_mean_one_line(self) -> None:
        allow = "effect: allow, operations: [basic.publish], routingKey: {regex: '(?-s)a.*'}"
        assert publish(rules(allow), key="ab").allowed
        assert not publish(rules(allow), key="a\n").allowed

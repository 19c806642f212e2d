"""What one user's pattern means, no other user's does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.policy import MessageContent, Operation, PolicySet, Principal
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.matching import Form
from amqpgate.policy.engine.separators import separators, shared_by
from amqpgate.policy.tools.explain import explain
from tests.unit.policy.build_set import document, policies

EVERYBODY = "{user: '*'}"


def rules(*inside: str) -> PolicySet:
    return policies(document(*inside, subjects=EVERYBODY))


def may(policy_set: PolicySet, user: str, queue: str, vhost: str = "v", source: str | None = None) -> bool:
    return policy_set.decide(Operation(Principal(user, vhost, source), "basic.get", queue=queue)).allowed


def own(pattern: str) -> PolicySet:
    return rules(f"effect: allow, operations: [basic.get], queue: {pattern}")


class TestGrants:
    @pytest.mark.parametrize(
        "pattern",
        [
            '{prefix: "{user}."}',
            '{topic: "{user}.#"}',
            '{within: "{user}.#"}',
            "{regex: '{user}\\..*'}",
            "{regex: '^{user}[.].*|^{user}\\..*$'}",
            "{search: '^{user}\\.'}",
        ],
    )
    def test_a_name_with_the_separator_in_it_shares_nothing(self, pattern: str) -> None:
        policy_set = own(pattern)
        assert may(policy_set, "a", "a.x")
        assert may(policy_set, "a", "a.b.x")
        assert not may(policy_set, "a.b", "a.b.x")
        assert not may(policy_set, "b", "a.b.x")
        assert may(policy_set, "a-b", "a-b.x")

    @pytest.mark.parametrize(
        ("pattern", "name"),
        [
            ('"{user}"', "a.b"),
            ('"{user}.in"', "a.b.in"),
            ('"in.{user}"', "in.a.b"),
            ('{topic: "{user}.*"}', "a.b.x"),
            ('{topic: "in.{user}"}', "in.a.b"),
            ('{regex: "in[.]{user}"}', "in.a.b"),
            ("{regex: 'in\\.{user}'}", "in.a.b"),
            ("{regex: '^{user}\\.in$'}", "a.b.in"),
            ("{search: '^{user}\\.in$'}", "a.b.in"),
            ('{prefix: "{user}/"}', "a.b/x"),
        ],
    )
    def test_a_name_that_nothing_follows_is_told(self, pattern: str, name: str) -> None:
        if "[.]" not in pattern:
            assert may(own(pattern), "a.b", name)
        assert not may(own(pattern), "a", name)
        assert may(own(pattern), "c", name.replace("a.b", "c"))

    def test_names_that_end_alike(self) -> None:
        for pattern in ('{topic: "#.{user}"}', "{regex: '.*\\.{user}'}", "{search: '\\.{user}$'}"):
            assert may(own(pattern), "b", "x.a.b")
            assert not may(own(pattern), "a.b", "x.a.b")

    def test_two_variables(self) -> None:
        for pattern in ('"{user}.{vhost}"', '{topic: "{user}.{vhost}"}', "{regex: '{user}\\.{vhost}'}"):
            assert may(own(pattern), "a", "a.b.c", vhost="b.c")
            assert not may(own(pattern), "a.b", "a.b.c", vhost="c")

    def test_an_address_is_told_from_longer_ones(self) -> None:
        policy_set = own('{prefix: "{sourceIP}."}')
        assert may(policy_set, "a", "10.0.0.1.x", source="10.0.0.1")
        assert not may(own('{prefix: "{sourceIP}:"}'), "a", "::1:x", source="::1")

    def test_bindings_and_properties(self) -> None:
        policy_set = rules(
            'effect: allow, operations: [queue.bind], routingKey: {topic: "{user}.#"}',
            'effect: allow, operations: [basic.publish], properties: {replyTo: {prefix: "{user}."}}',
        )
        for user, allowed in (("a", True), ("a.b", False)):
            who = Principal(user, "v")
            bind = Operation(who, "queue.bind", queue="q", exchange="e", routing_key=f"{user}.#")
            assert policy_set.decide(bind).allowed is allowed
            content = MessageContent(properties={"reply_to": f"{user}.q"})
            publish = Operation(who, "basic.publish", exchange="e", routing_key="k", content=content)
            assert policy_set.decide(publish).allowed is allowed


class TestDenials:
    def test_they_hold_for_whom_they_name(self) -> None:
        policy_set = rules(
            "effect: allow, operations: [basic.get]",
            'effect: deny, operations: [basic.get], queue: {prefix: "{user}."}',
        )
        assert not may(policy_set, "a.b", "a.b.x")
        assert may(policy_set, "a.b", "a.x")

    def test_their_exceptions_are_grants(self) -> None:
        policy_set = rules(
            "effect: allow, operations: [basic.get]",
            'effect: deny, operations: [basic.get], queue: {prefix: a, unless: {prefix: "{user}."}}',
        )
        assert may(policy_set, "a", "a.b.x")
        assert not may(policy_set, "a.b", "a.b.x")
        assert not may(policy_set, "a.b", "a.x")
        assert may(policy_set, "a.b", "b")

    def test_exceptions_of_grants_take_away(self) -> None:
        policy_set = own('{prefix: "", unless: {prefix: "{user}."}}')
        assert not may(policy_set, "a.b", "a.b.x")
        assert may(policy_set, "a.b", "x")


def test_the_explanation_says_why() -> None:
    who = Principal("a.b", "v")
    said = explain(own('{prefix: "{user}."}'), Operation(who, "basic.get", queue="a.b.x"))
    (report,) = said.steps[0].rules
    assert report.mismatch == (
        "queue: prefix '{user}.' means nothing to a user with '.' in it, which would share names with others"
    )


def test_what_is_repeated_is_the_whole_value() -> None:
    policy_set = own("{regex: '{user}?-q'}")
    assert may(policy_set, "bob", "bob-q")
    assert not may(policy_set, "bob", "bo-q")


@pytest.mark.parametrize("form", ["regex", "search"])
def test_a_value_that_is_no_utf_8_allows_nothing(form: str) -> None:
    """RE2 could not tell it from others; a virtual host's name may be any bytes."""
    policy_set = own(f"{{{form}: '^{{vhost}}$'}}")
    assert not may(policy_set, "a", "\udcff", vhost="\udcff")
    assert may(own('"{vhost}"'), "a", "\udcff", vhost="\udcff")


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("prefix", "{user}", [("user", None)]),
        ("prefix", "{user}{vhost}.", [("user", None), ("vhost", ".")]),
        ("literal", "{user}{vhost}", [("user", None)]),
        ("literal", "x-{user}", []),
        ("topic", "x.{user}.*", []),
        ("topic", "{user}{vhost}", [("user", None)]),
        ("topic", "{user}-q.#", [("user", ".")]),
        ("regex", "{user}.*", [("user", None)]),
        ("regex", "{user}-?x", [("user", None)]),
        ("regex", "{user}-x", []),
        ("regex", r"\d{user}", [("user", None)]),
        ("regex", r"[a-z]*-{user}", [("user", "-")]),
        ("regex", r"[a-z]*\.{user}\.[0-9]+", [("user", "."), ("user", ".")]),
        ("search", "{user}", [("user", None), ("user", None)]),
        ("search", "^{user}$", []),
    ],
)
def test_where_a_value_could_be_mistaken(
    form: Form, text: str, expected: list[tuple[str, str | None]]
) -> None:
    assert list(separators(form, text)) == expected


NAMES = st.text("ab.", min_size=1, max_size=4)


@given(
    st.sampled_from(
        [
            Match(prefix="{user}."),
            Match(prefix="x{user}.a"),
            Match(topic="{user}.#"),
            Match(topic="{user}.*"),
            Match(topic="a.{user}.#.b"),
            Match(topic="#.{user}"),
            Match(regex=r"{user}\..*"),
            Match(regex=r"{user}\.[ab]"),
            Match(regex=r"a\.{user}\..*"),
            Match(regex=r".*\.{user}"),
            Match(search=r"^{user}\."),
            Match(search=r"\.{user}$"),
            Match(literal="a.{user}"),
        ]
    ),
    NAMES,
    NAMES,
    st.text("ab.x", max_size=10),
)
def test_no_two_users_share_a_name(match: Match, one: str, other: str, name: str) -> None:
    matchers = [match.compile({"user": user}, grants=True) for user in (one, other)]
    if one != other and None not in matchers:
        for key in (name, f"{one}.{name}", f"{name}.{one}", f"a.{one}.{name}"):
            assert [matcher.matches(key) for matcher in matchers if matcher] != [True, True]


def test_who_is_not_known_is_told_by_that() -> None:
    assert shared_by("prefix", "{user}.", {"user": None}) is None
    assert Match(prefix="{user}.").compile({"user": None}, grants=True) is None

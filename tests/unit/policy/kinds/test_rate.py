"""Rate policies: their documents, and which limits hold for whom."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy import PolicySet, Principal, SharedLimit, Source, TlsIdentity, build, load_folder
from amqpgate.policy.kinds.rate import Rate
from tests.unit.policy.build_set import document as access_policy

BOB = Principal("bob", "prod", source="10.0.0.7", listener="main")


def document(limit: str, *, name: str = "p", subjects: str = "{user: '*'}") -> str:
    return (
        f"apiVersion: amqpgate.io/v1alpha1\nkind: RatePolicy\nmetadata: {{name: {name}}}\n"
        f"spec:\n  subjects: [{subjects}]\n  limits:\n  - {{{limit}}}\n"
    )


def policies(*documents: str) -> PolicySet:
    return build([Source("p.yaml", "---\n".join(documents).encode())])


def limits(text: str, principal: Principal = BOB, **options: str) -> tuple[SharedLimit, ...]:
    return policies(document(text, **options)).limits_for(principal, "session-1")


@pytest.mark.parametrize(
    ("text", "per_second"),
    [("5000/s", 5000), ("20Mi/s", 20 << 20), ("30/m", 0.5), ("36k/h", 10), ("1/h", 1 / 3600)],
)
def test_rates(text: str, per_second: float) -> None:
    assert Rate.parse(text).per_second == pytest.approx(per_second)


@pytest.mark.parametrize("text", ["", "5000", "/s", "5/d", "-1/s", "1.5/s", "5 /s", "5/s\n", "5KB/s", "5/ss"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a rate: .* such as 5000/s"):
        Rate.parse(text)


def test_nothing_at_all_is_for_access_policies() -> None:
    with pytest.raises(ValueError, match="deny it in an AccessPolicy"):
        Rate.parse("0/s")


def test_a_limit_for_all_who_are_selected() -> None:
    assert limits("id: all, messages: 100/s") == (SharedLimit("p", "all", (), (("messages", 100),), 1),)
    assert limits("id: all, bytes: 1Mi/s, burst: 500ms") == (
        SharedLimit("p", "all", (), (("bytes", 1 << 20),), 0.5),
    )


def test_who_shares_a_limit() -> None:
    text = "id: l, per: [vhost, user, listener, sourceIP, connection], messages: 1/s"
    assert limits(text)[0].key == ("prod", "bob", "main", "10.0.0.7", "session-1")
    tls = TlsIdentity("CN=bob,O=Corp", "bob", ("DNS:bob", "URI:spiffe://corp/bob"))
    text = "id: l, per: [spiffe, tlsSubject, clientProduct], messages: 1/s"
    known = attrs.evolve(BOB, tls=tls, client={"product": "pika"})
    assert limits(text, known)[0].key == ("spiffe://corp/bob", "CN=bob,O=Corp", "pika")
    assert limits(text)[0].key == ("", "", "")
    one = policies(document("id: l, per: [user], messages: 1/s"))
    bob = one.limits_for(BOB, "a")
    assert bob == one.limits_for(Principal("bob", "test"), "b")
    assert bob != one.limits_for(Principal("alice", "prod"), "a")
    own = policies(document("id: l, per: [connection], messages: 1/s"))
    assert own.limits_for(BOB, "a") != own.limits_for(BOB, "b")


def test_who_is_selected() -> None:
    text = "id: l, messages: 1/s"
    assert limits(text, subjects="{user: 'b*', vhosts: [prod]}")
    assert not limits(text, subjects="{user: alice}")
    assert not limits(text, subjects="{user: bob, vhosts: [test]}")
    # Whoever could be meant is: not being known is no way around a limit.
    assert limits(text, Principal(None, "prod"), subjects="{user: alice}")


def test_all_limits_of_all_policies_hold_and_access_is_another_matter() -> None:
    both = policies(
        document("id: a, messages: 1/s", name="one"),
        document("id: a, bytes: 1/s", name="two"),
        access_policy(name="one", subjects="{user: alice}"),
    )
    assert [(limit.policy, limit.limit) for limit in both.limits_for(BOB, "s")] == [
        ("one", "a"),
        ("two", "a"),
    ]
    assert both.for_principal(BOB).unrestricted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id: l", "p.yaml:7:5: say what is limited: messages, bytes"),
        ("id: l, messages: fast", "p.yaml:7:23: expected a rate"),
        ("id: l, messages: 1/s, burst: 0s", "must be between"),
        ("id: l, messages: 1/s, action: drop", "expected one of delay, reject, close"),
        ("id: l, messages: 1/s, per: [group]", "expected one of user, vhost"),
        ("id: l, concurrent: 5", "p.yaml:7:25: nobody can be made to leave: say action: reject"),
        ("id: l, concurrent: 5, action: reject, shared: true", "counted in each gateway"),
        ("id: l, concurrent: 5, action: reject, per: [connection]", "this would limit nothing"),
        ("id: l, deliverMessages: 5/s, action: reject", "can only be delayed"),
        ("id: l, deliverBytes: 5/s, action: close", "can only be delayed"),
        ("id: l, connections: 5/s, notify: true", "goes with messages or bytes that are delayed"),
        ("id: l, messages: 5/s, notify: true, action: reject", "goes with messages or bytes"),
        ("id: l, logins: 5/s, per: [vhost]", "not known at the login"),
        ("id: l, messages: 1/s}\n  - {id: l, bytes: 1/s", "two limits of this policy have the id 'l'"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policies(document(text))
    assert message in str(caught.value)


def test_what_may_be_limited_and_how() -> None:
    (limit,) = limits(
        "id: l, deliverMessages: 1/s, deliverBytes: 2/s, connections: 3/s, logins: 4/s, channels: 5/s, "
        "consumers: 6/s, queueDeclares: 7/s"
    )
    assert limit.rates == (
        ("deliver_messages", 1),
        ("deliver_bytes", 2),
        ("connections", 3),
        ("logins", 4),
        ("channels", 5),
        ("consumers", 6),
        ("queue_declares", 7),
    )
    (limit,) = limits("id: l, concurrent: 9, action: close")
    assert (limit.concurrent, limit.action, limit.rates) == (9, "close", ())


@pytest.mark.parametrize(
    ("text", "subjects", "early"),
    [
        ("id: l, connections: 1/s, per: [sourceIP, listener, spiffe, tlsSubject]", "{}", True),
        ("id: l, connections: 1/s", "{sourceCIDR: [10.0.0.0/8], listeners: [main]}", True),
        ("id: l, connections: 1/s, per: [user]", "{}", False),
        ("id: l, connections: 1/s, per: [clientProduct]", "{}", False),
        ("id: l, connections: 1/s", "{user: bob}", False),
        ("id: l, connections: 1/s", "{vhosts: [prod]}", False),
        ("id: l, messages: 1/s", "{}", False),
    ],
)
def test_connections_are_counted_before_the_login_where_that_can_be(
    text: str, subjects: str, early: bool
) -> None:
    assert limits(text, subjects=subjects)[0].is_early is early


def test_logins_are_not_for_virtual_hosts() -> None:
    with pytest.raises(ConfigError, match="use subjects without vhosts"):
        limits("id: l, logins: 5/s", subjects="{vhosts: [prod]}")


def test_modes() -> None:
    def enforced(mode: str) -> list[bool]:
        policy = document("id: l, messages: 1/s") + f"  {mode}\n"
        return [
            limit.enforced for n in range(1000) for limit in policies(policy).limits_for(BOB, f"session-{n}")
        ]

    assert enforced("mode: enforce") == [True] * 1000
    assert enforced("mode: shadow") == [False] * 1000
    assert enforced("mode: 'off'") == []
    some = enforced("mode: shadow\n  enforcePercent: 20")
    assert len(some) == 1000
    assert 140 < sum(some) < 260
    with pytest.raises(ConfigError, match="belongs to mode shadow"):
        enforced("enforcePercent: 20")


def test_two_of_a_name() -> None:
    text = document("id: l, messages: 1/s")
    with pytest.raises(ConfigError, match="RatePolicy 'p' exists already, at"):
        policies(text, text)


def test_the_examples_do_what_their_comments_say() -> None:
    examples = load_folder(Path(__file__).parents[4] / "policies")

    def names(principal: Principal) -> list[tuple[str, bool]]:
        return [(limit.name, limit.enforced) for limit in examples.limits_for(principal, "s")]

    everyone = [("churn/declares", False), ("prod-rates/per-user", True)]
    assert names(BOB) == everyone
    assert names(Principal("batch-7", "prod")) == [("batch-rates/all-batches", True), *everyone]
    public = [("doors/storms", True), ("doors/crowd", True)]
    assert names(Principal("bob", "test", listener="public")) == public
    (storms,) = (
        limit
        for limit in examples.limits_for(Principal(None, "", "10.0.0.7", "public"), "s")
        if limit.is_early
    )
    assert (storms.limit, storms.key, storms.rates) == ("storms", ("10.0.0.7",), (("connections", 50),))

"""Compatibility policies: which hold for a session, and what policy check says of them."""

from __future__ import annotations

from amqpgate.policy import Compatibility, PolicySet, Principal, Source, build
from tests.unit.policy.build_set import found

BOB = Principal("bob", "prod")
HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: CompatibilityPolicy\nmetadata: {name: %s}\nspec:\n"


#: Every item that is on by itself.
OFF = (
    "transientQueues: {become: transient}\nretiredArguments: keep\n"
    "republishedDeaths: broker\nglobalPrefetch: keep"
)


def document(name: str, spec: str = "", subject: str = "") -> str:
    return f"{HEAD % name}  subjects: [{{{subject}}}]\n  as: rabbitmq-3.13\n" + "".join(
        f"  {line}\n" for line in spec.strip().splitlines()
    )


def policies(*documents: str) -> PolicySet:
    return build([Source("p.yaml", "---\n".join(documents).encode())])


def profile(spec: str = "", upstream: str = "new") -> Compatibility:
    found = policies(document("p", spec)).compatibility_for(BOB, upstream)
    assert found is not None
    return found


def test_a_profile_says_what_its_items_are() -> None:
    one = profile()
    assert (one.policy, one.transient_expiry, one.drops_retired) == ("p", 24 * 3600 * 1000, True)
    assert one.delivery_limit("q") is None


def test_each_item_can_be_set_or_switched_off() -> None:
    one = profile("transientQueues: {expireAfter: 1500ms}\nretiredArguments: keep")
    assert (one.transient_expiry, one.drops_retired) == (1500, False)
    assert profile("transientQueues: {become: transient}").transient_expiry is None


def test_limits_of_channels_are_kept_unless_it_says_otherwise() -> None:
    assert profile().keeps_windows
    assert not profile("globalPrefetch: keep").keeps_windows


def test_nacks_count_where_it_says_so() -> None:
    assert not profile().counts_nacks
    assert profile("nacks: count").counts_nacks


def test_the_first_delivery_limit_for_a_queue_holds() -> None:
    one = profile(
        "deliveryLimits:\n- {queue: {prefix: a}, limit: 5}\n- {queue: {prefix: ab}, limit: 6}\n- {limit: -1}"
    )
    assert [one.delivery_limit(queue) for queue in ("ab", "b")] == [5, -1]


def test_it_holds_for_sessions_of_its_upstreams() -> None:
    both = policies(
        document("a", "upstreams: [blue]"),
        document("b", "upstreams: [green]"),
        document("c", subject="user: al"),
    )
    named = {upstream: both.compatibility_for(BOB, upstream) for upstream in ("blue", "green", "red")}
    assert {upstream: one and one.policy for upstream, one in named.items()} == {
        "blue": "a",
        "green": "b",
        "red": None,
    }


def test_of_several_the_first_by_name_holds() -> None:
    one = policies(document("b"), document("a")).compatibility_for(BOB, "x")
    assert one is not None
    assert one.policy == "a"


def test_it_holds_for_nobody_of_whom_it_is_not_sure() -> None:
    some = policies(document("a", subject="user: bob"))
    assert some.compatibility_for(Principal(None, "prod"), "x") is None
    assert some.compatibility_for(Principal("al", "prod"), "x") is None


def test_check_finds_nacks_that_count_for_nothing() -> None:
    (one,) = found(document("p", "nacks: count\ndeliveryLimits: [{limit: -1}]"))
    assert "nacks count towards delivery limits" in one
    assert found(document("p", "nacks: count\ndeliveryLimits: [{queue: q, limit: -1}, {limit: 3}]")) == []


def test_check_finds_what_does_nothing() -> None:
    nothing = document("p", OFF)
    (one,) = found(nothing)
    assert one.endswith("problem policy 'p' changes nothing")
    (one,) = found(document("p", "deliveryLimits:\n- {limit: 5}\n- {queue: {prefix: a}, limit: 6}"))
    assert one.endswith("the delivery limit before this one is for every queue")


def test_operators_see_what_it_is_for() -> None:
    assert list(policies(document("p", "mode: off")).rows()) == [
        {"kind": "CompatibilityPolicy", "name": "p", "mode": "off", "rules": [], "as": "rabbitmq-3.13"}
    ]


def test_rules_name_the_exchanges_that_delay() -> None:
    one = profile("delayedExchanges: [{exchange: {prefix: later}}, {exchange: jobs}]")
    named = {name: one.delays(name) for name in ("later.1", "jobs", "jobs.1", "")}
    assert named == {"later.1": True, "jobs": True, "jobs.1": False, "": False}
    every = profile("delayedExchanges: [{}]")
    assert (every.delays("any"), every.delays("")) == (True, False)
    assert not every.delays("amqpgate.delay.due"), "it would lead back into the ladder"
    assert not profile().delays("later")


def test_a_rule_on_delays_beside_one_for_every_exchange_is_found() -> None:
    (one,) = found(document("p", "delayedExchanges: [{}, {exchange: jobs}]"))
    assert one.endswith("one of the rules on delayed exchanges is for every exchange")
    off = "transientQueues: {become: transient}\nretiredArguments: keep\n"
    assert not found(document("p", f"{off}delayedExchanges: [{{}}]"))

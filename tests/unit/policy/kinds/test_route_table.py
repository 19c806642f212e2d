"""Which route a connection takes, and what is known of that before its client has said anything."""

from __future__ import annotations

from collections import Counter

import pytest

from amqpgate.policy import Principal, RouteTable, TlsIdentity
from tests.unit.policy.routes import document, table, to


def chosen(of: RouteTable, session: str = "s", **who: object) -> str | None:
    """The cluster that a client who is `who` ends up at."""
    known: dict[str, object] = {"user": "bob", "vhost": "prod", "source": "10.0.0.7", "listener": "main"}
    choice = of.choose(Principal(**(known | who)), session).choice  # type: ignore[arg-type]
    return choice.cluster if choice is not None else None


@pytest.mark.parametrize(
    ("match", "who"),
    [
        ("user: 'batch-*'", {"user": "batch-7"}),
        ("vhosts: [test]", {"vhost": "test"}),
        ("sourceCIDR: [192.0.2.0/24]", {"source": "192.0.2.9"}),
        ("listeners: [inside]", {"listener": "inside"}),
        ("tls: {spiffe: 'spiffe://corp/a'}", {"tls": TlsIdentity("CN=a", "a", ("URI:spiffe://corp/a",))}),
        ("client: {product: 'pika*'}", {"client": {"product": "pika 1"}}),
    ],
)
def test_each_attribute_routes(match: str, who: dict[str, object]) -> None:
    it = table(document(to("blue", match)))
    assert chosen(it, **who) == "blue"
    assert chosen(it) is None


def test_the_first_of_the_list_holds() -> None:
    it = table(document(to("a", "user: bob"), to("b", "vhosts: [prod]"), to("c")))
    assert chosen(it) == "a"
    assert chosen(it, user="eve") == "b"
    assert chosen(it, user="eve", vhost="test") == "c"


def test_policies_come_by_priority_and_then_by_name() -> None:
    late = document("id: x, " + to("late"), name="a")
    first = document("id: y, " + to("first"), name="z", more="priority: 1")
    last = document("id: z, " + to("last"), name="A", more="priority: -1")
    assert chosen(table(late, first, last)) == "first"
    assert chosen(table(last, late)) == "late"
    assert chosen(table(late, document("id: y, " + to("first"), name="z"))) == "late"


def test_a_user_who_is_not_known_is_not_routed_as_somebody() -> None:
    it = table(document(to("bobs", "user: 'b*'"), to("all")))
    assert chosen(it, user=None) == "all"


def test_weights_hold_over_many_sessions_and_for_ever_in_one() -> None:
    it = table(
        document("upstream: {clusters: [{cluster: a, weight: 1}, {cluster: b, weight: 3}, {cluster: c}]}")
    )
    found = Counter(chosen(it, session=f"{n}") for n in range(10_000))
    for name, share in (("a", 0.2), ("b", 0.6), ("c", 0.2)):
        assert abs(found[name] / 10_000 - share) < 0.02
    assert all(chosen(it, session=f"{n}") == chosen(it, session=f"{n}") for n in range(100))


# -- what is known before the client has said anything ------------------------------------------------------


def early(of: RouteTable, **who: object) -> str | None:
    """Where it is known early: the cluster, or 'default'; else None."""
    known: dict[str, object] = {"user": None, "vhost": "", "source": "10.0.0.7", "listener": "main"}
    found = of.choose_early(Principal(**(known | who)), "s")  # type: ignore[arg-type]
    if found is None:
        return None
    return found.choice.cluster if found.choice is not None else "default"


def test_what_only_asks_for_listener_source_or_certificate_is_chosen_early() -> None:
    it = table(document(to("a", "listeners: [inside]"), to("b", "sourceCIDR: [10.0.0.0/8], user: '*'")))
    assert early(it) == "b"
    assert early(it, listener="inside") == "a"
    assert early(it, source="192.0.2.1") == "default"


@pytest.mark.parametrize("late", ["user: bob", "user: 'b*'", "vhosts: ['*']", "client: {product: '*'}"])
def test_what_asks_for_more_makes_wait_only_whom_it_may_mean(late: str) -> None:
    it = table(document(to("a", f"listeners: [main], {late}"), to("b")))
    assert early(it) is None
    assert early(it, listener="other") == "b"
    # A route before it that holds for all makes it meaningless.
    assert early(table(document(to("b"), to("a", late)))) == "b"


def test_candidates_are_all_that_may_be_chosen() -> None:
    it = table(document(to("a", "user: bob"), to("x", "listeners: [other]"), to("b", "vhosts: [v]")))
    who = Principal(None, "", "10.0.0.7", "main")
    assert it.candidates(who, "s", "own") == ["own", "a", "b"]
    certain = table(document(to("a", "user: bob"), to("b"), to("c", "user: eve")))
    assert certain.candidates(who, "s", "own") == ["a", "b"]


# -- modes ---------------------------------------------------------------------------------------------------


def test_shadow_is_only_counted_and_off_is_nothing() -> None:
    shadow = document("id: s, " + to("new"), name="a", more="mode: shadow")
    off = document("id: o, " + to("off"), name="b", more="mode: 'off'")
    real = document("id: r, " + to("old"), name="c")
    found = table(shadow, off, real).choose(Principal("bob", "/"), "s")
    assert found.choice is not None
    assert (found.choice.cluster, [one.cluster for one in found.shadow]) == ("old", ["new"])


def test_what_is_only_for_show_makes_nobody_wait() -> None:
    """It must not change how a connection comes about."""
    shadow = document("id: s, " + to("new", "user: bob"), name="a", more="mode: shadow")
    it = table(shadow, document("id: r, " + to("old"), name="c"))
    assert early(it) == "old"
    assert early(table(shadow)) == "default"
    assert it.candidates(Principal(None, "", "10.0.0.7", "main"), "s", "own") == ["old"]
    assert [one.cluster for one in it.choose(Principal("bob", "/"), "s").shadow] == ["new"]


def test_a_share_is_enforced() -> None:
    it = table(document(to("new"), more="mode: shadow\n  enforcePercent: 30"))
    found = Counter(chosen(it, session=f"{n}") for n in range(10_000))
    assert abs(found["new"] / 10_000 - 0.3) < 0.02


def test_a_route_is_found_again_where_it_is_enforced() -> None:
    it = table(document("id: x, " + to("a"), more="mode: shadow\n  enforcePercent: 50"))
    found = Counter(it.find("p", "x", f"{n}") is not None for n in range(1000))
    assert 400 < found[True] < 600
    assert table(document("id: x, " + to("a"), name="q")).find("p", "x", "s") is None

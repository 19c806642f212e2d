"""What the kind of route policies brings: whom it is about, what it comes to, what excludes each other."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy import Principal
from amqpgate.policy.kinds.route import ROUTE
from tests.unit.policy.routes import document, load, to

BOB = Principal("bob", "prod", listener="main")


def test_routes_are_called_differently_in_the_whole_folder() -> None:
    with pytest.raises(ConfigError, match="RoutePolicy 'p' has a route 'r0', too"):
        load(document(to("a")), document(to("a"), name="q"))


def test_a_document_is_about_whom_its_routes_match() -> None:
    policies = load(
        document(to("a", "user: bob"), to("b", "vhosts: [test]"), name="one"),
        document("id: c, " + to("c", "user: eve"), name="two"),
    )
    (one, _) = policies.documents_of(ROUTE)
    assert [path for path, _ in ROUTE.subjects(one)] == [
        ("spec", "routes", 0, "match"),
        ("spec", "routes", 1, "match"),
    ]
    assert [subject.selects(BOB) for _, subject in ROUTE.subjects(one)] == [True, None]
    # Of several only one holds: none of them is a policy that selects.
    assert policies.selecting(BOB) == []


def test_of_all_that_select_a_session_one_route_holds() -> None:
    policies = load(
        document("id: x, " + to("a", "user: bob"), name="z"),
        document("id: y, " + to("b"), name="a", more="priority: 1"),
        document("id: n, " + to("new"), name="b", more="mode: shadow\n  priority: 2"),
    )
    said = policies.compiled(ROUTE, BOB)
    assert said.choice is not None
    assert (said.choice.policy, said.choice.cluster) == ("a", "b")
    assert [one.cluster for one in said.shadow] == ["new"]
    assert load().compiled(ROUTE, BOB).choice is None


def test_operators_see_its_routes_in_order() -> None:
    (row,) = load(document("id: z, " + to("a"), "id: b, " + to("b"))).rows()
    assert (row["kind"], row["name"], row["routes"]) == ("RoutePolicy", "p", ["z", "b"])

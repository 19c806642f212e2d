"""What policy check says of claimCheck."""

from __future__ import annotations

from tests.unit.policy.build_set import found
from tests.unit.policy.kinds.test_compatibility import document

STORE = 'claimCheck: {store: "s3://bucket/%s"}'


def test_whole_virtual_hosts_and_one_store_are_in_order() -> None:
    assert found(document("a", STORE % "p"), document("b", STORE % "p", "vhosts: [prod]")) == []


def test_consumers_that_get_references_are_named() -> None:
    (text,) = found(document("a", STORE % "p", "user: bob"))
    assert "note" in text
    assert "others who consume the same queues get references" in text


def test_bodies_that_the_broker_refuses_are_named() -> None:
    (text,) = found(document("a", 'claimCheck: {store: "s3://bucket/p", above: 17Mi}'))
    assert "refuses bodies of more than 16 MiB" in text


def test_stores_that_differ_are_a_problem() -> None:
    (text,) = found(document("a", STORE % "p"), document("b", STORE % "q"))
    assert "problem" in text
    assert "another policy has another store" in text


def test_what_is_off_is_not_looked_at() -> None:
    assert all("store" not in text for text in found(document("a", f"mode: off\n{STORE % 'p'}", "user: bob")))

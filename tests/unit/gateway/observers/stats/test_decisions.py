"""What is kept of decisions; which ones are told is in tests/interop/test_gateway_admin.py."""

from __future__ import annotations

import attrs

from amqpgate.gateway.observers.stats.decisions import KEPT, Decisions
from amqpgate.operator.explain import request_of
from amqpgate.policy import Operation, Principal, Verdict, denial_text
from amqpgate.policy.engine.operations import TlsIdentity, TokenIdentity
from amqpgate.telemetry.events import Events, EventSubscriber

PRINCIPAL = Principal("alice", "prod", source="10.0.0.7")
DENY = Verdict("deny", "orders", "no")
ALLOW = Verdict("allow", "orders", "yes")


def publish(key: str = "k") -> Operation:
    return Operation(PRINCIPAL, "basic.publish", exchange="x", routing_key=key)


def test_so_many_are_kept_and_the_newest_come_first() -> None:
    decisions = Decisions(Events())
    for number in range(KEPT + 3):
        decisions.denied(DENY, publish(str(number)), "s", "why")
    decisions.would_differ(DENY, publish("shown"), "s")
    kept = decisions.last(KEPT, None)
    assert (len(kept), kept[0]["routing_key"], kept[0]["kind"]) == (KEPT, "shown", "shadow")
    assert [one["routing_key"] for one in decisions.last(2, "denied")] == [str(KEPT + 2), str(KEPT + 1)]
    numbers = [int(str(one["number"])) for one in kept]
    assert numbers == list(range(KEPT + 4, 4, -1))


def test_who_asks_in_vain_all_day_does_not_push_out_the_others() -> None:
    decisions = Decisions(Events())
    rare = attrs.evolve(publish("rare"), principal=Principal("bob", "prod"))
    decisions.denied(DENY, rare, "s", "why")
    decisions.would_differ(DENY, publish("shown"), "s")
    for number in range(3 * KEPT):
        decisions.denied(DENY, publish(str(number)), "s", "why")
    kept = [one["routing_key"] for one in decisions.last(KEPT, None)]
    assert len(kept) == KEPT
    assert kept[-2:] == ["shown", "rare"]
    assert kept[:-2] == [str(number) for number in range(3 * KEPT - 1, 2 * KEPT + 1, -1)]


def test_who_asked_is_told_as_a_request_has_it() -> None:
    principal = Principal(
        "alice",
        "prod",
        "10.0.0.7",
        "inner",
        TlsIdentity("CN=alice", "alice", ("DNS:alice.corp",)),
        {"product": "amqp://u:hunter2@h/"},
        groups=frozenset({"staff", "billing"}),
        token=TokenIdentity(frozenset({"write", "read"}), (("dep", ("a", "b")), ("team", ("c",)))),
    )
    decisions = Decisions(Events())
    decisions.denied(DENY, attrs.evolve(publish(), principal=principal), "s", "why")
    (kept,) = decisions.last(1, None)
    assert (kept["user"], kept["vhost"], kept["client"]) == ("alice", "prod", "10.0.0.7")
    request = {"as": kept["as"], "op": "basic.publish", "exchange": "x", "routingKey": "k"}
    asked = request_of(request).operation().principal
    assert asked == attrs.evolve(principal, client={"product": "amqp://u:***@h/"})


def test_what_a_client_names_cannot_show_a_password() -> None:
    events, subscriber = Events(), EventSubscriber()
    decisions = Decisions(events)
    with events.heard_by(subscriber):
        operation = publish("amqp://bob:hunter2@broker/")
        decisions.denied(
            DENY, operation, "s", denial_text(operation, attrs.evolve(DENY, attribute="routing_key"))
        )
    (kept,) = decisions.last(1, None)
    assert kept["routing_key"] == "amqp://bob:***@broker/"
    assert "hunter2" not in str(kept)


def test_hits_begin_anew_with_other_policies_and_no_others() -> None:
    decisions = Decisions(Events())
    decisions.use("one")
    for _ in range(3):
        decisions.allowed(ALLOW)
    decisions.denied(DENY, publish(), "s", "why")
    decisions.would_differ(DENY, publish(), "s")
    decisions.use("one")
    since = decisions.since
    hits = {key: hit.count for key, hit in decisions.hits.items()}
    assert hits == {("AccessPolicy", "orders", "yes"): 3, ("AccessPolicy", "orders", "no"): 1}
    assert decisions.hits["AccessPolicy", "orders", "yes"].last is not None
    assert [hit.count for hit in decisions.differences.values()] == [1]
    decisions.use("two")
    assert (decisions.hits, decisions.differences) == ({}, {})
    assert decisions.since >= since
    # What has happened has happened.
    assert len(decisions.last(10, None)) == 2

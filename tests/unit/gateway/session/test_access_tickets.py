"""access.request of old clients, where the broker has no tickets."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.access_tickets import check
from amqpgate.policy import Principal, SessionPolicy
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.policy.build_set import document, policies

BOB = Principal("bob", "prod")


def session(*rules: str) -> SessionPolicy:
    return policies(document(*rules)).access_of(BOB).enforced


def asked(policy: SessionPolicy, realm: str = "/data", **rights: bool) -> tuple[int, str] | None:
    """The code and the scope of what the client hears; None: it gets a ticket."""
    nothing = dict.fromkeys(("exclusive", "passive", "active", "write", "read"), False)
    try:
        check(1, amqp.AccessRequest(realm=realm, **{**nothing, **rights}), policy)
    except ProtocolViolation as violation:
        return violation.code, violation.scope
    return None


@pytest.mark.parametrize("realm", ["", "data", "/", "/a b", "/data/"])
def test_a_realm_that_is_no_path_closes_the_connection(realm: str) -> None:
    assert asked(session("effect: allow, operations: ['*']"), realm) == (402, "connection")


@pytest.mark.parametrize(
    ("right", "operation"),
    [
        ("passive", "queue.declare"),
        ("active", "queue.bind"),
        ("read", "basic.get"),
        ("write", "basic.publish"),
    ],
)
def test_a_right_that_no_rule_is_for_closes_the_channel(right: str, operation: str) -> None:
    allowing = session(f"effect: allow, operations: [{operation}]")
    assert asked(allowing, "/data/admin", **{right: True}) is None
    other = session("effect: allow, operations: [queue.purge]")
    assert asked(other, **{right: True}) == (403, "channel")
    assert asked(other) is None

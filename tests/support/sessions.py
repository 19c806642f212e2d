"""Sessions that are not on the data path, and who looks on at them."""

from __future__ import annotations

from amqpgate.bridge import NATIVE
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.session.session import Session, SessionFacts
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.policy import PolicySet, Principal

BOB = Principal("bob", "prod")


def policies_of(policies: PolicySet, principal: Principal = BOB) -> SessionPolicies:
    """What policies say of a session without limits."""
    return SessionPolicies(principal, policies.access_of(principal, "id"), SessionLimits(()))


def off_the_data_path(policies: PolicySet | None = None) -> Session:
    """A session before it enters."""
    facts = SessionFacts((NATIVE, NATIVE), 10)
    return Session("id", facts, policies_of(policies or PolicySet.empty()), lambda _: None)

"""The kinds of documents that there are."""

from __future__ import annotations

from typing import TypeAlias

from amqpgate.policy.kinds.access import AccessPolicy
from amqpgate.policy.kinds.audit import AuditPolicy
from amqpgate.policy.kinds.rate import RatePolicy
from amqpgate.policy.kinds.route import RoutePolicy
from amqpgate.policy.kinds.trace import TracePolicy
from amqpgate.policy.kinds.transform import TransformPolicy
from amqpgate.policy.tools.policy_tests import PolicyTest

Document: TypeAlias = (
    AccessPolicy | RatePolicy | RoutePolicy | TransformPolicy | AuditPolicy | TracePolicy | PolicyTest
)

#: Kinds that are known, by the name in ``kind``, with the file name of their schema.
KINDS: dict[str, type[Document]] = {
    "AccessPolicy": AccessPolicy,
    "RatePolicy": RatePolicy,
    "RoutePolicy": RoutePolicy,
    "TransformPolicy": TransformPolicy,
    "AuditPolicy": AuditPolicy,
    "TracePolicy": TracePolicy,
    "PolicyTest": PolicyTest,
}
SCHEMA_FILES: dict[str, str] = {
    "AccessPolicy": "access-policy.json",
    "RatePolicy": "rate-policy.json",
    "RoutePolicy": "route-policy.json",
    "TransformPolicy": "transform-policy.json",
    "AuditPolicy": "audit-policy.json",
    "TracePolicy": "trace-policy.json",
    "PolicyTest": "policy-test.json",
}

"""The kinds of documents that there are."""

from __future__ import annotations

from typing import TypeAlias

from amqpgate.policy.audits import AuditPolicy
from amqpgate.policy.documents import AccessPolicy
from amqpgate.policy.policytests import PolicyTest
from amqpgate.policy.rates import RatePolicy
from amqpgate.policy.routes import RoutePolicy
from amqpgate.policy.traces import TracePolicy
from amqpgate.policy.transforms import TransformPolicy

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

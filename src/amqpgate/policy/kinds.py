"""The kinds of documents that there are."""

from __future__ import annotations

from typing import TypeAlias

from amqpgate.policy.documents import AccessPolicy
from amqpgate.policy.rates import RatePolicy
from amqpgate.policy.transforms import TransformPolicy

Document: TypeAlias = AccessPolicy | RatePolicy | TransformPolicy

#: Kinds that are enforced, by the name in ``kind``, with the file name of their schema.
KINDS: dict[str, type[Document]] = {
    "AccessPolicy": AccessPolicy,
    "RatePolicy": RatePolicy,
    "TransformPolicy": TransformPolicy,
}
SCHEMA_FILES: dict[str, str] = {
    "AccessPolicy": "access-policy.json",
    "RatePolicy": "rate-policy.json",
    "TransformPolicy": "transform-policy.json",
}

#: Kinds that are proposed: refused by name, since ignoring one would leave open what it was to close.
NOT_YET = ("RoutePolicy", "AuditPolicy", "TracePolicy", "PolicyTest")

"""What operators see of the policies in force: the documents, their rules, and how often each one decided."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.gateway.observers.stats.decisions import Hits
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.policy import PolicySet
from amqpgate.policy.kinds.access import DEFAULT_RULE
from amqpgate.telemetry.answers import JSON, Args


def policies(gateway: Gateway, _args: Args) -> JSON:
    """The set, with hits since ``since``."""
    decisions = gateway.observers.decisions
    return {
        "digest": gateway.policies.digest,
        "since": decisions.since,
        "policies": list(_rows(gateway.policies)),
        "selected": gateway.observers.selected.shown(),
        "hits": [
            {"policy": policy, "rule": rule, **hits.shown()}
            for (policy, rule), hits in decisions.hits.items()
            if (policy, rule) != (None, DEFAULT_RULE)
        ],
        "default": decisions.hits.get((None, DEFAULT_RULE), Hits()).shown(),
        "shadow": [
            {"policy": policy, "rule": rule, "effect": effect, **hits.shown()}
            for (policy, rule, effect), hits in decisions.differences.items()
        ],
    }


def _rows(policies: PolicySet) -> Iterator[JSON]:
    for access in policies.policies:
        spec = access.spec
        yield {
            "kind": access.kind,
            "name": access.metadata.name,
            "mode": spec.mode,
            "enforce_percent": spec.enforce_percent,
            "rules": [
                {"id": rule.id, "effect": rule.effect, "operations": [str(one) for one in rule.operations]}
                for rule in spec.rules
            ],
        }
    for rate in policies.rates:
        limits = [limit.id for limit in rate.spec.limits]
        yield {
            "kind": rate.kind,
            "name": rate.metadata.name,
            "mode": rate.spec.mode,
            "enforce_percent": rate.spec.enforce_percent,
            "rules": [],
            "limits": limits,
        }
    for route in policies.routes:
        routes = [one.id for one in route.spec.routes]
        yield {
            "kind": route.kind,
            "name": route.metadata.name,
            "mode": route.spec.mode,
            "rules": [],
            "routes": routes,
        }
    for transform in policies.transforms:
        yield {
            "kind": transform.kind,
            "name": transform.metadata.name,
            "mode": transform.spec.mode,
            "rules": [],
        }
    for audit in policies.audits:
        yield {"kind": audit.kind, "name": audit.metadata.name, "mode": "enforce", "rules": []}
    for trace in policies.traces:
        yield {"kind": trace.kind, "name": trace.metadata.name, "mode": "enforce", "rules": []}

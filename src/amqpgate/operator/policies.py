"""What operators see of the policies in force: the documents, their rules, and how often each one decided."""

from __future__ import annotations

from amqpgate.gateway.observers.stats.decisions import Hits
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.policy.engine.access_rule import DEFAULT_RULE
from amqpgate.telemetry.answers import JSON, Args


def policies(gateway: Gateway, _args: Args) -> JSON:
    """The set, with hits since ``since``."""
    decisions = gateway.observers.decisions
    return {
        "digest": gateway.policies.digest,
        "since": decisions.since,
        "policies": list(gateway.policies.rows()),
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

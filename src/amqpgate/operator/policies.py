"""What operators see of the policies in force: the documents, their rules, and how often each one decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from amqpgate.gateway.observers.stats.decisions import Hits
from amqpgate.gateway.observers.stats.session import StatsObserver
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.policy.engine.access_rule import DEFAULT_RULE
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.policy.policy_set import Written
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.time_slices import TimeSlices


def placed(row: Mapping[str, object], written: Mapping[tuple[str, str], Written]) -> JSON:
    """A policy with its file and line, and the line of each rule; null where these are not known."""
    where = written.get((str(row["kind"]), str(row["name"])), Written(None, None))
    rules = cast("list[dict[str, JSON]]", row["rules"])
    lines = dict(enumerate(where.rules))
    with_lines: JSON = [{**rule, "line": lines.get(number)} for number, rule in enumerate(rules)]
    return {**cast("dict[str, JSON]", row), "file": where.file, "line": where.line, "rules": with_lines}


async def policies(gateway: Gateway, _args: Args) -> JSON:
    """The set, with hits since ``since``."""
    decisions, turns = gateway.observers.decisions, TimeSlices()
    for session in list(gateway.sessions.values()):
        for observer in session.session_policies.observers:
            if isinstance(observer, StatsObserver):
                observer.tell_messages()
        await turns.next()
    return {
        "digest": gateway.policies.digest,
        "since": decisions.since,
        "policies": [placed(row, gateway.policies.written) for row in gateway.policies.rows()],
        "selected": gateway.observers.selected.shown(),
        "hits": [
            {"kind": kind, "policy": policy, "rule": rule, **hits.shown()}
            for (kind, policy, rule), hits in decisions.hits.items()
            if (policy, rule) != (None, DEFAULT_RULE)
        ],
        "default": decisions.hits.get((ACCESS.name, None, DEFAULT_RULE), Hits()).shown(),
        "shadow": [
            {"policy": policy, "rule": rule, "effect": effect, **hits.shown()}
            for (policy, rule, effect), hits in decisions.differences.items()
        ],
    }

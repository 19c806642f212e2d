"""The gateway's settings and policies, of a set-up."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.sockets import Address
from tests.simulation.story import Setup
from tests.simulation.tls import Papers

_ACTIONS = {
    "nack": "onDeny: {publish: nack}",
    "drop": "onDeny: {publish: drop}",
    "return": "onDeny: {publish: return}",
}

#: How a message is told that is denied: by its method, or by its header.
_SECRETS = {False: "routingKey: {prefix: secret.}", True: "properties: {appId: secret}"}


#: The header that policies add, what they make of exchanges' names, and what they put before queues' names.
ADDED = {"x-by": "gate"}
EXCHANGES = {"x": "x-of-all"}
PREFIX = "all."


def _pairs(of: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in of.items())


_HEADERS = f"  headers: {{set: {{{_pairs(ADDED)}}}}}\n"
_NAMES = f"  names: {{exchanges: {{map: {{{_pairs(EXCHANGES)}}}}}, queues: {{prefix: {PREFIX}}}}}\n"
_CHANGES = {"headers": _HEADERS, "names": _NAMES, "both": _HEADERS + _NAMES}


def settings_of(setup: Setup, listener: Address, brokers: list[Address], papers: Papers | None) -> str:
    endpoints = ", ".join(f'{{address: "{host}:{port}"}}' for host, port in brokers)
    tls = f", tls: {papers.listener}" if papers is not None and setup.tls in ("clients", "both") else ""
    lines = [
        f'listeners: [{{name: main, bind: "{listener[0]}:{listener[1]}"{tls}}}]',
        "upstreams:",
        "- name: brokers",
        f"  endpoints: [{endpoints}]",
        f"  connections: {setup.connections}",
    ]
    if papers is not None and setup.tls in ("brokers", "both"):
        lines.append(f"  tls: {papers.upstream}")
    if setup.version != "0-9-1":
        lines.append(f"  version: {'auto' if setup.is_found_out else setup.version}")
    if setup.connections == "pooled":
        consumers = "shared" if setup.shared_consumers else "own"
        lines.append(
            f"  pool: {{maxLinks: 3, channelsPerLink: 12, spareChannels: 2, consumers: {consumers}}}"
        )
    if setup.health:
        lines += [f"  health: {{interval: {setup.checks:g}s}}", "  outliers: {}"]
    lines.append(f"limits: {{bufferHigh: {setup.buffer_high}, bufferLow: {setup.buffer_high // 4}}}")
    if setup.shared:
        redis = f'redis: "redis://10.7.0.1:6379", replicas: 2, whenAway: {setup.shared}'
        lines.append(f"sharedLimits: {{{redis}}}")
    if setup.audit:
        lines.append("audit: {format: json}")
    return "\n".join(lines)


def policies_of(setup: Setup) -> str:
    documents = []
    if setup.on_deny:
        documents.append(
            f"""apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {{name: access}}
spec:
  {_ACTIONS.get(setup.on_deny, "")}
  subjects: [{{user: mallory}}]
  rules:
  - {{id: all, effect: allow, operations: ["*"]}}
  - {{id: secrets, effect: deny, operations: [basic.publish], {_SECRETS[setup.by_header]}}}
"""
        )
    if setup.rate:
        per = "per: [user], shared: true" if setup.shared else "per: [connection]"
        documents.append(
            f"""apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {{name: rates}}
spec:
  subjects: [{{user: "*"}}]
  limits:
  - {{id: each, {per}, messages: {setup.rate}/s, burst: 2s}}
"""
        )
    if setup.transform:
        documents.append(
            """apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: changes}
spec:
  subjects: [{user: "*"}]
"""
            + _CHANGES[setup.transform]
        )
    return "---\n".join(documents)

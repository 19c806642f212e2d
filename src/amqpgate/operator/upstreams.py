"""What operators see of the brokers behind: what is believed of each, and how many sessions it has."""

from __future__ import annotations

from collections import Counter

import trio

from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.time_slices import TimeSlices


async def upstreams(gateway: Gateway, _args: Args) -> JSON:
    """All clusters of the settings."""
    sessions = Counter[str]()
    turns = TimeSlices()
    for session in list(gateway.sessions.values()):
        sessions[gateway.router.cluster_of(session.facts.choice, session.principal.listener).name] += 1
        await turns.next()
    now = trio.current_time()
    return [_cluster(one, sessions[one.name], now) for one in gateway.router.clusters.values()]


def _cluster(cluster: Cluster, sessions: int, now: float) -> JSON:
    settings = cluster.settings
    start = cluster.start
    told = () if start is None else (start.server_properties.get(name) for name in ("product", "version"))
    software = [str(word) for word in told if word is not None]
    return {
        "name": cluster.name,
        "order": settings.order,
        "connections": settings.connections,
        "sessions": sessions,
        "retry_budget": round(cluster.budget, 3),
        "checked": settings.health is not None,
        "version": " ".join(software) or None,
        "endpoints": [
            {
                "address": endpoint.name,
                "weight": endpoint.weight,
                "up": endpoint.up,
                "available": endpoint.is_available(now),
                "ejected_for": round(max(0.0, endpoint.ejected_until - now), 3),
                "failures": endpoint.failures,
                "speaks": endpoint.version if settings.version == "auto" else settings.version,
            }
            for endpoint in cluster.endpoints
        ],
    }

"""What operators are told of pools: which sessions share a connection, and which one a session uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from amqpgate.telemetry.answers import JSON

if TYPE_CHECKING:
    from amqpgate.gateway.pool.pool import Pool
    from amqpgate.gateway.pool.shared_connection import SharedConnection

State: TypeAlias = "dict[str, JSON]"


def states(pools: Iterable[Pool]) -> list[State]:
    """Each pool with its connections and sessions. ``pool`` is what the broker's connection list shows."""
    return [
        {
            "pool": pool.identity.shown,
            "upstream": pool.identity.upstream,
            "vhost": pool.identity.vhost,
            "user": pool.identity.user,
            "waiting": len(pool.waiting),
            "links": [_link(pool, connection) for connection in pool.connections.values()],
            "sessions": [
                {
                    "session": member.session.id,
                    "link": None if member.connection is None else member.connection.entry.id,
                    "channels": {str(channel): number for channel, number in member.numbers.items()},
                }
                for member in pool.sessions
            ],
        }
        for pool in pools
    ]


def _link(pool: Pool, connection: SharedConnection) -> State:
    entry = connection.entry
    return {
        "link": entry.id,
        "address": connection.address,
        "state": entry.stage.value,
        "blocked": None if connection.alarm is None else connection.alarm.reason,
        "numbers": {state.value: count for state, count in entry.numbers.counts().items() if count},
        "channels": {
            str(number): {"session": member.session.id, "channel": channel}
            for member in pool.sessions
            if member.connection is connection
            for channel, number in member.numbers.items()
        },
    }

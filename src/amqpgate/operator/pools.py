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
    return [_pool(pool) for pool in pools]


def _pool(pool: Pool) -> State:
    channels: dict[int, State] = {number: {} for number in pool.connections}
    sessions: list[JSON] = []
    for member in pool.sessions:
        entry = None if member.connection is None else member.connection.entry.id
        numbers = member.numbers
        sessions.append(
            {
                "session": member.session.id,
                "link": entry,
                "channels": {str(channel): number for channel, number in numbers.items()},
            }
        )
        for channel, number in numbers.items():
            if entry in channels:
                channels[entry][str(number)] = {"session": member.session.id, "channel": channel}
    return {
        "pool": pool.identity.shown,
        "upstream": pool.identity.upstream,
        "vhost": pool.identity.vhost,
        "user": pool.identity.user,
        "waiting": len(pool.waiting),
        "links": [_link(each, channels[number]) for number, each in pool.connections.items()],
        "sessions": sessions,
    }


def _link(connection: SharedConnection, channels: State) -> State:
    entry = connection.entry
    return {
        "link": entry.id,
        "address": connection.address,
        "state": entry.stage.value,
        "blocked": None if connection.alarm is None else connection.alarm.reason,
        "numbers": {state.value: count for state, count in entry.numbers.counts().items() if count},
        "channels": channels,
    }

"""What operators are told of pools: which sessions ride on which link, and which link carries a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from amqpgate.gateway.pool.pool import Pool
from amqpgate.gateway.pool.shared_connection import SharedConnection
from amqpgate.telemetry.answers import JSON

State: TypeAlias = "dict[str, JSON]"


def states(pools: Iterable[Pool]) -> list[State]:
    """Each pool with its links and its sessions. ``pool`` is what the broker's connection list shows."""
    return [
        {
            "pool": pool.identity.shown,
            "upstream": pool.identity.upstream,
            "vhost": pool.identity.vhost,
            "user": pool.identity.user,
            "waiting": len(pool.waiting),
            "links": [_link(link) for link in pool.links.values()],
            "sessions": [
                {
                    "session": riding.session.id,
                    "link": None if riding.link is None else riding.link.entry.id,
                    "channels": {str(number): seat.number for number, seat in riding.seats.items()},
                }
                for riding in pool.riders
            ],
        }
        for pool in pools
    ]


def _link(link: SharedConnection) -> State:
    return {
        "link": link.entry.id,
        "address": link.address,
        "state": "closing" if link.entry.closing else "retiring" if link.entry.retiring else "open",
        "blocked": None if link.blocked is None else link.blocked.reason,
        "numbers": {state.value: count for state, count in link.entry.numbers.counts().items() if count},
        "channels": {
            str(seat.number): {"session": riding.session.id, "channel": number}
            for riding in link.riders
            for number, seat in riding.seats.items()
        },
    }

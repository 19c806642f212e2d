"""A gateway in a few numbers, for who looks at it now; all are counted since the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from amqpgate.gateway.answers import JSON, SLICE, Args
from amqpgate.telemetry.readings import DELIVERED, GOT, PUBLISHED, REFUSED, RETURNED, Passage

if TYPE_CHECKING:
    from amqpgate.gateway.server import Gateway


async def overview(gateway: Gateway, _args: Args) -> JSON:
    """Messages and octets both ways, sessions, and what waits to be sent."""
    tally = gateway.ended()
    live = list(gateway.sessions.values())
    channels = to_clients = to_brokers = 0
    for at in range(0, len(live), SLICE):
        some = live[at : at + SLICE]
        tally.add(some)
        for session in some:
            client, broker = session.relay.endpoints
            channels += len(session.closes.channels)
            to_clients += client.waiting
            to_brokers += broker.waiting
        await trio.lowlevel.checkpoint()

    def passed(*passages: Passage) -> JSON:
        return {
            "messages": sum(tally.traffic[passage].messages for passage in passages),
            "bytes": sum(tally.traffic[passage].octets for passage in passages),
        }

    return {
        "sessions": len(live),
        "channels": channels,
        "published": passed(PUBLISHED),
        "delivered": passed(DELIVERED, GOT, RETURNED),
        "refused": tally.traffic[REFUSED].messages,
        "buffered": {"client": to_clients, "upstream": to_brokers},
    }

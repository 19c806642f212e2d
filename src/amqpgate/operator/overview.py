"""A gateway in a few numbers, for who looks at it now; all are counted since the start."""

from __future__ import annotations

from amqpgate.gateway.server.gateway import Gateway
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.readings import DELIVERED, GOT, PUBLISHED, REFUSED, RETURNED, Passage
from amqpgate.telemetry.time_slices import TimeSlices


async def overview(gateway: Gateway, _args: Args) -> JSON:
    """Messages and bytes both ways, sessions, and what waits to be sent."""
    tally = gateway.observers.ended.copy()
    live = list(gateway.sessions.values())
    channels = to_clients = to_brokers = 0
    turns = TimeSlices()
    for session in live:
        tally.add(session)
        client, broker = session.relay.endpoints
        channels += len(session.channels.states)
        to_clients += client.waiting
        to_brokers += broker.waiting
        await turns.next()
    traffic = tally.traffic()

    def passed(*passages: Passage) -> JSON:
        return {
            "messages": sum(traffic[passage].messages for passage in passages),
            "bytes": sum(traffic[passage].byte_count for passage in passages),
        }

    return {
        "sessions": len(live),
        "connections": {
            "open": gateway.acceptor.connections.count,
            "most": gateway.settings.limits.max_connections,
        },
        "channels": channels,
        "published": passed(PUBLISHED),
        "delivered": passed(DELIVERED, GOT, RETURNED),
        "refused": traffic[REFUSED].messages,
        "buffered": {"client": to_clients, "upstream": to_brokers},
    }

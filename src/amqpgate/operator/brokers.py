"""Where sessions go, for the picture of who sends what to whom: brokers, pools and mirrors."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

import attrs

from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.session.session import Session
from amqpgate.telemetry.answers import JSON
from amqpgate.values import define

#: Brokers' virtual hosts, and pools, that are told: those with most sessions.
MOST: Final = 200


@define(weakref_slot=False)
class _Reached:
    sessions: int = 0
    published: int = 0
    delivered: int = 0


@define(eq=False)
class Brokers:
    """What open sessions have passed to which brokers, and from there."""

    _reached: dict[tuple[str, str], _Reached] = attrs.field(factory=dict, init=False)

    def add(self, session: Session) -> None:
        """This one, too."""
        place = session.facts.cluster, session.principal.vhost
        one = self._reached.get(place)
        if one is None:
            one = self._reached[place] = _Reached()
        client, broker = session.relay.endpoints
        one.sessions += 1
        one.published += client.lane.messages
        one.delivered += broker.lane.messages

    def told(self) -> list[JSON]:
        """By upstream and virtual host."""
        most = heapq.nlargest(MOST, self._reached.items(), key=lambda item: item[1].sessions)
        return [
            {"upstream": upstream, "vhost": vhost, **attrs.asdict(one)} for (upstream, vhost), one in most
        ]


def pools_of(gateway: Gateway) -> list[JSON]:
    """What shares connections: how many sessions, and how many connections."""
    pools = heapq.nlargest(MOST, gateway.pools.pools.values(), key=lambda pool: len(pool.sessions))
    return [
        {
            "upstream": pool.identity.upstream,
            "vhost": pool.identity.vhost,
            "user": pool.identity.user,
            "sessions": len(pool.sessions),
            "connections": len(pool.connections),
        }
        for pool in pools
    ]


def mirrors_of(gateway: Gateway) -> list[JSON]:
    """Routes whose messages are copied, and where to."""
    return [
        {"route": state["id"], "upstreams": state["upstreams"], "mirror": state["mirror"]}
        for state in gateway.router.states()
        if state["mirror"]
    ]


def summed(rows: Iterable[dict[str, JSON]], *names: str) -> list[JSON]:
    """Rows of workers as one: those are added up that are the same but for these counts."""
    known: dict[tuple[tuple[str, str], ...], dict[str, JSON]] = {}
    for row in rows:
        place = tuple((name, str(value)) for name, value in row.items() if name not in names)
        if place in known:
            one = known[place]
            one.update({name: int(str(one[name])) + int(str(row[name])) for name in names})
        else:
            known[place] = dict(row)
    return list(known.values())

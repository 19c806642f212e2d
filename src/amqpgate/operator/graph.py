"""Who sends what to whom, as far as this gateway knows: for operators.

::

    principal ──publishes──▶ exchange ──routes──▶ queue ──delivers──▶ principal
                                │  ──bound──▶       └──reads──▶ principal
                                └──fed──▶ exchange

The terms are those of the pipeline's topology. ``publishes``, ``routes`` and ``delivers`` are messages that
the flows of sessions have counted; where there are none, what a channel gets is taken for its queue's if
it reads one alone, and bytes are not known. ``reads`` is a consumer of which none was counted; ``bound``
and ``fed`` are `bindings`. What is published to the default exchange goes to the queue that it names.
Sessions that are over count from the first look on (`edges.PastEdges`).

Flows are there only where something has to be looked at: of other sessions it is known how many messages
passed, and not to which exchanges. These are ``unseen``.
"""

from __future__ import annotations

import heapq
from typing import Final

from amqpgate.gateway.observers.stats.edges import EdgeSum, PassedEdge, Place
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.operator.brokers import Brokers, mirrors_of, pools_of
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.time_slices import TimeSlices

#: Edges that are told, those with most messages.
MOST: Final = 1000


async def graph(gateway: Gateway, _args: Args) -> JSON:
    """Edges, those with most messages first; what is left out; what is not known; and where sessions go."""
    told, brokers, turns, past = EdgeSum(), Brokers(), TimeSlices(), gateway.observers.reports.past
    for _ in told.add_all(past.look()):
        await turns.next()
    over, since = past.sessions, past.since
    for session in list(gateway.sessions.values()):
        brokers.add(session)
        for _ in told.add_session(session):
            await turns.next()
        await turns.next()
    for binding in list(gateway.observers.bindings):
        vhost, _, exchange = binding.source
        _, kind, name = binding.target
        word = "bound" if kind == "queue" else "fed"
        told.add((word, vhost, ("exchange", exchange), (kind, name)), PassedEdge(keys={binding.key: None}))
        await turns.next()
    for place in [place for place in told.edges if place[0] == "reads"]:
        # Its messages have been counted.
        if ("delivers", *place[1:]) in told.edges:
            del told.edges[place]
    most = heapq.nlargest(MOST, told.edges.items(), key=lambda item: item[1].messages)
    left_out = told.left_out + len(told.edges) - len(most) + gateway.observers.bindings.left_out
    return {
        "edges": [_edge(place, edge) for place, edge in most],
        "left_out": left_out,
        "unseen": {"sessions": told.unseen, "messages": told.unseen_messages},
        "over": {"sessions": over, "since": since},
        "brokers": brokers.told(),
        "pools": pools_of(gateway),
        "mirrors": mirrors_of(gateway),
    }


def _edge(place: Place, edge: PassedEdge) -> JSON:
    kind, vhost, source, target = place
    return {
        "kind": kind,
        "vhost": vhost,
        "source": {"kind": source[0], "name": source[1]},
        "target": {"kind": target[0], "name": target[1]},
        "messages": edge.messages,
        "bytes": edge.byte_count,
        "keys": list(edge.keys),
        "upstream_users": list(edge.upstream_users),
    }

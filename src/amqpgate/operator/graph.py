"""Who sends what to whom, as far as this gateway knows: for operators.

::

    principal ──publishes──▶ exchange ──routes──▶ queue ──delivers──▶ principal
                                │  ──bound──▶       └──reads──▶ principal
                                └──fed──▶ exchange

The terms are those of the pipeline's topology. ``publishes``, ``routes`` and ``delivers`` are messages that
the flows of open sessions have counted; where there are none, what a channel gets is taken for its queue's if
it reads one alone, and bytes are not known. ``reads`` is a consumer of which none was counted; ``bound``
and ``fed`` are `bindings`. What is published to the default exchange goes to the queue that it names.

Flows are there only where something has to be looked at: of other sessions it is known how many messages
passed, and not to which exchanges. These are ``unseen``.
"""

from __future__ import annotations

import heapq
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.session import Session
from amqpgate.operator.session_detail import names_of
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.time_slices import TimeSlices
from amqpgate.values import define

#: Edges that are told, those with most messages; and those that are added up for that.
MOST: Final = 1000
ROOM: Final = 20_000
#: Keys, and upstream users, of one edge that are told.
MOST_KEYS: Final = 20

#: Kind and name; None: a user whose name is not known.
Node: TypeAlias = tuple[Literal["principal", "exchange", "queue"], str | None]
#: Kind, virtual host, from, to.
_Place: TypeAlias = tuple[str, str, Node, Node]


@define(weakref_slot=False)
class _Edge:
    messages: int = 0
    byte_count: int = 0
    keys: dict[str, None] = attrs.field(factory=dict)
    #: Users that brokers know the principal by, where these are others.
    upstream_users: dict[str, None] = attrs.field(factory=dict)

    def add(self, messages: int, byte_count: int, key: str | None, upstream_user: str | None) -> None:
        self.messages += messages
        self.byte_count += byte_count
        if key is not None and len(self.keys) < MOST_KEYS:
            self.keys[key] = None
        if upstream_user is not None and len(self.upstream_users) < MOST_KEYS:
            self.upstream_users[upstream_user] = None


@define
class _Sum:
    edges: dict[_Place, _Edge] = attrs.field(factory=dict)
    left_out: int = 0
    unseen: int = 0
    unseen_messages: int = 0
    turns: TimeSlices = attrs.field(factory=TimeSlices)
    #: Of the session that is looked at.
    upstream_user: str | None = None

    def begin(self, session: Session | None) -> None:
        """What is added next is this session's, or no session's."""
        self.upstream_user = None
        if session is not None and session.principal.upstream_user != session.principal.user:
            self.upstream_user = session.principal.upstream_user

    def leave_unseen(self, messages: int) -> None:
        """A session has published so many, and it is not known to which exchanges."""
        self.unseen += 1
        self.unseen_messages += messages

    async def add(
        self,
        kind: str,
        vhost: str,
        source: Node,
        target: Node,
        key: str | None,
        messages: int,
        byte_count: int,
    ) -> None:
        place = kind, vhost, source, target
        edge = self.edges.get(place)
        if edge is None and len(self.edges) >= ROOM:
            self.left_out += 1
        else:
            if edge is None:
                edge = self.edges[place] = _Edge()
            is_at_principal = source[0] == "principal" or target[0] == "principal"
            edge.add(messages, byte_count, key, self.upstream_user if is_at_principal else None)
        await self.turns.next()


async def graph(gateway: Gateway, _args: Args) -> JSON:
    """Edges, those with most messages first; what is left out; and what is not known."""
    told = _Sum()
    for session in list(gateway.sessions.values()):
        await _add(told, session)
        await told.turns.next()
    told.begin(None)
    for binding in list(gateway.observers.bindings):
        vhost, _, exchange = binding.source
        _, kind, name = binding.target
        word = "bound" if kind == "queue" else "fed"
        await told.add(word, vhost, ("exchange", exchange), (kind, name), binding.key, 0, 0)
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
    }


def _edge(place: _Place, edge: _Edge) -> JSON:
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


async def _add(told: _Sum, session: Session) -> None:
    vhost = session.principal.vhost
    principal: Node = "principal", session.principal.user
    told.begin(session)
    naming = None if session.rewriter is None else session.rewriter.transform.naming
    for key, flow in session.relay.up.known_flows():
        if flow.drop or not flow.messages:
            continue
        names = names_of(key, Side.CLIENT)
        exchange, routing_key = names["exchange"], names["routing_key"]
        target: Node = ("exchange", exchange) if exchange else ("queue", routing_key)
        shown = routing_key if exchange else None
        await told.add("publishes", vhost, principal, target, shown, flow.messages, flow.body_bytes)
    for key, flow in session.relay.down.known_flows():
        names = names_of(key, Side.UPSTREAM)
        queue = _queue_of(session.channels, int.from_bytes(key[:2], "big"), names["consumer_tag"])
        if queue is None or not flow.messages:
            continue
        exchange, routing_key = names["exchange"], names["routing_key"]
        if naming is not None:
            exchange = naming.exchange_down(exchange)
            routing_key = naming.key_down(exchange, routing_key)
        read: Node = "queue", queue
        if exchange:
            source: Node = "exchange", exchange
            await told.add("routes", vhost, source, read, routing_key, flow.messages, flow.body_bytes)
        await told.add("delivers", vhost, read, principal, None, flow.messages, flow.body_bytes)
    channels = session.relay.channels
    mixes = session.relay.down.uses_flows or channels.got or channels.returned
    for number, channel in list(session.channels.states.items()):
        consumers = () if channel.consuming is None else list(channel.consuming)
        queues = {consumer.operations[0].queue or "" for consumer in consumers}
        if len(queues) == 1 and not mixes and channels.state(number):
            messages = channels.messages(Side.UPSTREAM, number)
        else:
            messages = 0
        for queue in queues:
            word = "delivers" if messages else "reads"
            await told.add(word, vhost, ("queue", queue), principal, None, messages, 0)
    if not session.relay.up.uses_flows and session.relay.up.messages:
        told.leave_unseen(session.relay.up.messages)


def _queue_of(channels: SessionChannels, number: int, tag: str) -> str | None:
    """The queue of a consumer; None where it is not known any more."""
    channel = channels.states.get(number)
    consumer = None if channel is None or channel.consuming is None else channel.consuming.tags.get(tag)
    return None if consumer is None else consumer.operations[0].queue

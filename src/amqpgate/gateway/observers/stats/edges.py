"""Who sent what to whom: what sessions passed, summed by edges, for the picture of it (`operator.graph`).

::

    principal ──publishes──▶ exchange ──routes──▶ queue ──delivers──▶ principal
                                                    └──reads──▶ principal

Open sessions are asked when somebody looks. What sessions had passed that are over is kept from then on, and
until nobody has looked for an hour: where nobody looks it costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.session import Session
from amqpgate.telemetry.faults import contained
from amqpgate.values import define

#: Edges that are added up.
ROOM: Final = 20_000
#: Keys, and upstream users, of one edge that are told.
MOST_KEYS: Final = 20
#: Seconds without a look after which sessions that are over are forgotten.
WATCHED: Final = 3600.0

#: Kind and name; None: a user whose name is not known.
Node: TypeAlias = tuple[Literal["principal", "exchange", "queue"], str | None]
#: Kind, virtual host, from, to.
Place: TypeAlias = tuple[str, str, Node, Node]


@define(weakref_slot=False)
class PassedEdge:
    """What passed from one to another."""

    messages: int = 0
    byte_count: int = 0
    keys: dict[str, None] = attrs.field(factory=dict)
    #: Users that brokers know the principal by, where these are others.
    upstream_users: dict[str, None] = attrs.field(factory=dict)

    def add(self, other: PassedEdge) -> None:
        self.messages += other.messages
        self.byte_count += other.byte_count
        for mine, its in (self.keys, other.keys), (self.upstream_users, other.upstream_users):
            for text in its:
                if len(mine) < MOST_KEYS:
                    mine[text] = None


@define(eq=False)
class EdgeSum:
    """Edges of any number of sessions."""

    edges: dict[Place, PassedEdge] = attrs.field(factory=dict)
    #: That there was no room for.
    left_out: int = 0
    #: Sessions of which it is not known to which exchanges they published, and their messages.
    unseen: int = 0
    unseen_messages: int = 0

    def add(self, place: Place, edge: PassedEdge) -> None:
        known = self.edges.get(place)
        if known is not None:
            known.add(edge)
        elif len(self.edges) < ROOM:
            self.edges[place] = edge
        else:
            self.left_out += 1

    def add_session(self, session: Session, *, is_over: bool = False) -> Iterator[None]:
        """What it has passed by now, and what it reads unless it is over.

        Yields between edges, of which there may be thousands.
        """
        for place, edge in edges_of(session):
            if edge.messages or not is_over:
                self.add(place, edge)
            yield
        if not session.relay.up.uses_flows and session.relay.up.messages:
            self.unseen += 1
            self.unseen_messages += session.relay.up.messages

    def add_all(self, other: EdgeSum) -> Iterator[None]:
        """The sums of another one, which stay its own."""
        for place, edge in list(other.edges.items()):
            self.add(
                place, attrs.evolve(edge, keys=dict(edge.keys), upstream_users=dict(edge.upstream_users))
            )
            yield
        self.left_out += other.left_out
        self.unseen += other.unseen
        self.unseen_messages += other.unseen_messages


@define(eq=False)
class PastEdges:
    """Of the sessions of one gateway that are over."""

    #: None: nobody looks.
    sum: EdgeSum | None = attrs.field(default=None, init=False)
    #: In seconds since 1970, when they began to be kept.
    since: float = attrs.field(default=0.0, init=False)
    #: How many.
    sessions: int = attrs.field(default=0, init=False)
    _until: float = attrs.field(default=0.0, init=False)

    def look(self) -> EdgeSum:
        """What is kept, which goes on for as long as somebody looks."""
        self._until = time.monotonic() + WATCHED
        if self.sum is None:
            self.sum, self.since, self.sessions = EdgeSum(), time.time(), 0
        return self.sum

    @contained("metrics", None)
    def over(self, session: Session) -> None:
        """A session is over."""
        if self.sum is None:
            return
        if time.monotonic() > self._until:
            self.sum = None
            return
        self.sessions += 1
        for _ in self.sum.add_session(session, is_over=True):
            pass


def edges_of(session: Session) -> Iterator[tuple[Place, PassedEdge]]:
    """What a session has passed, and what it reads."""
    vhost = session.principal.vhost
    principal: Node = "principal", session.principal.user
    upstream_user = session.principal.upstream_user
    users = [upstream_user] if upstream_user is not None and upstream_user != session.principal.user else []

    def edge(messages: int, byte_count: int, *keys: str, upstream_users: list[str] = users) -> PassedEdge:
        return PassedEdge(messages, byte_count, dict.fromkeys(keys), dict.fromkeys(upstream_users))

    naming = None if session.rewriter is None else session.rewriter.transform.naming
    for key, flow in session.relay.up.known_flows():
        if flow.drop or not flow.messages:
            continue
        names = names_of(key, Side.CLIENT)
        exchange, routing_key = names["exchange"], names["routing_key"]
        target: Node = ("exchange", exchange) if exchange else ("queue", routing_key)
        shown = [routing_key] if exchange else []
        yield ("publishes", vhost, principal, target), edge(flow.messages, flow.body_bytes, *shown)
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
            routed = edge(flow.messages, flow.body_bytes, routing_key, upstream_users=[])
            yield ("routes", vhost, source, read), routed
        yield ("delivers", vhost, read, principal), edge(flow.messages, flow.body_bytes)
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
            yield (word, vhost, ("queue", queue), principal), edge(messages, 0)


def _queue_of(channels: SessionChannels, number: int, tag: str) -> str | None:
    """The queue of a consumer; None where it is not known any more."""
    channel = channels.states.get(number)
    consumer = None if channel is None or channel.consuming is None else channel.consuming.tags.get(tag)
    return None if consumer is None else consumer.operations[0].queue


def names_of(key: bytes, side: Side) -> dict[str, str]:
    """What a flow's key says (``datapath.flows.key_of``), but for the channel."""
    if side is Side.CLIENT:
        return _names(key, "exchange", "routing_key")
    return _names(key[2:], "consumer_tag", "exchange", "routing_key")


def _names(byte_count: bytes, *names: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        size = byte_count[0]
        found[name] = byte_count[1 : 1 + size].decode("utf-8", "replace")
        byte_count = byte_count[1 + size :]
    return found

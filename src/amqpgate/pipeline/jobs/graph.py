"""Who sends what to whom, as a graph; and what can be read off it. Pure: rows in, rows out.

::

    principal ──publishes──▶ exchange ──routes──▶ queue ──delivers──▶ principal
                                │  ──bound──▶       │  ──dead-letters──▶ exchange
                                └──fed──▶ exchange  └── by its name ◀──publishes── principal

``routes`` and ``delivers`` are messages that were seen; ``bound``, ``fed``, ``dead-letters`` and
``alternate`` are what was declared. What goes to the default exchange goes to the queue that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Literal, TypeAlias, get_args

import attrs
import networkx

from amqpgate.policy.engine.matching import Matcher, compile_pattern

NodeKind: TypeAlias = Literal["principal", "exchange", "queue"]

EdgeKind: TypeAlias = Literal[
    # Messages.
    "publishes",
    "routes",
    "delivers",
    # What was declared.
    "bound",
    "fed",
    "dead-letters",
    "alternate",
    # A consumer that was started, or a basic.get.
    "reads",
]

KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)

#: Keys of bindings between the same two that are kept.
MAX_KEYS = 20


@attrs.frozen(order=True)
class Node:
    """A principal, an exchange or a queue of one virtual host."""

    kind: NodeKind
    vhost: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name or '(default)'} in {self.vhost}"


@attrs.frozen(kw_only=True)
class Edge:
    """What goes from one to the other."""

    kind: EdgeKind
    source: Node
    target: Node
    messages: int = 0
    bytes: int = 0
    last: datetime | None = None
    #: Binding keys; of traffic the keys seen, with ids folded.
    keys: tuple[str, ...] = ()

    def __or__(self, other: Edge) -> Edge:
        times = [time for time in (self.last, other.last) if time is not None]
        return attrs.evolve(
            self,
            messages=self.messages + other.messages,
            bytes=self.bytes + other.bytes,
            last=max(times, default=None),
            keys=tuple(dict.fromkeys((*self.keys, *other.keys)))[:MAX_KEYS],
        )


@attrs.frozen(kw_only=True)
class Declared:
    """An exchange or a queue that was declared, and not deleted since."""

    node: Node
    last: datetime
    #: Of an exchange.
    type: str | None = None
    #: The broker deletes it by itself (auto-delete, exclusive), and nobody is told.
    is_fleeting: bool = False


@attrs.frozen(kw_only=True)
class ReplayedBinding:
    """A binding that was made, and not taken back since. ``target`` is a queue or an exchange."""

    source: Node
    target: Node
    key: str
    last: datetime


@attrs.frozen(kw_only=True)
class DeniedEdge:
    """What was denied to go from one to the other: who may not publish to, or read from, what."""

    source: Node
    target: Node
    times: int
    #: Which rule denied the last one: ``policy/rule``, or who else did.
    by: str
    last: datetime
    keys: tuple[str, ...] = ()

    def __or__(self, other: DeniedEdge) -> DeniedEdge:
        return attrs.evolve(
            max(self, other, key=lambda one: one.last),
            times=self.times + other.times,
            keys=tuple(dict.fromkeys((*self.keys, *other.keys)))[:MAX_KEYS],
        )


@attrs.frozen
class Topology:
    """All that is known of a period."""

    edges: tuple[Edge, ...]
    declared: tuple[Declared, ...] = ()
    bindings: tuple[ReplayedBinding, ...] = ()
    #: Rows that there was no room for.
    left_out: int = 0
    #: The first and the last message.
    first: datetime | None = None
    last: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """From the first message to the last, at least one; None where there are none."""
        if self.first is None or self.last is None:
            return None
        return max(1.0, (self.last - self.first).total_seconds())

    @property
    def nodes(self) -> list[Node]:
        """All of them, sorted."""
        found = {node for edge in self.edges for node in (edge.source, edge.target)}
        return sorted(found | {one.node for one in self.declared})


def merged(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """One edge of each kind between each two."""
    found: dict[tuple[EdgeKind, Node, Node], Edge] = {}
    for edge in edges:
        key = edge.kind, edge.source, edge.target
        found[key] = found[key] | edge if key in found else edge
    return tuple(found[key] for key in sorted(found, key=lambda one: (KINDS.index(one[0]), one[1], one[2])))


def graph_of(topology: Topology) -> networkx.MultiDiGraph:
    """With the attributes that GraphML can have."""
    graph = networkx.MultiDiGraph()
    for node in topology.nodes:
        graph.add_node(_xml(str(node)), kind=node.kind, vhost=_xml(node.vhost), name=_xml(node.name))
    for edge in topology.edges:
        graph.add_edge(
            _xml(str(edge.source)),
            _xml(str(edge.target)),
            key=edge.kind,
            kind=edge.kind,
            messages=edge.messages,
            bytes=edge.bytes,
            last=edge.last.isoformat() if edge.last is not None else "",
            keys=_xml(" ".join(edge.keys)),
        )
    return graph


def _xml(text: str) -> str:
    """Clients choose names, and XML has no control characters."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def graphml(topology: Topology) -> str:
    """The graph in GraphML."""
    return "\n".join(networkx.generate_graphml(graph_of(topology), named_key_ids=True)) + "\n"


# -- blast radius ----------------------------------------------------------------------------

#: ``feeds``: it sends to it. ``feels``: it gets from it. ``through``: it is between those.
Touch: TypeAlias = Literal["feeds", "feels", "through"]


@attrs.frozen(order=True)
class Touched:
    """Somebody, or something, that would notice."""

    #: How many principals pass messages on between it and the one that fails: 0 is at once.
    hops: int
    touch: Touch
    node: Node


def blast_radius(topology: Topology, failing: Node) -> list[Touched]:
    """Who and what notices when this one fails: those whose messages come through it, and those who get them.

    A principal that gets messages may send others because of them; what those reach is one hop further.
    """
    found: dict[tuple[Node, str], Touched] = {}
    ways: tuple[tuple[Touch, Callable[[Edge], tuple[Node, Node]]], ...]
    ways = (("feeds", _backward), ("feels", _forward))
    for touch, step in ways:
        links: dict[Node, set[Node]] = {}
        for edge in topology.edges:
            source, target = step(edge)
            links.setdefault(source, set()).add(target)
        reached, front = {failing: 0}, [failing]
        while front:
            beyond = []
            for node in front:
                # Whoever passes on is a hop, but for the one that fails itself.
                hops = reached[node] + (node.kind == "principal" and node != failing)
                for other in links.get(node, ()):
                    if hops < reached.get(other, 1 << 30):
                        reached[other] = hops
                        beyond.append(other)
            front = beyond
        for node, hops in reached.items():
            if node != failing:
                found[node, touch] = Touched(hops, touch if node.kind == "principal" else "through", node)
    return sorted(set(found.values()))


def _forward(edge: Edge) -> tuple[Node, Node]:
    return edge.source, edge.target


def _backward(edge: Edge) -> tuple[Node, Node]:
    return edge.target, edge.source


# -- unused ----------------------------------------------------------------------------------


@attrs.frozen
class Unused:
    """Something that was declared, and not used in the period."""

    kind: Literal["exchange", "queue", "binding"]
    vhost: str
    name: str
    #: Of a binding: where it leads, and its key.
    target: str | None
    key: str | None
    #: When it was declared last.
    declared: datetime
    why: str


#: Types of the exchanges that every broker has.
_PREDECLARED = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
}


def unused(topology: Topology) -> list[Unused]:
    """Exchanges that nobody published to, queues that nobody read, bindings that brought nothing.

    Judged by what passed the gateways. A binding is judged where its queue is read and its exchange is a
    direct or topic one; of others any message by that way counts. What the broker deletes by itself is not
    told, and left out.
    """
    fed = {
        edge.target
        for edge in topology.edges
        if edge.kind in ("publishes", "fed", "dead-letters", "alternate")
    }
    fed |= {edge.source for edge in topology.edges if edge.kind == "routes"}
    read = {edge.source for edge in topology.edges if edge.kind in ("delivers", "reads")}
    ways = {(edge.source, edge.target): edge for edge in topology.edges if edge.kind == "routes"}
    types = {one.node: one.type for one in topology.declared if one.node.kind == "exchange"}
    fleeting = {one.node for one in topology.declared if one.is_fleeting}
    found: list[Unused] = []
    for one in topology.declared:
        node = one.node
        if one.is_fleeting:
            continue
        if node.kind == "exchange" and node not in fed:
            found.append(
                Unused("exchange", node.vhost, node.name, None, None, one.last, "nobody published to it")
            )
        elif node.kind == "queue" and node not in read:
            found.append(Unused("queue", node.vhost, node.name, None, None, one.last, "nobody read from it"))
    for binding in topology.bindings:
        target = binding.target
        if target.kind != "queue" or target not in read or target in fleeting:
            continue
        kind = types.get(binding.source) or _PREDECLARED.get(binding.source.name)
        way = ways.get((binding.source, target))
        if way is None:
            why = "no message came by it"
        elif kind in ("direct", "topic") and not _brought(binding.key, kind, way):
            why = "no message with such a key came by it"
        else:
            continue
        found.append(
            Unused("binding", target.vhost, binding.source.name, target.name, binding.key, binding.last, why)
        )
    return sorted(found, key=lambda one: (one.kind, one.vhost, one.name, one.target or "", one.key or ""))


def _brought(key: str, kind: str, way: Edge) -> bool:
    """Whether one of the keys that came this way may have come by the binding."""
    if len(way.keys) >= MAX_KEYS:
        return True
    matcher = compile_pattern("topic" if kind == "topic" else "literal", key, {}) if "{" not in key else None
    return matcher is None or any(_may_match(matcher, seen) for seen in way.keys)


def _may_match(matcher: Matcher, seen: str) -> bool:
    return matcher.matches(seen) or matcher.overlaps(seen)


# -- drift -----------------------------------------------------------------------------------


_Change: TypeAlias = Literal["new", "gone"]
_Edges: TypeAlias = "dict[tuple[EdgeKind, Node, Node], Edge]"


@attrs.frozen
class Drift:
    """What is there in one period and not in the other."""

    change: _Change
    what: str
    source: str
    target: str | None
    messages: int


def drift(before: Topology, after: Topology) -> list[Drift]:
    """What came and what went, nodes first."""
    found = [
        *_nodes(set(after.nodes) - set(before.nodes), "new"),
        *_nodes(set(before.nodes) - set(after.nodes), "gone"),
    ]
    old = {(edge.kind, edge.source, edge.target): edge for edge in before.edges}
    new = {(edge.kind, edge.source, edge.target): edge for edge in after.edges}
    changes: tuple[tuple[_Change, _Edges, _Edges], ...] = (("new", new, old), ("gone", old, new))
    for change, have, lack in changes:
        for key in sorted(have.keys() - lack.keys()):
            edge = have[key]
            found.append(Drift(change, edge.kind, str(edge.source), str(edge.target), edge.messages))
    return found


def _nodes(nodes: Collection[Node], change: _Change) -> Iterator[Drift]:
    for node in sorted(nodes):
        yield Drift(change, node.kind, str(node), None, 0)

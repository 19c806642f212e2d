"""A topology as an AsyncAPI 3 document: who sends to which exchange and gets messages of which queue. Pure.

A channel is an exchange, or a queue; an operation is what one principal does with it. What the schema has no
attribute for has a name that begins with ``x-``. Nothing is said that records do not tell: of payloads
nothing, of sizes the mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from amqpgate.pipeline.jobs.graph import Edge, Node, Topology

#: The versions of the specification, and of its bindings for AMQP.
VERSION: Final = "3.0.0"
BINDING_VERSION: Final = "0.3.0"

AsyncapiDocument: TypeAlias = "dict[str, object]"
_T = TypeVar("_T")

#: Types of exchanges that the binding knows.
_TYPES: Final = ("topic", "direct", "fanout", "headers")
#: Exchanges that are always there; their types are their names.
_BUILT_IN: Final[Mapping[str, str]] = {f"amq.{name}": name for name in _TYPES} | {"amq.match": "headers"}
#: Of these, routing keys say nothing.
_WITHOUT_KEYS: Final = ("fanout", "headers")
_NAMED_BADLY: Final = re.compile("[^A-Za-z0-9._-]+")
#: The parts of an address that are parameters.
_PARAMETER: Final = re.compile("[{}]")
_LONGEST: Final = 255

_SENDS: Final = ("publishes",)
_GETS: Final = ("delivers", "reads")


def asyncapi_of(topology: Topology, user: str | None = None) -> AsyncapiDocument:
    """The document; ``user``: of what this one does, and the channels that it needs for that."""
    edges = [
        edge
        for edge in topology.edges
        if edge.kind in (*_SENDS, *_GETS) and (user is None or _principal(edge).name == user)
    ]
    used = {_channel(edge) for edge in edges}
    declared = {one.node for one in topology.declared} if user is None else set()
    places = sorted(used | {node for node in declared if node.name})
    names = _named(places, lambda node: f"{node.vhost.strip('/') or 'default'}.{node.kind}.{node.name}")
    channels = {names[place]: _described(place, topology, edges) for place in places}
    operations: dict[str, object] = {}
    grouped: dict[tuple[Node, bool, Node], Edge] = {}
    for edge in edges:
        key = _principal(edge), edge.kind in _SENDS, _channel(edge)
        grouped[key] = grouped[key] | edge if key in grouped else edge
    ids = _named(
        sorted(grouped), lambda key: f"{key[0].name}.{'send' if key[1] else 'receive'}.{names[key[2]]}"
    )
    for key in sorted(grouped):
        somebody, is_sent, place = key
        at = f"#/channels/{names[place]}"
        operations[ids[key]] = {
            "action": "send" if is_sent else "receive",
            "channel": {"$ref": at},
            "title": f"{somebody.name} {'publishes to' if is_sent else 'reads'} {place.kind} {place.name}",
            "tags": [{"name": somebody.name}],
            "messages": [{"$ref": f"{at}/messages/message"}],
            **_counted([grouped[key]]),
        }
    last = max((edge.last for edge in topology.edges if edge.last is not None), default=None)
    whose = "all users" if user is None else user
    return {
        "asyncapi": VERSION,
        "info": {
            "title": f"Messages of {whose}",
            "version": "0.0.0" if last is None else f"{last.year}.{last.month}.{last.day}",
            "description": "Made by amqpgate of audit records: what passed the gateways. `*` stands for ids.",
        },
        "defaultContentType": "application/octet-stream",
        "channels": channels,
        "operations": operations,
    }


def _principal(edge: Edge) -> Node:
    return edge.source if edge.kind in _SENDS else edge.target


def _channel(edge: Edge) -> Node:
    return edge.target if edge.kind in _SENDS else edge.source


def _described(place: Node, topology: Topology, edges: Sequence[Edge]) -> dict[str, object]:
    messages = {"message": {"title": "message", **_counted(_through(place, edges))}}
    described = {"title": str(place), "messages": messages}
    return described | (_queue(place, topology) if place.kind == "queue" else _exchange(place, topology))


def _queue(place: Node, topology: Topology) -> dict[str, object]:
    bound = [
        {"exchange": one.source.name, "routingKey": one.key}
        for one in topology.bindings
        if one.target == place
    ]
    dead = [
        edge.target.name for edge in topology.edges if edge.kind == "dead-letters" and edge.source == place
    ]
    return {
        "address": None if _PARAMETER.search(place.name) else place.name,
        "bindings": _bindings(place, {"is": "queue"}),
        **({"x-bindings": bound} if bound else {}),
        **({"x-dead-letters-to": dead} if dead else {}),
    }


def _exchange(place: Node, topology: Topology) -> dict[str, object]:
    kinds = {one.type for one in topology.declared if one.node == place}
    kind = _BUILT_IN.get(place.name, next(iter(kinds)) if len(kinds) == 1 else None)
    has_keys = kind not in _WITHOUT_KEYS
    keys = sorted({key for edge in topology.edges if edge.source == place for key in edge.keys})
    fed = [
        one.target.name for one in topology.bindings if one.source == place and one.target.kind == "exchange"
    ]
    said = {"type": "default" if not place.name else kind} if not place.name or kind in _TYPES else {}
    return {
        "address": "{routingKey}" if has_keys else None,
        **({"parameters": {"routingKey": {"examples": keys} if keys else {}}} if has_keys else {}),
        "bindings": _bindings(place, {"is": "routingKey"}, said),
        **({"x-feeds": fed} if fed else {}),
        **({"x-type": kind} if kind is not None and not said else {}),
    }


def _bindings(
    place: Node, what: Mapping[str, str], said: Mapping[str, str | None] | None = None
) -> dict[str, object]:
    named = {"name": place.name[:_LONGEST], "vhost": place.vhost or "/", **(said or {})}
    return {"amqp": {**what, place.kind: named, "bindingVersion": BINDING_VERSION}}


def _through(place: Node, edges: Iterable[Edge]) -> list[Edge]:
    """What came to an exchange; what went out of a queue, or if nothing did, what came to it by its name."""
    out = [edge for edge in edges if edge.source == place and edge.messages]
    return out or [edge for edge in edges if edge.target == place]


def _counted(edges: Iterable[Edge]) -> dict[str, object]:
    messages = sum(edge.messages for edge in edges)
    size = sum(edge.bytes for edge in edges)
    last = max((edge.last for edge in edges if edge.last is not None), default=None)
    mean = {"x-mean-size": round(size / messages)} if messages else {}
    seen = {"x-last-seen": last.isoformat()} if last else {}
    return {"summary": _said(messages, size), "x-messages": messages, "x-bytes": size, **mean, **seen}


def _said(messages: int, size: int) -> str:
    if not messages:
        return "No message was seen"
    return f"{messages:,} messages of {round(size / messages):,} bytes on average"


def _named(things: Iterable[_T], name: Callable[[_T], str]) -> dict[_T, str]:
    """An id for each, of letters that ids have; numbered where two would have the same."""
    taken: set[str] = set()
    named: dict[_T, str] = {}
    for thing in things:
        base = one = _NAMED_BADLY.sub("-", name(thing)).strip("-") or "unnamed"
        number = 1
        while one in taken:
            number += 1
            one = f"{base}-{number}"
        taken.add(one)
        named[thing] = one
    return named

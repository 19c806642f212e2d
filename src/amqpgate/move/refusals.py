"""What would be lost in a move, or would not work, and what to do about it: looked at before it begins.

Each `Refusal` has a name, by which an operator may accept it (``allow``) where nothing but time, or what is
said of it, is lost. Those that cannot be accepted are ``is_final``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from amqpgate.logs import on_one_line
from amqpgate.move.differences import Differences
from amqpgate.move.document import Leftovers
from amqpgate.move.objects import BrokerObject
from amqpgate.move.rewriting import ObjectNote

#: Parameters of plugins that move messages by themselves.
_MOVERS: Final = ("shovel", "federation-upstream", "federation-upstream-set")
_TTL: Final = ("message-ttl", "x-message-ttl", "expires", "x-expires")


@attrs.frozen
class Refusal:
    """One reason not to begin, or (``is_note``) one thing to know."""

    name: str
    says: str
    #: What to do.
    remedy: str = ""
    is_note: bool = False
    is_final: bool = False


@attrs.frozen(kw_only=True)
class QueueFacts:
    """A queue, as the management interface describes it. Its counts may be seconds old."""

    vhost: str
    name: str
    type: str = "classic"
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Mapping[str, object] = attrs.field(factory=dict)
    #: What its policies say.
    policy: Mapping[str, object] = attrs.field(factory=dict)
    messages: int = 0
    unacked: int = 0
    consumers: int = 0
    #: Messages per second that are acknowledged, and published.
    acked_rate: float = 0.0
    published_rate: float = 0.0

    @property
    def drains_by_time(self) -> bool:
        return any(key in self.arguments or key in self.policy for key in _TTL)

    def __str__(self) -> str:
        return on_one_line(f"{self.vhost} {self.name}")


@attrs.frozen(kw_only=True)
class RouteFacts:
    """A route at a gateway."""

    gateway: str
    route: str
    upstreams: tuple[str, ...]
    paused: bool = False
    mirror: str = ""
    #: How long new connections wait, in seconds, and how many; None: the gateway does not say.
    timeout: float | None = None
    most: int | None = None


@attrs.frozen(kw_only=True)
class MovingSession:
    """A session on the source."""

    #: None: no route, the listener's own upstream.
    route: str | None
    user: str
    client: str
    consumers: int
    published: int


@attrs.frozen(kw_only=True)
class MoveFacts:
    """All that is looked at before a move begins."""

    source: str
    target: str
    wanted_routes: tuple[str, ...]
    #: Gateways, and the routes of those that have them.
    gateways: tuple[str, ...]
    routes: tuple[RouteFacts, ...]
    sessions: tuple[MovingSession, ...]
    source_queues: tuple[QueueFacts, ...]
    target_queues: tuple[QueueFacts, ...]
    #: Delayed messages by exchange that its plugin keeps.
    delayed: Mapping[str, int]
    strangers: tuple[str, ...]
    #: Whether the source says who is connected.
    knows_strangers: bool
    #: Alarms of the target's nodes, in words.
    alarms: tuple[str, ...]
    exchange_types: frozenset[str]
    #: Virtual hosts that the source does not have, or its user may not use.
    unknown_vhosts: tuple[str, ...]
    notes: Sequence[ObjectNote]
    differences: Differences
    wanted: Sequence[BrokerObject]
    leftovers: Leftovers = "refuse"

    @property
    def has_begun(self) -> bool:
        """Whether a move is under way, or done: then the target may have messages, and clients wait."""
        return any(route.paused or route.upstreams == (self.target,) for route in self.routes)

    @property
    def has_switched(self) -> bool:
        """Whether every route leads to the target."""
        return all(route.upstreams == (self.target,) for route in self.routes)


def refusals(facts: MoveFacts) -> Iterator[Refusal]:
    """All that is found, in the order in which an operator meets it."""
    for check in _CHECKS:
        yield from check(facts)


def accepted(found: Sequence[Refusal], allow: Sequence[str]) -> list[Refusal]:
    """Those that stand in the way although these names are accepted."""
    return [one for one in found if not one.is_note and (one.is_final or one.name not in allow)]


# -- gateways ------------------------------------------------------------------------------------------------


def _routes(facts: MoveFacts) -> Iterator[Refusal]:
    known = {(route.gateway, route.route) for route in facts.routes}
    for gateway in facts.gateways:
        for name in facts.wanted_routes:
            if (gateway, name) not in known:
                yield Refusal(
                    "no-route",
                    f"{gateway} has no route '{name}'",
                    f"add it to a RoutePolicy there, leading to {facts.source}",
                    is_final=True,
                )
    for route in facts.routes:
        if route.upstreams not in ((facts.source,), (facts.target,)):
            yield Refusal(
                "elsewhere",
                f"route '{route.route}' at {route.gateway} leads to {', '.join(route.upstreams)}",
                f"a route that moves leads to {facts.source} alone, and then to {facts.target}",
                is_final=True,
            )
        if route.mirror:
            yield Refusal(
                "mirror",
                f"route '{route.route}' at {route.gateway} has a mirror: {route.mirror}",
                is_note=True,
            )


def _other_sessions(facts: MoveFacts) -> Iterator[Refusal]:
    others = {
        (one.route, one.user): one.client for one in facts.sessions if one.route not in facts.wanted_routes
    }
    for (route, user), client in others.items():
        way = "the listener's own upstream" if route is None else f"route '{route}'"
        yield Refusal(
            "other-route",
            f"user '{user}' at {client} comes to {facts.source} by {way}",
            "have a route that moves match these sessions, too, or move that route as well",
        )
    mixed = [
        one for one in facts.sessions if one.consumers and one.published and one.route in facts.wanted_routes
    ]
    if mixed and facts.leftovers == "refuse":
        yield Refusal(
            "publishing-consumers",
            f"{len(mixed)} sessions publish and consume: what they publish last may be left over",
            "say `leftovers: move`, or look at the queues when the move waits",
            is_note=True,
        )


def _pauses(facts: MoveFacts) -> Iterator[Refusal]:
    seconds = drain_estimate(facts.source_queues)
    count = sum(one.route in facts.wanted_routes for one in facts.sessions)
    for route in facts.routes:
        if route.timeout is not None and seconds is not None and seconds > route.timeout:
            yield Refusal(
                "pause-timeout",
                f"the queues take {seconds:.0f} s at the pace of their consumers; connections wait for "
                f"{route.timeout:.0f} s at route '{route.route}' of {route.gateway}, then they get 320",
                "raise pause.timeout, or begin when the queues are shorter",
            )
        if route.most is not None and count > route.most * len(facts.gateways):
            yield Refusal(
                "pause-most",
                f"{count} sessions move, and {route.most} connections may wait at route '{route.route}' of "
                f"{route.gateway}; others get 320 and come again",
                "raise pause.most",
                is_note=True,
            )


def drain_estimate(queues: Sequence[QueueFacts]) -> float | None:
    """Seconds until the slowest queue is empty once nobody publishes; None: no rate is known yet."""
    times = [queue.messages / queue.acked_rate for queue in queues if queue.messages and queue.acked_rate > 0]
    return max(times, default=None)


# -- the source ----------------------------------------------------------------------------------------------


def _source(facts: MoveFacts) -> Iterator[Refusal]:
    for vhost in facts.unknown_vhosts:
        yield Refusal(
            "vhost",
            f"{facts.source} has no virtual host '{vhost}', or its user may not use it",
            f"rabbitmqctl set_permissions -p {vhost} USER '.*' '.*' '.*'",
            is_final=True,
        )
    for stranger in facts.strangers:
        yield Refusal(
            "past-the-gateway",
            f"{stranger} uses {facts.source} past the gateways",
            "have it connect to the gateway, or stop it; the move waits for it before it switches",
        )
    if not facts.knows_strangers:
        yield Refusal(
            "connections-unknown",
            f"{facts.source} does not say who is connected: its statistics are off",
            "see with `rabbitmqctl list_connections` that all come through the gateways",
        )
    for one in facts.wanted:
        component = one.body.get("component") if one.kind == "parameter" else None
        if component in _MOVERS:
            yield Refusal(
                "federation",
                f"{one}: it is not copied, and goes on moving messages on {facts.source}",
                "stop it before, and set it up on the new broker",
            )


def _queues(facts: MoveFacts) -> Iterator[Refusal]:
    exclusive = 0
    for queue in facts.source_queues:
        if queue.type == "stream":
            yield Refusal(
                "stream",
                f"stream {queue}: it cannot be drained, and its messages stay on {facts.source}",
                "have its publishers publish to both, or accept that it begins anew",
            )
        elif queue.exclusive:
            exclusive += 1
        elif queue.name.startswith("amq.gen-"):
            yield from _server_named(facts, queue)
        elif queue.messages and not queue.consumers:
            yield from _without_consumers(facts, queue)
        if queue.auto_delete and not queue.exclusive and facts.leftovers == "move":
            yield Refusal(
                "auto-delete",
                f"queue {queue} goes with its last consumer, and what is left in it then",
                is_note=True,
            )
    if exclusive:
        yield Refusal(
            "exclusive",
            f"{exclusive} exclusive queues go with their clients, who declare them anew",
            is_note=True,
        )
    for exchange, count in facts.delayed.items():
        if count:
            yield Refusal(
                "delayed-messages",
                f"exchange {exchange} keeps {count} delayed messages, which nobody can move",
                "wait until they are due, or accept that they are lost",
            )


def _server_named(facts: MoveFacts, queue: QueueFacts) -> Iterator[Refusal]:
    if queue.messages and not queue.consumers:
        yield Refusal(
            "server-named",
            f"queue {queue} has {queue.messages} messages, no consumer, and a name that only "
            f"{facts.source} gives",
            "consume or delete them",
        )


def _without_consumers(facts: MoveFacts, queue: QueueFacts) -> Iterator[Refusal]:
    says = f"queue {queue} has {queue.messages} messages and no consumer"
    if facts.leftovers == "move":
        yield Refusal("no-consumer", f"{says}: they are published anew", is_note=True)
    elif facts.leftovers == "leave":
        yield Refusal("no-consumer", f"{says}: they stay on {facts.source}", is_note=True)
    elif queue.drains_by_time:
        yield Refusal("no-consumer", f"{says}; its time to live empties it", is_note=True)
    else:
        yield Refusal(
            "no-consumer",
            says,
            "start a consumer, or say `leftovers: move` to publish them anew, or `leftovers: leave`",
        )


# -- the target ----------------------------------------------------------------------------------------------


def _target(facts: MoveFacts) -> Iterator[Refusal]:
    for alarm in facts.alarms:
        yield Refusal(
            "alarm", f"{facts.target} takes no messages: {alarm}", "give it memory or disk", is_final=True
        )
    if not facts.has_begun:
        for queue in facts.target_queues:
            if queue.messages and not queue.exclusive and queue.type != "stream":
                yield Refusal(
                    "not-empty",
                    f"queue {queue} on {facts.target} has {queue.messages} messages",
                    "consume or delete them: they would be taken for those that moved",
                )
    for one in facts.wanted:
        kind = one.body.get("type")
        if one.kind == "exchange" and kind not in facts.exchange_types:
            yield Refusal(
                "exchange-type",
                f"{one}: {facts.target} knows no type '{kind}'",
                "enable its plugin there, or take another type"
                + ("; a delayed exchange has none on RabbitMQ 4.3" if kind == "x-delayed-message" else ""),
                is_final=True,
            )
    for wanted, there in facts.differences.conflicts:
        yield Refusal(
            "differs",
            f"{wanted} is another one on {facts.target}: {_difference(wanted, there)}",
            "delete it there, and it is made as it should be",
        )
    for there in facts.differences.kept:
        says = (
            "keeps the password that it has there: see that its clients log in with it"
            if there.kind == "user"
            else "stays as it is there"
        )
        yield Refusal("kept", f"{there} {says}", is_note=True)


def _difference(wanted: BrokerObject, there: BrokerObject) -> str:
    keys = [
        key
        for key in ("type", "durable", "auto_delete", "internal", "arguments")
        if wanted.body.get(key) != there.body.get(key)
    ]
    return "; ".join(f"{key} {there.body.get(key)}, not {wanted.body.get(key)}" for key in keys)


def _definitions(facts: MoveFacts) -> Iterator[Refusal]:
    for note in facts.notes:
        if note.is_refused:
            yield Refusal(
                "definition",
                f"{note.object}: {note.says}",
                f"{note.mended_by} mends it" if note.mended_by else "change or delete it",
                is_final=True,
            )
        else:
            yield Refusal("definition", f"{note.object}: {note.says}", is_note=True)


_CHECKS: Final[tuple[Callable[[MoveFacts], Iterator[Refusal]], ...]] = (
    _routes,
    _other_sessions,
    _pauses,
    _source,
    _queues,
    _target,
    _definitions,
)

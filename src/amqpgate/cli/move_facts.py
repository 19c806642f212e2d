"""What a move looks at before it begins, and what the target lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from amqpgate.cli.move_world import MoveWorld, policies_in
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amqpgate.cli.watching import Row
    from amqpgate.move.differences import Differences
    from amqpgate.move.refusals import MoveFacts, MovingSession, RouteFacts
    from amqpgate.move.rewriting import Rewritten

#: Parameters of plugins that move messages: never copied.
_NOT_COPIED = ("shovel", "federation-upstream", "federation-upstream-set")


def wanted(world: MoveWorld, version: str) -> Rewritten:
    """What the target, which is of that version, should have."""
    from amqpgate.move.objects import objects_of
    from amqpgate.move.rewriting import profiles_of, rewritten, target_of

    document = world.document
    objects = list(objects_of(world.source.management.lists(document.vhosts), document.vhosts))
    profiles = {}
    if document.policies is not None:
        profiles = dict(profiles_of(policies_in(document.policies), document.target.upstream, objects))
    return rewritten(objects, target_of(version), profiles)


def lacking(world: MoveWorld, should: Rewritten) -> Differences:
    """What the target has not, or otherwise."""
    from amqpgate.move.differences import differences
    from amqpgate.move.objects import objects_of

    vhosts = world.document.vhosts
    copied = [one for one in should.objects if one.body.get("component") not in _NOT_COPIED]
    there = objects_of(world.target.management.lists(vhosts), vhosts, every_user=True)
    return differences(copied, there)


def gather(world: MoveWorld) -> MoveFacts:
    """All of it. Raises ``Failure`` where somebody does not answer."""
    from amqpgate.move.refusals import MoveFacts

    document = world.document
    source, target = world.source.management, world.target.management
    version, types = target.overview()
    should = wanted(world, version)
    strangers = source.strangers(document.vhosts)
    routes: list[RouteFacts] = []
    sessions: list[MovingSession] = []
    for name, gateway in world.gateways.items():
        for row in cast("Sequence[Row]", gateway.get("/routes")["routes"]):
            if row["id"] in document.routes:
                routes.append(_route(name, row))
        sessions += [_session(row) for row in world.rows(gateway, document.source.upstream)]
    return MoveFacts(
        source=document.source.upstream,
        target=document.target.upstream,
        wanted_routes=document.routes,
        gateways=tuple(world.gateways),
        routes=tuple(routes),
        sessions=tuple(sessions),
        source_queues=source.queue_facts(document.vhosts),
        target_queues=target.queue_facts(document.vhosts),
        delayed=source.delayed(document.vhosts),
        strangers=strangers or (),
        knows_strangers=strangers is not None,
        alarms=target.alarms(),
        exchange_types=types,
        unknown_vhosts=source.unknown_vhosts(document.vhosts),
        notes=should.notes,
        differences=lacking(world, should),
        wanted=should.objects,
        leftovers=document.leftovers,
    )


def _route(gateway: str, row: Row) -> RouteFacts:
    from amqpgate.move.refusals import RouteFacts

    longest, most = row.get("longest_wait"), row.get("most_waiting")
    return RouteFacts(
        gateway=gateway,
        route=str(row["id"]),
        upstreams=tuple(cast("Sequence[str]", row["upstreams"])),
        paused=bool(row["paused"]),
        mirror=str(row.get("mirror") or ""),
        # Gateways of before do not say it.
        timeout=float(longest) if isinstance(longest, int | float) else None,
        most=most if isinstance(most, int) else None,
    )


def _session(row: Row) -> MovingSession:
    from amqpgate.move.refusals import MovingSession

    consumers, published = row.get("consumers"), row.get("published")
    return MovingSession(
        route=None if row["route"] is None else str(row["route"]),
        user=on_one_line(str(row["user"])),
        client=on_one_line(str(row["client"])),
        consumers=consumers if isinstance(consumers, int) else 0,
        published=published if isinstance(published, int) else 0,
    )

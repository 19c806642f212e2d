"""What ``amqpgate policy check`` says of routes: those never taken, mirrors of nothing, unproven logins."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.policy.engine.inclusion import subject_within
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import FolderCheck, Placed
from amqpgate.policy.kinds.route_document import Route, RoutePolicy
from amqpgate.policy.kinds.route_table import in_order
from amqpgate.yamldoc import Mark


def findings(folder: FolderCheck[RoutePolicy]) -> Iterator[Finding]:
    """What cannot be meant so, or wants a second look."""
    for placed in folder.documents:
        yield from _about_mirrors(placed)
        yield from _about_logins(placed)
    yield from _never_taken(folder)


def _about_mirrors(placed: Placed[RoutePolicy]) -> Iterator[Finding]:
    for index, route in enumerate(placed.document.spec.routes):
        mirror = route.upstream.mirror
        if mirror is not None and not mirror.percent:
            yield Finding(
                "note",
                placed.mark("spec", "routes", index, "upstream", "mirror", "percent"),
                f"route '{route.id}' mirrors nothing to '{mirror.cluster}'",
                "remove the mirror, or say how much",
            )


def _about_logins(placed: Placed[RoutePolicy]) -> Iterator[Finding]:
    spec = placed.document.spec
    for index, route in enumerate(spec.routes if spec.mode != "off" else ()):
        if (words := route.lent({})) is None:
            continue
        unproven = route.match.tls is None and (not route.match.user.is_prefix or bool(route.match.user.text))
        yield Finding(
            "note",
            placed.mark("spec", "routes", index, "upstream", "user"),
            words + (", and nobody has checked the name by which the route chooses" if unproven else ""),
            "see who that is in `amqpgate sessions`" if not unproven else "match by tls, or by listeners",
        )


def _never_taken(folder: FolderCheck[RoutePolicy]) -> Iterator[Finding]:
    placed = {one.name: one for one in folder.documents}
    before: list[tuple[RoutePolicy, Route, Mark]] = []
    for policy in in_order(one.document for one in folder.documents):
        if policy.spec.mode == "off":
            continue
        for index, route in enumerate(policy.spec.routes):
            mark = placed[policy.metadata.name].mark("spec", "routes", index)
            for earlier, taker, place in before:
                if _holds_before(earlier, policy) and subject_within(route.match, taker.match):
                    yield Finding(
                        "problem",
                        mark,
                        f"route '{route.id}' is never taken: '{taker.id}' ({place.file}:{place.line}) comes "
                        "first, and takes all its connections",
                        "remove it, put it first, or narrow the other's match",
                    )
                    break
            before.append((policy, route, mark))


def _holds_before(earlier: RoutePolicy, later: RoutePolicy) -> bool:
    """Whether the earlier policy is in force wherever the later one is."""
    spec = earlier.spec
    return earlier is later or spec.mode == "enforce" or spec.enforce_percent >= 100

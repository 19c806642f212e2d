"""Route policies: which cluster a session is for.

`route_document` has the types, `route_table` the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.kind import KeyPath, Placed, PolicyKind, Row, SessionSelection
from amqpgate.policy.kinds.route_document import RoutePolicy
from amqpgate.policy.kinds.route_findings import findings
from amqpgate.policy.kinds.route_table import Chosen, RouteTable


def _matches(policy: RoutePolicy) -> Iterator[tuple[KeyPath, Subject]]:
    for index, route in enumerate(policy.spec.routes):
        yield ("spec", "routes", index, "match"), route.match


def session_route(session: SessionSelection[RoutePolicy]) -> Chosen:
    """The route of a session that has said who it is and what it wants to open."""
    table = RouteTable(tuple(one.policy for one in session.policies))
    return table.choose(session.principal, session.connection)


def _row(policy: RoutePolicy) -> Row:
    return {
        "routes": [route.id for route in policy.spec.routes],
        "rules": [
            {"id": route.id, "effect": "route", "operations": ["connection.open"]}
            for route in policy.spec.routes
        ],
    }


def _check(documents: Sequence[Placed[RoutePolicy]]) -> None:
    """An operator pauses a route by its id alone."""
    taken: dict[str, str] = {}
    for placed in documents:
        for route in placed.document.spec.routes:
            if route.id in taken:
                raise placed.node.mark.error(f"RoutePolicy '{taken[route.id]}' has a route '{route.id}', too")
            taken[route.id] = placed.name


ROUTE: Final = PolicyKind(
    document=RoutePolicy,
    subjects=_matches,
    compile=session_route,
    row=_row,
    findings=findings,
    check=_check,
    takes_one=True,
)

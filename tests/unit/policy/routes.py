"""Route policies from short texts."""

from __future__ import annotations

from amqpgate.policy import PolicySet, RouteTable, Source, build

HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: %s}\nspec:\n"


def document(*routes: str, name: str = "p", more: str = "") -> str:
    """One RoutePolicy; each route is the inside of a flow mapping, its id is r0, r1, ... unless given."""
    lines = [
        f"  - {{{route if 'id:' in route else f'id: r{index}, {route}'}}}"
        for index, route in enumerate(routes)
    ]
    return HEAD % name + (f"  {more}\n" if more else "") + "  routes:\n" + "\n".join(lines) + "\n"


def load(*documents: str) -> PolicySet:
    return build([Source("p.yaml", "---\n".join(documents).encode())])


def table(*documents: str) -> RouteTable:
    return RouteTable(load(*documents).routes)


def to(cluster: str, match: str = "") -> str:
    return f"match: {{{match}}}, upstream: {{cluster: {cluster}}}"

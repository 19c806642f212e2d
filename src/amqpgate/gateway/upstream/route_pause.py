"""Paused routes: new connections wait at a gate, so many of them and so long; those that are open stay.

An operator's word holds over the document's ``paused`` until the document says the same, or the route is
gone.
"""

from __future__ import annotations

import attrs
import trio

from amqpgate.errors import AmqpgateError
from amqpgate.policy import Route


class PausedError(AmqpgateError):
    """The connection may not wait any longer, or not at all. ``outcome`` is the metric's label."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


@attrs.define(eq=False)
class RoutePause:
    """What is known of one route beside its document."""

    #: What the document says.
    documented: bool = False
    #: What an operator has said.
    ordered: bool | None = None
    waiting: int = 0
    #: Set, and replaced, whenever the gate may have opened.
    changed: trio.Event = attrs.field(factory=trio.Event)

    @property
    def closed(self) -> bool:
        return self.documented if self.ordered is None else self.ordered

    def tell(self) -> None:
        """Those who wait look again."""
        self.changed.set()
        self.changed = trio.Event()


@attrs.define(eq=False)
class RoutePauses:
    """The gates of all routes, by the route's id."""

    gates: dict[str, RoutePause] = attrs.field(factory=dict, init=False)

    def use(self, routes: dict[str, Route]) -> None:
        """These routes are in force now."""
        for gone in self.gates.keys() - routes.keys():
            # Those who wait there look for another route.
            self.gates.pop(gone).tell()
        for name, route in routes.items():
            gate = self.gates.setdefault(name, RoutePause())
            gate.documented = route.paused
            if gate.ordered == route.paused:
                gate.ordered = None
            # Where they would go may have changed, open or not.
            gate.tell()

    def order(self, name: str, paused: bool) -> None:
        """An operator pauses or resumes a route. ``KeyError`` where there is none of that name."""
        gate = self.gates[name]
        gate.ordered = None if paused == gate.documented else paused
        gate.tell()

    def is_closed(self, route: Route) -> bool:
        gate = self.gates.get(route.id)
        return gate is not None and gate.closed

    async def wait(self, route: Route, until: float) -> None:
        """Wait for a change; ``until`` is a time of trio's clock. Raises ``PausedError``."""
        gate = self.gates[route.id]
        if gate.waiting >= route.pause.most:
            raise PausedError("full", f"route '{route.id}' is paused, and too many wait for it already")
        gate.waiting += 1
        try:
            with trio.move_on_at(until):
                await gate.changed.wait()
                return
        finally:
            gate.waiting -= 1
        raise PausedError("timeout", f"route '{route.id}' is paused, and was not resumed in time")

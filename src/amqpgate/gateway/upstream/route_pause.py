"""Paused routes: new connections wait, so many of them and so long; open ones stay.

An operator's word holds over the document's ``paused`` until the document says the same, or the route is
gone.
"""

from __future__ import annotations

import attrs
import trio

from amqpgate.errors import AmqpgateError
from amqpgate.policy import Route
from amqpgate.values import define


class PausedError(AmqpgateError):
    """The connection may not wait any longer, or not at all. ``outcome`` is the metric's label."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


@define(eq=False)
class RoutePause:
    """What is known of one route beside its document."""

    #: What the document says.
    documented: bool = False
    #: What an operator has said.
    ordered: bool | None = None
    waiting: int = 0
    #: Set, and replaced, whenever new connections may go on, or go elsewhere.
    changed: trio.Event = attrs.field(factory=trio.Event)

    @property
    def is_paused(self) -> bool:
        return self.documented if self.ordered is None else self.ordered

    def document(self, paused: bool) -> None:
        """What a document says that has come into force."""
        self.documented = paused
        if self.ordered == paused:
            self.ordered = None
        # Where they would go may have changed, paused or not.
        self.tell()

    def order(self, paused: bool) -> None:
        """What an operator says."""
        self.ordered = None if paused == self.documented else paused
        self.tell()

    async def wait(self) -> None:
        """Wait for a change, as one of ``waiting``."""
        self.waiting += 1
        try:
            await self.changed.wait()
        finally:
            self.waiting -= 1

    def tell(self) -> None:
        """Those who wait look again."""
        self.changed.set()
        self.changed = trio.Event()


@define(eq=False)
class RoutePauses:
    """The pauses of all routes."""

    #: By the route's id.
    routes: dict[str, RoutePause] = attrs.field(factory=dict, init=False)

    def use(self, in_force: dict[str, Route]) -> None:
        """These routes are in force now."""
        for gone in self.routes.keys() - in_force.keys():
            # Those who wait there look for another route.
            self.routes.pop(gone).tell()
        for name, route in in_force.items():
            pause = self.routes.setdefault(name, RoutePause())
            pause.document(route.paused)

    def order(self, name: str, paused: bool) -> None:
        """An operator pauses or resumes a route. ``KeyError`` where there is none of that name."""
        pause = self.routes[name]
        pause.order(paused)

    def is_paused(self, route: Route) -> bool:
        pause = self.routes.get(route.id)
        return pause is not None and pause.is_paused

    async def wait(self, route: Route, until: float) -> None:
        """Wait for a change; ``until`` is a time of trio's clock. Raises ``PausedError``."""
        pause = self.routes[route.id]
        if pause.waiting >= route.pause.most:
            raise PausedError("full", f"route '{route.id}' is paused, and too many wait for it already")
        with trio.move_on_at(until):
            await pause.wait()
            return
        raise PausedError("timeout", f"route '{route.id}' is paused, and was not resumed in time")

"""How many connections one address of HTTP has: for a new one the idlest gives way.

Nobody has to prove anything to connect, and whoever says half a request may keep a connection for as long as
the web framework waits. A request that is whole is answered at once, and no stream is silent for long: so
who asks honestly is not the one that gives way.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from amqpgate.values import define


class Visitor(Protocol):
    """What ends a connection."""

    def cancel(self) -> None: ...


@define(eq=False)
class Crowd:
    """The connections of one address. A dict is a set that remembers who came first."""

    #: As many at once.
    most: int
    #: What ends each, the one on which nothing has moved for longest first.
    _all: dict[Visitor, None] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, visitor: Visitor) -> None:
        """There is a new one."""
        if len(self._all) >= self.most:
            idlest = next(iter(self._all))
            del self._all[idlest]
            idlest.cancel()
        self._all[visitor] = None

    def moved(self, visitor: Visitor) -> None:
        """Something has been heard on it, or has been said and taken."""
        if visitor in self._all:
            del self._all[visitor]
            self._all[visitor] = None

    def leave(self, visitor: Visitor) -> None:
        """It is over. Idempotent."""
        self._all.pop(visitor, None)

    def end(self) -> None:
        """End all that are there."""
        for visitor in self._all:
            visitor.cancel()

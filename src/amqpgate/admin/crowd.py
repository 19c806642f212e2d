"""How many connections one address of the admin interface has: for a new one the idlest gives way.

Nobody has to prove anything to connect, and whoever says half a request may keep a connection for as long as
the web framework waits. A request that is whole is answered at once, and no stream is silent for long: so
who asks honestly is not the one that gives way.
"""

from __future__ import annotations

import attrs
import trio


@attrs.define(eq=False)
class Crowd:
    """The connections of one address. A dict is a set that remembers who came first."""

    #: As many at once.
    most: int
    #: What ends each, the one on which nothing has moved for longest first.
    _all: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, scope: trio.CancelScope) -> None:
        """There is a new one, which ends with the scope."""
        if len(self._all) >= self.most:
            idlest = next(iter(self._all))
            del self._all[idlest]
            idlest.cancel()
        self._all[scope] = None

    def moved(self, scope: trio.CancelScope) -> None:
        """Something has been heard on it, or has been said and taken."""
        if scope in self._all:
            del self._all[scope]
            self._all[scope] = None

    def leave(self, scope: trio.CancelScope) -> None:
        """It is over. Idempotent."""
        self._all.pop(scope, None)

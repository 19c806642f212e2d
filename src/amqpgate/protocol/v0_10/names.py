"""Names of sessions that are in use: one session at a time has a name (rule "one-transport-per-session").

Names are scoped to the user who logged in (rule "scoping"), and are one space for all connections to a
broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Makes the session that has a name let go of it.
Evict: TypeAlias = Callable[[], None]


class SessionNames:
    """Who has which name, for all connections that lead to the same broker."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[tuple[bytes, bytes], Evict] = {}

    def __len__(self) -> int:
        """How many names are in use."""
        return len(self._holders)

    def claim(self, user: bytes, name: bytes, evict: Evict, *, force: bool) -> bool:
        """Take a name. False if it is in use; with ``force`` who has it is evicted first."""
        holder = self._holders.get((user, name))
        if holder is not None:
            if not force:
                return False
            holder()
        self._holders[user, name] = evict
        return True

    def release(self, user: bytes, name: bytes, evict: Evict) -> None:
        """Give a name up, if it is still held with ``evict``."""
        if self._holders.get((user, name)) == evict:
            del self._holders[user, name]

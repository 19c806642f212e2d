"""What every conversation has: whom it talks to, names of its own, connections that end with it."""

from __future__ import annotations

from contextlib import AsyncExitStack

import attrs

from amqpgate.conformance.dialling import PeerLogin


@attrs.define(eq=False)
class CaseSetting:
    """One case's conversation, before a word is said."""

    target: PeerLogin
    patience: float
    #: Begins every name on the broker.
    prefix: str
    _stack: AsyncExitStack = attrs.field(factory=AsyncExitStack, init=False)
    _count: int = attrs.field(default=0, init=False)

    def name(self) -> str:
        """One that nobody else has, for a queue or an exchange."""
        self._count += 1
        return f"{self.prefix}{self._count}"

    async def aclose(self) -> None:
        """Hang up."""
        await self._stack.aclose()

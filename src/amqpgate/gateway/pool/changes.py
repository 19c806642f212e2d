"""Waiting for a condition that others bring about."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from amqpgate.values import define


@define(eq=False, weakref_slot=False)
class Changes:
    """Wakes whoever waits for a condition, each time that something has changed which it may rest on."""

    _event: trio.Event | None = attrs.field(default=None, init=False)

    def tell(self) -> None:
        """Something has changed."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once it ``holds``. It is looked at now, and after each change."""
        while not holds():
            if self._event is None:
                self._event = trio.Event()
            await self._event.wait()

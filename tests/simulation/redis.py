"""The model Redis of shared limits: buckets that outlive gateways, as the script of theirs keeps them.

It stands in the place of a client of Redis': what that says on its wire is in no story.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from coredis.exceptions import NoScriptError

from amqpgate.gateway.limits.distributed import SCRIPT

if TYPE_CHECKING:
    from tests.simulation.clock import Clock

_NAME = hashlib.sha1(SCRIPT.encode()).hexdigest()


class Redis:
    """One server."""

    def __init__(self, clock: Clock, latency: float) -> None:
        self.clock, self.latency = clock, latency
        #: By key: tokens, and when they were so many.
        self.buckets: dict[str, tuple[float, float]] = {}
        self.is_there = True
        self._has_script = False
        #: All that was ever granted.
        self.granted = 0.0

    # -- what befalls it ---------------------------------------------------------------------------

    def leave(self, *, forgets: bool) -> None:
        """It is away; ``forgets``: it has kept nothing."""
        self.is_there = self._has_script = False
        if forgets:
            self.buckets.clear()

    def come_back(self) -> None:
        self.is_there = True

    # -- as a client of it -------------------------------------------------------------------------

    @asynccontextmanager
    async def connected(self, _: object) -> AsyncIterator[Redis]:
        """As ``client_of``."""
        yield self

    async def _answer(self) -> None:
        await trio.sleep(2 * self.latency)
        if not self.is_there:
            raise OSError("nobody answers")

    async def ping(self) -> bytes:
        await self._answer()
        return b"PONG"

    async def script_load(self, script: str) -> str:
        assert script == SCRIPT
        await self._answer()
        self._has_script = True
        return _NAME

    async def evalsha(self, name: str, keys: list[str], args: list[str]) -> list[str]:
        """Debit buckets, as the script does it."""
        await self._answer()
        if name != _NAME or not self._has_script:
            raise NoScriptError("NOSCRIPT")
        granted, now = [], self.clock.now
        for number, key in enumerate(keys):
            rate, burst, want = (float(one) for one in args[3 * number : 3 * number + 3])
            tokens, stamp = self.buckets.get(key, (burst, now))
            tokens = min(burst, tokens + max(0.0, now - stamp) * rate)
            got = max(0.0, min(want, tokens))
            self.buckets[key] = tokens - got, now
            self.granted += got
            granted.append(f"{got:.9f}")
        return granted

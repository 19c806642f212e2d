"""The memory of one gateway: what is over is looked for, and what is free goes back to the system."""

from __future__ import annotations

import math
import sys
import time

import attrs
import trio

from amqpgate.config import Settings
from amqpgate.gateway.handshake.pending import PendingHandshakes
from amqpgate.gateway.server.full_collections import FullCollections
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.transport.memory_trim import MANY_BLOCKS, Tide, collect, give_back
from amqpgate.values import define


@define(eq=False)
class MemoryKeeping:
    """Looked after once a second."""

    settings: Settings
    sessions: SessionRegistry
    pending: PendingHandshakes
    collections: FullCollections
    #: Sessions at once.
    _tide: Tide = attrs.field(factory=Tide, init=False)
    #: Blocks of pymalloc at once.
    _blocks: Tide = attrs.field(factory=lambda: Tide(MANY_BLOCKS), init=False)
    #: When memory is given back once more, on trio's clock.
    _again: float = attrs.field(default=math.inf, init=False)

    async def keep(self) -> None:
        """Free what nobody has any more, and give it back."""
        self.collections.look(time.monotonic())
        are_freed = self._blocks.fell(sys.getallocatedblocks())
        if self._has_ebbed() or are_freed:
            if are_freed or self._again == math.inf:
                # Not before what they have done is written as well.
                collect(len(self.sessions.live))
            await trio.to_thread.run_sync(give_back, abandon_on_cancel=True)

    def _has_ebbed(self) -> bool:
        """Whether much memory has become free since it was given back."""
        fell = [self.pending.has_fallen(), self._tide.fell(len(self.sessions.live))]
        now = trio.current_time()
        if any(fell) and self.settings.audit is not None:
            # What they have done is written, and free, only then.
            self._again = now + 2 * self.settings.audit.window + self.settings.audit.roll_interval
        if now >= self._again:
            self._again = math.inf
            return True
        return any(fell)

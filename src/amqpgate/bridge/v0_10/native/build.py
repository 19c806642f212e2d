"""What every message passes on its way, compiled or, on machines without a compiler, plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpgate.bridge.v0_10.native.cutting import AssemblyCutter
    from amqpgate.bridge.v0_10.native.queues import Counter, Original, OriginalQueue, Outgoing

    COMPILED = True
else:
    try:
        from amqpgate.bridge.v0_10.native._native import (
            AssemblyCutter,
            Counter,
            Original,
            OriginalQueue,
            Outgoing,
        )

        COMPILED = True
    except ImportError:
        from amqpgate.bridge.v0_10.native.cutting import AssemblyCutter
        from amqpgate.bridge.v0_10.native.queues import Counter, Original, OriginalQueue, Outgoing

        COMPILED = False

__all__ = [
    "COMPILED",
    "AssemblyCutter",
    "Counter",
    "Original",
    "OriginalQueue",
    "Outgoing",
]

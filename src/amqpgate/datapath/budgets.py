"""How much both engines do at once, and what they count.

The compiled engine has its figures from here, and nothing else of the plain one's modules.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.latency import LatencyCounts
from amqpgate.datapath.tables import ScanResult
from amqpgate.values import define

#: Bytes per read, into one shared scratch. The more, the fewer wake-ups and system calls; the longer others
#: wait, too. As a part of what a message costs with 256 KiB: 128 KiB 1.00 to 1.23, 512 KiB 0.84 to 1.00
#: (0.92 on average), 1 MiB 0.77 to 1.02 (0.88); bodies of 16 B to 64 KiB, both ways (medians of 5 rounds).
CHUNK = 512 * 1024
#: Likewise while what comes is rewritten: that takes about twice as long as to pass it. See decision 0028.
CHUNK_REWRITTEN = 256 * 1024
#: What the gateway itself may say to a client that does not read (refusals, close-oks) before it
#: stops listening to it. Deliveries do not count: a client may publish while it does not read.
OWN_WORDS = 1024 * 1024
#: Reads from a side to which a send has failed: its last words are within so many times ``CHUNK``, or lost.
LAST_READS = 4
#: Bytes of what is kept that are looked at at once.
PIECE = 64 * 1024
#: Frames of one pooled session that are relayed at once, at most; their numbers on the link are kept.
RUN = 1024
#: Sockets handled per step; the driver lets other tasks run between steps.
EVENTS = 256
#: Seconds that the upcalls of one connection may take before others have their turn; the clock is looked at
#: after each of them. See decision 0028 for the measurements.
TURN = 1e-3
#: Seconds after which a step begins no more turns of those whom epoll names, and as many for those who have
#: had theirs and have more to say: whoever drives the pump, and new events, wait for two of it and two turns.
#: See decision 0028 for the measurements.
ROUND = 2e-3


@define
class PumpCounters:
    """What the pump did, for metrics."""

    relays: int = 0
    #: Upcalls by `ScanResult`.
    called: list[int] = attrs.field(factory=lambda: [0] * (max(ScanResult) + 1))
    failures: int = 0
    paused: int = 0
    throttled: int = 0
    latency: LatencyCounts = attrs.field(factory=LatencyCounts)

    @property
    def upcalls(self) -> int:
        return sum(self.called)

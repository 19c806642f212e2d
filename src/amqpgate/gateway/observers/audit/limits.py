"""What limits did in a window: one event for each session, limit and kind of thing, with how often.

A limit may do something for every message, so its events are summed; nothing that it did is left out.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import attrs

from amqpgate.gateway.observers.audit.columns import json_of
from amqpgate.policy import SharedLimit
from amqpgate.records import Origin
from amqpgate.telemetry.audit.log import AuditLog


@attrs.define
class Occurrences:
    """How often something has happened, and when first and last, in epoch seconds."""

    first: float
    last: float
    count: int = 0

    def add(self, now: float) -> None:
        """It has happened once more."""
        self.last, self.count = now, self.count + 1


@attrs.define(eq=False)
class LimitCounts:
    """Of one gateway. Bounded by the sessions that there have been in a window, and their limits."""

    #: None: a connection that is no session yet.
    _done: dict[tuple[Origin | None, SharedLimit, str], Occurrences] = attrs.field(factory=dict)

    def note(self, origin: Origin | None, limit: SharedLimit, what: str) -> None:
        """A limit ``delayed`` or ``refused``, or would have; or a session ``waited`` a second for it."""
        now = time.time()
        self._done.setdefault((origin, limit, what), Occurrences(now, now)).add(now)

    def tell(self, log: AuditLog, digest: str) -> None:
        """The window is over."""
        for (origin, limit, what), times in self._done.items():
            detail: dict[str, object] = {
                "limit": limit.name,
                "happened": what,
                "enforced": limit.enforced,
                "times": times.count,
                "last": datetime.fromtimestamp(times.last, UTC).isoformat(),
            }
            log.event(
                origin,
                "throttled",
                times.first,
                policy=limit.policy,
                rule=limit.limit,
                policy_digest=digest,
                detail=json_of(detail),
            )
        self._done.clear()

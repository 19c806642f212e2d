"""Connections that did not become sessions, in the log: the first ones each, then how many.

Who makes thousands of them is not to fill a disk with lines.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

import attrs

from amqpgate.logs import About, about
from amqpgate.telemetry.faults import contained
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Seconds.
INTERVAL: Final = 10.0
#: So many have a line of their own in each interval.
SAMPLE: Final = 10
#: Addresses that are counted one by one in an interval; others are counted together.
_ADDRESSES: Final = 1024


@define(eq=False)
class HandshakeFailures:
    """The log of failed handshakes of a gateway. Times are seconds of a clock that never goes back."""

    _until: float = attrs.field(default=0.0, init=False)
    _told: int = attrs.field(default=0, init=False)
    _outcomes: Counter[str] = attrs.field(factory=Counter, init=False)
    _sources: Counter[str] = attrs.field(factory=Counter, init=False)

    @contained("decisions", None)
    def add(
        self, now: float, session: str, address: str, outcome: str, why: str, who: About | None = None
    ) -> None:
        """One more; ``address`` is ``host:port``, and ``who`` what the client says of itself."""
        self.tick(now)
        if self._told < SAMPLE:
            if not self._told:
                self._until = now + INTERVAL
            self._told += 1
            what: About = {"session": session, "client": address, **(who or {})}
            log.info("%s from %s: %s", session, address, why, extra=about(**what))
            return
        self._outcomes[outcome] += 1
        source = address.rpartition(":")[0]
        if source in self._sources or len(self._sources) < _ADDRESSES:
            self._sources[source] += 1

    @contained("decisions", None)
    def tick(self, now: float) -> None:
        """Once a second or so: what was not told one by one is told as a number."""
        if not self._told or now < self._until:
            return
        if self._outcomes:
            how = ", ".join(f"{outcome} {count}" for outcome, count in self._outcomes.most_common())
            source, most = self._sources.most_common(1)[0]
            log.info(
                "%d more connections did not become sessions within %g s (%s), %d of them from %s",
                self._outcomes.total(),
                INTERVAL,
                how,
                most,
                source,
            )
        self._told = 0
        self._outcomes.clear()
        self._sources.clear()

"""Which turns of the plain pump are timed, and how long they took (`latency`)."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from amqpgate.datapath.endpoint import PlainRelayEndpoint
from amqpgate.datapath.latency import ROUNDS, LatencyCounts


@attrs.define(eq=False)
class TurnTimer:
    """Which turns of the plain pump are timed; the compiled one has the same in itself."""

    counts: LatencyCounts
    #: When epoll was looked at last.
    _looked: float
    #: Looks before the next one that times a turn; below zero: this one does.
    _rounds: int = attrs.field(default=ROUNDS, init=False)
    #: Turns go round among those that epoll names at once: who comes first waits least.
    _picked: int = attrs.field(default=0, init=False)
    #: Whose turn is timed, until it is over. A long one goes on in the next steps.
    _timed: PlainRelayEndpoint | None = attrs.field(default=None, init=False)
    #: When its bytes came, at the earliest.
    _since: float = attrs.field(default=0.0, init=False)

    def is_due(self) -> bool:
        """The next look, which is told by this: whether it is to say if anything was there before it."""
        self._rounds -= 1
        if self._timed is not None and not self._timed.active:
            self._timed = None
        return self._rounds < 0 and self._timed is None

    def choose(self, many: int, now: float, *, waited: bool) -> int:
        """Which of ``many`` events is timed, or -1; ``waited``: nothing was there, and then it came."""
        chosen = -1
        if many and self._rounds < 0 and self._timed is None:
            self._picked += 1
            chosen = self._picked % many
            self._since = now if waited else self._looked
        self._looked = now
        return chosen

    def begin(self, endpoint: PlainRelayEndpoint, *, has_bytes: bool) -> None:
        """It was chosen, and its turn is next. What is not read now is not timed."""
        if has_bytes and not endpoint.paused and not endpoint.throttled and not endpoint.queued:
            self._timed = endpoint

    def end(self, clock: Callable[[], float]) -> None:
        """A turn is over; of others than the one that is timed nothing is known by that."""
        endpoint = self._timed
        if endpoint is None or endpoint.queued:
            return
        self._timed, self._rounds = None, ROUNDS
        if endpoint.active and not endpoint.throttled and not _peer_waits(endpoint):
            self.counts.add(clock() - self._since)


def _peer_waits(endpoint: PlainRelayEndpoint) -> bool:
    """Whether bytes for the other side wait until that takes them."""
    if endpoint.as_link is not None:
        return False
    pooled = endpoint.pooled_peer
    if pooled is None:
        return bool(endpoint.peer.out)
    return pooled.way is not None and bool(pooled.way.out)

"""Heartbeats of one hop, with time as an argument (AMQP 0-9-1, section 4.2.7 "Heartbeat Frames")."""

from __future__ import annotations

from math import inf
from typing import Final

#: Quiet intervals after which the peer is taken for dead. RabbitMQ and the standard both say two.
MISSED_INTERVALS: Final = 2


class Heartbeat:
    """When to send a heartbeat, and when to give the peer up.

    ``interval`` is the agreed heartbeat in seconds, 0 for none; ``now`` is any clock in seconds that
    never goes back. Any bytes count as a sign of life, in both directions. Like RabbitMQ we send after
    half an interval of silence of our own, and give the peer up after two intervals of its silence.

    The methods may be called as often or as seldom as one likes: the clock of a relay calls ``received``
    and ``sent`` once per chunk, not per frame.
    """

    __slots__ = ("_last_received", "_last_sent", "interval")

    def __init__(self, interval: float, now: float) -> None:
        self.interval = interval
        self._last_received = now
        self._last_sent = now

    def received(self, now: float) -> None:
        """Bytes came in."""
        self._last_received = now

    def sent(self, now: float) -> None:
        """Bytes went out."""
        self._last_sent = now

    def is_due(self, now: float) -> bool:
        """Whether a heartbeat must go out now."""
        return now >= self.send_at

    def is_expired(self, now: float) -> bool:
        """Whether the peer has been silent for too long: close without a word, it does not listen."""
        return now >= self.expires_at

    @property
    def send_at(self) -> float:
        """The moment at which a heartbeat falls due if nothing is sent before."""
        return self._last_sent + self.interval / 2 if self.interval else inf

    @property
    def expires_at(self) -> float:
        """The moment at which the peer is given up if nothing is received before."""
        return self._last_received + self.interval * MISSED_INTERVALS if self.interval else inf

    @property
    def next_deadline(self) -> float:
        """When to look again; infinity without heartbeats."""
        return min(self.send_at, self.expires_at)

"""One shared connection as its pool's plan knows it: channels that are taken, and those kept open ahead.

Decisions only, as in `plan`, which has the rest of them.

- Channels are kept open ahead: ``spareChannels`` on each connection, or as many as its busiest second of late
  took in `AHEAD` seconds, if that is more. Once a client has asked for confirms, and until none has for
  ``idleTimeout``, the same again in confirm mode, but no more than half of what is not taken. What is
  twice too many is closed.
- A connection counts as full for new sessions when those on it would fill it once each has as many
  channels as sessions of the pool mostly have in the end.
- Where the broker limits the channels of the login none is kept open ahead.
- After a spare channel that the broker closes, none is opened ahead on its connection for
  `PATIENCE` seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum
from typing import Final

import attrs

from amqpgate.config import Pooling
from amqpgate.gateway.pool.channel_numbers import ChannelNumbers, NumberState

#: Seconds in which nothing is tried again that has just failed.
PATIENCE: Final = 1.0
#: So many seconds' worth of channels are kept open: a channel.open takes a round trip to the broker, which is
#: hardly further away than this.
AHEAD: Final = 0.25
#: Seconds after which half of the busiest second is forgotten.
HALF_LIFE: Final = 10.0
#: What a connection keeps for the sessions that are on it: one number in so many.
RESERVE: Final = 8
#: About so many sessions are what is typical.
SIZES: Final = 8


@attrs.frozen
class OpenChannel:
    """Send channel.open, and behind it confirm.select if it is to be in confirm mode."""

    link: PooledConnection
    number: int
    confirming: bool


@attrs.frozen
class CloseChannel:
    """Send channel.close for a spare channel."""

    link: PooledConnection
    number: int


@attrs.define
class SessionSizes:
    """How many channels a session has, at most: a mean of the last ones."""

    typical: float = 0.0

    def left(self, channels: int) -> None:
        """A session is over, that had so many."""
        self.typical += (channels - self.typical) / SIZES

    def outgrew(self, channels: int) -> None:
        """A session needs so many, and its connection has no more."""
        self.typical = max(self.typical, float(channels))


@attrs.define
class ChannelCeiling:
    """How many channels the broker lets the login have, on all connections of the pool together.

    RabbitMQ limits those of a user, and ends the connection that opens one more; nobody can ask it how many.
    So it is known once a connection was lost for it, and believed until the limit may be another.
    """

    #: The pool's.
    links: list[PooledConnection]
    #: None: not known to be limited.
    most: int | None = None
    until: float = -math.inf

    @property
    def left(self) -> float:
        """How many more may be opened."""
        if self.most is None:
            return math.inf
        used = sum(link.numbers.most - link.numbers.count(NumberState.FREE) for link in self.links)
        return max(0, self.most - used)

    @property
    def is_reached(self) -> bool:
        """Whether sessions have them all. What they do not have is closed, and may be opened then."""
        return (
            self.most is not None
            and sum(link.numbers.count(NumberState.TAKEN) for link in self.links) >= self.most
        )

    def found(self, most: int, until: float) -> None:
        """The broker has refused one more than so many."""
        self.most, self.until = most, until

    def look(self, now: float) -> None:
        """What time alone brings about."""
        if now >= self.until:
            self.most = None


@attrs.define
class ChannelDemand:
    """How many were asked for in the busiest second of late."""

    #: When the last one was.
    last: float = -math.inf
    _peak: float = 0.0
    _since: float = -math.inf
    _count: int = 0

    def add(self, now: float) -> None:
        """One more is asked for."""
        if now - self._since >= 1.0:
            self._since, self._count = now, 0
        self._count += 1
        self._peak, self.last = max(self.peak(now), float(self._count)), now

    def peak(self, now: float) -> float:
        """In one second; the longer ago, the less."""
        return self._peak * 0.5 ** ((now - self.last) / HALF_LIFE) if self._peak else 0.0


class ConnectionStage(Enum):
    """How far a connection is in its life, as operators see it."""

    OPEN = "open"
    #: It is too old: it takes new sessions only where no other does.
    RETIRING = "retiring"
    #: The plan has asked for its close.
    CLOSING = "closing"


@attrs.define(eq=False)
class PooledConnection:
    """One shared connection, as its pool's plan knows it."""

    #: Of its pool; no two ever have the same.
    id: int
    born: float
    numbers: ChannelNumbers
    #: Channels, and of those in confirm mode.
    opens: ChannelDemand
    confirms: ChannelDemand
    #: Of the pool's sessions.
    sizes: SessionSizes = attrs.field(factory=lambda: SessionSizes())
    ceiling: ChannelCeiling = attrs.field(factory=lambda: ChannelCeiling([]), repr=False)
    #: How many sessions use it.
    sessions: int = 0
    #: When the last of them left, or it came.
    idle_since: float = attrs.field(init=False)
    stage: ConnectionStage = ConnectionStage.OPEN
    #: The broker reads nothing of it, for a memory or disk alarm.
    is_blocked: bool = False
    #: When channels may be opened ahead again.
    _opens_at: float = attrs.field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self.idle_since = self.born

    @property
    def retiring(self) -> bool:
        return self.stage is ConnectionStage.RETIRING

    @property
    def closing(self) -> bool:
        return self.stage is ConnectionStage.CLOSING

    def retire(self) -> None:
        """It is too old, and another takes sessions."""
        if not self.closing:
            self.stage = ConnectionStage.RETIRING

    def close(self) -> None:
        """It is to be closed."""
        self.stage = ConnectionStage.CLOSING

    def block(self, *, blocked: bool) -> None:
        """The broker has said so."""
        self.is_blocked = blocked

    def entered(self) -> None:
        """One more session uses it."""
        self.sessions += 1

    def left(self, now: float) -> None:
        """A session does not use it any more."""
        self.sessions -= 1
        if not self.sessions:
            self.idle_since = now

    @property
    def room(self) -> int:
        """Channels that may be taken."""
        return self.numbers.count(NumberState.OPENING, NumberState.SPARE) + self.free

    @property
    def free(self) -> int:
        """Channels that may be opened."""
        return int(min(self.numbers.count(NumberState.FREE), self.ceiling.left))

    @property
    def in_use(self) -> int:
        """Channels that are somebody's, or were until just now."""
        return self.numbers.count(NumberState.TAKEN, NumberState.CLOSING)

    @property
    def in_use_soon(self) -> int:
        """As `in_use`, when those who are there have what sessions mostly have."""
        return max(self.in_use, int(self.sessions * self.sizes.typical))

    @property
    def is_nearly_full(self) -> bool:
        """Whether what is left is kept for those who are there."""
        return self.in_use_soon >= self.numbers.most - self.numbers.most // RESERVE

    def is_old(self, settings: Pooling, now: float) -> bool:
        return now - self.born >= settings.max_age

    def takes_sessions(self, settings: Pooling, now: float) -> bool:
        """Whether new sessions may as well be here."""
        is_going = self.closing or self.retiring or self.is_old(settings, now)
        return not is_going and not self.is_blocked and not self.is_nearly_full

    def spare_rejected(self, now: float) -> None:
        """The broker does not want channels that nobody uses."""
        self._opens_at = now + PATIENCE

    # -- channels ahead of need --------------------------------------------------------------

    def wants(self, settings: Pooling, now: float) -> Iterator[OpenChannel | CloseChannel]:
        """Opens what is lacking, closes what is too much."""
        if self.closing or self.is_blocked:
            return
        plain, confirming = self._aims(settings, now)
        free, there = (
            self.numbers.count(NumberState.FREE),
            self.numbers.count(NumberState.OPENING, NumberState.SPARE),
        )
        # What is to be taken comes first: without it, nobody asks for confirms.
        is_lacking = free + there < max(1, plain)
        yield from self._adjust(NumberState.OPENING, NumberState.SPARE, plain, now, most=2 * plain)
        yield from self._adjust(
            NumberState.OPENING_CONFIRMING,
            NumberState.SPARE_CONFIRMING,
            confirming,
            now,
            most=confirming if is_lacking else 2 * confirming,
        )

    def _aims(self, settings: Pooling, now: float) -> tuple[int, int]:
        """How many spare channels there should be, and how many in confirm mode."""
        if self.retiring or self.ceiling.most is not None:
            # Those that nobody needs would be counted, too.
            return 0, 0
        # What is being closed will be there soon.
        left = self.numbers.most - self.numbers.count(NumberState.TAKEN)
        confirming = 0
        if now - self.confirms.last < settings.idle_timeout:
            confirming = min(left // 2, max(settings.spare_channels, int(self.confirms.peak(now) * AHEAD)))
        plain = max(settings.spare_channels, int(self.opens.peak(now) * AHEAD))
        return min(left - confirming, plain), confirming

    def _adjust(
        self, opening: NumberState, spare: NumberState, aim: int, now: float, *, most: int
    ) -> Iterator[OpenChannel | CloseChannel]:
        there = self.numbers.count(opening, spare)
        if there < aim and now >= self._opens_at:
            for _ in range(min(aim - there, self.numbers.count(NumberState.FREE))):
                number = self.numbers.lowest(NumberState.FREE)
                assert number is not None
                self.numbers.move(number, opening)
                yield OpenChannel(self, number, opening is NumberState.OPENING_CONFIRMING)
        elif there > most:
            for _ in range(min(there - aim, self.numbers.count(spare))):
                number = self.numbers.highest(spare)
                assert number is not None
                self.numbers.move(number, NumberState.CLOSING)
                yield CloseChannel(self, number)

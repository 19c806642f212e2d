"""Which shared connection a session's channels are on, and what is dialled, opened and closed for that.

A *link* is short for a shared connection. Decisions only: nothing here dials or sends, and time is an
argument (seconds of a clock that never goes back). What is to be done comes out of ``PoolPlan.wants``, and
each action is answered by one call:

================  ================================================================
``DialLink``      ``added``, or ``dial_failed``
``OpenChannel``   ``opened`` for open-ok and select-ok, or ``closed`` if the broker closes it instead
``CloseChannel``  ``closed``
``CloseLink``     ``lost``
================  ================================================================

``lost`` answers all that is open on a link. ``wants`` is called after whatever happened, and once a second.

- A session is assigned to a link when it opens its first channel, and opens all others there; where its link
  has no more it gets a connection of its own (`pooled_upstream`). It is assigned to the fullest link that
  has room, so that others fall idle. A link that is nearly full (an eighth is left) takes new sessions only
  where there is no other: the eighth is for those who are there already.
- A link that the broker blocks gets new sessions only where no other may be dialled: they would wait for
  the end of the alarm, and who does not publish need not.
- Nobody waits while a number is free on another link. One link is dialled ahead when all are nearly full or
  too old.
- The links that there are, being dialled and being closed are never more than ``maxLinks``.
- Channels are kept open ahead on each link (`connection_state`).
- A link without sessions is closed after ``idleTimeout`` if another takes sessions, or if there are no
  clients.
- At ``maxAge`` a link retires as soon as another takes sessions: it gets new ones only where no other has
  room, and is closed when its last one leaves. Where no other may be dialled it is closed when nobody is on
  it.
- Once the broker has ended a link for its login has too many channels, the pool has no more of them than it
  had then, for ``maxAge``; who needs one gets a connection of its own (`pooled_upstream`).
- After a dial that fails, or a link that is lost as soon as it was there, none is dialled for `PATIENCE`
  seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import attrs

from amqpgate.config import Pooling
from amqpgate.gateway.pool.channel_numbers import ChannelNumbers, NumberState
from amqpgate.gateway.pool.connection_state import (
    PATIENCE,
    ChannelCeiling,
    ChannelDemand,
    CloseChannel,
    OpenChannel,
    PooledConnection,
    SessionSizes,
)


@attrs.frozen
class DialLink:
    """Make one more link."""


@attrs.frozen
class CloseLink:
    """Close the link; nobody is on it."""

    link: PooledConnection
    why: str


Action: TypeAlias = DialLink | OpenChannel | CloseChannel | CloseLink


@attrs.frozen
class AcquiredChannel:
    """A number that is the session's from now on.

    With neither of the two channel.open is on its way, and its open-ok is the session's.
    """

    number: int
    #: The broker has said open-ok.
    is_open: bool
    #: The session has to send channel.open.
    must_open: bool


@attrs.define(eq=False)
class PoolPlan:
    """The links of one identity. A session has ``entered`` before all else, and has ``gone`` at its end."""

    settings: Pooling
    #: Those that are being closed included.
    links: list[PooledConnection] = attrs.field(factory=list, init=False)
    #: Clients that are logged in, with channels or without.
    sessions: int = attrs.field(default=0, init=False)
    #: Links that are being made.
    dialling: int = attrs.field(default=0, init=False)
    sizes: SessionSizes = attrs.field(factory=SessionSizes, init=False)
    ceiling: ChannelCeiling = attrs.field(init=False)
    _last_id: int = attrs.field(default=0, init=False)
    _dials_at: float = attrs.field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self.ceiling = ChannelCeiling(self.links)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be lost with it."""
        return not (self.links or self.sessions or self.dialling)

    @property
    def may_grow(self) -> bool:
        """Whether one more link may be dialled."""
        return len(self.links) + self.dialling < self.settings.max_links

    @property
    def has_spares(self) -> bool:
        """Whether a channel is open, or is being opened, that nobody uses."""
        ahead = (
            NumberState.OPENING,
            NumberState.OPENING_CONFIRMING,
            NumberState.SPARE,
            NumberState.SPARE_CONFIRMING,
        )
        return any(link.numbers.count(*ahead) for link in self.links)

    # -- sessions ----------------------------------------------------------------------------

    def entered(self) -> None:
        """A client has logged in."""
        self.sessions += 1

    def gone(self, channels: int = 0) -> None:
        """It is no more; it had ``left`` its link before. ``channels``: how many it had at once."""
        self.sessions -= 1
        if channels:
            self.sizes.left(channels)

    def assign(self) -> PooledConnection | None:
        """The link for a session that opens its first channel; None: it waits, and asks again at any change.

        ``wants`` is told how many wait. If the pool may not grow it takes until somebody closes a channel.
        """
        there = [link for link in self.links if link.room and not link.closing]
        can_wait = self.may_grow or self.dialling
        if not there or (can_wait and all(link.is_blocked for link in there)):
            return None
        link = min(there, key=_rank)
        link.entered()
        return link

    def left(self, link: PooledConnection, now: float) -> None:
        """A session does not use the link any more, and has released all its channels before."""
        link.left(now)

    # -- channels of sessions ----------------------------------------------------------------

    def acquire(self, link: PooledConnection, now: float) -> AcquiredChannel | None:
        """A channel for a session of that link: one that is open, or the lowest number that is free.

        None: all are taken.
        """
        link.opens.add(now)
        for state in (NumberState.SPARE, NumberState.FREE, NumberState.OPENING):
            number = link.numbers.lowest(state)
            if number is not None and (state is not NumberState.FREE or link.free):
                link.numbers.move(number, NumberState.TAKEN)
                return AcquiredChannel(
                    number, is_open=state is NumberState.SPARE, must_open=state is NumberState.FREE
                )
        return None

    def acquire_confirming(self, link: PooledConnection, number: int, now: float) -> int | None:
        """A channel in confirm mode for one that has only been opened, which is a spare one again.

        None: there is none; the session's own is to be put into confirm mode.
        """
        link.confirms.add(now)
        spare = link.numbers.lowest(NumberState.SPARE_CONFIRMING)
        if spare is not None:
            link.numbers.move(spare, NumberState.TAKEN)
            link.numbers.move(number, NumberState.SPARE)
        return spare

    def release(self, link: PooledConnection, number: int) -> None:
        """Its channel.close is sent. Until ``closed`` it is nobody's."""
        link.numbers.move(number, NumberState.CLOSING)

    # -- what the broker says ----------------------------------------------------------------

    def opened(self, link: PooledConnection, number: int, *, confirming: bool) -> None:
        """open-ok, or (``confirming``) select-ok; ignored where it was taken or closed meanwhile."""
        state = link.numbers.at(number)
        if state is NumberState.OPENING and not confirming:
            link.numbers.move(number, NumberState.SPARE)
        elif state is NumberState.OPENING_CONFIRMING and confirming:
            link.numbers.move(number, NumberState.SPARE_CONFIRMING)

    def closed(self, link: PooledConnection, number: int, now: float) -> bool:
        """Both sides have closed it: close-ok has come, or been sent. False: it was not open."""
        state = link.numbers.at(number)
        if state is NumberState.FREE:
            return False
        if state not in (NumberState.TAKEN, NumberState.CLOSING):
            link.spare_rejected(now)
        link.numbers.move(number, NumberState.FREE)
        return True

    def added(self, channels: int, now: float, *, asked: bool = True) -> PooledConnection:
        """A link is there, on which the broker allows so many channels (0: any number).

        ``asked``: by a ``DialLink``. One that is there because it proved a login may be added while the pool
        ``may_grow``.
        """
        self.dialling -= asked
        self._last_id += 1
        numbers = ChannelNumbers(
            min(channels or self.settings.channels_per_link, self.settings.channels_per_link)
        )
        # It takes over from the others, so as much is kept ready on it.
        busiest = max(self.links, key=lambda link: link.opens.peak(now), default=None)
        opens = attrs.evolve(busiest.opens) if busiest is not None else ChannelDemand()
        confirms = attrs.evolve(busiest.confirms) if busiest is not None else ChannelDemand()
        link = PooledConnection(self._last_id, now, numbers, opens, confirms, self.sizes, self.ceiling)
        self.links.append(link)
        return link

    def limited(self, link: PooledConnection, unanswered: int, most: int, now: float) -> None:
        """The broker ends a link, for its login has too many channels: more than ``most``, or than the pool
        has, for there may be others. ``unanswered``: how many of those that are somebody's it has not opened.
        """
        open_ = sum(
            each.numbers.count(
                NumberState.TAKEN, NumberState.CLOSING, NumberState.SPARE, NumberState.SPARE_CONFIRMING
            )
            for each in self.links
        )
        self.ceiling.found(max(0, min(most, open_ - unanswered)), now + self.settings.max_age)
        # The broker still counts those of the link.
        self._dials_at = now + PATIENCE

    def dial_failed(self, now: float) -> None:
        """A link that was asked for is not to be had."""
        self.dialling -= 1
        self._dials_at = now + PATIENCE

    def lost(self, link: PooledConnection, now: float) -> None:
        """It has ended, whoever ended it. What is said of it later changes nothing."""
        self.links.remove(link)
        if not link.closing and now - link.born < PATIENCE:
            self._dials_at = now + PATIENCE

    # -- what is to be done ------------------------------------------------------------------

    def wants(self, now: float, waiting: int = 0) -> list[Action]:
        """What is to be done, in this order; it counts as under way. ``waiting``: sessions without a link."""
        self.ceiling.look(now)
        actions = list(self._closes(now))
        for link in self.links:
            actions += link.wants(self.settings, now)
        return actions + [DialLink() for _ in range(self._dials(now, waiting))]

    def _closes(self, now: float) -> Iterator[Action]:
        for link in self.links:
            if link.closing:
                continue
            others = any(
                other is not link and other.takes_sessions(self.settings, now) for other in self.links
            )
            is_old = link.is_old(self.settings, now)
            if is_old and others:
                link.retire()
            if link.sessions:
                continue
            is_idle = now - link.idle_since >= self.settings.idle_timeout
            if link.retiring or (is_old and not (self.sessions and (self.may_grow or self.dialling))):
                link.close()
                yield CloseLink(link, "has reached its age")
            elif is_idle and (others or not self.sessions):
                link.close()
                yield CloseLink(link, "is not used")

    def _dials(self, now: float, waiting: int) -> int:
        if now < self._dials_at or not self.ceiling.left:
            return 0
        takers = any(link.takes_sessions(self.settings, now) for link in self.links)
        ahead = int(self.sessions > 0 and not takers)
        # Those who have been told of it, and have not taken it yet.
        room = sum(link.room for link in self.links if not link.closing and not link.is_blocked)
        unserved = max(0, waiting - room)
        needed = max(ahead, math.ceil(unserved / self.settings.channels_per_link)) - self.dialling
        dials = max(0, min(needed, self.settings.max_links - len(self.links) - self.dialling))
        self.dialling += dials
        return dials


def _rank(link: PooledConnection) -> tuple[bool, bool, bool, int, int]:
    """The least is where the next session goes."""
    is_full = link.is_nearly_full
    return link.is_blocked, link.retiring, is_full, link.in_use_soon if is_full else -link.in_use, link.id

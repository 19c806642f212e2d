"""Taps: operators watch the operations that an expression is about, while they pass.

::

    nobody taps ── no session knows of it
    a tap ───────▶ sessions whose principal can match get flows that show one message in N (`limits.sampler`)
    shown ───────▶ `session` ── what the audit policy lets out ──▶ a bounded queue ──▶ who asked
    the second's share is used up, or the queue is full ──▶ flows show nothing until there is room again

How many messages matched is what their flows have counted, so it is known of those as well that nobody was
shown. Nothing here waits, refuses or raises: a message goes its way whatever becomes of the tap.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

import attrs
import trio

from amqpgate.gateway.limits.sampler import Sampler
from amqpgate.logs import shown
from amqpgate.policy.engine.taps import Expression, parse
from amqpgate.telemetry.answers import JSON, Args, asker_of
from amqpgate.telemetry.events import EventSubscriber, EventText, Said
from amqpgate.telemetry.faults import contained
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)

PART: Final = "taps"

#: Operations shown in a second, by all taps of all processes together.
CEILING: Final = 1000
#: Seconds for which a share of that is given at a time, from the first that is shown.
SHARE: Final = 0.1
#: Seconds between two counts.
_COUNTS: Final = 1.0
#: Flows that wait to show something again; of more, the sessions decide anew.
_MOST_MUTED: Final = 4096


@frozen(kw_only=True)
class TapRequest:
    """What an operator wants to see."""

    match: Expression
    #: One message in so many, of each flow.
    every: int = 1
    #: As AMQP frames, too.
    frames: bool = False
    #: What it is called by whoever ends it.
    name: str = ""
    #: Who asks: ``by``, ``address``.
    asker: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, args: Args) -> TapRequest:
        """As ``gateway.calls.STREAMS`` is given it. Raises `MatchError`."""
        return cls(
            match=parse(str(args["match"])),
            every=int(str(args.get("every", 1))),
            frames=bool(args.get("frames")),
            name=str(args.get("tap", "")),
            asker=asker_of(args),
        )


@define(eq=False)
class Tap:
    """One of them, in one process."""

    order: TapRequest
    subscriber: EventSubscriber
    #: Called when there is no room in the queue.
    on_full: Callable[[], None]
    #: How many operations passed, or were refused, that match.
    matched: int = attrs.field(default=0, init=False)
    #: Of these, put into the queue.
    shown: int = attrs.field(default=0, init=False)
    sampler: Sampler = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.sampler = Sampler(1 / self.order.every)

    @property
    def is_open(self) -> bool:
        """Whether it may be shown something now."""
        return self.sampler.every > 0

    @property
    def counts(self) -> dict[str, JSON]:
        """How much there was until now."""
        return {"matched": self.matched, "shown": self.shown}

    def matches(self, operations: int = 1) -> None:
        """So many more match that have passed, or were refused."""
        self.matched += operations

    def mute(self, is_mute: bool) -> None:
        """Show it nothing, or something again."""
        self.sampler.show_every(0 if is_mute else self.order.every)

    def put(self, line: dict[str, JSON]) -> None:
        """Show it an operation, if there is room."""
        self._put({"event": "operation", **line})

    def put_text(self, members: str) -> None:
        """Likewise, as text: members of a JSON object."""
        self._put(EventText("operation", members))

    def _put(self, item: Said) -> None:
        if self.subscriber.put(item):
            self.shown += 1
        else:
            self.mute(True)
            self.on_full()


class Shown(Protocol):
    """A flow of a session among whose messages some are shown."""

    @property
    def is_muted(self) -> bool:
        """Whether it waits for room."""

    def mute(self, is_muted: bool) -> None:
        """It waits for room, or does so no more."""

    def show(self) -> bool:
        """Show messages again, if some tap may be shown one."""


class Tapper(Protocol):
    """A session that is tapped."""

    def count(self) -> None:
        """Tell the taps what has passed."""


@define(eq=False)
class TapRegistry:
    """Of one process."""

    #: Operations that all taps here are shown in a second, together.
    ceiling: int
    #: Of the sessions that are tapped.
    tappers: Callable[[], Iterable[Tapper]]
    #: Called when the taps are others: sessions look who taps them.
    on_change: Callable[[], None]
    #: Told what operators do.
    note: Callable[[str, Mapping[str, str]], None]
    taps: tuple[Tap, ...] = attrs.field(default=(), init=False)
    #: What may still be shown of this share, and when it is over, by the monotonic clock.
    _left: int = attrs.field(default=0, init=False)
    _until: float = attrs.field(default=0.0, init=False)
    #: Somebody waits for the next one.
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: Flows that show nothing, the first that were muted first.
    _muted: deque[Shown] = attrs.field(factory=deque, init=False)
    #: There were more than are kept.
    _is_overflown: bool = attrs.field(default=False, init=False)
    _begun: trio.Event = attrs.field(factory=trio.Event, init=False)

    # -- taps --------------------------------------------------------------------------------

    @contextmanager
    def heard_by(self, args: Args, subscriber: EventSubscriber) -> Iterator[None]:
        """There is one tap more meanwhile: what matches is put into the subscriber's queue."""
        tap = self.open(TapRequest.of(args), subscriber)
        try:
            yield
        finally:
            self.close(tap)

    def end(self, name: str) -> JSON:
        """It is over; how much there was. Null: there is none of that name."""
        for tap in self.taps:
            if tap.order.name == name:
                self.close(tap)
                return tap.counts
        return None

    def open(self, order: TapRequest, subscriber: EventSubscriber) -> Tap:
        """As ``heard_by``, until ``close``."""
        tap = Tap(order, subscriber, self._want)
        if not self.taps:
            self._left = self._share
        tap.mute(self._left <= 0)
        self.taps = (*self.taps, tap)
        self._changed()
        self._begun.set()
        subscriber.put({"event": "begun"})
        what = order.match if str(order.match) else "everything"
        log.warning("an operator taps what matches%s: %s", shown(order.asker), what)
        self.note("tap", {**order.asker, "match": str(order.match)})
        return tap

    def close(self, tap: Tap) -> None:
        """What it has matched until now is final, and sessions show nothing for it any more."""
        if tap not in self.taps:
            return
        self.count()
        self.taps = tuple([one for one in self.taps if one is not tap])
        self._changed()
        told = {name: str(count) for name, count in tap.counts.items()}
        log.warning("an operator does not tap any more%s: %s", shown(tap.order.asker), told)
        self.note("untap", {**tap.order.asker, "match": str(tap.order.match), **told})

    def _changed(self) -> None:
        self._muted.clear()
        self._is_overflown = False
        self.on_change()

    def count(self) -> None:
        """Ask the flows what has passed."""
        for tapper in self.tappers():
            tapper.count()

    # -- the ceiling ---------------------------------------------------------------------------

    @property
    def _share(self) -> int:
        return max(1, int(self.ceiling * SHARE))

    def spend(self, tap: Tap) -> bool:
        """Whether it may be shown one operation more; if so, that is done."""
        if not tap.is_open:
            return False
        if time.monotonic() >= self._until:
            # Nobody has waited for it, or a timer would have run.
            self._begin_share()
        self._left -= 1
        if self._left <= 0:
            for one in self.taps:
                one.mute(True)
            self._want()
        return True

    def _begin_share(self) -> None:
        self._left, self._until = self._share, time.monotonic() + SHARE

    def _want(self) -> None:
        """Somebody has no room until the next share."""
        self._wanted.set()

    def muted(self, watched: Shown) -> None:
        """A flow shows nothing any more, until there is room."""
        if watched.is_muted:
            return
        watched.mute(True)
        self._want()
        if len(self._muted) < _MOST_MUTED:
            self._muted.append(watched)
        else:
            self._is_overflown = True

    @contained("taps", None)
    def _renew(self) -> None:
        """A new share of the second: as many flows show again as it has room for."""
        self._begin_share()
        for tap in self.taps:
            tap.mute(False)
        for _ in range(min(self._left, len(self._muted))):
            watched = self._muted.popleft()
            watched.mute(False)
            if not watched.show():
                self.muted(watched)
        if self._is_overflown and not self._muted:
            self._changed()

    async def run(self) -> None:
        """See to the taps, while there are any."""
        while True:
            await self._begun.wait()
            self._begun = trio.Event()
            due = trio.current_time() + _COUNTS
            while self.taps:
                with trio.move_on_at(due):
                    await self._wanted.wait()
                    await trio.sleep(max(0.0, self._until - time.monotonic()))
                    self._wanted = trio.Event()
                    self._renew()
                if trio.current_time() >= due:
                    due += _COUNTS
                    self.count()
                    for tap in self.taps:
                        tap.subscriber.put({"event": "counts", **tap.counts})

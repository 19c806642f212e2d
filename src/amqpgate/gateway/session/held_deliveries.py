"""Deliveries that wait here on one channel, and which ones its client has: see `channel_flow`.

One session keeps `ROOM` bytes of them, and `MOST` where they are few.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import attrs

from amqpgate.datapath.engine import Bytes
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.shown_deliveries import ShownDeliveries
from amqpgate.values import define

#: Bytes that one session keeps of single messages whose consumers cannot be narrower (`delivery_holder`).
MOST: Final = 1 << 25

#: Bytes of deliveries that one session keeps, `_EACH` more for each: a prefetch of 500 messages of 8 KiB.
ROOM: Final = 1 << 22
_EACH: Final = 256

#: Deliveries that are given back in one transaction.
MOST_GIVEN: Final = 1 << 16


@define
class HeldDelivery:
    """One message, or as much of it as has come."""

    tag: str
    number: int
    #: The broker counts it as acknowledged. Also where that is not known: then it is never dropped.
    is_acked: bool
    #: Asks for its body, which is in an object store (`held_references`). None: it is no reference.
    fetch: Callable[[HeldDelivery], None] | None = None
    frames: bytearray = attrs.field(factory=bytearray)

    def add(self, frame: Bytes) -> None:
        """One more of its frames has come."""
        self.frames += frame


@define
class KeptDeliveries:
    """What is kept on one channel, in order. Each is found by its tag: there may be thousands."""

    _all: OrderedDict[int, HeldDelivery] = attrs.field(factory=OrderedDict)
    #: Of these, those that the client is to acknowledge.
    waiting: OrderedDict[int, HeldDelivery] = attrs.field(factory=OrderedDict)
    #: How many of them each consumer has, by its tag.
    consumers: Counter[str] = attrs.field(factory=Counter)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[HeldDelivery]:
        return iter(self._all.values())

    @property
    def last(self) -> HeldDelivery:
        """The one that was kept last."""
        return next(reversed(self._all.values()))

    @property
    def first_waiting(self) -> HeldDelivery:
        """The first that the client is to acknowledge."""
        return next(iter(self.waiting.values()))

    def add(self, one: HeldDelivery) -> None:
        """It is kept behind all others."""
        self._all[one.number] = one
        if not one.is_acked:
            self.waiting[one.number] = one
            self.consumers[one.tag] += 1

    def remove(self, those: Iterable[HeldDelivery]) -> None:
        """They are not kept any more."""
        for one in those:
            del self._all[one.number]
            if not one.is_acked:
                del self.waiting[one.number]
                self.consumers[one.tag] -= 1
                if not self.consumers[one.tag]:
                    del self.consumers[one.tag]


@define
class HeldDeliveries:
    """One channel."""

    #: Those that the client has.
    shown: ShownDeliveries
    #: Deliveries that it may have so; 0: any number.
    limit: int = 0
    #: The limit may be the connection's.
    is_limited: bool = False
    #: The client wants no deliveries.
    is_off: bool = False
    kept: KeptDeliveries = attrs.field(factory=KeptDeliveries)
    #: Delivery tags of what the broker has again once the client's transaction is committed.
    given: array[int] = attrs.field(factory=partial(array, "Q"))
    #: The one of them whose body is on its way from an object store. The client is about to have it.
    fetching: HeldDelivery | None = None
    #: The content that comes next belongs to the last one of them.
    is_under_way: bool = False
    #: The client has asked for more, and the broker is still recovering.
    is_ending: bool = False
    #: The broker has it again, or will have: what comes of it is dropped.
    is_dropping: bool = False
    #: What may pass waits for the end of the message that is on its way to the client.
    is_due: bool = False
    #: Why the channel is closed when the message has ended that its client publishes there. None: it is not.
    refusal: ProtocolViolation | None = None

    def count(self, *, transacts: bool) -> int:
        """As `ShownDeliveries.count`, with the one that the client is about to have."""
        return self.shown.count(transacts=transacts) + (self.fetching is not None)

    # -- what the client wants -----------------------------------------------------------------

    def stop(self) -> None:
        """The client wants no deliveries."""
        self.is_off = True

    def postpone(self) -> None:
        """The client wants deliveries again, once the broker has recovered."""
        self.is_ending = True

    def resume(self) -> None:
        """The client has deliveries again."""
        self.is_off = self.is_ending = False

    def limit_to(self, count: int) -> None:
        """It may have so many and not acknowledge them; 0: there is the connection's limit only."""
        self.limit, self.is_limited = count, True

    def lift(self) -> None:
        """There is no limit any more."""
        self.limit, self.is_limited = 0, False

    def refuse_later(self, why: ProtocolViolation) -> None:
        """The channel is closed, but not within a message."""
        self.refusal = why

    def wait_for_end(self, *, is_due: bool) -> None:
        """What may pass waits for the end of a message to the client, or need not."""
        self.is_due = is_due

    # -- what is kept --------------------------------------------------------------------------

    def begin(self) -> None:
        """A method has come: no message is under way."""
        self.is_under_way = self.is_dropping = False

    def keep(self, one: HeldDelivery) -> None:
        """A message is kept, and the content that comes next."""
        self.is_under_way = True
        self.kept.add(one)

    def pass_rest(self) -> None:
        """The rest of the message that is under way follows it to the client."""
        self.is_under_way = False

    def drop_rest(self) -> None:
        """What comes of the message that is under way is dropped."""
        self.is_dropping = True

    def give(self, given: list[HeldDelivery]) -> None:
        """The broker has them again with the commit, and is told so anew behind a rollback."""
        self.given.extend(one.number for one in given)

    def commit(self) -> None:
        """The transaction is committed, or begins."""
        del self.given[:]

    def drop_rest_of(self, given: list[HeldDelivery]) -> None:
        """The broker has these again: if one of them is under way, the rest of it is dropped."""
        if self.is_under_way and not self.is_dropping:
            self.is_dropping = any(one is self.kept.last for one in given)

    def take(self, those: list[HeldDelivery]) -> None:
        """These are not kept any more."""
        self.kept.remove(those)
        if self.fetching is not None and any(one is self.fetching for one in those):
            self.fetching = None

    # -- bodies in an object store -------------------------------------------------------------

    def begin_fetch(self, one: HeldDelivery) -> None:
        """The body of this one is asked for. No message is under way meanwhile."""
        self.begin()
        self.fetching = one

    def end_fetch(self) -> None:
        """It is not: it is here, or waits again, or will not come."""
        self.fetching = None


@define
class HeldBytes:
    """How much is kept on all channels of one session. All that is kept and taken goes through here."""

    _bytes: int = 0

    @property
    def are_too_many(self) -> bool:
        """Whether there is more than `ROOM`."""
        return self._bytes > ROOM

    @property
    def are_far_too_many(self) -> bool:
        """Whether there is more than `MOST`."""
        return self._bytes > MOST

    def keep(self, held: HeldDeliveries, delivery: HeldDelivery) -> None:
        """A message is kept, and the content that comes next."""
        held.keep(delivery)
        self._bytes += _EACH

    def add(self, held: HeldDeliveries, frame: Bytes) -> None:
        """One more frame of the message that is under way."""
        held.kept.last.add(frame)
        self._bytes += len(frame)

    def take(self, held: HeldDeliveries, keeps: Callable[[HeldDelivery], bool] = lambda _: False) -> bytes:
        """The frames of all messages of a channel but those that it ``keeps``."""
        return self.take_these(held, [one for one in held.kept if not keeps(one)])

    def take_these(self, held: HeldDeliveries, those: list[HeldDelivery]) -> bytes:
        """The frames of these messages of a channel."""
        held.take(those)
        self._bytes -= sum(len(one.frames) + _EACH for one in those)
        return b"".join(one.frames for one in those)

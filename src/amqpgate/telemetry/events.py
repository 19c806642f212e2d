"""What somebody listens to while it happens: bounded queues, and what does not fit is counted.

Whoever has an event tells it, in an upcall, too: where nobody listens that costs a look at an empty list.

::

    events.tell(...) ─────────▶ subscriber ── queue of `MOST` ──▶ an operator's event stream
                           └─▶ subscriber ── ...
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Self, TypeAlias

import attrs
import trio

from amqpgate.telemetry.answers import JSON
from amqpgate.values import define, frozen

#: Items that wait for one subscriber at most. Each is some hundred bytes.
MOST: Final = 256


#: ``json.dumps`` makes one for each call.
_JSON: Final = json.JSONEncoder(separators=(",", ":"))


def members_of(told: Mapping[str, JSON]) -> str:
    """The members of an object as JSON, without spaces and without its braces."""
    return _JSON.encode(told)[1:-1]


@frozen
class EventText:
    """An item as text already: of thousands that are nearly alike, what is alike is encoded once."""

    event: str
    #: Its other members, as by `members_of`.
    members: str

    @property
    def packed(self) -> bytes:
        """For another process."""
        return f"{self.event}\n{self.members}".encode()

    @classmethod
    def unpacked(cls, text: bytes) -> Self:
        """What another process has packed."""
        event, _, members = text.decode().partition("\n")
        return cls(event, members)


#: What somebody says. One stream has the one, or the other, or both.
Said: TypeAlias = "JSON | EventText"
#: The number of the worker that says it, which is 0 where there are none; and what it says.
Item: TypeAlias = tuple[int, Said]


@define(eq=False)
class EventSubscriber:
    """One who listens to one stream: iterate to get the items.

    A memory channel of trio's takes three times as long for an item, and taps have a thousand a second.
    """

    most: int = MOST
    #: Items that did not fit, since it was told of some.
    dropped: int = attrs.field(default=0, init=False)
    _items: deque[Item] = attrs.field(factory=deque, init=False)
    _is_over: bool = attrs.field(default=False, init=False)
    _lot: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)
    #: Who waits for an item, or has not taken yet what it was woken for: there is room for that besides.
    _waiting: int = attrs.field(default=0, init=False)

    def put(self, item: Said, worker: int = 0) -> bool:
        """Whether there was room. Synchronous: the data path may call it."""
        items, most = self._items, self.most + self._waiting
        if self.dropped and len(items) < most:
            items.append((worker, {"event": "dropped", "at": time.time(), "count": self.dropped}))
            self.dropped = 0
        is_taken = len(items) < most
        if is_taken:
            items.append((worker, item))
        else:
            self.dropped += 1
        if self._waiting and self._lot:
            self._lot.unpark()
        return is_taken

    def end(self) -> None:
        """There is nothing more to come: what waits is still given."""
        self._is_over = True
        self._lot.unpark_all()

    def at_hand(self) -> Item | None:
        """The next item, if there is one already."""
        return self._items.popleft() if self._items else None

    # Not a generator: that would be over when somebody stops waiting for its next item.
    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        if self._items:
            await trio.lowlevel.checkpoint()
        while not self._items:
            if self._is_over:
                raise StopAsyncIteration
            self._waiting += 1
            try:
                await self._lot.park()
            finally:
                self._waiting -= 1
        return self._items.popleft()


def at_hand(items: AsyncIterator[Item]) -> Item | None:
    """The next item of a subscriber, if there is one already. Who waits for each has trio run for each."""
    return items.at_hand() if isinstance(items, EventSubscriber) else None


@define(eq=False)
class Events:
    """The events of one gateway."""

    #: Who has many events looks here first.
    listeners: list[EventSubscriber] = attrs.field(factory=list, init=False)

    def tell(self, event: str, **what: JSON) -> None:
        """Something has happened, just now."""
        if self.listeners:
            item: JSON = {"event": event, "at": time.time(), **what}
            for subscriber in self.listeners:
                subscriber.put(item)

    @contextmanager
    def heard_by(self, subscriber: EventSubscriber) -> Iterator[None]:
        """It gets all that happens meanwhile."""
        self.listeners.append(subscriber)
        try:
            yield
        finally:
            self.listeners.remove(subscriber)

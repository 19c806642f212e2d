"""What somebody listens to while it happens: bounded queues, and what does not fit is counted.

Whoever has an event tells it, in an upcall, too: where nobody listens that costs a look at an empty list.

::

    events.tell(...) ─────────▶ subscriber ── queue of `MOST` ──▶ an operator's event stream
                           └─▶ subscriber ── ...
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

import attrs
import trio

from amqpgate.telemetry.answers import JSON
from amqpgate.values import define

#: Items that wait for one subscriber at most. Each is some hundred bytes.
MOST: Final = 256


#: The number of the worker that says it, which is 0 where there are none; and what it says.
Item: TypeAlias = tuple[int, JSON]


@define(eq=False)
class EventSubscriber:
    """One who listens to one stream: iterate to get the items."""

    most: int = MOST
    #: Items that did not fit, since it was told of some.
    dropped: int = attrs.field(default=0, init=False)
    _send: trio.MemorySendChannel[Item] = attrs.field(init=False)
    _receive: trio.MemoryReceiveChannel[Item] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Item](self.most)

    def put(self, item: JSON, worker: int = 0) -> bool:
        """Whether there was room. Synchronous: the data path may call it."""
        try:
            if self.dropped:
                missed: JSON = {"event": "dropped", "at": time.time(), "count": self.dropped}
                self._send.send_nowait((worker, missed))
                self.dropped = 0
            self._send.send_nowait((worker, item))
        except trio.WouldBlock:
            self.dropped += 1
            return False
        return True

    def end(self) -> None:
        """There is nothing more to come: what waits is still given."""
        self._send.close()

    # Not a generator: that would be over when somebody stops waiting for its next item.
    def __aiter__(self) -> AsyncIterator[Item]:
        return aiter(self._receive)


def at_hand(items: AsyncIterator[Item]) -> Item | None:
    """The next item of a subscriber, if there is one already. Who waits for each has trio run for each."""
    if isinstance(items, trio.MemoryReceiveChannel):
        try:
            item: Item = items.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return None
        return item
    return None


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

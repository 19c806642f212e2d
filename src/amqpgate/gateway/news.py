"""What somebody listens to while it happens: bounded queues, and what does not fit is counted.

Whoever has news tells them, in an upcall, too: where nobody listens that costs a look at an empty list.

::

    gateway.news.tell(item) ──▶ listener ── queue of `MOST` ──▶ an operator's event stream
                            └─▶ listener ── ...
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

import attrs
import trio

from amqpgate.gateway.answers import JSON

#: Items that wait for one listener at most. Each is some hundred octets.
MOST: Final = 256


@attrs.define(eq=False)
class Listener:
    """One who listens to one stream. Iterate to get the items; it ends when ``end`` is called."""

    most: int = MOST
    #: Items that did not fit, since it was told of some.
    dropped: int = attrs.field(default=0, init=False)
    _send: trio.MemorySendChannel[JSON] = attrs.field(init=False)
    _receive: trio.MemoryReceiveChannel[JSON] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[JSON](self.most)

    def put(self, item: JSON) -> bool:
        """Whether there was room. Synchronous: the data path may call it."""
        try:
            if self.dropped:
                self._send.send_nowait({"event": "dropped", "at": time.time(), "count": self.dropped})
                self.dropped = 0
            self._send.send_nowait(item)
        except trio.WouldBlock:
            self.dropped += 1
            return False
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    def end(self) -> None:
        """There is nothing more to come: what waits is still given."""
        self._send.close()

    def __aiter__(self) -> AsyncIterator[JSON]:
        return aiter(self._receive)


@attrs.define(eq=False)
class News:
    """The events of one gateway."""

    _listeners: list[Listener] = attrs.field(factory=list)

    def tell(self, event: str, **what: JSON) -> None:
        """Something has happened, just now."""
        if self._listeners:
            item: JSON = {"event": event, "at": time.time(), **what}
            for listener in self._listeners:
                listener.put(item)

    @contextmanager
    def heard_by(self, listener: Listener) -> Iterator[None]:
        """It gets all that happens meanwhile."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


async def numbered(items: AsyncIterable[JSON], number: int = 0) -> AsyncIterator[tuple[int, JSON]]:
    """Each with the number of the worker that said it."""
    async for item in items:
        yield number, item

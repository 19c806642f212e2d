"""What waits to be sent to one client, in bytes, with a mark above which the broker slows down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define, field

#: Above this no more is delivered, and nothing more is read from the client. Several large frames.
HIGH_MARK: Final = 512 * 1024
#: Below this both go on.
LOW_MARK: Final = 128 * 1024
#: Above this answers by direct reply-to are dropped: they have no queue to wait in.
OVERLOAD_MARK: Final = 16 * 1024 * 1024


@define(eq=False, repr=False)
class Outbox:
    """Bytes in order. ``wake`` is called when there is something to send."""

    wake: Callable[[], None]
    #: Bytes that have been put and not been sent yet.
    size: int = 0
    is_congested: bool = False
    _chunks: list[bytes] = field(factory=list)

    def put(self, data: bytes) -> None:
        """Add bytes at the end. Always possible: it is the callers who stop when it is congested."""
        self._chunks.append(data)
        self.size += len(data)
        if self.size > HIGH_MARK:
            self.is_congested = True
        self.wake()

    def take(self) -> bytes:
        """All that is to be sent now; tell ``sent`` when it is."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data

    def sent(self, count: int) -> bool:
        """So many bytes are gone; True if this ended a congestion."""
        self.size -= count
        if self.is_congested and self.size < LOW_MARK:
            self.is_congested = False
            return True
        return False

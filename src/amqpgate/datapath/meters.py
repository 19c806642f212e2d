"""Meters: how much of one thing there was since they were last read, in plain Python.

The compiled scanner (``_scan``) has ``Meter`` with the same meaning.
"""

from __future__ import annotations

import attrs

from amqpgate.values import define


@define(eq=False)
class Meter:
    """Messages and bytes that were counted, and when. Flows that count for the same thing may share one.

    Whoever reads meters looks at the ``book`` alone: a meter puts itself there with its first count since it
    was read.
    """

    #: What is counted; only the reader knows what that is.
    row: object
    book: list[Meter]
    messages: int = attrs.field(default=0, init=False)
    #: Of bodies.
    body_bytes: int = attrs.field(default=0, init=False)
    #: Bytes of the largest body.
    largest: int = attrs.field(default=0, init=False)
    #: Of the first and the last count, on the data path's clock.
    first: float = attrs.field(default=0.0, init=False)
    last: float = attrs.field(default=0.0, init=False)
    _is_booked: bool = attrs.field(default=False, init=False)

    def count(self, messages: int, body_bytes: int, now: float, largest: int = 0) -> None:
        """So many messages, of ``body_bytes`` in all, the largest of which has so many of them."""
        if not self._is_booked:
            self.book.append(self)
            self._is_booked = True
            self.first = now
        self.last = now
        self.messages += messages
        self.body_bytes += body_bytes
        self.largest = max(self.largest, largest)

    def read(self) -> tuple[int, int, float, float, int]:
        """Messages, bytes, first and last since it was last read, and bytes of the largest body. It has to be
        taken from the book."""
        told = self.messages, self.body_bytes, self.first, self.last, self.largest
        self.messages = self.body_bytes = self.largest = 0
        self._is_booked = False
        return told

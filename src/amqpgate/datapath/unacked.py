"""How many deliveries of a channel its client has not acknowledged, in plain Python: ``Channels`` has it.

The number is what RabbitMQ has as ``messages_unacknowledged`` of the channel, once all that passed here has
arrived there. Delivery tags are the channel's and only rise (AMQP 0-9-1, domain delivery-tag), those of
deliveries that want no ack among them. So what is due is kept as stretches of tags: one acked out of order
splits a stretch in two; how long a stretch is costs nothing, nor how long one that is forgotten stays.

::

    acked    due, some of these tags       due, these tags
    ───────┊───────────────────────────┊──█████──█──███████████  → next
           ┊  ``blurred`` so many      ``clear``

More than ``MOST_STRETCHES`` are not kept: the older half becomes a number of tags below ``clear``. It stays
exact while these are acked one by one, or all of them at once. The number is not known (None)

- after an ack of several that covers a part of them, and after a basic.recover-async, which nobody answers:
  until the client acks all that it got at once, or the broker answers a basic.recover;
- once it cannot be told whether a delivery wants an ack, or tags do not rise: as long as the channel is open.

The compiled scanner (``_scan``) does the same.
"""

from __future__ import annotations

from bisect import bisect_right

import attrs

from amqpgate.datapath.tables import GETS, MOST_STRETCHES, SILENT_TAGS
from amqpgate.values import define

#: No delivery tag is as large.
_NEVER = 1 << 62


@define(eq=False)
class Unacked:
    """Of one channel."""

    #: Stretches of tags that are due, as first and end, oldest first, with a gap between each two.
    stretches: list[tuple[int, int]] = attrs.field(factory=list)
    #: Tags below this one are due that are in none of them,
    clear: int = 0
    #: and this many; None: it is not known how many.
    blurred: int | None = 0
    #: Above all tags that there were.
    next: int = 0
    #: Acked since the last commit, of a channel with transactions; None: it is not known how many.
    uncommitted: int | None = 0
    #: Whether answers to basic.get are to be acked, for each that is due, oldest first.
    gets: list[bool] = attrs.field(factory=list)
    #: Consumers whose deliveries are not to be acked, by their tags; where others are.
    silent: set[bytes] = attrs.field(factory=set)
    is_lost: bool = False

    @property
    def count(self) -> int | None:
        """How many are due; None: that is not known."""
        if self.is_lost or self.blurred is None:
            return None
        return self.blurred + self._clear_count

    @property
    def _clear_count(self) -> int:
        return sum(end - first for first, end in self.stretches)

    def delivered(self, tag: int) -> None:
        """One that the client has to acknowledge."""
        if tag < self.next or tag >= _NEVER:
            self.is_lost = True
            return
        self.next = tag + 1
        if tag < self.clear:
            return
        if self.stretches and self.stretches[-1][1] == tag:
            self.stretches[-1] = self.stretches[-1][0], tag + 1
            return
        self._make_room()
        self.stretches.append((tag, tag + 1))

    def settled(self, tag: int, multiple: bool) -> None:
        """The client acks it, or rejects it; with ``multiple`` all up to it, and of tag 0 all."""
        if tag >= _NEVER:
            return
        if multiple:
            self._settled(self._settle_through(tag if tag else self.next))
        elif tag >= self.clear:
            self._settled(self._settle(tag))
        elif self.blurred != 0:
            if self.blurred is not None:
                self.blurred -= 1
            self._settled(1)

    def _settled(self, count: int | None) -> None:
        known = self.uncommitted is not None and count is not None
        self.uncommitted = (self.uncommitted or 0) + (count or 0) if known else None

    def _settle(self, tag: int) -> int:
        at = bisect_right(self.stretches, tag, key=lambda stretch: stretch[0]) - 1
        if at < 0 or self.stretches[at][1] <= tag:
            return 0
        first, end = self.stretches[at]
        left = [(first, tag)] * (first < tag) + [(tag + 1, end)] * (tag + 1 < end)
        if len(left) == 2 and self._make_room():
            # Its stretch may be one of those that are blurred now.
            if tag < self.clear:
                assert self.blurred
                self.blurred -= 1
                return 1
            return self._settle(tag)
        self.stretches[at : at + 1] = left
        return 1

    def _settle_through(self, tag: int) -> int | None:
        count: int | None = 0
        if self.blurred != 0:
            if tag + 1 >= min(self.clear, self.next):
                count, self.blurred, self.clear = self.blurred, 0, 0
            else:
                count = self.blurred = None
        kept = [(max(first, tag + 1), end) for first, end in self.stretches if end > tag + 1]
        if count is not None:
            count += self._clear_count - sum(end - first for first, end in kept)
        self.stretches = kept
        return count

    def _make_room(self) -> bool:
        """For one more stretch; whether that took some of them."""
        if len(self.stretches) < MOST_STRETCHES:
            return False
        old = self.stretches[: MOST_STRETCHES // 2]
        self.clear = old[-1][1]
        if self.blurred is not None:
            self.blurred += sum(end - first for first, end in old)
        del self.stretches[: len(old)]
        return True

    def recovered(self) -> None:
        """The broker has taken back all that was delivered."""
        self.stretches.clear()
        self.clear = self.blurred = 0

    def recovers_unheard(self) -> None:
        """It does that at some time that nobody learns."""
        self.stretches.clear()
        self.clear, self.blurred = _NEVER, None

    def committed(self) -> None:
        """What was acked until now stays acked."""
        self.uncommitted = 0

    def rolled_back(self) -> None:
        """What was acked since the last commit is due again."""
        if self.uncommitted == 0:
            return
        if self.uncommitted is None or self.blurred is None:
            self.blurred = None
        else:
            self.blurred += self._clear_count + self.uncommitted
        self.clear = max(self.clear, self.next)
        self.uncommitted = 0
        self.stretches.clear()

    def gets_next(self, is_acked: bool) -> None:
        """The client has asked for a message."""
        if len(self.gets) < GETS:
            self.gets.append(is_acked)
        else:
            self.is_lost = True

    def got(self, tag: int | None) -> None:
        """The broker has answered that; ``tag`` None: there was none."""
        if self.gets and self.gets.pop(0) and tag is not None:
            self.delivered(tag)

    def silence(self, consumer: bytes) -> None:
        """Deliveries of the consumer with this tag are not to be acked."""
        if len(self.silent) < SILENT_TAGS:
            self.silent.add(consumer)
        elif consumer not in self.silent:
            self.is_lost = True

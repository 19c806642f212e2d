"""Which queue a message is from that a basic.get got: the broker answers them in order, and names none.

::

    basic.get ──▶ due ──▶ basic.get-ok, basic.get-empty: of the queue that was asked for first

Answers are heard only while somebody wants them (`Lane.shows_content`). How many of those asked for before
have been answered nobody knows; so the queue of one is known then only where all gets of the channel were of
the same.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from amqpgate.values import define

#: Answers that are waited for on one channel. Of more, each a queue's name, none is known.
MOST: Final = 1024


@define(weakref_slot=False)
class Gets:
    """Of one channel, from its first basic.get on."""

    #: The only one until now; None: there were several.
    queue: str | None
    #: Not answered yet, in the order asked. None: there may be others before them, or there are too many.
    due: deque[str] | None

    @classmethod
    def begun(cls, queue: str, *, is_heard: bool) -> Gets:
        """With the first, whose answer will be heard, or not."""
        return cls(queue, deque([queue]) if is_heard else None)

    def asked(self, queue: str, *, is_heard: bool) -> None:
        """One more has passed to the broker."""
        if queue != self.queue:
            self.queue = None
        if not is_heard or (self.due is not None and len(self.due) >= MOST):
            self.due = None
        elif self.due is not None:
            self.due.append(queue)

    def answered(self) -> str | None:
        """The broker has answered one: its queue, if that is known."""
        if self.due is None:
            return self.queue
        return self.due.popleft() if self.due else None

    def unheard(self) -> None:
        """Answers are not heard any more."""
        if self.due:
            self.due = None

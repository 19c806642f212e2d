"""Which delayed messages this process has delivered last, to mark those that come twice.

Queues of the ladder dead-letter at least once: where the broker dies between the arrival of a message in one
queue and its departure from another, RabbitMQ has it in both, and says so of neither. So each
has an id (`delayed_messages.ID`), and what comes again from the same queue is given to the client as
redelivered, where one process delivers both.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.values import define

#: So many are remembered, in about 8 MB. A copy comes as much later as the broker needs to start.
MOST: Final = 1 << 16


@define(eq=False)
class RecentDeliveries:
    """The latest of one process."""

    most: int = MOST
    _seen: dict[tuple[int, str], None] = attrs.field(factory=dict, init=False)

    def again(self, message: int, queue: str) -> bool:
        """A message is delivered from a queue, by their id and name. Whether it was before."""
        key = (message, queue)
        if key in self._seen:
            return True
        if len(self._seen) >= self.most:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = None
        return False


#: Of this process: a client may come back to another session of it.
DELIVERED: Final = RecentDeliveries()

"""What is left to do once a method has been answered.

RabbitMQ's queues and channels are processes that tell each other things: the answer to a method goes out
before the deliveries that it causes. Here everything happens in one go, so what an answer must precede
is put on the agenda, and whoever handles a method settles it afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from attrs import define, field

from amqpgate.broker.queues import BrokerQueue


@define(eq=False, repr=False)
class Agenda:
    """Calls first, in order; then queues that may have something to deliver."""

    _calls: deque[Callable[[], None]] = field(factory=deque)
    _queues: dict[BrokerQueue, None] = field(factory=dict)

    def later(self, call: Callable[[], None]) -> None:
        """Call this when the method under way has been answered."""
        self._calls.append(call)

    def run(self, queue: BrokerQueue) -> None:
        """Let this queue deliver then; once is enough."""
        self._queues[queue] = None

    def settle(self) -> None:
        """Do all of it, and what it leads to."""
        while self._calls or self._queues:
            if self._calls:
                self._calls.popleft()()
            else:
                queue = next(iter(self._queues))
                del self._queues[queue]
                queue.run()

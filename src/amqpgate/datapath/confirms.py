"""Which publishes of a channel the broker has answered, in plain Python: ``Channels`` counts with it.

RabbitMQ answers out of order as a rule: single tags as they are done, and one with ``multiple`` set for all
below the first that is not. What is answered far ahead of that is forgotten, and then the count is too high
until an answer with ``multiple`` covers it. It is never too low.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.tables import CONFIRM_WINDOW


@attrs.define(eq=False)
class Confirms:
    """Of one channel in confirm mode; tags count from 1 (RabbitMQ's extension "Publisher Confirms")."""

    #: Messages that had passed on the channel before the first that is confirmed.
    before: int
    #: All tags up to this one have been answered.
    through: int = attrs.field(default=0, init=False)
    #: And these, of the next ``CONFIRM_WINDOW``.
    singles: set[int] = attrs.field(factory=set, init=False)

    def answered(self, tag: int, bits: int) -> None:
        """An ack or nack has passed; the lowest of ``bits`` is ``multiple``."""
        if bits & 1:
            # A multiple of tag 0 is every one that is due; RabbitMQ sends none.
            if tag > self.through:
                self.through = tag
                self.singles = {single for single in self.singles if single > tag}
        elif self.through < tag <= self.through + CONFIRM_WINDOW:
            self.singles.add(tag)
        while self.through + 1 in self.singles:
            self.through += 1
            self.singles.discard(self.through)

    def due(self, messages: int) -> int:
        """How many of ``messages`` that have passed on the channel may still be answered."""
        return max(0, messages - self.before - self.through - len(self.singles))

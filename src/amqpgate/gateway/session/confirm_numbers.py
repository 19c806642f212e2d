"""Confirm numbers of one channel, where some publishes never reach the broker.

The client numbers every publish that it sends (RabbitMQ's extension confirm.select), the broker every one
that it gets. Where the gateway has refused some and told the client so, the broker's acks carry smaller
numbers than the client's::

    client     1   2   3   4   5
    verdict   ok  no  ok  no  ok
    broker     1       2       3      refused: after 1 (client's 2), after 2 (client's 4)

What is kept is, for each refused publish, how many had passed before it: those that share a place
are one entry. Entries that no later ack can concern any more are folded into one number.
"""

from __future__ import annotations

from bisect import bisect_left

import attrs

from amqpgate.values import define

#: Entries that are kept at most, some 100 bytes each: so many refusals apart from each other while the
#: broker has not confirmed what lies before them.
PLACES = 65536


@define
class ConfirmNumbers:
    """From the broker's numbers to the client's, from the channel's first refusal on."""

    #: Publishes that had passed when confirms were selected: the broker's number 1 follows.
    start: int
    #: Refused before every place that is kept.
    _folded: int = 0
    #: How many had passed, ascending, and how many were refused up to there, those folded included.
    _places: list[int] = attrs.field(factory=list)
    _refused: list[int] = attrs.field(factory=list)
    #: Up to this number of the broker's nothing had been refused: the client's is the same.
    _same: int = 0
    #: The broker has answered every number between that one and this one, and these.
    _answered: int = 0
    _apart: set[int] = attrs.field(factory=set)

    @classmethod
    def continued(cls, start: int, before: int) -> ConfirmNumbers:
        """Of a channel whose broker numbers anew after ``start`` publishes, ``before`` of them numbered."""
        numbers = cls(start)
        numbers._folded = before
        return numbers

    @property
    def is_full(self) -> bool:
        """Whether one more refusal would need more memory than a channel may have."""
        return len(self._places) >= PLACES or len(self._apart) >= PLACES

    @property
    def refused(self) -> int:
        """How many publishes the client was told about by the gateway."""
        return self._refused[-1] if self._refused else self._folded

    def refuse(self, passed: int) -> int:
        """The client's number of a publish that is refused when ``passed`` have passed on the channel."""
        place = passed - self.start
        if not self.refused:
            self._same = self._answered = place
        refused = self.refused + 1
        if self._places and self._places[-1] == place:
            self._refused[-1] = refused
        else:
            self._places.append(place)
            self._refused.append(refused)
        return place + refused

    def translate(self, number: int) -> int:
        """The client's number for one of the broker's."""
        if number <= self._same:
            return number
        before = bisect_left(self._places, number)
        return number + (self._refused[before - 1] if before else self._folded)

    def answered(self, number: int, *, multiple: bool) -> None:
        """The broker has acked or nacked this number, or all up to it."""
        if multiple:
            if number > self._answered:
                self._answered = number
                self._apart = {apart for apart in self._apart if apart > number}
        elif number > self._answered:
            self._apart.add(number)
        while self._answered + 1 in self._apart:
            self._answered += 1
            self._apart.remove(self._answered)
        done = bisect_left(self._places, self._answered + 1)
        # The last one stays: the next refusal may share its place.
        done = min(done, len(self._places) - 1)
        if done > 0:
            self._folded = self._refused[done - 1]
            del self._places[:done], self._refused[:done]

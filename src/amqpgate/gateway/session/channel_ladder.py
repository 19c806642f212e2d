"""What one channel has declared of the delay ladder, until the broker has answered.

RabbitMQ does what one channel says in its order, and what two say in any. So what a channel has declared is
there for what it says next, and for its session's other channels once the broker has done it: behind each
piece comes a declare that the broker answers, to the gateway alone (`delay_ladder.ANSWERED`).
"""

from __future__ import annotations

from collections import deque
from typing import Final

import attrs

from amqpgate.gateway.session import delay_ladder
from amqpgate.values import define
from amqpgate.wire.method import Method

#: Exchanges of a channel that are remembered to have their end; then all is declared anew.
MOST_ENDS: Final = 32

#: Answers of one channel that are waited for. What comes behind them its channel alone knows.
_MOST_ASKED: Final = 4


@define(weakref_slot=False)
class ChannelLadder:
    """Of one channel."""

    #: The highest rung; below `delay_ladder.LOWEST`: what is below the rungs; None: nothing.
    highest: int | None = None
    #: The exchanges whose end it has declared.
    ends: set[str] = attrs.field(factory=set)
    #: What is there when the broker has answered the next one, the one behind it, and so on.
    _asked: deque[int | str] = attrs.field(factory=deque, init=False)

    def climb(self, highest: int) -> list[Method]:
        """All up to this rung is declared. What asks the broker whether it is there."""
        self.highest = highest
        return self._ask(highest)

    def lead_to(self, exchange: str) -> list[Method]:
        """The end for an exchange is declared. What asks the broker whether it is there."""
        if len(self.ends) >= MOST_ENDS:
            self.ends.clear()
        self.ends.add(exchange)
        return self._ask(exchange)

    def _ask(self, what: int | str) -> list[Method]:
        if len(self._asked) >= _MOST_ASKED:
            return []
        self._asked.append(what)
        return [delay_ladder.ANSWERED]

    def answered(self) -> int | str:
        """The broker has answered: this rung is there, or the end for this exchange, for each channel.

        Once it has answered all, nothing need be remembered here.
        """
        there = self._asked.popleft()
        if not self._asked:
            self.highest = None
            self.ends.clear()
        return there


@define(weakref_slot=False)
class ChannelDeclares:
    """queue.declare that the broker has not answered on one channel, and what the gateway's own are for."""

    #: True for those that leave the name to the broker, None for the gateway's own.
    due: deque[bool | None] = attrs.field(factory=deque)
    ladder: ChannelLadder = attrs.field(factory=ChannelLadder)

    def climb(self, answers: int) -> None:
        """The gateway itself declares queues of the delay ladder, and the broker answers so many of them."""
        self.due.extend([None] * answers)

    def climbed(self) -> int | str | None:
        """The broker has answered a declare. What is there by that, if it was the gateway's own."""
        if not self.due or self.due[0] is not None:
            return None
        self.due.popleft()
        return self.ladder.answered()

"""Who has closed a channel of a shared connection, and what may still be said on it.

RabbitMQ forgets a channel when close-ok has been said on it. What comes on that channel then, but for
channel.open, ends the connection and all who share it (504). So every channel.close and close-ok there,
whoever says it, is a step of this table, and what is no step is not said::

    closes without    the gateway   the broker   the gateway   the broker
    their answer      closes        closes       answers       answers
    ───────────────   ───────────   ──────────   ───────────   ──────────
    NONE              OURS          THEIRS
    OURS                            BOTH                       CLOSED
    THEIRS                                       CLOSED
    BOTH                                         OURS          THEIRS

A channel that the broker has closed is never closed once more, but answered. One that is closed is NONE when
its number is free and opened again.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import attrs


class Unanswered(Enum):
    """Whose channel.close has not been answered."""

    NONE = "none"
    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"
    #: None any more.
    CLOSED = "closed"


class CloseStep(Enum):
    """What is said on a channel."""

    #: The gateway says channel.close, its own or a client's.
    CLOSE = "close"
    #: The broker does.
    CLOSED = "closed"
    #: The gateway says channel.close-ok, its own or a client's.
    ANSWER = "answer"
    #: The broker does.
    ANSWERED = "answered"


STEPS: Final = {
    (Unanswered.NONE, CloseStep.CLOSE): Unanswered.OURS,
    (Unanswered.NONE, CloseStep.CLOSED): Unanswered.THEIRS,
    (Unanswered.OURS, CloseStep.CLOSED): Unanswered.BOTH,
    (Unanswered.OURS, CloseStep.ANSWERED): Unanswered.CLOSED,
    (Unanswered.THEIRS, CloseStep.ANSWER): Unanswered.CLOSED,
    (Unanswered.BOTH, CloseStep.ANSWER): Unanswered.OURS,
    (Unanswered.BOTH, CloseStep.ANSWERED): Unanswered.THEIRS,
}


@attrs.define(eq=False)
class LinkChannelCloses:
    """The closes of one connection's channels."""

    #: Of those with a close; the others are NONE.
    _channels: dict[int, Unanswered] = attrs.field(factory=dict, init=False)

    def at(self, number: int) -> Unanswered:
        """Which closes have not been answered."""
        return self._channels.get(number, Unanswered.NONE)

    def step(self, number: int, step: CloseStep) -> bool:
        """Whether that may be said, or heard, now; then it counts as said."""
        after = STEPS.get((self.at(number), step))
        if after is None:
            return False
        self._channels[number] = after
        return True

    def leave(self, number: int) -> CloseStep | None:
        """Nobody uses the channel any more: what is to be said, which counts as said; None: nothing."""
        step = CloseStep.CLOSE if self.at(number) is Unanswered.NONE else CloseStep.ANSWER
        return step if self.step(number, step) else None

    def freed(self, number: int) -> None:
        """The number is free."""
        self._channels.pop(number, None)

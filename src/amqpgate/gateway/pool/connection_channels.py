"""The channels of one shared connection, as far as no session has them.

::

              open               open-ok            a session acquires it
    free ─────────────▶ opening ───────────▶ spare ──────────────────────▶ taken
      ▲                                                                      │ it is released
      └──────────────────────────── close-ok ◀──────────── closing ◀─────────┘

Frames on a channel that closes are for nobody. A number is free when every close on it has been answered
(`channel_close`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeAlias

import attrs

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.channel_close import CloseStep, LinkChannelCloses, Unanswered
from amqpgate.gateway.pool.channel_numbers import ChannelNumbers, NumberState
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Is told open-ok, or the close that comes in its place.
OnOpen: TypeAlias = Callable[[amqp.ChannelOpenOk | amqp.ChannelClose], None]

#: Is told what the broker says of a queue.
OnAnswer: TypeAlias = Callable[[amqp.QueueDeclareOk | amqp.ChannelClose | None], None]

_ANSWERS: Final = amqp.QueueDeclareOk | amqp.ChannelClose | amqp.ChannelCloseOk

#: How the gateway closes a channel that its client does not close itself, and one that nobody came to need.
LEFT: Final = amqp.ChannelClose(200, "the client has left", 0, 0)
_NOT_NEEDED: Final = amqp.ChannelClose(200, "not needed", 0, 0)


class ChannelEvents(Protocol):
    """What the connection makes of what its channels report."""

    def send(self, channel: int, *methods: Method) -> None:
        """Queue methods on a channel."""

    def spare_opened(self, number: int, *, confirms: bool) -> None:
        """The broker has opened a channel ahead of need."""

    def freed(self, number: int) -> None:
        """A channel is closed for good."""


@attrs.define(eq=False)
class ConnectionChannels:
    """Opens channels ahead of need, and sees those to their end that sessions have released."""

    numbers: ChannelNumbers
    events: ChannelEvents
    closes: LinkChannelCloses = attrs.field(factory=LinkChannelCloses, init=False)
    #: Channels that nobody uses any more, and who is told when the number is free.
    _left: dict[int, Callable[[], None] | None] = attrs.field(factory=dict, init=False)
    #: Channels that sessions have acquired before they were open, and who is told the broker's answer.
    _awaited: dict[int, OnOpen] = attrs.field(factory=dict, init=False)
    #: Channels with a question, and who is told the answer.
    _asked: dict[int, OnAnswer] = attrs.field(factory=dict, init=False)
    #: Spares that are to confirm, and have not been opened yet.
    _selecting: set[int] = attrs.field(factory=set, init=False)

    @property
    def unanswered_opens(self) -> int:
        """Channels of sessions that the broker has not opened."""
        return len(self._awaited)

    def open_spare(self, number: int, *, confirms: bool) -> None:
        """Open a channel ahead of need; in confirm mode, maybe."""
        if confirms:
            self._selecting.add(number)
            self.events.send(number, amqp.ChannelOpen(), amqp.ConfirmSelect())
        else:
            self.events.send(number, amqp.ChannelOpen())

    def await_open(self, number: int, on_open: OnOpen) -> None:
        """A session has acquired a channel that is being opened. What comes on it before is nobody's."""
        self._awaited[number] = on_open

    def close_spare(self, number: int) -> None:
        """Close a channel that was opened ahead of a need that did not come."""
        self._left[number] = None
        if self.closes.step(number, CloseStep.CLOSE):
            self.events.send(number, _NOT_NEEDED)

    def leave(self, number: int, say: Callable[[Method], None]) -> None:
        """A session leaves a channel: ``say`` what is still to be said, behind its own words."""
        step = self.closes.leave(number)
        if step is not None:
            say(LEFT if step is CloseStep.CLOSE else amqp.ChannelCloseOk())

    def closing(self, number: int) -> None:
        """The gateway has said open and close on a channel of its own."""
        self.closes.step(number, CloseStep.CLOSE)
        self._left[number] = None

    def asking(self, number: int, on_answer: OnAnswer) -> None:
        """Likewise, with a question between both; who asks is told None where the broker does not answer."""
        self.closing(number)
        self._asked[number] = on_answer

    def release(self, number: int, on_free: Callable[[], None] | None) -> bool:
        """A session has left a channel; ``on_free`` is told when its number is free. Whether every close has
        been answered: then it is the caller's to ``free`` it."""
        self._awaited.pop(number, None)
        self._left[number] = on_free
        return self.closes.at(number) is Unanswered.CLOSED

    def free(self, number: int) -> None:
        """The number may be used again."""
        self.closes.freed(number)
        self._selecting.discard(number)
        on_free = self._left.pop(number, None)
        self.events.freed(number)
        if on_free is not None:
            on_free()

    def ended(self) -> None:
        """The connection is over: there is nothing more to wait for."""
        left, self._left = self._left, {}
        for on_free in left.values():
            if on_free is not None:
                on_free()
        asked, self._asked = self._asked, {}
        for on_answer in asked.values():
            on_answer(None)

    # -- what the broker says -----------------------------------------------------------------

    def hears(self, number: int, method: Method) -> None:
        """The broker has said something on a channel that no session has. Raises ``ProtocolViolation``."""
        if number in self._asked and isinstance(method, _ANSWERS):
            self._asked.pop(number)(None if isinstance(method, amqp.ChannelCloseOk) else method)
        if isinstance(method, amqp.ChannelCloseOk):
            # What nobody asked for frees nothing.
            if self.closes.step(number, CloseStep.ANSWERED):
                self._free_if_closed(number)
        elif isinstance(method, amqp.ChannelClose):
            self._on_close(number, method)
        elif self.closes.at(number) is not Unanswered.NONE:
            return
        elif isinstance(method, amqp.ChannelOpenOk):
            if number in self._awaited:
                self._awaited.pop(number)(method)
            elif number not in self._selecting:
                self.events.spare_opened(number, confirms=False)
        elif isinstance(method, amqp.ConfirmSelectOk) and number in self._selecting:
            self._selecting.remove(number)
            self.events.spare_opened(number, confirms=True)
        elif self.numbers.at(number) in (NumberState.SPARE, NumberState.SPARE_CONFIRMING):
            raise ProtocolViolation(504, f"'{method.NAME}' on channel {number}, which nobody uses")
        # Else it is late: RabbitMQ may deliver behind its own channel.close.

    def _on_close(self, number: int, method: amqp.ChannelClose) -> None:
        if not self.closes.step(number, CloseStep.CLOSED):
            return
        if number in self._awaited:
            self._awaited.pop(number)(method)
        elif self.numbers.at(number) is not NumberState.TAKEN:
            # Where it is nobody's yet, another number will be.
            self._left.setdefault(number, None)
            self.leave(number, partial(self.events.send, number))
            self._free_if_closed(number)
        # Else its session is over, and answers when it releases the channel.

    def _free_if_closed(self, number: int) -> None:
        if number in self._left and self.closes.at(number) is Unanswered.CLOSED:
            self.free(number)

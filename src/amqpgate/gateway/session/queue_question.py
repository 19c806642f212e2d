"""How many messages and consumers a queue has: asked on a channel that the session's client does not see.

::

    n: channel.open, queue.declare passive, channel.close ──▶ broker
    n: open-ok, declare-ok or channel.close, close-ok     ◀── broker
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import Side
from amqpgate.protocol.frames import method_frame
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What the broker says of a queue; None: it will say nothing.
QueueAnswer: TypeAlias = "amqp.QueueDeclareOk | amqp.ChannelClose | None"

#: How the gateway leaves the channel on which it has asked.
_ASKED: Final = amqp.ChannelClose(200, "asked", 0, 0)


@define(eq=False)
class QueueQuestion:
    """One question. A client's method waits for the answer, so a session has one at a time."""

    #: The client's channel, and the queue by the broker's name.
    channel: int
    queue: str
    relay: Relay
    answer: QueueAnswer = attrs.field(default=None, init=False)
    is_answered: bool = attrs.field(default=False, init=False)
    #: The channel on which it is asked, while that is not closed; 0: none of the session's own connection.
    _number: int = attrs.field(default=0, init=False)

    @property
    def is_over(self) -> bool:
        """Whether the broker has nothing more to say."""
        return self.is_answered and not self._number

    def asked(self) -> amqp.QueueDeclare:
        """What the broker is asked."""
        return amqp.QueueDeclare(queue=self.queue, passive=True)

    def ask_on(self, number: int) -> None:
        """Ask it on a channel that nobody uses."""
        self._number = number
        methods = (amqp.ChannelOpen(), self.asked(), _ASKED)
        self.relay.send(Side.UPSTREAM, b"".join(method_frame(number, one) for one in methods))

    def hears(self, number: int, method: Method) -> bool:
        """The broker says something: whether that is about the question."""
        if isinstance(method, amqp.ConnectionClose):
            self._number = 0
            self.told(None)
        if not self._number or number != self._number:
            return False
        if isinstance(method, amqp.QueueDeclareOk):
            self.told(method)
        elif isinstance(method, amqp.ChannelClose):
            self.relay.send(Side.UPSTREAM, method_frame(number, amqp.ChannelCloseOk()))
            self.told(method)
        elif isinstance(method, amqp.ChannelCloseOk):
            self._number = 0
            self.told(None)
        return True

    def told(self, answer: QueueAnswer) -> None:
        """The broker has answered, or will not: the client's method is looked at again once all is said."""
        if not self.is_answered:
            self.answer, self.is_answered = answer, True
        if self.is_over and self.relay.active:
            self.relay.pump.retry(self.relay)

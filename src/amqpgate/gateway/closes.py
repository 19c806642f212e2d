"""Who closes a channel, and which answers are still due: the part of a session that a refusal touches.

A refused operation is answered as RabbitMQ would: the channel is closed with 403, and what the
client sends on it meanwhile is dropped. The gateway closes the *broker's* side first, and tells
the client when the broker has answered; so confirms and deliveries from before the refusal still
arrive, and the channel number is free on both hops when the client may use it again.

::

             refused                 broker: close-ok              client: close-ok
    open ─────────────▶ closing up ──────────────────▶ closing down ────────────────▶ closed
      │   close ▶ broker               close ▶ client
      │ client: close                  broker: close-ok
      ├─────────────▶ forwarded, passed on until ──────────────────────────────────▶ closed
      │ broker: close                  client: close-ok
      └─────────────▶ forwarded, passed on until ──────────────────────────────────▶ closed

Both peers may close at once; a channel is closed when every close on it has been answered, and for the
client as soon as it has answered the broker's.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from amqpgate.datapath.scanner import Channels
from amqpgate.datapath.tables import DISCARD, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.consumers import Consuming
from amqpgate.gateway.publishing import Publishing
from amqpgate.policy.operations import SERVER_NAMED
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@attrs.define
class Channel:
    """What the control plane remembers of an open channel."""

    #: The queue that an empty name in the next method means (AMQP 0-9-1, queue.bind.queue).
    last_queue: str = ""
    #: Declares that the broker has not answered.
    declares_due: int = 0
    #: Who sent the broker a channel.close that it has not answered: a side, or None for nobody.
    #: UPSTREAM stands for the gateway itself, which speaks for nobody else there.
    closing_up: Side | None = None
    #: How many closes of the client's the broker has not answered.
    answers_due: int = 0
    #: Who sent the client a channel.close that it has not answered; CLIENT stands for the gateway.
    closing_down: Side | None = None
    #: What the client is told once the broker's side is closed.
    denial: ProtocolViolation | None = None
    #: The client sent a channel.close of its own while a refusal was under way.
    client_waits: bool = False
    #: What concerns publishes that are refused without closing the channel.
    publishes: Publishing = attrs.field(factory=Publishing)
    consuming: Consuming = attrs.field(factory=Consuming)

    def declare(self, queue: str, *, no_wait: bool) -> None:
        """The client declares a queue. It need not wait for the answer before it goes on, so the name
        holds from now on; if the declare fails, so does the channel."""
        self.last_queue = queue or SERVER_NAMED
        if not no_wait:
            self.declares_due += 1

    def declared(self, queue: str) -> None:
        """The broker has answered a declare, and tells the name that it gave."""
        self.declares_due -= 1
        if not self.declares_due and self.last_queue == SERVER_NAMED:
            self.last_queue = queue


@attrs.define
class Closes:
    """The channels of one session. ``send(side, channel, method)`` queues a method for a side."""

    send: Callable[[Side, int, Method], None]
    #: Shared with the scanner.
    table: Channels
    channels: dict[int, Channel] = attrs.field(factory=dict)
    #: Channel -> close-oks that the client does not wait for any more: it was closed by the broker
    #: meanwhile, and may use the number again. They come before all that concerns its next use.
    late: dict[int, int] = attrs.field(factory=dict)

    def is_dropping(self, channel: int) -> bool:
        """Whether the broker has closed the channel, and drops what the client sends on it."""
        return self.channels[channel].closing_down is not None

    def refuse(self, channel: int, denial: ProtocolViolation) -> None:
        """Close the channel on the gateway's own account; from now on the client's frames drop."""
        state = self.channels[channel]
        self.table.discard(channel)
        if state.closing_up is not None or state.closing_down is not None:
            return  # It is closing already; dropping is all that the broker would do, too.
        state.denial = denial
        state.closing_up = Side.UPSTREAM
        self.send(Side.UPSTREAM, channel, _close(denial))

    def client_closes(self, channel: int, method: Method) -> None:
        state = self.channels[channel]
        if self.table.state(channel) != DISCARD:
            state.closing_up = Side.CLIENT
            state.answers_due += 1
            self.send(Side.UPSTREAM, channel, method)
        elif state.denial is not None:
            state.client_waits = True
        else:
            self.send(Side.CLIENT, channel, amqp.ChannelCloseOk())

    def client_answers(self, channel: int, method: Method) -> None:
        state = self.channels[channel]
        if state.closing_down is Side.UPSTREAM:
            self.send(Side.UPSTREAM, channel, method)
        elif state.closing_down is None:
            if self.table.state(channel) == DISCARD:
                return
            raise ProtocolViolation(503, "unimplemented method", class_id=20, method_id=41, channel=channel)
        state.closing_down = None
        if state.closing_up is Side.CLIENT:
            state.closing_up = None
            self.late[channel] = self.late.get(channel, 0) + state.answers_due
        self._settle(channel, state)

    def broker_closes(self, channel: int, method: Method) -> None:
        state = self.channels.setdefault(channel, Channel())
        if state.closing_up is Side.UPSTREAM:
            # It met our own close on the way. An earlier operation failed: that is what the client hears.
            self.send(Side.UPSTREAM, channel, amqp.ChannelCloseOk())
            state.denial = None
            state.closing_down = Side.CLIENT
        else:
            state.closing_down = Side.UPSTREAM
        self.send(Side.CLIENT, channel, method)
        self._release_waiting(channel, state)

    def broker_answers(self, channel: int, method: Method) -> None:
        late = self.late.pop(channel, 0)
        if late:
            if late > 1:
                self.late[channel] = late - 1
            self.send(Side.CLIENT, channel, method)
            return
        state = self.channels.setdefault(channel, Channel())
        if state.closing_up is Side.UPSTREAM:
            state.closing_up = None
            if state.denial is not None:
                self.send(Side.CLIENT, channel, _close(state.denial))
                state.denial = None
                state.closing_down = Side.CLIENT
                self._release_waiting(channel, state)
        else:
            state.answers_due -= 1
            if state.answers_due <= 0:
                state.closing_up = None
            self.send(Side.CLIENT, channel, method)
        self._settle(channel, state)

    def _release_waiting(self, channel: int, state: Channel) -> None:
        if state.client_waits and state.denial is None:
            state.client_waits = False
            self.send(Side.CLIENT, channel, amqp.ChannelCloseOk())

    def _settle(self, channel: int, state: Channel) -> None:
        if state.closing_up is None and state.closing_down is None:
            del self.channels[channel]
            self.table.close(channel)


def _close(why: ProtocolViolation) -> amqp.ChannelClose:
    return amqp.ChannelClose(
        reply_code=why.code, reply_text=why.reply_text, class_id=why.class_id, method_id=why.method_id
    )

"""basic.qos of old clients at a RabbitMQ, whose limits are not those of their standard.

By AMQP 0-8 and 0-9 a limit is the channel's, or with ``global`` the connection's, whatever consumers there
are. RabbitMQ's is each consumer's, and of those only that come after it; with ``global`` the channel's,
but not for quorum queues, of which a consumer is refused with 540 while such a limit holds. The server may
send less than a limit allows, and must not send more (basic.qos).

==============================  ===========================================================================
the client                      the broker is told
==============================  ===========================================================================
basic.qos before it consumes    the limit, for consumers to come: of one consumer that is the channel's
basic.consume, where another    the same; the gateway keeps the window of both
consumer may have deliveries
basic.qos, where a consumer     the limit for consumers to come, and then the channel's, which consumers of
has a wider limit               classic queues keep to; the gateway keeps the window of all
basic.consume then              the channel's limit is lifted, and set again behind it
basic.qos with ``global``       the limit for consumers to come; the gateway keeps the connection's window
prefetch-size                   a count of 1: a size never holds back a single message
==============================  ===========================================================================

Answers to what the client has not asked for are kept from it.
"""

from __future__ import annotations

from collections import deque

import attrs

from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@define
class _Channel:
    """Of limits, 0 is none."""

    #: What the client has asked for.
    limit: int = 0
    #: What consumers to come have at the broker.
    each: int = 0
    #: The channel's at the broker.
    every: int = 0
    #: Consumers that acknowledge, since the channel was opened.
    consumers: int = 0
    #: The widest limit that one of them has at the broker.
    widest: int = 0
    #: There are consumers that do not acknowledge: RabbitMQ would make the channel's limit theirs, too.
    has_silent: bool = False
    #: Whether the client waits for it, for each qos-ok that is due.
    answers: deque[bool] = attrs.field(factory=deque)


@define
class Prefetch:
    """Of one session."""

    #: The connection's limit.
    all: int = 0
    _channels: dict[int, _Channel] = attrs.field(factory=dict, init=False)

    def opened(self, number: int) -> None:
        """The channel begins anew."""
        self._channels.pop(number, None)

    def limit(self, number: int) -> int:
        """How many unacknowledged deliveries the channel may have; 0: any number."""
        channel = self._channels.get(number)
        return 0 if channel is None else channel.limit

    def consumers(self, number: int) -> int:
        """How many that acknowledge there have been since the channel was opened."""
        channel = self._channels.get(number)
        return 0 if channel is None else channel.consumers

    def is_kept_here(self, number: int) -> bool:
        """Whether the broker does not keep the channel's window by itself."""
        channel = self._channels.get(number)
        if channel is None or not channel.consumers:
            return False
        is_other = channel.consumers > 1 or _is_wider(channel.widest, channel.limit)
        return bool(self.all) or (channel.limit > 0 and is_other)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Channels that have asked for something."""
        return tuple(self._channels)

    def qos(self, number: int, method: amqp.BasicQos) -> tuple[Method, ...]:
        """What the broker is told; the answer to the first of it is the client's."""
        channel = self._of(number)
        count = 1 if method.prefetch_size else method.prefetch_count
        if method.global_:
            self.all = count
        else:
            channel.limit = count
        return (*self._set_each(channel, tells=True), *self._hold_every(channel))

    def consume(self, number: int, method: amqp.BasicConsume) -> tuple[Method, ...]:
        """What the broker is told, the consume among it."""
        channel = self._of(number)
        before: tuple[Method, ...] = ()
        if channel.every or channel.each != self._each(channel):
            before = self._set_each(channel, tells=False)
        if method.no_ack:
            channel.has_silent = True
        else:
            wider = not channel.consumers or _is_wider(channel.each, channel.widest)
            channel.widest = channel.each if wider else channel.widest
            channel.consumers += 1
        return (*before, method, *self._hold_every(channel))

    def answered(self, number: int) -> bool:
        """The broker has said qos-ok: whether to the client."""
        answers = self._of(number).answers
        return answers.popleft() if answers else True

    def _hold_every(self, channel: _Channel) -> tuple[Method, ...]:
        """Have the broker keep to the limit where consumers have a wider one."""
        every = 0
        if channel.consumers and not channel.has_silent and _is_wider(channel.widest, channel.limit):
            every = channel.limit
        if every == channel.every:
            return ()
        channel.every = every
        channel.answers.append(False)
        return (amqp.BasicQos(prefetch_count=every, global_=True),)

    def _set_each(self, channel: _Channel, *, tells: bool) -> tuple[Method, ...]:
        """For consumers to come; with that RabbitMQ has no limit of the channel's any more."""
        channel.each, channel.every = self._each(channel), 0
        channel.answers.append(tells)
        return (amqp.BasicQos(prefetch_count=channel.each),)

    def _each(self, channel: _Channel) -> int:
        """The narrower one of the channel's and the connection's."""
        return min(filter(None, (channel.limit, self.all)), default=0)

    def _of(self, number: int) -> _Channel:
        return self._channels.setdefault(number, _Channel())


def _is_wider(one: int, other: int) -> bool:
    """Whether one limit lets more pass than another."""
    return other != 0 and (one == 0 or one > other)

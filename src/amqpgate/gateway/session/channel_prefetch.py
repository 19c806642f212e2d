"""The prefetch limits of one channel as RabbitMQ 3 has them, where the broker has only a consumer's own.

basic.qos with ``global`` limits the channel: all consumers that acknowledge share it, those that are there
and those to come. Without it holds for each consumer that comes after it, alone, and lifts the channel's: for
both to hold the channel's is set last. 0 is no limit. Messages of basic.get, and of consumers that do not
acknowledge, do not count. RabbitMQ 4 takes ``global`` for the other one, and does not say so; for quorum
queues RabbitMQ 3 ends the connection (540).

What the broker is told is the *width* of each consumer, its prefetch there. The gateway keeps the channel's
window where the widths do not (`flow_control`).

==============================  ===========================================================================
the client                      the broker is told
==============================  ===========================================================================
basic.qos with ``global``       the limit as the width of consumers to come that have none of their own
basic.qos                       the width of consumers to come; there is no limit of the channel's any more
basic.consume                   the same; before it the width, where that has changed
basic.qos with ``global``,      a second consumer of the same queue with at least the limit as its width, and
above a consumer's width, or    then the end of the first; to the client they are one. Widths grow at least
far below it                    twofold, and shrink from the fourfold on
basic.cancel                    of the consumer that is there now
==============================  ===========================================================================

A consumer with a limit of its own keeps that as its width, and an exclusive one what it had at first: nobody
may consume beside it. So does one that names an offset in a stream.

A limit is in force once the broker has answered: what it delivered before counts, and is not held back. Of a
channel that has a consumer before it has a limit, messages that were got before that count, too, until they
are settled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: The largest prefetch count: 16 bits (basic.qos).
_LARGEST: Final = 0xFFFF

#: A width of more than so many times the limit is made narrower.
_FAR: Final = 4

#: Tags of consumers that were replaced, the last ones: deliveries to them may still be on the way.
_MOST_FORMER: Final = 64

_STREAM_OFFSET: Final = "x-stream-offset"


@frozen
class _Limit:
    """One of the channel's."""

    count: int = 0
    #: Whether the client had asked for consumers before it. If not, they send nothing before it is in force.
    had_consumers: bool = True


@define
class _Consumer:
    """One that acknowledges."""

    #: As the broker was asked for it; its tag is the client's.
    method: amqp.BasicConsume
    #: Its tag at the broker.
    at: str
    #: Its own limit; 0: none.
    each: int
    #: Its prefetch at the broker; 0: none.
    width: int
    #: The broker has said that it is there, or will not say it.
    is_there: bool
    #: The tag that it had before, until the broker has answered its cancel.
    before: str | None = None

    @property
    def has_fixed_width(self) -> bool:
        return bool(self.each) or self.method.exclusive or _STREAM_OFFSET in self.method.arguments

    def is_replaced(self, tag: str, width: int) -> None:
        self.before, self.at, self.width = self.at, tag, width

    def is_alone(self) -> None:
        self.before = None

    def is_answered(self) -> None:
        self.is_there = True


@define
class _Tags:
    """Which of the client's consumers each one is that the broker names."""

    #: The gateway's tags of consumers at the broker; and those that were there last.
    given: dict[str, str] = attrs.field(factory=dict)
    former: dict[str, str] = attrs.field(factory=dict)
    #: Tags whose cancel is the gateway's own, and how many of each the broker has not answered.
    retiring: dict[str, int] = attrs.field(factory=dict)

    def __bool__(self) -> bool:
        """Whether the broker has, or had, tags that are not the client's."""
        return bool(self.given or self.former)

    def client(self, tag: str) -> str:
        """The client's."""
        return self.given.get(tag) or self.former.get(tag, tag)

    def replace(self, old: str, tag: str, client: str) -> None:
        """Another consumer takes the place of one."""
        self.given[tag] = client
        self.retiring[old] = self.retiring.get(old, 0) + 1

    def retired(self, tag: str) -> bool:
        """The broker has answered a cancel: whether the gateway's."""
        count = self.retiring.pop(tag, 0)
        if count > 1:
            self.retiring[tag] = count - 1
        return count > 0

    def left(self, tag: str) -> str:
        """The broker's tag is no consumer's any more, but for what is on its way. The client's."""
        client = self.given.pop(tag, None)
        if client is None:
            return self.former.get(tag, tag)
        self.former[tag] = client
        if len(self.former) > _MOST_FORMER:
            del self.former[next(iter(self.former))]
        return client


@define
class ChannelPrefetch:
    """One channel. Its size is that of the consumers which it is told to remember."""

    #: A consumer tag that nobody else uses.
    new_tag: Callable[[], str]
    #: The gateway keeps every limit: there are consumers that are not known here, or messages were got by
    #: basic.get, which the data path counts and the limit does not.
    is_always_kept: bool = False
    #: The channel's limit that is in force.
    _in_force: _Limit = attrs.field(default=_Limit(), init=False)
    #: The one that the client has asked for last.
    _asked: int = attrs.field(default=0, init=False)
    #: What the client wants for consumers to come.
    _each: int = attrs.field(default=0, init=False)
    #: What the broker gives them.
    _told: int = attrs.field(default=0, init=False)
    #: No consumer is made wider than this: larger ones have not fitted (`narrow`).
    _widest: int = attrs.field(default=_LARGEST, init=False)
    #: By the client's tag.
    _consumers: dict[str, _Consumer] = attrs.field(factory=dict, init=False)
    #: Consumers at the broker that acknowledge, since the channel was opened.
    _count: int = attrs.field(default=0, init=False)
    _tags: _Tags = attrs.field(factory=_Tags, init=False)
    #: By the client's tags, those that have been made narrower and not been taken.
    _narrowed: frozenset[str] = attrs.field(default=frozenset(), init=False)
    #: basic.qos that the broker has not answered: the limit that is in force then; None: not the client's.
    _answers: deque[_Limit | None] = attrs.field(factory=deque, init=False)

    @property
    def limit(self) -> int:
        """The channel's limit that is in force; 0: none."""
        return self._in_force.count

    @property
    def had_consumers(self) -> bool:
        """Whether deliveries to consumers may have come before it was."""
        return self._in_force.had_consumers

    @property
    def is_kept_here(self) -> bool:
        """Whether the broker does not keep the channel's window by itself, or names consumers otherwise."""
        if self._tags:
            return True
        if not self.limit:
            return False
        return (
            self.is_always_kept
            or self._count > 1
            or any(_is_wider(one.width, self.limit) for one in self._consumers.values())
        )

    # -- the client asks ----------------------------------------------------------------------

    def qos(self, method: amqp.BasicQos, *, has_consumers: bool = True) -> tuple[Method, ...]:
        """What the broker is told. ``has_consumers``: the client has asked for some."""
        if method.prefetch_size:
            # Every RabbitMQ refuses it.
            self._answers.append(_Limit(self._asked, has_consumers))
            return (method,)
        if method.global_:
            self._asked, self._widest = method.prefetch_count, _LARGEST
        else:
            # RabbitMQ 3 forgets the channel's limit then, whatever its manual says.
            self._each, self._asked = method.prefetch_count, 0
        resized = (*self.resize(),)
        self._answers.append(_Limit(self._asked, has_consumers))
        self._told = self._to_come
        return (*resized, amqp.BasicQos(prefetch_count=self._told))

    def named(self, method: amqp.BasicConsume) -> amqp.BasicConsume:
        """The same with a tag: what is made wider must have one before the broker gives it."""
        return method if method.consumer_tag else attrs.evolve(method, consumer_tag=self.new_tag())

    def consume(self, method: amqp.BasicConsume, *, is_remembered: bool = True) -> tuple[Method, ...]:
        """What the broker is told. What is not remembered keeps its width."""
        if method.no_ack:
            return (method,)
        known = self._consumers.get(method.consumer_tag)
        if known is not None and known.at != known.method.consumer_tag:
            # The broker refuses a tag that is in use.
            return (attrs.evolve(method, consumer_tag=known.at),)
        told = self._tell(self._to_come)
        self._count += 1
        if is_remembered:
            tag = method.consumer_tag
            self._consumers[tag] = _Consumer(method, tag, self._each, self._told, is_there=method.no_wait)
        else:
            self.is_always_kept = True
        return (*told, method)

    def cancel(self, method: amqp.BasicCancel) -> amqp.BasicCancel:
        """What the broker is told."""
        consumer = self._consumers.pop(method.consumer_tag, None)
        if consumer is None or consumer.at == method.consumer_tag:
            return method
        return attrs.evolve(method, consumer_tag=consumer.at)

    def get(self) -> None:
        """The client asks for a message, and will acknowledge it."""
        self.is_always_kept = self.is_always_kept or self._asked > 0

    # -- the broker says ----------------------------------------------------------------------

    def answered(self) -> bool:
        """basic.qos-ok: whether it is the client's."""
        limit = self._answers.popleft() if self._answers else _Limit(self._asked)
        if limit is None:
            return False
        self._in_force = limit
        return True

    def consumed(self, tag: str) -> bool:
        """basic.consume-ok: whether it has come with another width than it is to have by now."""
        consumer = self._consumers.get(tag)
        if consumer is None:
            return False
        consumer.is_answered()
        return not consumer.has_fixed_width and self._width(consumer.width) != consumer.width

    def client_tag(self, tag: str) -> str:
        """The client's, of a consumer that the broker names."""
        return self._tags.client(tag)

    def cancel_answered(self, tag: str) -> str | None:
        """basic.cancel-ok, with the broker's tag: the client's; None: it answers the gateway."""
        client = self._tags.left(tag)
        if not self._tags.retired(tag):
            return client
        consumer = self._consumers.get(client)
        if consumer is not None and consumer.before == tag:
            consumer.is_alone()
        return None

    def cancelled(self, tag: str) -> str | None:
        """The broker ends a consumer, by its tag there. The client's; None: another one is in its place."""
        if tag in self._tags.retiring:
            return None
        client = self._tags.left(tag)
        self._consumers.pop(client, None)
        return client

    # -- widths -------------------------------------------------------------------------------

    def resize(self) -> Iterator[Method]:
        """What the broker is told so that each consumer is as wide as it must be."""
        for consumer in self._consumers.values():
            if not consumer.has_fixed_width and consumer.is_there and consumer.before is None:
                width = self._width(consumer.width)
                if width != consumer.width:
                    yield from self._replace(consumer, width)

    def narrow(self, tag: str) -> bool:
        """What a consumer is sent does not fit: it is to be half as wide. Whether it can be, or will.

        ``resize`` then tells the broker.
        """
        consumer = self._consumers.get(tag)
        if consumer is None or consumer.has_fixed_width or not self._asked:
            return False
        if consumer.before is not None or _is_wider(consumer.width, self._widest):
            return True
        if consumer.width == 1:
            return False
        self._widest = max(1, min(consumer.width or _LARGEST, self._asked, self._widest) // 2)
        return True

    def take_narrowed(self) -> frozenset[str]:
        """Consumers, by the client's tags, that are narrower than when this was asked last."""
        narrowed, self._narrowed = self._narrowed, frozenset()
        return narrowed

    @property
    def _to_come(self) -> int:
        return self._each or (min(self._asked, self._widest) if self._asked else 0)

    def _width(self, now: int) -> int:
        """How wide a consumer without a limit of its own is to be."""
        need = min(self._asked, self._widest)
        if not need or not now or now > min(_FAR * need, self._widest):
            return need
        return min(max(need, 2 * now), self._widest) if need > now else now

    def _replace(self, consumer: _Consumer, width: int) -> Iterator[Method]:
        yield from self._tell(width)
        tag, old = self.new_tag(), consumer.at
        if _is_wider(consumer.width, width):
            self._narrowed |= {consumer.method.consumer_tag}
        self._count += 1
        self._tags.replace(old, tag, consumer.method.consumer_tag)
        consumer.is_replaced(tag, width)
        yield attrs.evolve(consumer.method, consumer_tag=tag, no_wait=True)
        yield amqp.BasicCancel(old)

    def _tell(self, width: int) -> tuple[Method, ...]:
        """The width of consumers to come, if the broker gives them another one."""
        if self._told == width:
            return ()
        self._told = width
        self._answers.append(None)
        return (amqp.BasicQos(prefetch_count=width),)


def _is_wider(one: int, other: int) -> bool:
    """Whether one limit lets more pass than another."""
    return other != 0 and (one == 0 or one > other)

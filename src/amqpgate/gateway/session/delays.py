"""Delayed messages of one session: they go into the ladder, and those that come out are as they were.

The session declares the ladder itself, on the channel on which it is needed, before the message and without
waiting for answers: RabbitMQ does what a channel says in its order. So its user's permissions hold. Its other
channels do the same until the broker has answered (`channel_ladder`). Nothing is kept here of any message.

::

    exchange.declare X, delaying ──▶ foot · exchange.declare X, x-delayed-type · way to X
    basic.publish X, x-delay 5000 ─▶ what the session has not declared of the ladder · basic.publish 12
    basic.deliver done ────────────▶ basic.deliver X
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import attrs

from amqpgate.gateway.session import delay_ladder
from amqpgate.gateway.session.channel_ladder import ChannelLadder
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.delayed_messages import DELAY, delay_of, into_ladder, number_of, out_of_ladder
from amqpgate.gateway.session.late_steps import is_late
from amqpgate.gateway.session.recent_deliveries import DELIVERED
from amqpgate.policy import Compatibility, Peek
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.values import define, frozen
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Messages that must be looked at, of those that clients publish and of those that they get.
PUBLISHED: Final = Peek(headers=frozenset({DELAY}))
SENT: Final = Peek(headers=frozenset({delay_ladder.TARGET}))

#: So many exchanges are remembered to have their end; then all is declared anew.
MOST_EXCHANGES: Final = 256

_Sent: TypeAlias = "amqp.BasicDeliver | amqp.BasicGetOk | amqp.BasicReturn"


@define(eq=False)
class Delays:
    """Of one session. Bounded by its channels, and by `MOST_EXCHANGES`."""

    #: None: nothing more is delayed.
    compatibility: Compatibility | None
    #: The highest rung that is there, by an answer of the broker's; None: nothing yet.
    _highest: int | None = attrs.field(default=None, init=False)
    #: The exchanges that have their end.
    _ends: set[str] = attrs.field(factory=set, init=False)
    #: Those that observers were told of.
    _told: set[str] = attrs.field(factory=set, init=False)
    #: Channel number to the method whose content header comes next from the broker, and its queue if known.
    _waiting: dict[int, tuple[_Sent, str | None]] = attrs.field(factory=dict, init=False)

    @property
    def is_holding(self) -> bool:
        """Whether the method of a message to the client waits for its header."""
        return bool(self._waiting)

    def follow(self, compatibility: Compatibility | None) -> None:
        """Another policy holds."""
        self.compatibility = compatibility

    def delays(self, exchange: str) -> bool:
        """Whether messages for an exchange, by the broker's name, may be delayed."""
        return self.compatibility is not None and self.compatibility.delays(exchange)

    def answered(self, what: int | str) -> None:
        """The broker says that there are all rungs up to one, or the end for an exchange."""
        if isinstance(what, int):
            self._highest = max(what, self._highest or 0)
            return
        if len(self._ends) >= MOST_EXCHANGES:
            self._ends.clear()
        self._ends.add(what)

    def closed(self, close: amqp.ChannelClose) -> None:
        """The broker has closed a channel. Where it names something of the ladder, that may not be there."""
        if delay_ladder.PREFIX in close.reply_text:
            self._highest = None
            self._ends.clear()

    # -- to the broker -----------------------------------------------------------------------

    def around(self, channel: int, ladder: ChannelLadder, asked: Method, given: Method) -> Around | None:
        """What goes with a method, which the client ``asked`` and the broker is ``given``; None: nothing."""
        if not isinstance(given, amqp.ExchangeDeclare) or not isinstance(asked, amqp.ExchangeDeclare):
            return None
        if asked.type == given.type:
            return None
        self._tell(given.exchange)
        # Its end comes with the first message: a queue for each name that somebody declares would be many.
        before = self._rungs(ladder, delay_ladder.LOWEST - 1)
        behind = [delay_ladder.way_to(given.exchange)]
        return Around(_frames(channel, before), _frames(channel, behind), _answers(before))

    def publish(self, channel: int, ladder: ChannelLadder, frames: bytes) -> Delayed | None:
        """A message in the broker's names, as method and header frames. None: it is not delayed.

        ``ladder`` is what its channel has declared. Raises `NotTransformedError`.
        """
        at = 8 + int.from_bytes(frames[3:7], "big")
        method = decode_method(frames[7 : at - 1])
        assert isinstance(method, amqp.BasicPublish)
        if not self.delays(method.exchange):
            return None
        header = decode_header(frames[at + 7 : -1])
        delay = delay_of(header)
        if delay is None:
            return None
        now = round(1000 * time.time())
        changed, content = into_ladder(method, header, delay, random.getrandbits(63), now)
        is_new = self._tell(method.exchange)
        missing = list(self._missing(ladder, method.exchange, delay_ladder.rungs_of(delay)[0]))
        return Delayed(
            _frames(channel, missing),
            _answers(missing),
            method_frame(channel, changed),
            encode_frame(amqp.FRAME_HEADER, channel, encode_header(content)),
            Adapted(changed, ("delayed-exchange",)) if is_new else None,
        )

    def _tell(self, exchange: str) -> bool:
        """Observers are told of an exchange: whether for the first time, as far as that is remembered."""
        if exchange in self._told:
            return False
        if len(self._told) >= MOST_EXCHANGES:
            self._told.clear()
        self._told.add(exchange)
        return True

    def _missing(self, ladder: ChannelLadder, exchange: str, highest: int) -> Iterator[Method]:
        """What a channel has not declared of the way from a rung to an exchange, and is not there."""
        yield from self._rungs(ladder, highest)
        if exchange not in self._ends and exchange not in ladder.ends:
            # First what fails if there is no such exchange: a name that somebody made up leaves no queue.
            yield delay_ladder.way_to(exchange)
            yield from delay_ladder.end(exchange)
            yield from ladder.lead_to(exchange)

    def _rungs(self, ladder: ChannelLadder, highest: int) -> list[Method]:
        """What is missing up to a rung, and below all rungs."""
        there = max((one for one in (self._highest, ladder.highest) if one is not None), default=None)
        missing = [] if there is not None else list(delay_ladder.foot())
        there = delay_ladder.LOWEST - 1 if there is None else there
        for k in range(there + 1, highest + 1):
            missing += delay_ladder.rung(k)
        if missing:
            missing += ladder.climb(max(there, highest))
        return missing

    # -- to the client -----------------------------------------------------------------------

    def hold(self, channel: int, method: _Sent, queue: str | None) -> None:
        """A message to the client that is shown, whose header comes next: its method waits for that.

        ``queue``: where it comes from; None: that is not known.
        """
        self._waiting[channel] = method, queue

    def take_header(self, channel: int, frame: memoryview) -> tuple[_Sent, ContentHeader] | None:
        """The method that waited for this header, and the header, as they were before the ladder.

        None: no method waited, or it is no header.
        """
        waiting = self._waiting.pop(channel, None)
        if waiting is None or frame[0] != amqp.FRAME_HEADER:
            return None
        (method, queue), header = waiting, decode_header(frame[7:-1])
        if isinstance(method, amqp.BasicReturn) or method.exchange != delay_ladder.DONE:
            return out_of_ladder(method, header)
        if _may_have_come(header, queue):
            method = attrs.evolve(method, redelivered=True)
        return out_of_ladder(method, header)


@frozen
class Around:
    """What the broker gets before and behind a method of the client's."""

    before: bytes
    behind: bytes
    #: How many of these it answers.
    answers: int


@frozen
class Delayed:
    """What the broker gets for a message that is delayed."""

    #: Frames that declare what is missing of the ladder, and how many of them the broker answers.
    ladder: bytes
    answers: int
    #: Frames of its own.
    method: bytes
    header: bytes
    #: What observers are told; None: they were told of the exchange.
    adapted: Adapted | None


def _may_have_come(header: ContentHeader, queue: str | None) -> bool:
    """Whether a message from the ladder is one that its consumer may have had before."""
    properties = header.properties
    if not isinstance(properties, amqp.BasicProperties) or properties.headers is None:
        return False
    number = number_of(properties.headers)
    if queue is not None and number is not None and DELIVERED.again(number, queue):
        return True
    return is_late(properties.headers)


def _answers(methods: Iterable[Method]) -> int:
    return sum(one is delay_ladder.ANSWERED for one in methods)


def _frames(channel: int, methods: Iterable[Method]) -> bytes:
    return b"".join(method_frame(channel, method) for method in methods)

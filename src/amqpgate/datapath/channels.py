"""The open channels of one session, in plain Python: what each direction of them is in the middle of.

The compiled scanner (``_scan``) has ``Channels`` with the same meaning. What has an underscore is for the
plain scanner (``reference``) alone.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.confirms import Confirms
from amqpgate.datapath.flows import Bucket, Flow
from amqpgate.datapath.meters import Meter
from amqpgate.datapath.tables import DISCARD, HEADER_NEXT, HELD_NEXT, METHOD_NEXT, OPEN, Show, Side
from amqpgate.datapath.unacked import Unacked
from amqpgate.wire.generated import v0_9_1 as amqp


@attrs.define(eq=False)
class PendingContent:
    """One direction of a channel: what must come next, and what happens to it."""

    due: int = METHOD_NEXT
    #: Bytes of the whole body, as its header declares it.
    size: int = 0
    flow: Flow | None = None
    #: In the place of the flow's.
    meter: Meter | None = None
    #: Debited by bytes of body beside the flow's.
    buckets: tuple[Bucket, ...] = ()
    #: Its header has passed, and it counts once it is whole.
    counts: bool = False
    show: int = Show.NOTHING
    drop: bool = False
    #: Of a message to the client that is no delivery: the method that began it, basic.get-ok or return.
    kind: int = 0
    #: Headers of messages that passed.
    messages: int = 0

    def forget(self) -> None:
        """Whatever is under way ends here."""
        self.due, self.show, self.drop = METHOD_NEXT, Show.NOTHING, False
        self.settle_nothing()

    def settle_nothing(self) -> None:
        """It does not count, or has been counted."""
        self.flow, self.meter, self.buckets, self.counts = None, None, (), False


@attrs.define(eq=False)
class ScannedChannel:
    """An open channel, or one whose client is being refused."""

    #: OPEN or DISCARD.
    state: int
    #: The channel's number on the other hop.
    to: int
    #: The control plane hears the broker's acks and nacks.
    shows_acks: bool = False
    #: It hears the client's acks, nacks and rejects.
    shows_settles: bool = False
    #: Which of them have passed; None: nobody asks.
    confirms: Confirms | None = None
    #: It has consumers whose deliveries are to be acknowledged.
    acks_deliveries: bool = False
    #: Which deliveries are due; None: there were none.
    unacked: Unacked | None = None
    up: PendingContent = attrs.field(factory=PendingContent)
    down: PendingContent = attrs.field(factory=PendingContent)

    def content(self, side: Side) -> PendingContent:
        """Of what ``side`` sends."""
        return self.up if side is Side.CLIENT else self.down

    def counted(self) -> Unacked:
        """Where deliveries are counted."""
        if self.unacked is None:
            self.unacked = Unacked()
        return self.unacked

    def delivered(self, consumer: bytes, tag: int) -> None:
        """A delivery to ``consumer``, by its tag, has passed."""
        if self.acks_deliveries and consumer not in self.counted().silent:
            self.counted().delivered(tag)


class Channels:
    """The open channels of one session, shared by both of its lanes."""

    def __init__(self) -> None:
        self._open: dict[int, ScannedChannel] = {}
        #: Messages to the client that are no deliveries: answers to basic.get, and returned ones.
        self.got = self.got_bytes = self.returned = self.returned_bytes = 0
        #: Of the publish that was timed last, from when it passed until its answer did; below zero: none.
        self.confirm_seconds = -1.0
        #: The channel that is timed; 0: none.
        self.timed = 0
        #: The publish: its tag, or 0 until one passes; and when it did.
        self._tag = 0
        self._since = 0.0
        self._before = 0

    def __len__(self) -> int:
        return len(self._open)

    def state(self, number: int) -> int:
        """OPEN, DISCARD, or 0 for closed."""
        channel = self._open.get(number)
        return 0 if channel is None else channel.state

    def open(self, number: int, to: int | None = None) -> None:
        """The channel carries frames; on the other hop its number is ``to``."""
        self._stop_timing(number)
        self._open[number] = ScannedChannel(OPEN, number if to is None else to)

    def remap(self, number: int, to: int) -> None:
        """From now on its number on the other hop is ``to``."""
        self._open[number].to = to

    def to(self, number: int) -> int:
        """Its number on the other hop; 0 where it is closed."""
        channel = self._open.get(number)
        return 0 if channel is None else channel.to

    def discard(self, number: int) -> None:
        """Drop what the client sends on it, but for its closes."""
        channel = self._open[number]
        channel.state = DISCARD
        channel.up.forget()

    def close(self, number: int) -> None:
        """Forget it. Closing a closed channel does nothing."""
        self._stop_timing(number)
        self._open.pop(number, None)

    def expect_header(self, side: Side, number: int, flow: Flow | None, show: int = Show.NOTHING) -> None:
        """The control plane let a message of ``side`` pass: its content follows, and counts for ``flow``."""
        content = self._content(side, number)
        content.forget()
        content.due, content.flow, content.show = HEADER_NEXT, flow, show

    def drop_next(self, side: Side, number: int) -> None:
        """The control plane refused a message of ``side`` at its method: its content is dropped."""
        self.expect_header(side, number, None)
        self._content(side, number).drop = True

    def drop_rest(self, side: Side, number: int) -> None:
        """The control plane refused a message of ``side`` that was shown: what is left of it is dropped."""
        content = self._content(side, number)
        content.show = Show.NOTHING
        content.drop = content.due != METHOD_NEXT
        content.settle_nothing()

    def is_dropping(self, side: Side, number: int) -> bool:
        """Whether what is left of the message of ``side`` that is under way is dropped."""
        return self._content(side, number).drop

    def uncount(self, side: Side, number: int) -> None:
        """The message of ``side`` whose header was shown did not pass."""
        if number == self.timed:
            self._tag = 0
        content = self._content(side, number)
        content.messages -= 1
        content.settle_nothing()

    def count_as(self, side: Side, number: int, meter: Meter) -> None:
        """The message of ``side`` that is under way counts there, and not in its flow's meter."""
        self._content(side, number).meter = meter

    def debits(self, side: Side, number: int, buckets: tuple[Bucket, ...]) -> None:
        """What comes of the body of the message of ``side`` that is under way is taken from these, too."""
        self._content(side, number).buckets = buckets

    def hold(self, side: Side, number: int) -> None:
        """Each frame of ``side`` is an upcall from now on. While no message of its is under way."""
        content = self._content(side, number)
        content.forget()
        content.due = HELD_NEXT

    def let_go(self, side: Side, number: int) -> None:
        """It is not held any more, if it was. Of a closed channel, nothing."""
        if self.due(side, number) == HELD_NEXT:
            self._content(side, number).due = METHOD_NEXT

    def show_rest(self, side: Side, number: int) -> None:
        """Show what is left of the message under way."""
        self._content(side, number).show = Show.BODY

    def show_acks(self, number: int, shown: bool = True) -> None:
        """From now on every ack and nack of the broker on this channel is an upcall, or is not any more."""
        self._open[number].shows_acks = shown

    def show_settles(self, number: int, shown: bool = True) -> None:
        """From now on every ack, nack and reject of the client on this channel is an upcall, or is not."""
        self._open[number].shows_settles = shown

    def count_confirms(self, number: int) -> None:
        """What is published from now on the broker confirms: count its answers as they pass."""
        channel = self._open[number]
        channel.confirms = Confirms(channel.up.messages)

    def unconfirmed(self, number: int) -> int:
        """How many publishes since ``count_confirms`` may be unanswered; 0 only when none is."""
        channel = self._open[number]
        assert channel.confirms is not None, "confirms are counted"
        return channel.confirms.due(channel.up.messages)

    # -- deliveries that are to be acknowledged (``unacked``) -----------------------------------

    def acks_deliveries(self, number: int) -> None:
        """What is delivered from now on is to be acknowledged, but by consumers that are silent."""
        self._open[number].acks_deliveries = True

    def silence(self, number: int, tag: bytes) -> None:
        """Deliveries of the consumer with this tag are not."""
        self._open[number].counted().silence(tag)

    def unsilence(self, number: int, tag: bytes) -> None:
        """The tag is not such a consumer's any more."""
        self._open[number].counted().silent.discard(tag)

    def gets(self, number: int, is_acked: bool) -> None:
        """The client asks for one message (basic.get); ``is_acked``: it is to acknowledge it."""
        self._open[number].counted().gets_next(is_acked)

    def settled(self, number: int, tag: int, multiple: bool) -> None:
        """An ack, nack or reject that was shown goes on."""
        unacked = self._open[number].unacked
        if unacked is not None:
            unacked.settled(tag, multiple)

    def recovered(self, number: int) -> None:
        """The broker has taken back what was delivered and not acknowledged. Of a closed channel, nothing."""
        channel = self._open.get(number)
        if channel is not None and channel.unacked is not None:
            channel.unacked.recovered()

    def recovers_unheard(self, number: int) -> None:
        """The broker is asked for that, and does not say when it has done it."""
        self._open[number].counted().recovers_unheard()

    def committed(self, number: int) -> None:
        """What was acknowledged until now, in a transaction that ends, stays so."""
        unacked = self._open[number].unacked
        if unacked is not None:
            unacked.committed()

    def rolled_back(self, number: int) -> None:
        """What was acknowledged since then is not."""
        unacked = self._open[number].unacked
        if unacked is not None:
            unacked.rolled_back()

    def lose_unacked(self, number: int) -> None:
        """It cannot be told any more which deliveries are to be acknowledged."""
        self._open[number].counted().is_lost = True

    def unacked(self, number: int) -> int | None:
        """How many deliveries the client has to acknowledge; None: that is not known."""
        unacked = self._open[number].unacked
        return 0 if unacked is None else unacked.count

    def unacked_tags(self, number: int) -> list[tuple[int, int]] | None:
        """Their tags as stretches: the first one, and the one behind the last. None: not all are known."""
        unacked = self._open[number].unacked
        if unacked is None:
            return []
        return None if unacked.is_lost or unacked.blurred != 0 else list(unacked.stretches)

    def uncommitted(self, number: int) -> int | None:
        """How many deliveries the client has settled since its last commit; None: that is not known."""
        unacked = self._open[number].unacked
        return 0 if unacked is None else unacked.uncommitted

    def tell_apart(self, kind: int, body_bytes: int) -> None:
        """Count a message with so much body that came by basic.get-ok or basic.return."""
        if kind == amqp.BasicGetOk.INDEX:
            self.got += 1
            self.got_bytes += body_bytes
        else:
            self.returned += 1
            self.returned_bytes += body_bytes

    def time_confirm(self, number: int, before: int) -> None:
        """Time the next publish on the channel until the broker answers it; nothing else is timed meanwhile.

        ``before``: messages that had passed there before the first that is confirmed.
        """
        if number not in self._open:
            raise KeyError(number)
        self.timed, self._before, self._tag, self.confirm_seconds = number, before, 0, -1.0

    @property
    def is_timing(self) -> bool:
        """Whether a publish has passed that is timed, and its answer has not."""
        return self.timed != 0 and self._tag != 0

    def _stop_timing(self, number: int) -> None:
        if number == self.timed:
            self.timed = 0

    def published(self, messages: int, now: float) -> None:
        """A publish on the channel that is timed has passed, as the last of so many."""
        if not self._tag:
            self._tag, self._since = messages - self._before, now

    def answered(self, tag: int, bits: int, now: float) -> None:
        """An ack or nack there: of a multiple, tag 0 is all that are due."""
        if self._tag and (tag == self._tag or (bits & 1 and (tag > self._tag or not tag))):
            self.confirm_seconds = now - self._since
            self.timed = 0

    def is_half_way(self, side: Side) -> bool:
        """Whether a message of ``side`` has begun on some channel, and not ended, and is not dropped."""
        return any(
            content.due != METHOD_NEXT and not content.drop
            for content in (channel.content(side) for channel in self._open.values())
        )

    def messages(self, side: Side, number: int) -> int:
        """How many messages of ``side`` have passed since the channel was opened, by their headers."""
        return self._content(side, number).messages

    def _content(self, side: Side, number: int) -> PendingContent:
        return self._open[number].content(side)

    def due(self, side: Side, number: int) -> int:
        """What must come next from ``side``: METHOD_NEXT, HEADER_NEXT, HELD_NEXT, or bytes of body."""
        channel = self._open.get(number)
        return METHOD_NEXT if channel is None else channel.content(side).due

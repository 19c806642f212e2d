"""A session's seat on a link that it shares with others: its channels are channels of the link.

::

    client channel n  ──  (session, n)  ◀── bijection ──▶  (link, m)  ──  broker channel m

A session has no link until it opens its first channel, and all of its channels are on one. What it does there
reaches no other session, for the broker keeps channels apart; what it keeps by connection is another matter
(`sharing` has the list).

Nothing is answered for the broker, but it may have answered beforehand: channel.open and confirm.select by a
channel that it has opened ahead of need, in that mode; channel.close where nothing on the channel waits for
an answer, so that there is nothing more to hear.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.datapath.engine import PeerGoneError
from amqpgate.datapath.tables import METHOD_NEXT, OPEN, Side
from amqpgate.errors import OverLimit, ProtocolViolation, UpstreamLost
from amqpgate.gateway.pool.channel_mapping import ChannelMapping
from amqpgate.gateway.pool.migrate import Migration
from amqpgate.gateway.pool.requests import SAID, is_exclusive, needs_of, note_answer, note_request
from amqpgate.gateway.pool.unsupported import Needs, refusal_of, why_fixed
from amqpgate.gateway.session.violations import unexpected
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.datapath.engine import PooledEndpoint
    from amqpgate.gateway.pool.pool import Pool
    from amqpgate.gateway.pool.shared_connection import SharedConnection
    from amqpgate.gateway.session.connection_close import PooledClose
    from amqpgate.gateway.session.session import Session

#: Seconds until a method that waits is looked at again by itself; mostly it is told.
_LONG: Final = 60.0


@attrs.define(eq=False, weakref_slot=False)
class PooledSession:
    """Of one session."""

    pool: Pool
    session: Session
    pooled: PooledEndpoint
    link: SharedConnection | None = None
    #: By the client's numbers.
    seats: dict[int, ChannelMapping] = attrs.field(factory=dict)
    #: Most channels that it has had at once.
    peak: int = 0
    #: The client has been told that the broker blocks the link.
    is_blocked: bool = False
    #: On its way to a connection of its own.
    moving: Migration | None = None
    #: Its client closes the connection.
    parting: PooledClose | None = None

    # -- what the client asks for -------------------------------------------------------------

    def holds_up(self, channel: int, method: Method) -> bool:
        """Whether the client's method must wait for a link. ``ProtocolViolation`` for what cannot be."""
        self.pool.held_up.discard(self)
        if isinstance(method, amqp.ChannelOpen):
            return not self._has_room(channel)
        seat = self.seats.get(channel)
        if channel and seat is None:
            return False
        if seat is not None and not seat.answers(method):
            raise unexpected(channel, method)
        if seat is not None and seat.awaits_name(method):
            self.wait()
            return True
        needs, kind, queue = needs_of(self, channel, method, seat)
        if needs is not Needs.NOTHING and (why := self.why_fixed()) is None:
            return self._moves()
        if needs is Needs.MUST:
            raise refusal_of(method, channel, why, queue=queue, kind=kind)
        if isinstance(method, amqp.BasicPublish):
            self._tell_blocked()
        elif seat is not None:
            seat.passes(method)
        return False

    def says(self, channel: int, method: Method) -> None:
        """The method goes to the broker, with the broker's names. Raises ``ProtocolViolation`` where it uses
        another session's queue."""
        seat, link = self.seats.get(channel), self.link
        if seat is not None and link is not None:
            link.exclusives.check(self, channel, method, self.session.closes.channels[channel].last_queue)
            note_request(self, link, seat, method)

    def why_fixed(self) -> str | None:
        """Why the session cannot leave its link without its client's seeing it; None: it can."""
        if self.link is not None and self.link.exclusives.owns(self):
            return "it has an exclusive queue"
        return why_fixed(self.session)

    def makes_room(self, channel: int, method: Method) -> bool:
        """A publish is larger than what is collected on the way to a link. Whether it is looked at again."""
        settings = self.pool.settings
        if self.why_fixed() is None:
            return self._moves()
        if self.pooled.whole < settings.max_collected:
            self.pooled.whole = settings.max_collected
            return True
        text = (
            f"a body of more than {settings.max_collected} octets does not go by a connection that is shared"
        )
        why = ProtocolViolation(
            311, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=channel
        )
        self.session.closes.refuse(channel, why)
        return False

    def _moves(self) -> bool:
        """The session gets a connection to the broker of its own, and the client's method waits for that."""
        if self.moving is None:
            self.moving = Migration(self)
            self.pool.pools.start(self.moving.run)
        self.wait()
        return True

    def _has_room(self, channel: int) -> bool:
        """Whether there is a channel for the client's; if not, the session waits until the pool says so."""
        if self.session.relay.channels.state(channel):
            return True
        if self.pool.board(self):
            return True
        is_limited = self.pool.decisions.ceiling.is_reached
        if self.seats and not is_limited:
            self.pool.decisions.sizes.outgrew(len(self.seats) + 1)
        if self.seats or is_limited:
            if self.why_fixed() is None:
                self.pool.waiting.pop(self, None)
                return not self._moves()
            if is_limited:
                self.pool.waiting.pop(self, None)
                raise ProtocolViolation(530, self.pool.limit_text)
        self.wait()
        return False

    def wait(self) -> None:
        """The client's method is looked at again when the pool says so."""
        self.session.relay.up.ready_at = time.monotonic() + _LONG
        self.pool.held_up.add(self)

    def open(self, channel: int, frame: bytes | memoryview) -> None:
        """The client opens a channel, and may."""
        assert self.link is not None, "without one it waits"
        relay = self.session.relay
        taken = self.pool.take(self.link)
        self.seats[channel] = ChannelMapping(taken.number, is_spare=taken.is_open)
        self.peak = max(self.peak, len(self.seats))
        relay.channels.open(channel, taken.number)
        if taken.is_open:
            self._opened(channel)
            return
        self.link.await_open(taken.number, partial(self._on_open, channel))
        if taken.must_open:
            relay.send(Side.UPSTREAM, frame)

    def _on_open(self, channel: int, answer: amqp.ChannelOpenOk | amqp.ChannelClose) -> None:
        if isinstance(answer, amqp.ChannelOpenOk):
            self._opened(channel)
        elif channel in self.seats:
            with contextlib.suppress(PeerGoneError):
                self.session.closes.broker_closes(channel, answer)

    def _opened(self, channel: int) -> None:
        """The broker has said open-ok: from now on what it says on the channel is the client's."""
        seat = self.seats.get(channel)
        if seat is None or self.link is None:
            return
        seat.is_open = True
        self.link.link.map_channel(seat.number, self.pooled, channel)
        with contextlib.suppress(PeerGoneError):
            self.session.relay.send(Side.CLIENT, method_frame(channel, amqp.ChannelOpenOk()))

    def confirms(self, channel: int, method: amqp.ConfirmSelect) -> bool:
        """The client selects confirms. Whether the broker has answered that beforehand."""
        relay, seat = self.session.relay, self.seats[channel]
        channels = relay.channels
        is_fresh = seat.is_spare and not seat.is_used and not channels.messages(Side.CLIENT, channel)
        # Once only: a channel in confirm mode is no spare one for anybody.
        seat.is_spare = False
        other = self.pool.confirming(self.link, seat.number) if is_fresh and self.link is not None else None
        if self.link is None or other is None:
            # The broker will answer.
            seat.is_used = True
            return False
        self.link.link.unmap_channel(seat.number)
        seat.number = other
        channels.remap(channel, other)
        self.link.link.map_channel(other, self.pooled, channel)
        if not method.no_wait:
            relay.send(Side.CLIENT, method_frame(channel, amqp.ConfirmSelectOk()))
        return True

    # -- the end of channels ------------------------------------------------------------------

    def is_idle(self, channel: int) -> bool:
        """Whether the broker has answered all that was said on the channel: its end tells nothing more."""
        relay, seat = self.session.relay, self.seats.get(channel)
        state = self.session.closes.channels.get(channel)
        if seat is None or seat.is_used or not seat.is_open or state is None or state.ledger is not None:
            return False
        if state.closing_up is not None or state.closing_down is not None:
            return False
        channels = relay.channels
        if channels.messages(Side.UPSTREAM, channel) or channels.state(channel) != OPEN:
            return False
        if not channels.messages(Side.CLIENT, channel):
            return True
        return state.confirms_from == 0 and not self._unconfirmed(channel)

    @property
    def awaits_open(self) -> bool:
        """Whether the broker owes an open-ok."""
        return not all(seat.is_open for seat in self.seats.values())

    @property
    def waits_for_answers(self) -> bool:
        """Whether the broker owes a confirm, or the answer to a limit."""
        return any(seat.limits_due or self._unconfirmed(channel) for channel, seat in self.seats.items())

    def _unconfirmed(self, channel: int) -> bool:
        state = self.session.closes.channels.get(channel)
        confirms = state is not None and state.confirms_from is not None
        return confirms and self.session.relay.channels.unconfirmed(channel) > 0

    def close(self, channel: int) -> None:
        """The client closes a channel that `is_idle`; it has its answer."""
        self.hand_back(channel)
        relay = self.session.relay
        del self.session.closes.channels[channel]
        relay.channels.close(channel)
        relay.send(Side.CLIENT, method_frame(channel, amqp.ChannelCloseOk()))

    def may_say(self, channel: int, method: Method) -> bool:
        """The session is to say channel.close or close-ok to the broker: whether it may. Then it counts as
        said."""
        seat, step = self.seats.get(channel), SAID[type(method)]
        return seat is not None and self.link is not None and self.link.closes.step(seat.number, step)

    def settled(self, channel: int, late: int) -> None:
        """Client and broker have closed a channel; ``late`` answers to the client are still on their way."""
        seat = self.seats.pop(channel, None)
        if seat is None or self.link is None:
            return
        for _ in range(late):
            self.session.relay.send(Side.CLIENT, method_frame(channel, amqp.ChannelCloseOk()))
        self._give_back(self.link, seat, None)

    def hand_back(self, channel: int, on_free: Callable[[], None] | None = None) -> None:
        """The session leaves a channel, whoever has closed it or not."""
        seat, link = self.seats.pop(channel), self.link
        assert link is not None, "without one it has no channels"
        link.leave(seat.number, partial(self._say, link, channel, seat))
        self._give_back(link, seat, on_free)

    def _say(self, link: SharedConnection, channel: int, seat: ChannelMapping, method: Method) -> None:
        """Behind what the client has said, while it is there."""
        if self.session.relay.active:
            self.session.relay.send(Side.UPSTREAM, method_frame(channel, method))
        else:
            link.send(seat.number, method)

    def _give_back(
        self, link: SharedConnection, seat: ChannelMapping, on_free: Callable[[], None] | None
    ) -> None:
        for declare in seat.declares_due or ():
            # It was not answered when the channel closed.
            if is_exclusive(declare):
                link.exclusives.not_declared(self, declare)
        link.give_back(seat.number, self.pooled, on_free)
        self._get_off()

    def _get_off(self) -> None:
        """A session without channels needs no link, unless a queue there is its own."""
        if not self.seats and self.link is not None and not self.link.exclusives.owns(self):
            link, self.link = self.link, None
            self.pooled.detach()
            self.pool.left(link, self)
            self._tell_unblocked()

    def leave(self) -> None:
        """The session is over, or needs no link any more. Idempotent."""
        self.pool.gone(self)
        for channel in list(self.seats):
            self.hand_back(channel)
        if self.link is not None:
            self.link.delete_queues_of(self)
            self._get_off()

    # -- what happens to the link -------------------------------------------------------------

    def lost(self, why: str) -> None:
        """The link is no more, and what was said on it is not answered: its channels close, and no others."""
        self.link = None
        self.pooled.detach()
        self.seats.clear()
        self._tell_unblocked()
        if self.parting is not None and self.parting.due:
            self.parting.end()
        else:
            self._close_channels(UpstreamLost(320, why))
        if self.session.relay.active:
            # It may have waited for an answer.
            self.session.relay.pump.retry(self.session.relay)

    def _close_channels(self, why: UpstreamLost) -> None:
        session, due = self.session, self.session.relay.channels.due
        if any(due(Side.UPSTREAM, number) != METHOD_NEXT for number in session.closes.channels):
            # In the middle of a message to the client nothing else can be said on its channel.
            session.fail(why)
            return
        for number in list(session.closes.channels):
            session.closes.lost(number, why)

    def refused(self, why: str, refusal: amqp.ConnectionClose | None) -> None:
        """There is no link for the session, which waits for one."""
        if refusal is not None:
            self.guilty(refusal)
        elif self.session.relay.active:
            self.session.fail(UpstreamLost(320, why))

    def guilty(self, close: amqp.ConnectionClose) -> None:
        """The broker closes the link because of this session: its client hears what the broker said."""
        if self.session.relay.active:
            _, _, text = close.reply_text.partition(" - ")
            self.session.fail(
                ProtocolViolation(
                    close.reply_code,
                    text or close.reply_text,
                    class_id=close.class_id,
                    method_id=close.method_id,
                )
            )

    def tell(self, method: amqp.ConnectionBlocked | amqp.ConnectionUnblocked) -> None:
        """The broker blocks the link, or does not any more: that concerns who publishes."""
        channels = self.session.relay.channels
        if isinstance(method, amqp.ConnectionUnblocked):
            self._tell_unblocked()
        elif any(channels.messages(Side.CLIENT, channel) for channel in self.seats):
            self._tell_blocked()

    def _tell_blocked(self) -> None:
        blocked = None if self.link is None else self.link.blocked
        if blocked is not None and not self.is_blocked:
            self.is_blocked = True
            self._pass_on(blocked)

    def _tell_unblocked(self) -> None:
        if self.is_blocked:
            self.is_blocked = False
            self._pass_on(amqp.ConnectionUnblocked())

    def _pass_on(self, method: Method) -> None:
        session = self.session
        if session.notice.is_understood and session.notice.passes(method):
            # A client that is gone is the data path's to find.
            with contextlib.suppress(PeerGoneError):
                session.relay.send(Side.CLIENT, method_frame(0, method))

    # -- what the broker says -----------------------------------------------------------------

    def ask(self, channel: int) -> None:
        """Tell the broker the channel's limit. Its answer comes behind all others, and not to the client."""
        seat = self.seats[channel]
        seat.limits_due = seat.limits_due or deque()
        seat.limits_due.append(False)
        limit = seat.all or amqp.BasicQos(0, 0, global_=True)
        self.session.relay.send(Side.UPSTREAM, method_frame(channel, limit))

    def hears(self, channel: int, method: Method) -> bool:
        """The broker has said something on a channel: whether that is for the client."""
        seat = self.seats.get(channel)
        if seat is None:
            return True
        seat.asked = 0
        seat.asks(method)
        if self.link is not None:
            note_answer(self, self.link, seat, method)
        if isinstance(method, amqp.BasicQosOk) and seat.limits_due:
            return seat.limits_due.popleft()
        return True

    def overflow(self) -> ProtocolViolation:
        """More waits for a client that does not read than it may have."""
        return OverLimit(506, f"more than {self.pooled.limit} octets wait for a client that does not read")

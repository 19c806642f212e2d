"""A session of a pool: its channels are channels of a connection that it shares with others.

::

    client channel n  ──  (session, n)  ◀── bijection ──▶  (connection, m)  ──  broker channel m

A session has no connection until it opens its first channel, and all of its channels are on one. What it does
there reaches no other session, for the broker keeps channels apart; what it keeps by connection is another
matter (`unsupported` has the list).

Nothing is answered for the broker, but it may have answered beforehand: channel.open and confirm.select by a
channel that it has opened ahead of need, in that mode; channel.close where nothing on the channel waits for
an answer, so that there is nothing more to hear.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from amqpgate.datapath.engine import PeerGoneError
from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.errors import ProtocolViolation, UpstreamLost
from amqpgate.gateway.pool.answers import is_unconfirmed
from amqpgate.gateway.pool.blocked import BlockedClient
from amqpgate.gateway.pool.changes import Changes
from amqpgate.gateway.pool.channel_mapping import ChannelMapping
from amqpgate.gateway.pool.pool import Pool
from amqpgate.gateway.pool.shared_connection import Blocking, SharedConnection
from amqpgate.gateway.pool.unsupported import why_fixed
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.datapath.engine import PooledEndpoint
    from amqpgate.gateway.session.session import Session


@attrs.define(eq=False, weakref_slot=False)
class PooledSession:
    """One session, as its pool knows it: which channels it has acquired, and where."""

    pool: Pool
    session: Session
    #: The upstream end of its relay.
    endpoint: PooledEndpoint
    connection: SharedConnection | None = None
    #: By the client's numbers.
    channels: dict[int, ChannelMapping] = attrs.field(factory=dict)
    #: Most channels that it has had at once.
    peak: int = 0
    client: BlockedClient = attrs.Factory(lambda self: BlockedClient(self.session), takes_self=True)
    #: Told when the broker has said something, or a channel is gone.
    changes: Changes = attrs.field(factory=Changes)

    # -- facts --------------------------------------------------------------------------------

    @property
    def numbers(self) -> dict[int, int]:
        """Its channels, by the client's number: those of the shared connection."""
        return {channel: mapping.number for channel, mapping in self.channels.items()}

    @property
    def awaits_open(self) -> bool:
        """Whether the broker owes an open-ok."""
        return not all(mapping.is_open for mapping in self.channels.values())

    @property
    def awaits_answers(self) -> bool:
        """Whether the broker owes a confirm, or the answer to a limit."""
        return any(
            mapping.limits_due or is_unconfirmed(self.session, channel)
            for channel, mapping in self.channels.items()
        )

    def has_asked(self, index: int) -> bool:
        """Whether the broker may not have answered such a method."""
        return any(mapping.asked == index for mapping in self.channels.values())

    def why_fixed(self) -> str | None:
        """Why it cannot leave its connection without its client's seeing it; None: it can."""
        if self.connection is not None and self.connection.exclusives.owns(self):
            return "it has an exclusive queue"
        return why_fixed(self.session)

    # -- channels -----------------------------------------------------------------------------

    def assigned(self, connection: SharedConnection) -> None:
        """It may acquire channels there."""
        self.connection = connection
        self.endpoint.attach(connection.link)

    def acquire(self, channel: int, frame: bytes | memoryview) -> None:
        """The client opens a channel; ``frame`` says so."""
        assert self.connection is not None, "without one it waits"
        relay = self.session.relay
        acquired = self.pool.acquire(self.connection)
        self.channels[channel] = ChannelMapping(acquired.number, is_spare=acquired.is_open)
        self.peak = max(self.peak, len(self.channels))
        relay.channels.open(channel, acquired.number)
        if acquired.is_open:
            self._opened(channel)
            return
        self.connection.channels.await_open(acquired.number, partial(self._on_open, channel))
        if acquired.must_open:
            relay.send(Side.UPSTREAM, frame)

    def _on_open(self, channel: int, answer: amqp.ChannelOpenOk | amqp.ChannelClose) -> None:
        if isinstance(answer, amqp.ChannelOpenOk):
            self._opened(channel)
        elif channel in self.channels:
            with contextlib.suppress(PeerGoneError):
                self.session.channels.broker_closes(channel, answer)
        self.changes.tell()

    def _opened(self, channel: int) -> None:
        """The broker has said open-ok: from now on what it says on the channel is the client's."""
        mapping = self.channels.get(channel)
        if mapping is None or self.connection is None:
            return
        mapping.opened()
        self.connection.link.map_channel(mapping.number, self.endpoint, channel)
        with contextlib.suppress(PeerGoneError):
            self.session.relay.send(Side.CLIENT, method_frame(channel, amqp.ChannelOpenOk()))

    def acquire_confirming(self, channel: int) -> bool:
        """Take a channel in confirm mode in the place of a fresh one. Whether there is one."""
        connection, mapping, table = self.connection, self.channels[channel], self.session.relay.channels
        is_fresh = mapping.is_spare and not mapping.is_used and not table.messages(Side.CLIENT, channel)
        other = None
        if is_fresh and connection is not None:
            other = self.pool.acquire_confirming(connection, mapping.number)
        mapping.selects(is_traceless=other is not None)
        if other is None or connection is None:
            return False
        connection.link.unmap_channel(mapping.number)
        mapping.move(other)
        table.remap(channel, other)
        connection.link.map_channel(other, self.endpoint, channel)
        return True

    def release(self, channel: int, on_free: Callable[[], None] | None = None) -> None:
        """The session leaves a channel, whoever has closed it or not."""
        mapping, connection = self.channels[channel], self.connection
        assert connection is not None, "without one it has no channels"
        del self.channels[channel]
        connection.channels.leave(mapping.number, partial(self._say, connection, channel, mapping))
        self._released(connection, mapping, on_free)

    def settled(self, channel: int, late: int) -> None:
        """Client and broker have closed a channel; ``late`` answers to the client are still on their way."""
        mapping = self.channels.pop(channel, None)
        if mapping is None or self.connection is None:
            return
        for _ in range(late):
            self.session.relay.send(Side.CLIENT, method_frame(channel, amqp.ChannelCloseOk()))
        self._released(self.connection, mapping, None)

    def _say(
        self, connection: SharedConnection, channel: int, mapping: ChannelMapping, method: Method
    ) -> None:
        """Behind what the client has said, while it is there."""
        if self.session.relay.active:
            self.session.relay.send(Side.UPSTREAM, method_frame(channel, method))
        else:
            connection.send(mapping.number, method)

    def _released(
        self, connection: SharedConnection, mapping: ChannelMapping, on_free: Callable[[], None] | None
    ) -> None:
        for declare in mapping.declares_due or ():
            # It was not answered when the channel closed.
            if declare.exclusive is not None:
                connection.exclusives.not_declared(self, declare.exclusive)
        connection.release(mapping.number, self.endpoint, on_free)
        self._leave_connection()
        self.changes.tell()

    def _leave_connection(self) -> None:
        """A session without channels needs no connection, unless a queue there is its own."""
        connection = self.connection
        if not self.channels and connection is not None and not connection.exclusives.owns(self):
            self.connection = None
            self.endpoint.detach()
            self.pool.left(connection)
            self.client.unblocked()

    def leave(self) -> None:
        """The session is over, or needs no shared connection any more. Idempotent."""
        self.pool.gone(self)
        for channel in list(self.channels):
            self.release(channel)
        if self.connection is not None:
            self.connection.delete_queues_of(self)
            self._leave_connection()
        self.changes.tell()

    # -- what happens to the connection -------------------------------------------------------

    def blocked(self, method: Blocking) -> None:
        """The broker blocks its connection, or does not any more: that concerns who publishes."""
        table = self.session.relay.channels
        if isinstance(method, amqp.ConnectionUnblocked):
            self.client.unblocked()
        elif any(table.messages(Side.CLIENT, channel) for channel in self.channels):
            self.client.blocked(method)

    def lost(self, why: str) -> None:
        """Its connection is no more, and what was said there is not answered: its channels close."""
        relay = self.session.relay
        self.connection = None
        self.endpoint.detach(is_lost=True)
        self.channels.clear()
        self.client.unblocked()
        if self.session.closing is CloseState.NO:
            _close_channels(self.session, UpstreamLost(320, why))
        self.changes.tell()
        if relay.active:
            # It may have waited for an answer.
            relay.pump.retry(relay)

    def rejected(self, why: str, close: amqp.ConnectionClose | None) -> None:
        """There is no connection for it; ``close`` is what the broker says to the login, if anything."""
        if close is not None:
            self.blamed(close)
        elif self.session.relay.active:
            self.session.fail(UpstreamLost(320, why))

    def blamed(self, close: amqp.ConnectionClose) -> None:
        """The broker closes the connection because of this session: its client hears what the broker said."""
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


def _close_channels(session: Session, why: UpstreamLost) -> None:
    due = session.relay.channels.due
    if any(due(Side.UPSTREAM, number) != METHOD_NEXT for number in session.channels.states):
        # In the middle of a message to the client nothing else can be said on its channel.
        session.fail(why)
        return
    for number in list(session.channels.states):
        session.channels.lost(number, why)

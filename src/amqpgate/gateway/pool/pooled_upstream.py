"""The way of a session to its broker over a connection that it shares with others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.datapath.build import make_pooled_relay
from amqpgate.datapath.engine import HandedOverSocket
from amqpgate.datapath.scanner import FlowTable
from amqpgate.datapath.tables import Side
from amqpgate.errors import OverLimit, ProtocolViolation
from amqpgate.gateway.pool.answers import is_idle
from amqpgate.gateway.pool.connection_close import PooledClose
from amqpgate.gateway.pool.migrate import Migration
from amqpgate.gateway.pool.pool import Pool
from amqpgate.gateway.pool.pooled_session import PooledSession
from amqpgate.gateway.pool.requests import SAID, needs_of, note_answer, note_request
from amqpgate.gateway.pool.unsupported import Needs, refusal_of
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.gateway.session.upcalls import Upcalls
from amqpgate.gateway.session.violations import unexpected
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.datapath.relay import Relay
    from amqpgate.gateway.session.queue_question import QueueQuestion
    from amqpgate.gateway.session.session import Session

#: Seconds until a method that waits is looked at again by itself; mostly it is told.
_LONG: Final = 60.0


@attrs.define(eq=False, weakref_slot=False)
class PooledUpstream:
    """A ``session.upstream.Upstream``: what the session asks is answered from its place in the pool."""

    relay: Relay
    member: PooledSession
    #: On its way to a connection of its own.
    _migration: Migration | None = attrs.field(default=None, init=False)
    is_pooled = True
    is_transparent = False
    watches_publishes = True
    answers_opens = False
    closes_once = True

    @property
    def address(self) -> str | None:
        return None if self.member.connection is None else self.member.connection.address

    @property
    def connection_id(self) -> int | None:
        return None if self.member.connection is None else self.member.connection.entry.id

    @property
    def is_blocked(self) -> bool:
        return self.member.client.is_told

    def number_of(self, channel: int) -> int | None:
        mapping = self.member.channels.get(channel)
        return None if mapping is None else mapping.number

    # -- what the client says -----------------------------------------------------------------

    def ignores(self, channel: int) -> bool:
        return channel != 0 and self.member.session.closing is not CloseState.NO

    def holds_up(self, channel: int, method: Method) -> bool:
        member = self.member
        member.pool.waiting.look_again(member)
        if self._migration is not None and not self._migration.is_over:
            # It may fit by now; but what is opened or said meanwhile would be left behind.
            self.wait()
            return True
        if isinstance(method, amqp.ChannelOpen):
            return not _has_room(self, channel)
        mapping = member.channels.get(channel)
        if channel and mapping is None:
            return False
        if mapping is not None and not mapping.answers(method):
            raise unexpected(channel, method)
        if mapping is not None and mapping.awaits_name(method):
            self.wait()
            return True
        needs, kind, queue = needs_of(member, channel, method, mapping)
        if needs is not Needs.NOTHING and (why := member.why_fixed()) is None:
            return self.migrate()
        if needs is Needs.MUST:
            raise refusal_of(method, channel, why, queue=queue, kind=kind)
        if isinstance(method, amqp.BasicPublish):
            if member.connection is not None and member.connection.alarm is not None:
                member.client.blocked(member.connection.alarm)
        elif mapping is not None:
            mapping.passes(method)
        return False

    def make_room(self, channel: int, method: Method) -> bool:
        member, most = self.member, self.member.pool.settings.max_collected
        if member.why_fixed() is None:
            return self.migrate()
        if member.endpoint.whole < most:
            member.endpoint.whole = most
            return True
        text = f"a body of more than {most} bytes does not go by a connection that is shared"
        why = ProtocolViolation(
            311, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=channel
        )
        member.session.channels.refuse(channel, why)
        return False

    def request(self, channel: int, method: Method, renamed: bytes | memoryview | None) -> None:
        member = self.member
        mapping, connection = member.channels.get(channel), member.connection
        if mapping is not None and connection is not None:
            if renamed is not None:
                method = decode_method(bytes(renamed)[7:-1])
            last_queue = member.session.channels.states[channel].last_queue
            mapping.check(channel, method)
            connection.exclusives.check(member, channel, method, last_queue)
            note_request(member, mapping, method)

    def open(self, channel: int, frame: bytes | memoryview) -> None:
        self.member.acquire(channel, frame)

    def confirms(self, channel: int, method: amqp.ConfirmSelect) -> bool:
        is_done = self.member.acquire_confirming(channel)
        if is_done and not method.no_wait:
            self.relay.send(Side.CLIENT, method_frame(channel, amqp.ConfirmSelectOk()))
        return is_done

    def closes_at_once(self, channel: int) -> bool:
        session = self.member.session
        if not is_idle(session, channel, self.member.channels.get(channel)):
            return False
        self.member.release(channel)
        session.channels.forget(channel)
        self.relay.send(Side.CLIENT, method_frame(channel, amqp.ChannelCloseOk()))
        return True

    def ask(self, question: QueueQuestion, number: int | None) -> bool:
        connection = self.member.connection
        return connection is not None and connection.ask(question)

    def close_connection(self) -> bool:
        if self.member.session.closing is CloseState.NO:
            PooledClose(self.member).begin()
        return True

    # -- waiting ------------------------------------------------------------------------------

    def wait(self) -> None:
        """The client's method is looked at again when the pool says so."""
        self.relay.up.ready_at = time.monotonic() + _LONG
        self.member.pool.waiting.hold_up(self.member)

    def migrate(self) -> bool:
        """The session gets a connection to the broker of its own, and the client's method waits for that."""
        if self._migration is None or self._migration.is_over:
            self._migration = Migration(self.member)
            self.member.pool.start(self._migration.run)
        self.wait()
        return True

    # -- the end of channels ------------------------------------------------------------------

    def may_tell(self, channel: int, method: Method) -> bool:
        mapping, connection = self.member.channels.get(channel), self.member.connection
        if mapping is None or connection is None:
            return False
        return connection.channels.closes.step(mapping.number, SAID[type(method)])

    def settled(self, channel: int, late: int) -> None:
        self.member.settled(channel, late)

    # -- what the broker says, and the end ----------------------------------------------------

    def hears(self, channel: int, method: Method) -> bool:
        mapping = self.member.channels.get(channel)
        if mapping is None:
            return True
        note_answer(self.member, mapping, method)
        is_for_client = mapping.hears(method)
        self.member.changes.tell()
        return is_for_client

    def overflowed(self) -> None:
        text = f"more than {self.member.endpoint.limit} bytes wait for a client that does not read"
        self.member.session.fail(OverLimit(506, text))

    def leave(self) -> None:
        self.member.leave()


def _has_room(upstream: PooledUpstream, channel: int) -> bool:
    """Whether there is a channel for the client's; if not, the session waits until the pool says so."""
    member, pool = upstream.member, upstream.member.pool
    if upstream.relay.channels.state(channel) or pool.has_room(member):
        return True
    is_limited = pool.plan.ceiling.is_reached
    if member.channels and not is_limited:
        pool.plan.sizes.outgrew(len(member.channels) + 1)
    if member.channels or is_limited:
        if member.why_fixed() is None:
            pool.waiting.has_channel(member)
            return not upstream.migrate()
        if is_limited:
            pool.waiting.has_channel(member)
            raise ProtocolViolation(530, pool.broker.limit_text)
    upstream.wait()
    return False


@attrs.frozen
class PooledSource:
    """Connects sessions over the connections of one pool: a ``session.established.UpstreamSource``."""

    pool: Pool
    sock = None

    def connect(
        self, session: Session, client: HandedOverSocket, flows: FlowTable | None, largest_frame: int
    ) -> PooledUpstream:
        """The way of a session that has no channel yet."""
        settings = self.pool.settings
        relay = make_pooled_relay(
            Upcalls(session),
            client,
            frame_max=self.pool.broker.tune.frame_max,
            flows=flows,
            whole=settings.max_body,
            limit=settings.max_waiting,
            largest_frame=largest_frame,
        )
        assert relay.pooled is not None, "it has been made so"
        member = PooledSession(self.pool, session, relay.pooled)
        self.pool.enter(member)
        return PooledUpstream(relay, member)

    def close(self) -> None:
        """No session comes about."""

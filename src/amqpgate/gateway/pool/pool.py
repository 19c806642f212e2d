"""The pool of one login: its shared connections and its sessions, and what they need of I/O.

What to do is decided by `plan`, and done here: dialling, opening and closing. Nobody waits for a lock.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

import attrs

from amqpgate.config import Pooling
from amqpgate.datapath.engine import Pump
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.pool.connection_state import CloseChannel, OpenChannel
from amqpgate.gateway.pool.dial import Opened, PoolDialer, Preauthenticated, part_with
from amqpgate.gateway.pool.exclusive_queues import ExclusiveQueues
from amqpgate.gateway.pool.plan import AcquiredChannel, CloseLink, DialLink, PoolPlan
from amqpgate.gateway.pool.queue_types import QueueTypes
from amqpgate.gateway.pool.shared_connection import Blocking, SharedConnection
from amqpgate.gateway.pool.waiting import Waiter, WaitingSessions
from amqpgate.gateway.transport.method_stream import hand_over
from amqpgate.gateway.upstream.broker_side import UpstreamFaultError
from amqpgate.gateway.upstream.own_login import LoginRefusedError
from amqpgate.protocol.handshake import Tune
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import EMPTY_TABLE

log = logging.getLogger(__name__)

#: What RabbitMQ ends a connection with (530) for a channel too many of its user, or of the whole node.
_LIMITED: Final = re.compile(
    r"(number of channels opened .* has reached the maximum .*limit of \(([0-9]+)\))"
)


@attrs.frozen
class PoolIdentity:
    """Whose connections they are."""

    upstream: str
    vhost: str
    user: str
    #: Of the login in the virtual host, by `CredentialCache`: nothing that could be tried elsewhere.
    digest: bytes = attrs.field(repr=False)
    #: Of the login alone.
    login_digest: bytes = attrs.field(eq=False, repr=False)
    #: What operators see of it, in the broker's lists and in the gateway's own.
    shown: str = attrs.field(eq=False)


class PoolHost(Protocol):
    """What a pool needs of the gateway."""

    @property
    def pump(self) -> Pump: ...

    @property
    def largest_frame(self) -> int: ...

    @property
    def close_timeout(self) -> float: ...

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run it beside all else."""

    def keep(self, pool: Pool) -> None:
        """It has sessions."""

    def revoke(self, identity: PoolIdentity) -> None:
        """The broker does not take the login any more."""

    def retire(self, connection: SharedConnection) -> None:
        """It has left the data path: what was accepted for it is sent, and its socket closes."""


class Member(Waiter, Protocol):
    """A session, as its pool sees it."""

    @property
    def connection(self) -> SharedConnection | None: ...

    @property
    def numbers(self) -> dict[int, int]:
        """Its channels, by the client's number: those of the shared connection."""

    @property
    def peak(self) -> int:
        """Most channels that it has had at once."""

    @property
    def awaits_open(self) -> bool:
        """Whether the broker owes an open-ok."""

    def has_asked(self, index: int) -> bool:
        """Whether the broker may not have answered such a method."""

    def assigned(self, connection: SharedConnection) -> None:
        """It may acquire channels there."""

    def blocked(self, method: Blocking) -> None:
        """The broker blocks its connection, or does not any more."""

    def lost(self, why: str) -> None:
        """Its connection is no more."""

    def blamed(self, close: amqp.ConnectionClose) -> None:
        """The broker closes the connection because of this session."""


@attrs.define(eq=False)
class BrokerFacts:
    """What a pool has learned of its broker."""

    #: What holds on the connection that was opened last.
    tune: Tune = attrs.field(factory=Tune)
    queue_types: QueueTypes = attrs.field(factory=QueueTypes)
    #: Whether the broker has said that it is RabbitMQ.
    is_rabbitmq: bool = False
    #: Whether it may end the connection for a queue that is neither durable nor exclusive (RabbitMQ 4, where
    #: the feature `transient_nonexcl_queues` is denied).
    may_deny_transients: bool = False
    #: What the broker says of one channel too many of the login.
    limit_text: str = ""

    def greeted(self, tune: Tune, start: amqp.ConnectionStart | None) -> None:
        """A connection has opened."""
        said = EMPTY_TABLE if start is None else start.server_properties
        self.tune, self.is_rabbitmq = tune, "rabbit" in str(said.get("product")).lower()
        major = str(said.get("version")).partition(".")[0]
        self.may_deny_transients = self.is_rabbitmq and major.isdecimal() and int(major) >= 4

    def limits(self, text: str) -> None:
        """The login has too many channels."""
        self.limit_text = text


@attrs.define(eq=False)
class Pool:
    """All shared connections of one identity."""

    host: PoolHost
    identity: PoolIdentity
    settings: Pooling
    dialer: PoolDialer
    plan: PoolPlan = attrs.Factory(lambda self: PoolPlan(self.settings), takes_self=True)
    #: By the plan's ids.
    connections: dict[int, SharedConnection] = attrs.field(factory=dict, init=False)
    #: With a connection or without.
    sessions: set[Member] = attrs.field(factory=set, init=False)
    waiting: WaitingSessions = attrs.field(factory=WaitingSessions, init=False)
    broker: BrokerFacts = attrs.field(factory=BrokerFacts, init=False)

    # -- sessions -----------------------------------------------------------------------------

    def enter(self, member: Member) -> None:
        """A session will share the connections."""
        self.sessions.add(member)
        self.host.keep(self)
        self.plan.entered()

    def gone(self, member: Member) -> None:
        """A session is over."""
        self.waiting.leave(member)
        if member in self.sessions:
            self.sessions.remove(member)
            self.plan.gone(member.peak)

    def has_room(self, member: Member) -> bool:
        """Whether there is a channel for one more of a session's; if not, it is told when to ask again."""
        if member.connection is None:
            entry = self.plan.assign()
            if entry is not None:
                member.assigned(self.connections[entry.id])
        if member.connection is not None and member.connection.entry.room:
            self.waiting.has_channel(member)
            return True
        self.waiting.await_channel(member, time.monotonic())
        self.perform()
        return False

    def look(self) -> None:
        """What time alone brings about."""
        self.waiting.look(time.monotonic())
        self.perform()

    def acquire(self, connection: SharedConnection) -> AcquiredChannel:
        """A channel of a connection that has one."""
        acquired = self.plan.acquire(connection.entry, time.monotonic())
        assert acquired is not None, "the session waits where there is none"
        self.perform()
        return acquired

    def acquire_confirming(self, connection: SharedConnection, number: int) -> int | None:
        """A channel in confirm mode in the place of one that nothing was said on."""
        other = self.plan.acquire_confirming(connection.entry, number, time.monotonic())
        self.perform()
        return other

    def left(self, connection: SharedConnection) -> None:
        """A session has no channel on the connection any more."""
        if connection.entry.id in self.connections:
            self.plan.left(connection.entry, time.monotonic())
            self.perform()

    # -- connections --------------------------------------------------------------------------

    def perform(self) -> None:
        """Do what there is to do."""
        # Who has a connection needs a channel there: another one is none for it.
        for action in self.plan.wants(time.monotonic(), len(self.waiting.unassigned)):
            match action:
                case DialLink():
                    self.start(self._dial)
                case OpenChannel(entry, number, confirming):
                    self.connections[entry.id].channels.open_spare(number, confirms=confirming)
                case CloseChannel(entry, number):
                    self.connections[entry.id].channels.close_spare(number)
                case CloseLink(entry, why):
                    self.connections[entry.id].close(why)

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run it beside all else."""
        self.host.start(task)

    def spare_opened(self, connection: SharedConnection, number: int, *, confirms: bool) -> None:
        """The broker has opened a spare."""
        self.plan.opened(connection.entry, number, confirming=confirms)

    def released(self, connection: SharedConnection, number: int) -> None:
        """A session's channel closes."""
        self.plan.release(connection.entry, number)

    def freed(self, connection: SharedConnection, number: int) -> None:
        """The broker has closed a channel for good."""
        if connection.entry.id in self.connections:
            self.plan.closed(connection.entry, number, time.monotonic())
            connection.delete_orphans()
            self.retry()

    def blocked(self, connection: SharedConnection, method: Blocking) -> None:
        """The broker blocks a connection, or does not any more."""
        for member in _members_of(self, connection):
            member.blocked(method)
        self.retry()

    def lost(self, connection: SharedConnection, close: amqp.ConnectionClose | None) -> None:
        """The connection has left the data path; ``close`` is how the broker has ended it."""
        members = _members_of(self, connection)
        if close is not None:
            guilty = _blamed(close, members, has_spares=self.plan.has_spares)
            if close.reply_code == 530 and (limit := _LIMITED.search(close.reply_text)):
                self._limited(connection, limit[1], int(limit[2]))
            if guilty is not None:
                guilty.blamed(close)
        del self.connections[connection.entry.id]
        self.dialer.destination.cluster.lost()
        self.plan.lost(connection.entry, time.monotonic())
        log.info("%s is over, with %d sessions: %s", connection.name, len(members), connection.why)
        for member in members:
            # Whoever was blamed has left it.
            if member.connection is connection:
                member.lost(connection.why)
        self.host.retire(connection)
        self.perform()

    def _limited(self, connection: SharedConnection, text: str, most: int) -> None:
        """The login has too many channels: from now on each client hears so by itself."""
        unanswered = sum(each.channels.unanswered_opens for each in self.connections.values())
        self.plan.limited(connection.entry, unanswered, most, time.monotonic())
        self.broker.limits(text)
        log.warning(
            "pool %s has %d channels at most for the next %g s, for the broker limits them",
            self.identity.shown, self.plan.ceiling.most, self.settings.max_age,
        )  # fmt: skip

    def retry(self) -> None:
        """There may be room, or less of it: those who wait look again."""
        self.waiting.retry()
        self.perform()

    # -- opening connections ------------------------------------------------------------------

    async def _dial(self) -> None:
        try:
            opened = await self.open_connection()
        except Exception as error:
            # Whatever it is, who waits for the connection must hear of it.
            is_known = isinstance(error, AmqpgateError | OSError)
            log.warning("no link for pool %s: %s", self.identity.shown, error, exc_info=not is_known)
            self.plan.dial_failed(time.monotonic())
            refusal = error.refusal if isinstance(error, LoginRefusedError) else None
            if refusal is not None:
                self.host.revoke(self.identity)
            for waiter in self.waiting.unassigned:
                self.waiting.has_channel(waiter)
                waiter.rejected(str(error), refusal)
        else:
            self.add(opened, asked=True)

    def add(self, opened: Opened, *, asked: bool) -> None:
        """One more connection, which the pool has asked for, or which was there to prove a login."""
        self.broker.greeted(opened.tune, self.dialer.destination.cluster.start)
        entry = self.plan.added(opened.tune.channel_max, time.monotonic(), asked=asked)
        name = f"link {self.identity.shown}/{entry.id} to {opened.address}"
        exclusives = ExclusiveQueues(self.identity.vhost)
        connection = SharedConnection(
            self, entry, name, str(opened.address), opened.hop.interpreter, exclusives
        )
        hop = hand_over(opened.hop, opened.tune)
        try:
            connection.enter(hop, self.host.pump, largest_frame=self.host.largest_frame)
        except BaseException:
            # There was no memory for it. Who waits may get another one when the plan is looked at next.
            hop.sock.close()
            self.plan.lost(entry, time.monotonic())
            raise
        self.connections[entry.id] = connection
        log.info("%s is open: user %r, vhost %r", name, self.identity.user, self.identity.vhost)
        self.retry()

    async def prove(self, preauthenticated: Preauthenticated | None) -> None:
        """Ask the broker whether it takes the login; it may have been asked for a part of that already.
        Raises as ``dial.open_connection``."""
        opened = None
        if preauthenticated is not None:
            # Where it does not wait so long for a client that takes its time, it is asked again.
            with contextlib.suppress(UpstreamFaultError):
                opened = await self.dialer.open_on(preauthenticated)
        opened = opened or await self.open_connection()
        if self.plan.may_grow:
            self.add(opened, asked=False)
        else:
            self.start(partial(part_with, opened.hop, "the login is good", self.host.close_timeout))

    async def open_connection(self, session: str = "") -> Opened:
        """A connection with this login, for a session or for all. Raises as ``dial.open_connection``."""
        # Clients that have a session, and the one whose login asks for it.
        return await self.dialer.open(session, clients=len(self.sessions) or 1)


def _members_of(pool: Pool, connection: SharedConnection) -> list[Member]:
    return [member for member in pool.sessions if member.connection is connection]


def _blamed(close: amqp.ConnectionClose, members: list[Member], *, has_spares: bool) -> Member | None:
    """Whose request the broker ends the connection for, if that can be told."""
    if close.reply_code == 530 and _LIMITED.search(close.reply_text):
        # With channels ahead of need there would have been room.
        asked = [] if has_spares else [each for each in members if each.awaits_open]
    else:
        index = close.class_id << 16 | close.method_id
        asked = [each for each in members if index and each.has_asked(index)]
    return asked[0] if len(asked) == 1 else None

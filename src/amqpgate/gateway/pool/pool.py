"""The pool of one login: its links and its sessions, and what they need of I/O.

What to do is decided by `pool`, and done here: dialling, opening and closing. Nobody waits for a lock.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.config import Pooling
from amqpgate.datapath import relay
from amqpgate.datapath.build import make_link, make_pooled_relay
from amqpgate.datapath.scanner import FlowTable
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.handshake.passthrough import hand_over
from amqpgate.gateway.pool.connection_state import CloseChannel, OpenChannel
from amqpgate.gateway.pool.dial import Opened, Preauthenticated, enter, open_connection, part_with
from amqpgate.gateway.pool.plan import AcquiredChannel, CloseLink, DialLink, PoolPlan
from amqpgate.gateway.pool.pooled_session import PooledSession
from amqpgate.gateway.pool.queue_types import QueueTypes
from amqpgate.gateway.pool.shared_connection import SharedConnection
from amqpgate.gateway.pool.waiting import PATIENCE, end_waiting
from amqpgate.gateway.upstream.broker_side import UpstreamFaultError
from amqpgate.gateway.upstream.dialer import Dialer
from amqpgate.gateway.upstream.login import LoginRefusedError
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.sasl import Credentials
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.pool.registry import PoolRegistry
    from amqpgate.gateway.session.session import Session

log = logging.getLogger(__name__)

#: What RabbitMQ ends a connection with (530) for a channel too many of its user, or of the whole node.
_LIMITED: Final = re.compile(
    r"(number of channels opened .* has reached the maximum .*limit of \(([0-9]+)\))"
)


@attrs.frozen
class PoolIdentity:
    """Whose links they are."""

    upstream: str
    vhost: str
    user: str
    #: Of the login in the virtual host, by `Proofs`: nothing that could be tried elsewhere.
    digest: bytes = attrs.field(repr=False)
    #: Of the login alone.
    login_digest: bytes = attrs.field(eq=False, repr=False)
    #: What operators see of it, in the broker's lists and in the gateway's own.
    shown: str = attrs.field(eq=False)


@attrs.define(eq=False)
class Pool:
    """All links of one identity."""

    pools: PoolRegistry
    identity: PoolIdentity
    login: Credentials = attrs.field(repr=False)
    settings: Pooling
    #: Of the session whose login was the first; each link has attempts of its own.
    dialler: Dialer
    decisions: PoolPlan = attrs.field(init=False)
    links: dict[int, SharedConnection] = attrs.field(factory=dict, init=False)
    #: Sessions, with a link or without.
    riders: set[PooledSession] = attrs.field(factory=set, init=False)
    #: Those that wait for a channel, the first to come first.
    waiting: dict[PooledSession, float] = attrs.field(factory=dict, init=False)
    #: What holds on the link that was opened last.
    tune: Tune = attrs.field(factory=Tune, init=False)
    #: Those whose client's method waits for anything.
    held_up: set[PooledSession] = attrs.field(factory=set, init=False)
    queue_types: QueueTypes = attrs.field(factory=QueueTypes, init=False)
    #: Whether the broker has said that it is RabbitMQ.
    is_rabbitmq: bool = attrs.field(default=False, init=False)
    #: What the broker says of one channel too many of the login.
    limit_text: str = attrs.field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self.decisions = PoolPlan(self.settings)

    # -- sessions -----------------------------------------------------------------------------

    def seat(
        self, session: Session, client: relay.HandedOverSocket, flows: FlowTable | None, largest_frame: int
    ) -> relay.Relay:
        """The relay of a session that will share the links."""
        made = make_pooled_relay(
            session,
            client,
            frame_max=self.tune.frame_max,
            flows=flows,
            whole=self.settings.max_body,
            limit=self.settings.max_waiting,
            largest_frame=largest_frame,
        )
        assert made.pooled is not None
        session.riding = PooledSession(self, session, made.pooled)
        self.riders.add(session.riding)
        # It may have been forgotten since the login, as empty.
        self.pools.pools.setdefault(self.identity, self)
        self.decisions.entered()
        return made

    def gone(self, riding: PooledSession) -> None:
        """A session is over."""
        self.waiting.pop(riding, None)
        self.held_up.discard(riding)
        if riding in self.riders:
            self.riders.remove(riding)
            self.decisions.gone(riding.peak)

    def board(self, riding: PooledSession) -> bool:
        """Whether there is a channel for one more of a session's; if not, it is told when to ask again."""
        if riding.link is None:
            entry = self.decisions.board()
            if entry is not None:
                link = riding.link = self.links[entry.id]
                link.riders.add(riding)
                riding.pooled.attach(link.link)
        if riding.link is not None and riding.link.entry.room:
            self.waiting.pop(riding, None)
            return True
        self.waiting.setdefault(riding, time.monotonic() + PATIENCE)
        self.perform()
        return False

    def look(self) -> None:
        """What time alone brings about."""
        now = time.monotonic()
        for riding in list(self.held_up):
            end_waiting(riding, self.waiting.get(riding, math.inf), now)
        self.perform()

    def take(self, link: SharedConnection) -> AcquiredChannel:
        """A channel of a link that has one."""
        taken = self.decisions.take(link.entry, time.monotonic())
        assert taken is not None, "the session waits where there is none"
        self.perform()
        return taken

    def confirming(self, link: SharedConnection, number: int) -> int | None:
        """A channel in confirm mode in the place of one that nothing was said on."""
        other = self.decisions.confirming(link.entry, number, time.monotonic())
        self.perform()
        return other

    def left(self, link: SharedConnection, riding: PooledSession) -> None:
        """A session has no channel on the link any more."""
        link.riders.discard(riding)
        if link.entry.id in self.links:
            self.decisions.left(link.entry, time.monotonic())
            self.perform()

    # -- links --------------------------------------------------------------------------------

    def perform(self) -> None:
        """Do what there is to do."""
        # Who has a link needs a channel there: another link is none for it.
        seatless = sum(riding.link is None for riding in self.waiting)
        for action in self.decisions.wants(time.monotonic(), seatless):
            match action:
                case DialLink():
                    self.pools.start(self._dial)
                case OpenChannel(entry, number, confirming):
                    self.links[entry.id].open_spare(number, confirms=confirming)
                case CloseChannel(entry, number):
                    self.links[entry.id].shut(number)
                case CloseLink(entry, why):
                    self.links[entry.id].close(why)

    def opened(self, link: SharedConnection, number: int, *, confirms: bool) -> None:
        """The broker has opened a spare."""
        self.decisions.opened(link.entry, number, confirming=confirms)

    def left_open(self, link: SharedConnection, number: int) -> None:
        """A session's channel closes."""
        self.decisions.give_back(link.entry, number)

    def freed(self, link: SharedConnection, number: int) -> None:
        """The broker has closed a channel for good."""
        if link.entry.id in self.links:
            self.decisions.closed(link.entry, number, time.monotonic())
            link.delete_orphans()
            self.news()

    def lost(self, link: SharedConnection) -> None:
        """The link has left the data path."""
        del self.links[link.entry.id]
        self.dialler.cluster.lost()
        self.decisions.lost(link.entry, time.monotonic())
        riders, link.riders = list(link.riders), set()
        log.info("%s is over, with %d sessions: %s", link.name, len(riders), link.why)
        for riding in riders:
            riding.lost(link.why)
        self.pools.bury(link)
        self.perform()

    def accuse(self, link: SharedConnection, close: amqp.ConnectionClose) -> None:
        """The broker ends the link for what a session has asked, if it can be told which."""
        if close.reply_code == 530 and (found := _LIMITED.search(close.reply_text)):
            # With channels ahead of need there would have been room.
            asked = [] if self.decisions.has_spares else [each for each in link.riders if each.awaits_open]
            self._limited(link, found[1], int(found[2]))
        else:
            index = close.class_id << 16 | close.method_id
            asked = [
                riding
                for riding in link.riders
                if index and any(seat.asked == index for seat in riding.seats.values())
            ]
        if len(asked) == 1:
            asked[0].guilty(close)

    def _limited(self, link: SharedConnection, text: str, most: int) -> None:
        """The login has too many channels: from now on each client hears so by itself."""
        unanswered = sum(each.unanswered_opens for each in self.links.values())
        self.decisions.limited(link.entry, unanswered, most, time.monotonic())
        self.limit_text = text
        log.warning(
            "pool %s has %d channels at most for the next %g s, for the broker limits them",
            self.identity.shown, self.decisions.ceiling.most, self.settings.max_age,
        )  # fmt: skip

    def news(self) -> None:
        """There may be room, or less of it: those who wait look again."""
        for riding in self.waiting:
            riding.session.relay.pump.retry(riding.session.relay)
        self.perform()

    async def _dial(self) -> None:
        try:
            opened = await self.open_connection()
        except Exception as error:
            # Whatever it is, who waits for the link must hear of it.
            is_known = isinstance(error, AmqpgateError | OSError)
            log.warning("no link for pool %s: %s", self.identity.shown, error, exc_info=not is_known)
            self.decisions.dial_failed(time.monotonic())
            refusal = error.refusal if isinstance(error, LoginRefusedError) else None
            if refusal is not None:
                self.pools.revoke(self.identity)
            for riding in [riding for riding in self.waiting if riding.link is None]:
                del self.waiting[riding]
                riding.refused(str(error), refusal)
        else:
            self.add(opened, asked=True)

    def add(self, opened: Opened, *, asked: bool) -> None:
        """One more link, which the pool has asked for, or which was there to prove a login."""
        tune = self.tune = opened.tune
        start = self.dialler.cluster.start
        product = None if start is None else start.server_properties.get("product")
        self.is_rabbitmq = "rabbit" in str(product).lower()
        entry = self.decisions.added(tune.channel_max, time.monotonic(), asked=asked)
        name = f"link {self.identity.shown}/{entry.id} to {opened.address}"
        link = SharedConnection(
            self, entry, name, str(opened.address), tune.frame_max, opened.hop.interpreter
        )
        link.link = make_link(link, hand_over(opened.hop, tune), largest_frame=self.pools.largest_frame)
        self.links[entry.id] = link
        self.pools.pump.add(link.link)
        log.info("%s is open: user %r, vhost %r", name, self.identity.user, self.identity.vhost)
        self.news()

    async def prove(self, knocked: Preauthenticated | None) -> None:
        """Ask the broker whether it takes the login; it may have been asked for a part of that already.
        Raises as ``linkdial.open_connection``."""
        opened = None
        if knocked is not None:
            # Where it does not wait so long for a client that takes its time, it is asked again.
            with contextlib.suppress(UpstreamFaultError):
                opened = await enter(knocked, self.dialler, self.identity.vhost)
        opened = opened or await self.open_connection()
        if self.decisions.may_grow:
            self.add(opened, asked=False)
        else:
            parting = partial(part_with, opened.hop, "the login is good", self.pools.close_timeout)
            self.pools.start(parting)

    async def open_connection(self, session: str = "") -> Opened:
        """A connection with this login, for a session or for all. Raises as ``linkdial.open_connection``."""
        shown = self.identity.shown
        name = f"session {session}" if session else f"pool {shown}"
        # Clients that have a session, and the one whose login asks for it.
        entry: dict[str, object] = {"pool": shown, "session": session, "clients": len(self.riders) or 1}
        return await open_connection(
            attrs.evolve(self.dialler, session=name),
            self.login,
            self.identity.vhost,
            name=name,
            version=self.pools.version,
            entry=entry,
        )

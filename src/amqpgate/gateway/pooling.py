"""The pools of a gateway: links by who logs in where, and what they need of I/O.

A pool belongs to an upstream, a virtual host and a login. Its first client's login opens its first link, and
so is proven by the broker before that client hears open-ok. Whoever comes later with the same login is let in
by what is remembered of it (`proofs`), for a while; then the broker is asked again.

What to do is decided by `pool`, and done here: dialling, opening and closing. Nobody waits for a lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.bridge import Interpreter
from amqpgate.config import Pooling
from amqpgate.datapath import relay
from amqpgate.datapath.engine import Endpoint, Pump
from amqpgate.datapath.link import make_link, make_riding
from amqpgate.datapath.scanner import FlowTable
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.broker_handshake import UpstreamFaultError
from amqpgate.gateway.client_handshake import ClientHandshake, RefusedError
from amqpgate.gateway.dialling import Dialler
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.gateway.linkdial import Knocked, Opened, enter, knock, open_connection, part_with
from amqpgate.gateway.links import SharedLink
from amqpgate.gateway.own_login import LoginRefusedError
from amqpgate.gateway.pool import Close, Dial, Open, Pool, Shut, Taken
from amqpgate.gateway.proofs import Proofs
from amqpgate.gateway.riding import Riding
from amqpgate.gateway.setup import hand_over
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.methods import Side as Peer
from amqpgate.protocol.sasl import AMQPLAIN, PLAIN, Credentials, credentials
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session import Session

log = logging.getLogger(__name__)

#: Seconds between looks at what time alone brings about: links that are idle, or too old.
INTERVAL: Final = 1.0

#: What a client must understand to be told all that the broker says on a link.
_UNDERSTOOD: Final = frozenset({"basic.nack", "consumer_cancel_notify"})


@attrs.frozen
class Identity:
    """Whose links they are."""

    upstream: str
    vhost: str
    user: str
    #: Of the login, by `Proofs`: nothing that could be tried elsewhere.
    digest: bytes = attrs.field(repr=False)
    #: What operators see of it, in the broker's lists and in the gateway's own.
    shown: str = attrs.field(eq=False)


def _shown(upstream: str, digest: bytes) -> str:
    """A name for the pools of a login, which the broker is told before the virtual host is known."""
    return hashlib.blake2b(upstream.encode() + digest, digest_size=6).hexdigest()


@attrs.define(eq=False)
class SharedPool:
    """All links of one identity."""

    pools: Pools
    identity: Identity
    login: Credentials = attrs.field(repr=False)
    settings: Pooling
    #: Attempts to reach the upstream, anew for each link.
    dialler: Callable[[str], Dialler]
    decisions: Pool = attrs.field(init=False)
    links: dict[int, SharedLink] = attrs.field(factory=dict, init=False)
    #: Sessions, with a link or without.
    riders: set[Riding] = attrs.field(factory=set, init=False)
    #: Those that wait for a channel, the first to come first.
    waiting: dict[Riding, None] = attrs.field(factory=dict, init=False)
    #: What holds on the link that was opened last.
    tune: Tune = attrs.field(factory=Tune, init=False)

    def __attrs_post_init__(self) -> None:
        self.decisions = Pool(self.settings)

    @property
    def is_rabbitmq(self) -> bool:
        """Whether the brokers say that they are RabbitMQ."""
        start = self.dialler("").cluster.start
        return start is not None and "rabbit" in str(start.server_properties.get("product", "")).lower()

    # -- sessions -----------------------------------------------------------------------------

    def seat(
        self, session: Session, client: relay.Hop, flows: FlowTable | None, largest_frame: int
    ) -> relay.Relay:
        """The relay of a session that will share the links."""
        made = make_riding(
            session,
            client,
            frame_max=self.tune.frame_max,
            flows=flows,
            whole=self.settings.max_body,
            limit=self.settings.max_waiting,
            largest_frame=largest_frame,
        )
        assert made.rider is not None
        session.riding = Riding(self, session, made.rider)
        self.riders.add(session.riding)
        # It may have been forgotten since the login, as empty.
        self.pools.pools.setdefault(self.identity, self)
        self.decisions.entered()
        return made

    def gone(self, riding: Riding) -> None:
        """A session is over."""
        self.waiting.pop(riding, None)
        if riding in self.riders:
            self.riders.remove(riding)
            self.decisions.gone()

    def board(self, riding: Riding) -> bool:
        """Whether there is a channel for one more of a session's; if not, it is told when to ask again."""
        if riding.link is None:
            entry = self.decisions.board()
            if entry is not None:
                link = riding.link = self.links[entry.id]
                link.riders.add(riding)
                riding.rider.board(link.link)
        self.waiting.pop(riding, None)
        if riding.link is not None and riding.link.entry.room:
            return True
        self.waiting[riding] = None
        self.perform()
        return False

    def take(self, link: SharedLink) -> Taken:
        """A channel of a link that has one."""
        taken = self.decisions.take(link.entry, self.pools.now())
        assert taken is not None, "the session waits where there is none"
        self.perform()
        return taken

    def confirming(self, link: SharedLink, number: int) -> int | None:
        """A channel in confirm mode in the place of one that nothing was said on."""
        other = self.decisions.confirming(link.entry, number, self.pools.now())
        self.perform()
        return other

    def left(self, link: SharedLink, riding: Riding) -> None:
        """A session has no channel on the link any more."""
        link.riders.discard(riding)
        if link.entry.id in self.links:
            self.decisions.left(link.entry, self.pools.now())
            self.perform()

    # -- links --------------------------------------------------------------------------------

    def perform(self) -> None:
        """Do what there is to do."""
        for action in self.decisions.wants(self.pools.now(), len(self.waiting)):
            match action:
                case Dial():
                    self.pools.start(self._dial)
                case Open(entry, number, confirming):
                    self.links[entry.id].open_spare(number, confirms=confirming)
                case Shut(entry, number):
                    self.links[entry.id].shut(number)
                case Close(entry, why):
                    self.links[entry.id].close(why)

    def opened(self, link: SharedLink, number: int, *, confirms: bool) -> None:
        """The broker has opened a spare."""
        self.decisions.opened(link.entry, number, confirming=confirms)

    def left_open(self, link: SharedLink, number: int) -> None:
        """A session's channel closes."""
        self.decisions.give_back(link.entry, number)

    def freed(self, link: SharedLink, number: int) -> None:
        """The broker has closed a channel for good."""
        if link.entry.id in self.links:
            self.decisions.closed(link.entry, number, self.pools.now())
            link.delete_orphans()
            self.news()

    def lost(self, link: SharedLink) -> None:
        """The link has left the data path."""
        del self.links[link.entry.id]
        self.decisions.lost(link.entry, self.pools.now())
        riders, link.riders = list(link.riders), set()
        log.info("%s is over, with %d sessions: %s", link.name, len(riders), link.why)
        for riding in riders:
            riding.lost(link.why)
        self.pools.bury(link)
        self.perform()

    def accuse(self, link: SharedLink, close: amqp.ConnectionClose) -> None:
        """The broker ends the link for what a session has asked, if it can be told which."""
        index = close.class_id << 16 | close.method_id
        asked = [
            riding for riding in link.riders if any(seat.asked == index for seat in riding.seats.values())
        ]
        if index and len(asked) == 1:
            asked[0].guilty(close)

    def news(self) -> None:
        """A link has been blocked, or is not any more."""
        self._invite()
        self.perform()

    def _invite(self) -> None:
        """Those who wait look again."""
        for riding in list(self.waiting):
            riding.session.relay.pump.retry(riding.session.relay)

    async def _dial(self) -> None:
        try:
            opened = await self.open_connection()
        except (AmqpgateError, OSError) as error:
            log.warning("no link for pool %s: %s", self.identity.shown, error)
            self.decisions.dial_failed(self.pools.now())
            refusal = error.refusal if isinstance(error, LoginRefusedError) else None
            if refusal is not None:
                self.pools.revoke(self)
            for riding in list(self.waiting):
                del self.waiting[riding]
                riding.refused(str(error), refusal)
        else:
            self.add(opened, asked=True)

    def add(self, opened: Opened, *, asked: bool) -> None:
        """One more link, which the pool has asked for, or which was there to prove a login."""
        tune = self.tune = opened.tune
        entry = self.decisions.added(tune.channel_max, self.pools.now(), asked=asked)
        name = f"link {self.identity.shown}/{entry.id} to {opened.address}"
        link = SharedLink(self, entry, name, str(opened.address), tune.frame_max, opened.hop.interpreter)
        link.link = make_link(link, hand_over(opened.hop, tune), largest_frame=self.pools.largest_frame)
        self.links[entry.id] = link
        self.pools.pump.add(link.link)
        log.info("%s is open: user %r, vhost %r", name, self.identity.user, self.identity.vhost)
        self.perform()
        self._invite()

    async def prove(self, knocked: Knocked | None) -> None:
        """Ask the broker whether it takes the login; it may have been asked for a part of that already.
        Raises as ``linkdial.open_connection``."""
        opened = None
        if knocked is not None:
            # Where it does not wait so long for a client that takes its time, it is asked again.
            with contextlib.suppress(UpstreamFaultError):
                opened = await enter(knocked, self.dialler("login"), self.identity.vhost)
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
            self.dialler(name),
            self.login,
            self.identity.vhost,
            name=name,
            version=self.pools.version,
            entry=entry,
        )


@attrs.define(eq=False)
class Pools:
    """Of one gateway."""

    pump: Pump
    #: Octets.
    largest_frame: int
    #: Of the gateway.
    version: str
    #: Seconds for a farewell.
    close_timeout: float
    pools: dict[Identity, SharedPool] = attrs.field(factory=dict, init=False)
    #: By upstream.
    _proofs: dict[str, Proofs] = attrs.field(factory=dict, init=False)
    #: Logins that the broker is being asked about.
    _asking: dict[Identity, trio.Event] = attrs.field(factory=dict, init=False)
    _tasks: trio.Nursery | None = attrs.field(default=None, init=False)

    @staticmethod
    def now() -> float:
        return time.monotonic()

    async def run(self) -> None:
        """For ever: what time alone brings about."""
        async with trio.open_nursery() as self._tasks:
            try:
                while True:
                    await trio.sleep(INTERVAL)
                    for identity, pool in list(self.pools.items()):
                        pool.perform()
                        if pool.decisions.is_empty:
                            del self.pools[identity]
            finally:
                self._tasks = None

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run it beside all else; not any more where the gateway ends."""
        if self._tasks is not None:
            self._tasks.start_soon(_contained, task)

    # -- logins -------------------------------------------------------------------------------

    def takes(self, client: ClientHandshake, dialler: Dialler) -> bool:
        """Whether the client may share links: its route says so, its login can be said again, and it
        understands all that may be said on a link."""
        return (
            dialler.settings.connections == "pooled"
            and client.hop.interpreter.is_house
            and (client.start_ok.mechanism in (PLAIN, AMQPLAIN) or dialler.settings.has_login)
            and client.capabilities >= _UNDERSTOOD
        )

    async def knock(self, client: ClientHandshake, dialler: Dialler) -> Knocked | None:
        """Ask the broker whether it lets the client in, whose virtual host is not known yet, unless it has
        done so not long ago: so a wrong password is told where the broker would.

        Raises as `admit`.
        """
        login, source = _login_of(client, dialler), client.caller.source
        proofs = self._proofs_of(dialler)
        digest = proofs.digest("", login)
        if proofs.proven(digest, self.now()):
            return None
        await trio.sleep(proofs.wait(source, self.now()))
        asked, shown = self.now(), _shown(dialler.cluster.name, digest)
        entry: dict[str, object] = {"pool": shown, "session": "", "clients": 1}
        try:
            knocked = await knock(dialler, login, name=f"pool {shown}", version=self.version, entry=entry)
        except LoginRefusedError as error:
            proofs.failed(source, self.now())
            proofs.forget(digest)
            if "authentication_failure_close" not in client.capabilities:
                raise RefusedError(str(error)) from error
            await client.pass_on(error.refusal)
        proofs.prove(digest, asked)
        return knocked

    def _proofs_of(self, dialler: Dialler) -> Proofs:
        return self._proofs.setdefault(dialler.cluster.name, Proofs(dialler.settings.pool))

    async def admit(
        self, client: ClientHandshake, dialler: Dialler, vhost: str, knocked: Knocked | None
    ) -> SharedPool:
        """The pool of a client's login, which the broker has proven, now or not long ago.

        Raises ``RefusedError`` when the client has been told; ``UpstreamUnavailableError``, ``ConfigError``.
        """
        login = _login_of(client, dialler)
        upstream = dialler.cluster.name
        settings = dialler.settings.pool
        proofs = self._proofs_of(dialler)
        source = client.caller.source
        shown = _shown(upstream, proofs.digest("", login))
        identity = Identity(upstream, vhost, login.user, proofs.digest(vhost, login), shown)
        while (asking := self._asking.get(identity)) is not None:
            await asking.wait()
        pool = self.pools.get(identity)
        if pool is not None and proofs.proven(identity.digest, self.now()):
            if knocked is not None:
                knocked.line.hop.close()
            return pool
        asking = self._asking[identity] = trio.Event()
        try:
            await trio.sleep(proofs.wait(source, self.now()))
            if pool is None:
                pool = SharedPool(
                    self, identity, login, settings, lambda name: attrs.evolve(dialler, session=name)
                )
            asked = self.now()
            await pool.prove(knocked)
            self.pools[identity] = pool
            proofs.prove(identity.digest, asked)
            return pool
        except LoginRefusedError as error:
            proofs.failed(source, self.now())
            proofs.forget(identity.digest)
            proofs.forget(proofs.digest("", login))
            await client.pass_on(error.refusal)
        finally:
            del self._asking[identity]
            asking.set()

    def revoke(self, pool: SharedPool) -> None:
        """The broker does not take the login any more."""
        proofs = self._proofs[pool.identity.upstream]
        proofs.forget(pool.identity.digest)
        proofs.forget(proofs.digest("", pool.login))

    # -- the end ------------------------------------------------------------------------------

    def bury(self, link: SharedLink) -> None:
        """Say the rest of what was accepted for a link that has left the data path, and close its socket."""
        endpoint = link.link.endpoint
        if self._tasks is None:
            endpoint.sock.close()
        else:
            self.start(partial(self._bury, endpoint, link.interpreter))

    async def _bury(self, endpoint: Endpoint, interpreter: Interpreter) -> None:
        hop = Hop(endpoint.sock, frame_max=self.largest_frame, peer=Peer.SERVER, interpreter=interpreter)
        try:
            with trio.move_on_after(self.close_timeout), contextlib.suppress(HopClosedError):
                if endpoint.waiting:
                    await hop.send(endpoint.unsent())
                await hop.linger()
        finally:
            hop.close()

    async def finish(self) -> None:
        """No session is left: close every link, and wait for the brokers' answers for a while."""
        for pool in self.pools.values():
            for link in list(pool.links.values()):
                link.close("amqpgate is shutting down")
        with trio.move_on_after(self.close_timeout):
            while any(pool.links for pool in self.pools.values()):  # noqa: ASYNC110
                await trio.sleep(0.01)


async def _contained(task: Callable[[], Awaitable[None]]) -> None:
    """One link's or session's fault is no other's."""
    try:
        await task()
    except Exception:
        log.exception("a task of a pool failed")


def _login_of(client: ClientHandshake, dialler: Dialler) -> Credentials:
    """Who logs in to the broker: the client, or the upstream's own user."""
    own = dialler.settings.login()
    if own is not None:
        return Credentials(own.user, own.password.reveal().encode())
    found = credentials(client.start_ok.mechanism, client.start_ok.response)
    assert found is not None, "of these mechanisms"
    return found

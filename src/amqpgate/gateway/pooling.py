"""The pools of a gateway: links by who logs in where, and what they need of I/O.

A pool belongs to an upstream, a virtual host and a login. Its first client's login opens its first link, and
so is proven by the broker before that client hears open-ok. Whoever comes later with the same login is let in
by what is remembered of it (`proofs`), for a while; then the broker is asked again.

What to do is decided by `pool`, and done here: dialling, opening and closing. Nobody waits for a lock.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.bridge import Interpreter
from amqpgate.config import PoolSettings
from amqpgate.datapath import relay
from amqpgate.datapath.engine import Endpoint, Pump
from amqpgate.datapath.link import make_link, make_riding_relay
from amqpgate.datapath.scanner import FlowTable
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.client_handshake import ClientHandshake, RefusedError, refusal_of_login
from amqpgate.gateway.dialling import Dialler
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.gateway.linkdial import Opened, open_connection
from amqpgate.gateway.links import SharedLink
from amqpgate.gateway.own_login import NotLetInError
from amqpgate.gateway.pool import Close, Dial, Open, Pool, Taken
from amqpgate.gateway.proofs import Proofs
from amqpgate.gateway.riding import Riding
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

    @property
    def shown(self) -> str:
        """What operators see of it, in the broker's lists and in ours."""
        return hashlib.blake2b(repr((self.upstream, self.vhost, self.user)).encode() + self.digest, digest_size=6).hexdigest()


@attrs.define(eq=False)
class SharedPool:
    """All links of one identity."""

    pools: Pools
    identity: Identity
    login: Credentials = attrs.field(repr=False)
    settings: PoolSettings
    #: Attempts to reach the upstream, anew for each link.
    dialler: Callable[[str], Dialler]
    decisions: Pool
    links: dict[int, SharedLink] = attrs.field(factory=dict, init=False)
    #: Sessions that wait for a channel, the first to come first.
    waiting: dict[Riding, None] = attrs.field(factory=dict, init=False)
    #: What holds on the link that was opened last.
    tune: Tune = attrs.field(factory=Tune, init=False)

    # -- sessions -----------------------------------------------------------------------------

    def board(self, riding: Riding) -> bool:
        """Whether there is a channel for one more of a session's; if not, it is told when to ask again."""
        link = riding.link
        if link is None:
            entry = self.decisions.board(self.pools.now())
            link = None if entry is None else self.links[entry.id]
            if link is not None:
                riding.link = link
                link.riders.add(riding)
                self.decisions.joined(link.entry, self.pools.now())
                riding.rider.board(link.link)
                riding.session.relay.up.out_frame_max = link.frame_max
        self.waiting.pop(riding, None)
        if link is not None and link.entry.numbers.has_room:
            return True
        self.waiting[riding] = None
        self.perform()
        return False

    def take(self, link: SharedLink) -> Taken:
        """A channel of a link that has one."""
        taken = self.decisions.take(link.entry, self.pools.now())
        self.perform()
        return taken

    def confirming(self, link: SharedLink, number: int) -> int | None:
        """A channel in confirm mode in the place of one that nothing was said on."""
        other = self.decisions.confirming(link.entry, number)
        self.perform()
        return other

    def left(self, link: SharedLink, riding: Riding) -> None:
        """A session has no channel on the link any more."""
        link.riders.discard(riding)
        if link.entry.id in self.links:
            self.decisions.left(link.entry, self.pools.now())
            self.perform()

    def forget(self, riding: Riding) -> None:
        """A session waits no more."""
        self.waiting.pop(riding, None)

    # -- links --------------------------------------------------------------------------------

    def perform(self) -> None:
        """Do what there is to do."""
        for action in self.decisions.wants(self.pools.now(), waiting=len(self.waiting)):
            match action:
                case Dial():
                    self.pools.start(self._dial)
                case Open(entry, number, confirms):
                    self.links[entry.id].open_spare(number, confirms=confirms)
                case Close(entry, why):
                    self.links[entry.id].close(why)

    def opened(self, link: SharedLink, number: int, *, confirms: bool) -> None:
        """The broker has opened a spare."""
        self.decisions.opened(link.entry, number, confirms)
        self._invite()

    def freed(self, link: SharedLink, number: int) -> None:
        """The broker has closed a channel for good."""
        if link.entry.id in self.links:
            self.decisions.closed(link.entry, number)
            self._invite()
            self.perform()

    def lost(self, link: SharedLink) -> None:
        """The link has left the data path."""
        del self.links[link.entry.id]
        self.decisions.lost(link.entry)
        riders, link.riders = list(link.riders), set()
        log.info("link %s to %s is over, with %d sessions: %s", link.entry.id, link.address, len(riders), link.why)
        for riding in riders:
            riding.lost(link.why)
        self.pools.bury(link)
        self.perform()

    def accuse(self, link: SharedLink, close: amqp.ConnectionClose) -> None:
        """The broker ends the link for what a session has asked, if it can be told which."""
        index = close.class_id << 16 | close.method_id
        suspects = [riding for riding in link.riders if any(seat.asked == index for seat in riding.seats.values())]
        if len(suspects) == 1:
            suspects[0].guilty(close)

    def _invite(self) -> None:
        """Those who wait look again."""
        for riding in list(self.waiting):
            riding.session.relay.pump.retry(riding.session.relay)

    async def _dial(self) -> None:
        try:
            await self.dial()
        except (AmqpgateError, OSError) as error:
            log.warning("no link to %s for user %r: %s", self.identity.upstream, self.identity.user, error)
            self.decisions.dial_failed(self.pools.now())
            refusal = error.refusal if isinstance(error, NotLetInError) else None
            if refusal is not None:
                self.pools.revoke(self)
            for riding in list(self.waiting):
                self.forget(riding)
                riding.refused(str(error), refusal)

    async def dial(self) -> None:
        """One more link. Raises ``UpstreamUnavailableError``, ``NotLetInError`` and ``ConfigError``."""
        pools, entry = self.pools, self.decisions.new_link()
        riders = sum(len(link.riders) for link in self.links.values()) + len(self.waiting)
        about = {"pool": self.identity.shown, "link": entry.id, "clients": riders}
        opened = await self.open_connection(f"link {entry.id} of pool {self.identity.shown}", about)
        tune = self.tune = opened.tune
        shared = SharedLink(self, entry, str(opened.address), tune.frame_max)
        hop = relay.Hop(opened.hop.sock, tune.frame_max, float(tune.heartbeat), opened.hop.decoder.take_rest())
        shared.link = make_link(shared, hop, largest_frame=pools.largest_frame)
        self.links[entry.id] = shared
        self.decisions.added(entry, pools.now(), tune.channel_max)
        pools.pump.add(shared.link)
        log.info("link %s to %s open: pool %s, user %r, vhost %r", entry.id, shared.address, self.identity.shown, self.identity.user, self.identity.vhost)
        self.perform()
        self._invite()

    async def open_connection(self, name: str, entry: dict[str, object]) -> Opened:
        """A connection with this login. Raises as ``linkdial.open_connection``."""
        return await open_connection(
            self.dialler(name),
            self.login,
            self.identity.vhost,
            name=name,
            version=self.pools.version,
            entry=entry,
        )

    async def prove(self) -> None:
        """Ask the broker whether it still takes the login. Raises as ``dial``."""
        if self.decisions.may_grow:
            await self.dial()
            return
        opened = await self.open_connection("login", {})
        self.pools.start(self.pools.part, opened.hop, amqp.ConnectionClose(200, "the login is good", 0, 0))

    def seat(self, session: Session, client: relay.Hop, flows: FlowTable | None, largest_frame: int) -> relay.Relay:
        """The relay of a session that will share the pool's links."""
        made = make_riding_relay(
            session,
            client,
            out_frame_max=self.tune.frame_max,
            flows=flows,
            largest_frame=largest_frame,
            whole=self.settings.largest_body,
            limit=self.settings.max_waiting,
        )
        session.riding = Riding(self, session, made.rider)
        return made


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
    proofs: Proofs = attrs.field(factory=Proofs, init=False)
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
                        if pool.is_over:
                            del self.pools[identity]
            finally:
                self._tasks = None

    def start(self, task: Callable[..., Awaitable[object]], *args: object) -> None:
        """Run it beside all else; not any more where the gateway ends."""
        if self._tasks is not None:
            self._tasks.start_soon(task, *args)

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

    async def admit(self, client: ClientHandshake, dialler: Dialler, vhost: str) -> SharedPool:
        """The pool of a client's login, which the broker has proven, now or not long ago.

        Raises ``RefusedError`` when the client has been told; ``UpstreamUnavailableError``, ``ConfigError``.
        """
        login = _login_of(client, dialler)
        upstream = dialler.cluster.name
        identity = Identity(upstream, vhost, login.user, self.proofs.digest(login))
        while (asking := self._asking.get(identity)) is not None:
            await asking.wait()
        settings = dialler.settings.pool
        pool = self.pools.get(identity)
        if pool is not None and pool.links and self.proofs.is_proven(identity, self.now()):
            return pool
        self._asking[identity] = trio.Event()
        try:
            await trio.sleep(self.proofs.wait_for_try(upstream, client.caller.source, self.now()))
            if pool is None:
                again = lambda name: attrs.evolve(dialler, session=name)  # noqa: E731
                pool = SharedPool(self, identity, login, settings, again, Pool(settings))
            await pool.prove()
            self.pools[identity] = pool
            self.proofs.prove(identity, self.now(), settings.proof_ttl)
            return pool
        except NotLetInError as error:
            self.proofs.failed(upstream, client.caller.source, self.now())
            self.revoke(identity)
            if error.refusal is None:
                await client.refuse(refusal_of_login(client.start_ok.mechanism))
            await client.pass_on(error.refusal)
        finally:
            self._asking.pop(identity).set()
        raise RefusedError("refused")

    def revoke(self, identity: Identity) -> None:
        """The broker does not take the login any more."""
        self.proofs.forget(identity)

    # -- the end ------------------------------------------------------------------------------

    def bury(self, link: SharedLink) -> None:
        """Say the rest of what was accepted for a link that has left the data path, and close its socket."""
        endpoint = link.link.endpoint
        if self._tasks is None:
            endpoint.sock.close()
        else:
            self.start(self._bury, endpoint, link.interpreter)

    async def _bury(self, endpoint: Endpoint, interpreter: Interpreter) -> None:
        hop = Hop(endpoint.sock, frame_max=self.largest_frame, peer=Peer.SERVER, interpreter=interpreter)
        try:
            with trio.move_on_after(self.close_timeout):
                if endpoint.waiting:
                    await hop.send(endpoint.unsent())
                await hop.linger()
        except HopClosedError:
            pass
        finally:
            hop.close()

    async def finish(self) -> None:
        """No session is left: close every link, and wait for the brokers' answers for a while."""
        for pool in self.pools.values():
            for link in list(pool.links.values()):
                link.close("amqpgate is shutting down")
        with trio.move_on_after(self.close_timeout):
            while any(pool.links for pool in self.pools.values()):
                await trio.sleep(0.01)

"""The pools of a gateway: whose pool is whose, and which logins the broker has accepted.

A pool (`pool`) belongs to an upstream, a virtual host and a login. Its first client's login opens its first
connection, and so is proven by the broker before that client hears open-ok. Whoever comes later with the same
login is let in by what is remembered of it (`credential_cache`), for a while; then the broker is asked again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.datapath.engine import Pump
from amqpgate.gateway.pool.changes import Changes
from amqpgate.gateway.pool.credential_cache import CredentialCache
from amqpgate.gateway.pool.dial import PoolDialer, Preauthenticated, preauthenticate
from amqpgate.gateway.session.teardown import Farewell, leave
from amqpgate.gateway.transport.tasks import contained
from amqpgate.gateway.upstream.cluster import Destination
from amqpgate.gateway.upstream.dialer import Dialer
from amqpgate.gateway.upstream.own_login import LoginRefusedError
from amqpgate.protocol.sasl import Credentials
from amqpgate.values import define

if TYPE_CHECKING:
    from amqpgate.gateway.pool.pool import Pool, PoolIdentity
    from amqpgate.gateway.pool.shared_connection import SharedConnection

log = logging.getLogger(__name__)

#: Seconds between looks at what time alone brings about: connections that are idle, or too old.
INTERVAL: Final = 1.0


def load() -> None:
    """Import what pools are made of. Where an upstream's connections are shared that is done at the start, so
    that no login waits for it; others do without."""
    importlib.import_module("amqpgate.gateway.pool.pooled_upstream")


@define(eq=False)
class PoolRegistry:
    """The pools of one gateway."""

    pump: Pump
    #: Bytes.
    largest_frame: int
    #: Of the gateway.
    version: str
    #: Seconds for a farewell.
    close_timeout: float
    pools: dict[PoolIdentity, Pool] = attrs.field(factory=dict, init=False)
    #: By upstream.
    _proofs: dict[str, CredentialCache] = attrs.field(factory=dict, init=False)
    #: Logins that the broker is being asked about.
    _asking: dict[PoolIdentity, trio.Event] = attrs.field(factory=dict, init=False)
    _tasks: trio.Nursery | None = attrs.field(default=None, init=False)
    #: Told when a connection has left the data path.
    _changes: Changes = attrs.field(factory=Changes, init=False)

    async def run(self) -> None:
        """For ever: what time alone brings about."""
        async with trio.open_nursery() as self._tasks:
            try:
                while True:
                    await trio.sleep(INTERVAL)
                    for identity, pool in list(self.pools.items()):
                        try:
                            pool.look()
                        except Exception:
                            # That pool's, and no other's.
                            log.exception("the look at a pool failed")
                        if pool.plan.is_empty:
                            del self.pools[identity]
            finally:
                self._tasks = None

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run it beside all else; not any more where the gateway ends."""
        if self._tasks is not None:
            self._tasks.start_soon(contained, "a pool", task)

    # -- logins -------------------------------------------------------------------------------

    async def preauthenticate(
        self, login: Credentials, source: str, dialler: Dialer
    ) -> Preauthenticated | None:
        """Log in at the broker for a client whose virtual host is not known yet; None: the broker has
        accepted the login not long ago. ``source`` is the client's address.

        Raises as `admit`.
        """
        proofs = self._proofs_of(dialler.destination)
        digest = proofs.digest("", login)
        if proofs.proven(digest, time.monotonic()):
            return None
        await trio.sleep(proofs.wait(source, time.monotonic()))
        asked, shown = time.monotonic(), _shown(dialler.destination.cluster.name, digest)
        entry: dict[str, object] = {"pool": shown, "session": "", "clients": 1}
        try:
            found = await preauthenticate(
                dialler, login, name=f"pool {shown}", version=self.version, entry=entry
            )
        except LoginRefusedError:
            proofs.failed(source, time.monotonic())
            proofs.forget(digest)
            raise
        proofs.prove(digest, asked)
        return found

    def _proofs_of(self, to: Destination) -> CredentialCache:
        return self._proofs.setdefault(to.cluster.name, CredentialCache(to.settings.pool))

    async def admit(
        self,
        login: Credentials,
        source: str,
        to: Destination,
        vhost: str,
        preauthenticated: Preauthenticated | None,
    ) -> Pool:
        """The pool of a login, which the broker has accepted, now or not long ago. It has the connection that
        is ``preauthenticated``, or that is closed.

        Raises ``LoginRefusedError``, ``UpstreamUnavailableError``, ``ConfigError``.
        """
        from amqpgate.gateway.pool.pool import Pool, PoolIdentity

        with _closed_on_failure(preauthenticated):
            proofs = self._proofs_of(to)
            upstream, login_digest = to.cluster.name, proofs.digest("", login)
            shown = _shown(upstream, login_digest)
            identity = PoolIdentity(
                upstream, vhost, login.user, proofs.digest(vhost, login), login_digest, shown
            )
            while (asking := self._asking.get(identity)) is not None:
                await asking.wait()
            pool = self.pools.get(identity)
            if pool is not None and proofs.proven(identity.digest, time.monotonic()):
                if preauthenticated is not None:
                    preauthenticated.broker.hop.close()
                return pool
            asking = self._asking[identity] = trio.Event()
            try:
                await trio.sleep(proofs.wait(source, time.monotonic()))
                if pool is None:
                    dialer = PoolDialer(to, login, vhost, shown, self.version)
                    pool = Pool(self, identity, to.settings.pool, dialer)
                asked = time.monotonic()
                await pool.prove(preauthenticated)
                self.pools[identity] = pool
                proofs.prove(identity.digest, asked)
                return pool
            except LoginRefusedError:
                proofs.failed(source, time.monotonic())
                self.revoke(identity)
                raise
            finally:
                del self._asking[identity]
                asking.set()

    def keep(self, pool: Pool) -> None:
        """A pool has sessions. It may have been forgotten since the login, as empty."""
        self.pools.setdefault(pool.identity, pool)

    def revoke(self, identity: PoolIdentity) -> None:
        """The broker does not take the login, or not any more."""
        proofs = self._proofs[identity.upstream]
        proofs.forget(identity.digest)
        proofs.forget(identity.login_digest)

    # -- the end ------------------------------------------------------------------------------

    def retire(self, connection: SharedConnection) -> None:
        """Say the rest of what was accepted for a connection that has left the data path, and close its
        socket."""
        if self._tasks is None:
            connection.link.endpoint.sock.close()
        else:
            self.start(partial(self._part, connection))
        self._changes.tell()

    async def _part(self, connection: SharedConnection) -> None:
        with trio.move_on_after(self.close_timeout):
            await leave(connection.link.endpoint, connection.interpreter, Farewell())

    async def finish(self) -> None:
        """No session is left: close every connection, and wait for the brokers' answers for a while."""
        for pool in self.pools.values():
            for connection in list(pool.connections.values()):
                connection.close("amqpgate is shutting down")
        with trio.move_on_after(self.close_timeout):
            await self._changes.until(lambda: not any(pool.connections for pool in self.pools.values()))


def _shown(upstream: str, digest: bytes) -> str:
    """A name for the pools of a login, which the broker is told before the virtual host is known."""
    return hashlib.blake2b(upstream.encode() + digest, digest_size=6).hexdigest()


@contextlib.contextmanager
def _closed_on_failure(preauthenticated: Preauthenticated | None) -> Iterator[None]:
    """Its connection is, where what is done with it raises."""
    try:
        yield
    except BaseException:
        if preauthenticated is not None:
            preauthenticated.broker.hop.close()
        raise

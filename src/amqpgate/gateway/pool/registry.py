"""The pools of a gateway: who may share links, and whose pool is whose.

A pool (`pooling`) belongs to an upstream, a virtual host and a login. Its first client's login opens its
first link, and so is proven by the broker before that client hears open-ok. Whoever comes later with the same
login is let in by what is remembered of it (`proofs`), for a while; then the broker is asked again.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import attrs
import trio

from amqpgate.datapath.engine import Pump
from amqpgate.gateway.pool.credential_cache import CredentialCache
from amqpgate.gateway.pool.dial import Preauthenticated, knock
from amqpgate.gateway.pool.pool import Pool, PoolIdentity
from amqpgate.gateway.pool.shared_connection import SharedConnection
from amqpgate.gateway.session.teardown import Farewell, leave
from amqpgate.gateway.upstream.client import Client, RefusedError
from amqpgate.gateway.upstream.dialer import Dialer
from amqpgate.gateway.upstream.login import LoginRefusedError, own_credentials
from amqpgate.protocol.sasl import AMQPLAIN, PLAIN, Credentials, credentials

log = logging.getLogger(__name__)

#: Seconds between looks at what time alone brings about: links that are idle, or too old.
INTERVAL: Final = 1.0

#: What a client must understand to be told all that the broker says on a link.
_UNDERSTOOD: Final = frozenset({"basic.nack", "consumer_cancel_notify"})


@attrs.define(eq=False)
class PoolRegistry:
    """Of one gateway."""

    pump: Pump
    #: Octets.
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

    async def run(self) -> None:
        """For ever: what time alone brings about."""
        async with trio.open_nursery() as self._tasks:
            try:
                while True:
                    await trio.sleep(INTERVAL)
                    for identity, pool in list(self.pools.items()):
                        pool.look()
                        if pool.decisions.is_empty:
                            del self.pools[identity]
            finally:
                self._tasks = None

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run it beside all else; not any more where the gateway ends."""
        if self._tasks is not None:
            self._tasks.start_soon(_contained, task)

    # -- logins -------------------------------------------------------------------------------

    def takes(self, client: Client, dialler: Dialer) -> bool:
        """Whether the client may share links: its route says so, its login can be said again, and it
        understands all that may be said on a link."""
        return (
            dialler.settings.connections == "pooled"
            and client.hop.interpreter.is_native
            and (client.start_ok.mechanism in (PLAIN, AMQPLAIN) or dialler.settings.has_login)
            and client.capabilities >= _UNDERSTOOD
        )

    async def knock(self, client: Client, dialler: Dialer) -> Preauthenticated | None:
        """Ask the broker whether it lets the client in, whose virtual host is not known yet, unless it has
        done so not long ago: so a wrong password is told where the broker would.

        Raises as `admit`.
        """
        login, source = _login_of(client, dialler), client.caller.source
        proofs = self._proofs_of(dialler)
        digest = proofs.digest("", login)
        if proofs.proven(digest, time.monotonic()):
            return None
        await trio.sleep(proofs.wait(source, time.monotonic()))
        asked, shown = time.monotonic(), _shown(dialler.cluster.name, digest)
        entry: dict[str, object] = {"pool": shown, "session": "", "clients": 1}
        try:
            knocked = await knock(dialler, login, name=f"pool {shown}", version=self.version, entry=entry)
        except LoginRefusedError as error:
            proofs.failed(source, time.monotonic())
            proofs.forget(digest)
            if "authentication_failure_close" not in client.capabilities:
                raise RefusedError(str(error)) from error
            await client.pass_on(error.refusal)
        proofs.prove(digest, asked)
        return knocked

    def _proofs_of(self, dialler: Dialer) -> CredentialCache:
        return self._proofs.setdefault(dialler.cluster.name, CredentialCache(dialler.settings.pool))

    async def admit(
        self, client: Client, dialler: Dialer, vhost: str, knocked: Preauthenticated | None
    ) -> Pool:
        """The pool of a client's login, which the broker has proven, now or not long ago.

        Raises ``RefusedError`` when the client has been told; ``UpstreamUnavailableError``, ``ConfigError``.
        """
        login, source = _login_of(client, dialler), client.caller.source
        proofs = self._proofs_of(dialler)
        upstream, login_digest = dialler.cluster.name, proofs.digest("", login)
        identity = PoolIdentity(
            upstream,
            vhost,
            login.user,
            proofs.digest(vhost, login),
            login_digest,
            _shown(upstream, login_digest),
        )
        while (asking := self._asking.get(identity)) is not None:
            await asking.wait()
        pool = self.pools.get(identity)
        if pool is not None and proofs.proven(identity.digest, time.monotonic()):
            if knocked is not None:
                knocked.line.hop.close()
            return pool
        asking = self._asking[identity] = trio.Event()
        try:
            await trio.sleep(proofs.wait(source, time.monotonic()))
            if pool is None:
                pool = Pool(self, identity, login, dialler.settings.pool, dialler)
            asked = time.monotonic()
            await pool.prove(knocked)
            self.pools[identity] = pool
            proofs.prove(identity.digest, asked)
            return pool
        except LoginRefusedError as error:
            proofs.failed(source, time.monotonic())
            self.revoke(identity)
            await client.pass_on(error.refusal)
        finally:
            del self._asking[identity]
            asking.set()

    def revoke(self, identity: PoolIdentity) -> None:
        """The broker does not take the login, or not any more."""
        proofs = self._proofs[identity.upstream]
        proofs.forget(identity.digest)
        proofs.forget(identity.login_digest)

    # -- the end ------------------------------------------------------------------------------

    def bury(self, link: SharedConnection) -> None:
        """Say the rest of what was accepted for a link that has left the data path, and close its socket."""
        if self._tasks is None:
            link.link.endpoint.sock.close()
        else:
            self.start(partial(self._bury, link))

    async def _bury(self, link: SharedConnection) -> None:
        with trio.move_on_after(self.close_timeout):
            await leave(link.link.endpoint, link.interpreter, Farewell())

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


def _login_of(client: Client, dialler: Dialer) -> Credentials:
    """Who logs in to the broker: the client, or the upstream's own user."""
    login = own_credentials(dialler.settings)
    login = login or credentials(client.start_ok.mechanism, client.start_ok.response)
    assert login is not None, "of these mechanisms"
    return login


def _shown(upstream: str, digest: bytes) -> str:
    """A name for the pools of a login, which the broker is told before the virtual host is known."""
    return hashlib.blake2b(upstream.encode() + digest, digest_size=6).hexdigest()

"""Who a client is, where the broker is told another user: the name that policies judge.

Where a client logs in itself, the broker says whether its name is true. An upstream, or a route, may log in
as a user of its own; then nobody has checked what the client says, and its name is looked for elsewhere, in
this order:

1. Clients that another share of the route takes, or the listener's own upstream, log in themselves: that
   upstream is asked whether it takes the client's login, unless it has been asked not long ago. If it does
   not, or does not answer, the user is not known: policies that might mean it deny, and only those for any
   user allow.
2. No client of the listener logs in itself, or the route matches certificates: the common name of the
   client's verified certificate. So it is, too, for SASL EXTERNAL.
3. The client has proven no name: the user that the listener's own upstream logs in as, if it does; else not
   known.

Who has logged in by a token that the gateway has verified is whom the token names, and nobody is asked.

The route itself never gives the name: who is sent elsewhere stays who it is.
"""

from __future__ import annotations

import logging
import time
from typing import Final

import attrs
import trio

from amqpgate.config import Upstream
from amqpgate.errors import ConfigError, ProtocolViolation
from amqpgate.gateway.pool.credential_cache import CredentialCache
from amqpgate.gateway.pool.dial import part_with, preauthenticate
from amqpgate.gateway.upstream.client import Client
from amqpgate.gateway.upstream.cluster import Destination
from amqpgate.gateway.upstream.dialer import Dialer, UpstreamUnavailableError
from amqpgate.gateway.upstream.own_login import LoginRefusedError
from amqpgate.gateway.upstream.router import Router
from amqpgate.logs import RECURRING
from amqpgate.policy import Choice
from amqpgate.protocol.sasl import AMQPLAIN, EXTERNAL, PLAIN, credentials
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Seconds for which an upstream that did not answer is not asked again whether a login is right.
PATIENCE: Final = 5.0


@define(eq=False)
class Principals:
    """Finds the user that policies judge, where the upstream or the route has a login of its own."""

    router: Router
    #: Of the gateway.
    version: str
    #: Seconds for a farewell.
    close_timeout: float
    #: By upstream.
    _caches: dict[str, CredentialCache] = attrs.field(factory=dict, init=False)
    #: Until when upstreams that did not answer are not asked.
    _silent: dict[str, float] = attrs.field(factory=dict, init=False)

    def at_login(self, client: Client, to: Destination, said: str | None) -> str | None:
        """By whom a login is counted that has not been checked yet: ``said``, which the login names, where
        somebody will check it."""
        if client.token is not None:
            return client.token.user
        return self._without_login(client) if self._prover(client, to.choice) is None else said

    async def user_of(self, client: Client, to: Destination, said: str | None) -> str | None:
        """The user that policies judge; ``said`` is the one that the client's login names."""
        if client.token is not None:
            return client.token.user
        prover = self._prover(client, to.choice)
        if prover is None:
            return self._without_login(client)
        if said is None:
            return None
        if await self._accepts(self.router.plain_dialler(prover, client.caller.session_id), client):
            return said
        log.warning(
            "session %s: upstream %s has not confirmed the login of user %r, who is sent to %s as %r: "
            "policies take the user for one who is not known",
            client.caller.session_id,
            prover,
            said,
            to.cluster.name,
            to.settings.user,
            extra=RECURRING,
        )
        return None

    async def _accepts(self, dialler: Dialer, client: Client) -> bool:
        """Whether an upstream where clients log in themselves takes the client's login, now or not long ago.

        It is not asked where too many logins from the client's address have failed lately, and not again for
        a while where it did not answer: then it does not.
        """
        said, source, name = client.start_ok, client.caller.source, dialler.destination.cluster.name
        if said.mechanism not in (PLAIN, AMQPLAIN):
            return False
        try:
            login = credentials(said.mechanism, said.response)
        except ProtocolViolation:
            return False
        assert login is not None, "of these mechanisms"
        cache = self._caches.setdefault(name, CredentialCache(dialler.destination.settings.pool))
        digest, asked = cache.digest("", login), time.monotonic()
        if cache.proven(digest, asked):
            return True
        if cache.wait(source, asked) or asked < self._silent.get(name, asked):
            return False
        entry: dict[str, object] = {"session": client.caller.session_id}
        try:
            with trio.fail_after(dialler.destination.settings.connect_timeout):
                found = await preauthenticate(
                    dialler, login, name="login check", version=self.version, entry=entry
                )
        except LoginRefusedError:
            cache.failed(source, time.monotonic())
            return False
        except (UpstreamUnavailableError, ConfigError, trio.TooSlowError):
            self._silent[name] = time.monotonic() + PATIENCE
            return False
        cache.prove(digest, asked)
        await part_with(found.broker.hop, "the login is right", self.close_timeout)
        return True

    def _own(self, client: Client) -> Upstream:
        return self.router.settings.upstream_of(client.listener)

    def _without_login(self, client: Client) -> str | None:
        """Who it is, whatever its login says."""
        return client.caller.tls_name or self._own(client).user

    def _prover(self, client: Client, choice: Choice | None) -> str | None:
        """The upstream that can tell whether the client's login is right; None: none, or none need."""
        if client.start_ok.mechanism == EXTERNAL:
            return None
        route, own = None if choice is None else choice.route, self._own(client)
        if route is not None and route.upstream.user is None:
            for share in route.upstream.shares:
                if not self.router.clusters[share.cluster].settings.has_login:
                    return share.cluster
        by_certificate = route is not None and route.match.tls is not None and client.caller.tls_name
        if own.has_login or by_certificate:
            return None
        return own.name

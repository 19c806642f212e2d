"""The login of a client that shares connections to its broker with others.

Nobody is let in whom the broker has not accepted. A login that it has accepted not long ago is remembered
by the pools; any other is tried before the client hears open-ok, and a refusal is passed on in the broker's
words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqpgate.config import Upstream
from amqpgate.gateway.handshake.client_side import ClientHandshake
from amqpgate.gateway.pool.dial import Preauthenticated, part_with
from amqpgate.gateway.pool.registry import PoolRegistry
from amqpgate.gateway.upstream.client import RefusedError
from amqpgate.gateway.upstream.cluster import Destination
from amqpgate.gateway.upstream.dialer import Dialer
from amqpgate.gateway.upstream.own_login import LoginRefusedError, own_credentials
from amqpgate.policy import SelectedPolicies
from amqpgate.policy.kinds.compatibility import for_upstream
from amqpgate.protocol.sasl import AMQPLAIN, PLAIN, Credentials, credentials
from amqpgate.values import frozen

if TYPE_CHECKING:
    from amqpgate.gateway.pool.pool import Pool

#: What a client must understand to be told all that the broker says on a shared connection.
_UNDERSTOOD: Final = frozenset({"basic.nack", "consumer_cancel_notify"})


def needs_own(policies: SelectedPolicies, to: Destination) -> bool:
    """Whether the session must have a connection of its own to the broker: its bodies may go to an object
    store, and come from there, at the pace of one client."""
    compatibility = for_upstream(policies.compatibilities, to.cluster.name)
    return compatibility is not None and compatibility.claim_check is not None


@frozen
class PooledLogin:
    """The login of one client."""

    client: ClientHandshake
    pools: PoolRegistry

    def may_share(self, to: Destination) -> bool:
        """Whether the client may share connections: its route says so, its login can be repeated, and it
        understands all that the broker may say on them."""
        client, settings = self.client, to.settings
        return (
            settings.connections == "pooled"
            and client.hop.interpreter.is_native
            and (client.start_ok.mechanism in (PLAIN, AMQPLAIN) or settings.has_login)
            and client.capabilities >= _UNDERSTOOD
        )

    async def preauthenticate(self, dialler: Dialer) -> Preauthenticated | None:
        """Log in at the broker before the client has named its virtual host, unless the broker has accepted
        the login not long ago: so a wrong password is told where the broker would.

        Raises as `admit`.
        """
        try:
            login = self._login(dialler.destination.settings)
            return await self.pools.preauthenticate(login, self.client.caller.source, dialler)
        except LoginRefusedError as error:
            if "authentication_failure_close" not in self.client.capabilities:
                raise RefusedError(str(error), of_login=True) from error
            await self.client.pass_on(error.refusal)

    async def admit(self, to: Destination, vhost: str, preauthenticated: Preauthenticated | None) -> Pool:
        """The pool of the client's login, which the broker has accepted, now or not long ago.

        Raises ``RefusedError`` when the client has been told; ``UpstreamUnavailableError``, ``ConfigError``.
        """
        source = self.client.caller.source
        try:
            return await self.pools.admit(self._login(to.settings), source, to, vhost, preauthenticated)
        except LoginRefusedError as error:
            await self.client.pass_on(error.refusal)

    async def part_with(self, preauthenticated: Preauthenticated) -> None:
        """Close a connection that is not needed after all."""
        timeout = self.client.context.settings.limits.close_timeout
        await part_with(preauthenticated.broker.hop, "the session has a connection of its own", timeout)

    def _login(self, settings: Upstream) -> Credentials:
        """Who logs in to the broker: the client, or the upstream's own user."""
        said = self.client.start_ok
        login = own_credentials(settings) or credentials(said.mechanism, said.response)
        assert login is not None, "of these mechanisms"
        return login

"""What all handshakes of a gateway share."""

from __future__ import annotations

from amqpgate.config import Settings
from amqpgate.gateway.handshake.admission import AdmissionControl, ConnectionPolicies
from amqpgate.gateway.handshake.identities import Identities, UnverifiedTokens
from amqpgate.gateway.handshake.pending import PendingHandshakes
from amqpgate.gateway.handshake.principals import Principals
from amqpgate.gateway.pool.registry import PoolRegistry
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.router import Router
from amqpgate.values import frozen


@frozen(eq=False)
class HandshakeContext:
    """The gateway, as a handshake sees it."""

    settings: Settings
    #: Of the gateway.
    version: str
    contexts: TlsContexts
    router: Router
    pools: PoolRegistry
    principals: Principals
    policies: ConnectionPolicies
    admission: AdmissionControl
    pending: PendingHandshakes
    unverified: UnverifiedTokens
    #: None: no tokens are verified.
    identities: Identities | None = None

"""The issuers that the settings name, for the handshakes of one gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from amqpgate.config import OAuth, Settings
from amqpgate.errors import ConfigError
from amqpgate.gateway.handshake.identities import Identities, UnverifiedTokens
from amqpgate.gateway.session.token_sessions import TokenSessions
from amqpgate.telemetry.tokens import TokenMetrics

if TYPE_CHECKING:
    from amqpgate.gateway.identity.issuer import Issuer


def check_identity(settings: Settings) -> None:
    """Raises ``ConfigError`` where tokens are to be verified, and what does that is not installed."""
    if any(map(settings.oauth_of, settings.listeners)) and not (
        find_spec("jwt") and find_spec("cryptography")
    ):
        raise ConfigError("identity.oauth needs PyJWT and cryptography: pip install 'amqpgate[oauth]'")


def identities_of(
    settings: Settings, sessions: TokenSessions, metrics: TokenMetrics, unverified: UnverifiedTokens
) -> tuple[Identities | None, tuple[Callable[[], Awaitable[None]], ...]]:
    """Those of the settings, None where they name none; and what has to run for them.

    Raises ``ConfigError``.
    """
    check_identity(settings)
    issuers: dict[OAuth, Issuer] = {}
    by_listener: dict[str, Issuer] = {}
    for listener in settings.listeners:
        oauth = settings.oauth_of(listener)
        if oauth is None:
            continue
        # Of who verifies nothing, nothing is imported.
        from amqpgate.gateway.identity.issuer import Issuer

        if oauth not in issuers:
            issuers[oauth] = Issuer(oauth, metrics.count, partial(metrics.keys, oauth.issuer))
        by_listener[listener.name] = issuers[oauth]
    if not by_listener:
        return None, ()
    return Identities(by_listener, sessions, unverified, metrics.count), tuple(
        [issuer.run for issuer in issuers.values()]
    )

"""The tokens of clients that log in: looked at before anything else is done with a login, once per login.

::

    start-ok ──▶ PLAIN, AMQPLAIN: the password is a token ──── verified ────▶ the principal is the token's
                 │                                        └── not right ────▶ refused
                 ├─ EXTERNAL with a verified certificate ───────────────────▶ as without tokens
                 └─ anything else ── `require: false` ──▶ as without tokens
                                  └─ `require: true` ───▶ refused
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, NoReturn, Protocol

import attrs

from amqpgate.config import Listener
from amqpgate.gateway.identity.tokens import TokenError, VerifiedToken, looks_like_token
from amqpgate.gateway.session.session_token import Bearers, SessionToken, TokenIssuer
from amqpgate.gateway.transport.waiting import in_trio
from amqpgate.gateway.upstream.client import Client, RefusedError, refusal_of_login
from amqpgate.protocol.sasl import EXTERNAL, credentials
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)

#: What most tokens start with: a JSON object in base64.
TOKEN_MARK: Final = b"eyJ"


class LoggingIn(Client, Protocol):
    """A client whose login has just been heard."""

    @property
    def is_silent(self) -> bool:
        """Whether a refusal is told by hanging up."""

    async def admit_login(self, user: str | None) -> None:
        """Wait until the client may log in, or refuse it."""


@define(eq=False)
class UnverifiedTokens:
    """Passwords that look like tokens and that nobody here verifies: they are counted, and told once."""

    count: Callable[[], None]
    _was_told: bool = attrs.field(default=False, init=False)

    def look(self, response: bytes) -> None:
        """The response of a login whose token would not be verified."""
        if TOKEN_MARK not in response:
            return
        self.count()
        if not self._was_told:
            self._was_told = True
            log.warning(
                "a client logs in by what looks like a token (JWT), and there is no identity.oauth: policies "
                "go by the user name that it says beside it, which may be any"
            )


@frozen(eq=False)
class Identities:
    """The issuers of one gateway, and the sessions of tokens."""

    #: By listener.
    issuers: Mapping[str, TokenIssuer]
    bearers: Bearers
    unverified: UnverifiedTokens
    #: Told what has become of logins that have no token.
    count: Callable[[str], None]

    def requires(self, listener: Listener) -> bool:
        """Whether clients need a token, or a certificate, there."""
        issuer = self.issuers.get(listener.name)
        return issuer is not None and issuer.oauth.require

    async def token_of(self, client: LoggingIn) -> VerifiedToken | None:
        """The token that a client logs in by; None: by none, and may do so.

        Raises ``RefusedError``; ``ProtocolViolation`` for a response that is none of its mechanism.
        """
        issuer = self.issuers.get(client.listener.name)
        said = client.start_ok
        if issuer is None:
            self.unverified.look(said.response)
            return None
        try:
            if said.mechanism == EXTERNAL:
                if client.caller.tls is not None or not issuer.oauth.require:
                    return None
                raise TokenError("missing", "none, and no certificate that was verified")
            login = credentials(said.mechanism, said.response)
            if login is None or not looks_like_token(login.password):
                if issuer.oauth.require:
                    raise TokenError("missing", "none, and logins need one here")
                return None
        except TokenError as error:
            self.count(error.outcome)
            await _refuse(client, error)
        try:
            return issuer.verify_now(login.password) or await in_trio(issuer.verify, login.password)
        except TokenError as error:
            await _refuse(client, error)

    def session_token(self, listener: Listener, token: VerifiedToken, *, is_passed_on: bool) -> SessionToken:
        """What the session of a token goes by; ``is_passed_on``: its broker is told the token as well."""
        return SessionToken(token, self.issuers[listener.name], self.bearers, is_passed_on)


async def _refuse(client: LoggingIn, why: TokenError) -> NoReturn:
    """As RabbitMQ refuses a login: who says that it understands is told, others see the connection end."""
    await client.admit_login(None)
    mechanism = client.start_ok.mechanism
    refusal = refusal_of_login(mechanism)
    if client.is_silent and "authentication_failure_close" not in client.capabilities:
        raise RefusedError(f"{refusal.text}: {why}", of_login=True) from why
    try:
        await client.refuse(refusal)
    except RefusedError as told:
        raise RefusedError(f"{told}: {why}", code=told.code, of_login=True) from why

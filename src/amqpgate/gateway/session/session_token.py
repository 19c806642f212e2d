"""The token that a session goes by, which the gateway has verified, and how it is renewed.

::

    NONE ──── connection.update-secret: the client's methods wait ────▶ ASKING ────▶ READY: it holds
     ▲                                                                    └───────▶ WRONG: 530, as RabbitMQ
     └───────────────────────────────────────────────────────────────────────────────────┘

A new token must be the same user's. It may have other scopes, groups and claims: from then on policies judge
by those. The broker gets it, too, unless the gateway logs in there itself: then the gateway answers.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Protocol

import attrs

from amqpgate.config import OAuth
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.identity.tokens import TokenError, VerifiedToken
from amqpgate.logs import about
from amqpgate.policy import Principal
from amqpgate.protocol.frames import method_frame
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

log = logging.getLogger(__name__)


class TokenIssuer(Protocol):
    """Who verifies tokens."""

    @property
    def oauth(self) -> OAuth:
        """What it goes by."""

    def verify_now(self, token: bytes) -> VerifiedToken | None:
        """Who bears the token; None: `verify` has to be asked. Raises `TokenError`."""

    async def verify(self, token: bytes) -> VerifiedToken:
        """As `verify_now`, when the issuer's keys have been fetched."""


class Bearer(Protocol):
    """The session of a token."""

    @property
    def id(self) -> str: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def relay(self) -> Relay: ...


class Bearers(Protocol):
    """All sessions of tokens."""

    def watch(self, session: str, ends: float) -> None:
        """End a session at this time, in seconds since 1970, unless its token is renewed by then."""

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task beside all else."""

    async def prepare(self, principal: Principal, session: str) -> None:
        """Compile the policies that hold for a principal."""

    def judge_anew(self, session: str, principal: Principal, method: Method) -> None:
        """The session is this principal's from now on. Raises `ProtocolViolation` where a policy denies it
        its virtual host."""


class Renewal(Enum):
    """How far a renewal is."""

    NONE = "none"
    #: The new token is being verified.
    ASKING = "asking"
    #: It is right, and what follows from it is prepared.
    READY = "ready"
    WRONG = "wrong"


@define(eq=False, weakref_slot=False)
class SessionToken:
    """The token that one session goes by."""

    current: VerifiedToken
    issuer: TokenIssuer
    bearers: Bearers
    #: Whether the broker has been told the token, and must hear of a new one.
    is_passed_on: bool
    _renewal: Renewal = attrs.field(default=Renewal.NONE, init=False)
    _next: VerifiedToken | None = attrs.field(default=None, init=False)

    @property
    def ends(self) -> float:
        """When the session ends unless its token is renewed; seconds since 1970."""
        oauth = self.issuer.oauth
        return self.current.expires + oauth.clock_skew + oauth.expiry_grace

    def begin(self, session: str) -> None:
        """The session of that id is open."""
        self.bearers.watch(session, self.ends)

    def answers(self, method: Method) -> bool:
        """Whether the gateway answers a client's method, and no broker is asked."""
        return not self.is_passed_on and isinstance(method, amqp.ConnectionUpdateSecret)

    def holds_up(self, session: Bearer, method: Method) -> bool:
        """Whether a client's method waits for a new token to be verified. Raises `ProtocolViolation`."""
        if not isinstance(method, amqp.ConnectionUpdateSecret):
            return False
        if self._renewal is Renewal.NONE:
            self._renewal = Renewal.ASKING
            self.bearers.start(partial(self._verify, session, method.new_secret))
        elif self._renewal is Renewal.WRONG:
            self._renewal = Renewal.NONE
            raise ProtocolViolation(
                530,
                "New secret was refused by one of the backends",
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
            )
        return self._renewal is Renewal.ASKING

    def renewed(self, session: Bearer, method: amqp.ConnectionUpdateSecret) -> None:
        """The client may renew its token, and the new one is right: it holds from now on. Raises
        `ProtocolViolation` where its virtual host is not open to it any more."""
        token, self._next, self._renewal = self._next, None, Renewal.NONE
        assert token is not None, "it is ready"
        self.bearers.judge_anew(session.id, applied(token, session.principal), method)
        self.current = token
        self.begin(session.id)
        if not self.is_passed_on:
            session.relay.send(Side.CLIENT, method_frame(0, amqp.ConnectionUpdateSecretOk()))

    async def _verify(self, session: Bearer, secret: bytes) -> None:
        found = None
        try:
            found = await self.issuer.verify(secret)
            if found.user != session.principal.user:
                how = about(session=session.id, user=session.principal.user)
                log.warning("session %s: its new token is another user's", session.id, extra=how)
                found = None
            else:
                await self.bearers.prepare(applied(found, session.principal), session.id)
        except TokenError as error:
            how = about(session=session.id, user=session.principal.user)
            log.warning("session %s: its new %s", session.id, error, extra=how)
        finally:
            self._next = found
            self._renewal = Renewal.WRONG if found is None else Renewal.READY
            if session.relay.active:
                session.relay.pump.retry(session.relay)


def applied(token: VerifiedToken, principal: Principal) -> Principal:
    """A principal, with what its token says."""
    return attrs.evolve(principal, groups=token.groups, token=token.identity)

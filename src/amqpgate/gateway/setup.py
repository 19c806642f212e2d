"""How a session comes about: one conversation with the client, one with the broker, kept in step.

::

    client                      gateway                        broker
      │ protocol header ──────────▶ │ dial, protocol header ──────▶ │
      │ ◀────────────────── start   │ ◀────────────────────── start │
      │ start-ok ─────────────────▶ │ ─────────────────────▶ start-ok (client properties + amqpgate)
      │ ◀───────── secure, secure-ok, as often as the mechanism asks ─────────▶ │
      │ ◀─────────────────── tune   │ ◀─────────────────────── tune │  each hop its own
      │ tune-ok, open ────────────▶ │ ──────────────▶ tune-ok, open │
      │ ◀──────────────── open-ok   │ ◀──────────────────── open-ok │  or redirect (`broker_handshake`)

Each hop speaks its own version. Nothing is answered for the broker: its mechanisms, its challenge, its
refusal and its open-ok are what the client sees. There are three exceptions. A broker that cannot be reached:
then the gateway says start itself, only to be able to say connection.close 320 with the reason. PLAIN and
AMQPLAIN: they say the same, so each is offered where the broker has the other one. And the empty response
by which old clients ask for a challenge (`client_handshake`).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

import attrs

from amqpgate.bridge import ConnectionRedirect, Interpreter, pair_of
from amqpgate.config import USUAL_FRAME_MAX
from amqpgate.datapath import relay
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.broker_handshake import (
    BrokerHandshake,
    UpstreamFaultError,
    open_for,
    start_ok_for,
    tune_for,
)
from amqpgate.gateway.client_handshake import ClientHandshake, refusal_of_login
from amqpgate.gateway.dialling import Dialler, Line
from amqpgate.gateway.door import Stage
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.gateway.offers import with_both_plain
from amqpgate.gateway.principals import Principals, upstream_user
from amqpgate.policy import Choice, Principal
from amqpgate.protocol.handshake import Tune, negotiate
from amqpgate.protocol.sasl import EXTERNAL, SaslWatcher
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.pooling import SharedPool

M = TypeVar("M", bound=Method)
N = TypeVar("N", bound=Method)


@attrs.frozen
class Established:
    """Both hops are open."""

    principal: Principal
    client: relay.Hop
    #: None: the session shares links.
    upstream: relay.Hop | None
    channel_max: int
    #: Of the client and of the broker, by ``datapath.tables.Side``.
    interpreters: tuple[Interpreter, Interpreter]
    #: What the client says that it understands, such as consumer_cancel_notify.
    capabilities: frozenset[str] = frozenset()
    #: The route that was taken; None: none.
    choice: Choice | None = None
    #: Whose links are shared.
    pool: SharedPool | None = None


@attrs.define
class Setup:
    """One conversation. ``run`` returns when both hops are open, or raises ``RefusedError``."""

    client: ClientHandshake
    dialler: Dialler
    #: Another one after a redirect.
    line: Line
    #: Of the gateway.
    version: str
    principals: Principals
    #: The broker's first method, which has been heard already; None once it has been dealt with.
    greeting: Method | None = attrs.field(init=False)

    async def run(self) -> Established:
        """Raises ``RefusedError``; ``HopClosedError`` and ``ProtocolViolation`` of the client; and
        ``UpstreamFaultError``, of which the client has not been told."""
        self.greeting = self.line.greeting
        with self.client.hanging_up():
            return await self._converse()

    async def _converse(self) -> Established:
        start = await self._from_broker(amqp.ConnectionStart)
        offer = with_both_plain(start)
        if self._lends_certificate:
            offered = [name for name in offer.mechanisms.split() if name != b"EXTERNAL"]
            offer = attrs.evolve(offer, mechanisms=b" ".join(offered))
        await self.client.say_start(offer)
        watcher = await self._authenticate(start)
        client_tune, upstream_tune = await self._tune(watcher)
        user = await self.principals.user_of(self.client, self.dialler, self._said(watcher))
        principal, upstream_tune = await self._open(user, client_tune, upstream_tune)
        return established(
            principal, self.client, client_tune, self.line.hop, upstream_tune, self.dialler.choice
        )

    @property
    def _lends_certificate(self) -> bool:
        """Whether SASL EXTERNAL would log an unproven client in by the gateway's certificate."""
        tls = self.dialler.settings.tls
        return tls is not None and tls.cert is not None and not self.client.listener.proves_clients

    # -- authentication: whatever the mechanism, as often as the broker asks ------------------

    async def _authenticate(self, start: amqp.ConnectionStart) -> SaslWatcher:
        start_ok = await self.client.hear_start_ok()
        if start_ok.mechanism == EXTERNAL and self._lends_certificate:
            await self.client.refuse(refusal_of_login(EXTERNAL))
        watcher = SaslWatcher(start_ok.mechanism)
        settings = self.dialler.settings
        if settings.has_login:
            # Nobody's login fails for it.
            with contextlib.suppress(ProtocolViolation):
                watcher.response(start_ok.response)
        else:
            watcher.response(start_ok.response)
        known = self.principals.at_login(self.client, self.dialler, self._said(watcher))
        stranger = self.client.principal(known, "")
        await self.client.admit(Stage.LOGIN, stranger, amqp.ConnectionStartOk)
        await self._to_broker(start_ok_for(self.line.hop, start, self.client, settings, self.version))
        return watcher

    def _said(self, watcher: SaslWatcher) -> str | None:
        """The user that the client's login names; None where only the broker can tell."""
        return (self.client.caller.tls_name if watcher.by_certificate else watcher.user) or None

    # -- tune: each hop has its own limits ----------------------------------------------------

    async def _tune(self, watcher: SaslWatcher) -> tuple[Tune, Tune]:
        """What holds on the client's hop, and on the broker's.

        Where the configuration names nothing, the client is offered what the broker offers, and
        the broker is answered what the client chose; so the two hops agree and no body is re-framed,
        unless the client chose less than a broker may insist on.
        """
        asked = await self._tune_from_broker(watcher)
        own, theirs = self.client.listener, self.dialler.settings
        offer = Tune(
            frame_max=own.frame_max or negotiate(asked.frame_max, theirs.frame_max or USUAL_FRAME_MAX),
            channel_max=negotiate(
                negotiate(asked.channel_max, own.channel_max or 0), theirs.channel_max or 0
            ),
            heartbeat=asked.heartbeat if own.heartbeat is None else own.heartbeat,
        )
        client = await self.client.tune(offer)
        upstream = tune_for(asked, theirs, client)
        await self._to_broker(
            self.line.hop.frame_of(
                amqp.ConnectionTuneOk(upstream.channel_max, upstream.frame_max, upstream.heartbeat)
            )
        )
        return client, upstream

    async def _tune_from_broker(self, watcher: SaslWatcher) -> amqp.ConnectionTune:
        """Past the challenges, if the mechanism has any."""
        while True:
            method = await self._from_broker(amqp.ConnectionTune, amqp.ConnectionSecure)
            if isinstance(method, amqp.ConnectionTune):
                return method
            await self.client.say(method)
            answer = await self.client.hear(amqp.ConnectionSecureOk)
            watcher.response(answer.response)
            await self._to_broker(self.line.hop.frame_of(answer))

    # -- open ---------------------------------------------------------------------------------

    async def _open(self, user: str | None, client_tune: Tune, upstream_tune: Tune) -> tuple[Principal, Tune]:
        """Who it is now, and what holds on the hop of the broker that has opened."""
        request = await self.client.hear(amqp.ConnectionOpen)
        vhost = self.dialler.settings.vhost
        if vhost is not None:
            request = attrs.evolve(request, virtual_host=vhost)
        known = upstream_user(self.dialler.settings, self.client.start_ok.mechanism, user)
        principal = self.client.principal(user, request.virtual_host, known)
        why_not = await self.client.why_not(Stage.OPEN, principal, amqp.ConnectionOpen)
        if why_not is not None:
            await self._leave_broker()
            await self.client.refuse(why_not)
        hop = self.line.hop
        await self._to_broker(hop.frame_of(open_for(hop, self.client.hop, request)))
        answer = await self._from_broker(amqp.ConnectionOpenOk, ConnectionRedirect)
        if isinstance(answer, ConnectionRedirect):
            upstream_tune = await self._follow(answer, client_tune, request)
        await self.client.say(amqp.ConnectionOpenOk())
        return principal, upstream_tune

    async def _follow(
        self, redirect: ConnectionRedirect, client_tune: Tune, request: amqp.ConnectionOpen
    ) -> Tune:
        """All that the client has said is said to another broker."""
        again = BrokerHandshake(self.client, self.dialler, self.version, client_tune, request, self.line)
        try:
            await again.follow(redirect)
            return await again.run()
        finally:
            self.line = again.line

    # -- with the broker ----------------------------------------------------------------------

    async def _leave_broker(self) -> None:
        goodbye = amqp.ConnectionClose(200, "closed by the client", 0, 0)
        with contextlib.suppress(UpstreamFaultError):
            await self._to_broker(self.line.hop.frame_of(goodbye))

    async def _to_broker(self, data: bytes) -> None:
        try:
            await self.line.hop.send(data)
        except HopClosedError as closed:
            raise UpstreamFaultError(str(closed)) from closed

    async def _from_broker(self, expected: type[M], alternative: type[N] | None = None) -> M | N:
        try:
            method = self.greeting or await self.line.hop.next_method()
            self.greeting = None
        except ProtocolViolation as violation:
            raise UpstreamFaultError(str(violation)) from violation
        except HopClosedError as closed:
            raise UpstreamFaultError(str(closed)) from closed
        if isinstance(method, amqp.ConnectionClose):
            await self.client.pass_on(method, self.line.hop)
        if isinstance(method, expected):
            return method
        if alternative is not None and isinstance(method, alternative):
            return method
        raise UpstreamFaultError(f"expected '{expected.NAME}', got '{method.NAME}'")


def established(
    principal: Principal,
    client: ClientHandshake,
    client_tune: Tune,
    broker: Hop,
    broker_tune: Tune,
    choice: Choice | None,
) -> Established:
    """Both sockets for the data path, and what is known of their peers."""
    return Established(
        principal,
        hand_over(client.hop, client_tune),
        hand_over(broker, broker_tune),
        broker_tune.channel_max,
        pair_of(client.hop.interpreter, broker.interpreter),
        client.capabilities,
        choice,
    )


def hand_over(hop: Hop, tune: Tune) -> relay.Hop:
    """A socket as the data path takes it."""
    return relay.Hop(hop.sock, tune.frame_max, float(tune.heartbeat), hop.decoder.take_rest())

"""How a session comes about: one conversation with the client, one with the broker, kept in step.

::

    client                      gateway                        broker
      │ protocol header ──────────▶ │
      │ ◀────────────────── start   │  as this broker said it last (`dialer`)
      │ start-ok ─────────────────▶ │ dial, protocol header ──────▶ │
      │                             │ ◀────────────────────── start │
      │                             │ ─────────────────────▶ start-ok (client properties + amqpgate)
      │ ◀───────── secure, secure-ok, as often as the mechanism asks ─────────▶ │
      │ ◀─────────────────── tune   │ ◀─────────────────────── tune │  each hop its own
      │ tune-ok, open ────────────▶ │ ──────────────▶ tune-ok, open │
      │ ◀──────────────── open-ok   │ ◀──────────────────── open-ok │  or redirect (`broker_side`)

A broker whose start is not known, or was heard long ago, is dialled before the client hears start: otherwise
eight bytes of anybody's would cost a connection to the broker.

Each hop speaks its own version. Nothing is answered for the broker: its mechanisms, its challenge, its
refusal and its open-ok are what the client sees. There are three exceptions. A broker that cannot be reached:
then the gateway says start itself, only to be able to say connection.close 320 with the reason. PLAIN and
AMQPLAIN: they say the same, so each is offered where the broker has the other one. And the empty response
by which old clients ask for a challenge (`client_side`).
"""

from __future__ import annotations

import contextlib
from typing import TypeVar

import attrs

from amqpgate.bridge import ConnectionRedirect, pair_of
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.agreements import lends_certificate, offer_of, start_for
from amqpgate.gateway.handshake.client_side import ClientHandshake, session_token_of, upstream_user_of
from amqpgate.gateway.handshake.progress import Progress, Stage
from amqpgate.gateway.session.established import Established, OwnSource
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError, hand_over
from amqpgate.gateway.transport.waiting import in_trio
from amqpgate.gateway.upstream.broker_side import (
    BrokerHandshake,
    UpstreamFaultError,
    check_tune,
    open_for,
    own_exchange,
    said_in,
    start_ok_for,
    tune_for,
)
from amqpgate.gateway.upstream.client import RefusedError, refusal_of_login
from amqpgate.gateway.upstream.cluster import Destination
from amqpgate.gateway.upstream.dialer import DialedBroker, Dialer
from amqpgate.gateway.upstream.own_login import secure_ok
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.login import Exchange
from amqpgate.protocol.sasl import EXTERNAL, SaslWatcher
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

M = TypeVar("M", bound=Method)
N = TypeVar("N", bound=Method)


@define
class Passthrough:
    """The handshake of one client whose broker is known. ``run`` returns when both hops are open."""

    client: ClientHandshake
    dialler: Dialer
    #: The first method of the broker's that the client hears.
    greeting: amqp.ConnectionStart | amqp.ConnectionClose
    #: The connection that it was heard on; None: there is none yet. Another one after a redirect.
    line: DialedBroker | None
    #: The upstream's own login, under way; None: the client logs in itself.
    own: Exchange | None = attrs.field(default=None, init=False)
    #: What the broker hears together with what comes next.
    _unsaid: bytes = attrs.field(default=b"", init=False)

    @property
    def address(self) -> str:
        """The broker's address, or the cluster's name before one is dialled."""
        return str(self.dialler.destination.cluster.name if self.line is None else self.line.endpoint.address)

    @property
    def hop(self) -> MethodStream:
        """To the broker, which has been dialled."""
        assert self.line is not None, "dialled before start-ok goes on"
        return self.line.hop

    async def run(self, progress: Progress | None = None) -> Established:
        """Raises ``RefusedError``; ``StreamClosedError`` and ``ProtocolViolation`` of the client; and
        ``UpstreamFaultError``, ``UpstreamUnavailableError`` and ``ConfigError``, of which the client has not
        been told. ``progress``: it has come so far already."""
        try:
            if progress is not None:
                return await self._go_on(progress)
            await self.client.say_start(self._offer(await self._started()))
            return await self._log_in()
        except ProtocolViolation as violation:
            self.client.hang_up(violation)

    async def _go_on(self, progress: Progress) -> Established:
        client, stage, unsent = self.client, progress.stage, progress.unsent
        client.resume(progress.state, progress.start_ok, progress.opening)
        if stage is Stage.TUNED:
            self._unsaid = unsent
        elif unsent and stage in (Stage.STARTED, Stage.TUNING):
            await client.hop.send(unsent)
        elif unsent:
            await self._to_broker(unsent)
        if stage is Stage.STARTED:
            return await self._log_in()
        watcher = SaslWatcher(client.start_ok.mechanism)
        watcher.response(client.start_ok.response)
        if stage is Stage.LOGGED_IN:
            return await self._agree(watcher)
        offer, agreement, opening = progress.offer, progress.agreement, progress.opening
        if stage is Stage.TUNING:
            assert offer is not None
            return await self._settle(watcher, offer.asked, offer.tune, is_said=True)
        assert agreement is not None
        if stage is Stage.TUNED:
            return await self._open(watcher, *agreement.tunes)
        assert opening is not None
        return await self._opened(opening[0], *agreement.tunes)

    async def _started(self) -> amqp.ConnectionStart:
        """The broker's start, which the client hears."""
        greeting = self.greeting if self.line is None else self.line.greeting
        if isinstance(greeting, amqp.ConnectionClose):
            await self.client.pass_on(greeting, None if self.line is None else self.line.hop)
        return greeting

    def _offer(self, start: amqp.ConnectionStart) -> amqp.ConnectionStart:
        identities, listener = self.client.context.identities, self.client.listener
        is_judged_here = identities is not None and identities.requires(listener)
        return start_for(start, listener, self.dialler.destination.settings, is_judged_here=is_judged_here)

    async def _dial(self) -> amqp.ConnectionStart:
        """The start of the broker that hears the start-ok."""
        if self.line is None:
            self.line = await self.dialler.connect()
            self.client.mark("dial")
        self.line.endpoint.succeeded()
        return await self._started()

    # -- authentication: whatever the mechanism, as often as the broker asks ------------------

    async def _log_in(self) -> Established:
        """From connection.start on, which the client has heard."""
        start_ok, settings = await self.client.hear_start_ok(), self.dialler.destination.settings
        if start_ok.mechanism == EXTERNAL and lends_certificate(settings, self.client.listener):
            # It was not offered: RabbitMQ hangs up then.
            raise RefusedError(refusal_of_login(EXTERNAL).text)
        watcher = SaslWatcher(start_ok.mechanism)
        if settings.has_login:
            # Nobody's login fails for it.
            with contextlib.suppress(ProtocolViolation):
                watcher.response(start_ok.response)
        else:
            watcher.response(start_ok.response)
        user = self._said(watcher)
        if settings.has_login:
            user = self.client.context.principals.at_login(self.client, self.dialler.destination, user)
        await self.client.admit_login(user)
        start = await self._dial()
        assert self.line is not None
        self.own = own_exchange(self.line, settings)
        await self._to_broker(
            start_ok_for(self.line.hop, start, self.client, self.own, self.client.context.version)
        )
        return await self._agree(watcher)

    def _said(self, watcher: SaslWatcher) -> str | None:
        """The user that the client's login names; None where only the broker can tell."""
        if self.client.token is not None:
            return self.client.token.user
        return (self.client.caller.tls_name if watcher.by_certificate else watcher.user) or None

    # -- tune: each hop has its own limits ----------------------------------------------------

    async def _agree(self, watcher: SaslWatcher) -> Established:
        """From start-ok on, which the broker has heard.

        Where the configuration names nothing, the client is offered what the broker offers, and
        the broker is answered what the client chose; so the two hops agree and no body is re-framed,
        unless the client chose less than a broker may insist on, or the broker proposes less than the
        standard lets it: clients need not take that.
        """
        asked = await self._tune_from_broker(watcher)
        offer = offer_of(asked, self.client.listener, self.dialler.destination.settings)
        return await self._settle(watcher, asked, offer)

    async def _settle(
        self, watcher: SaslWatcher, asked: amqp.ConnectionTune, offer: Tune, *, is_said: bool = False
    ) -> Established:
        """From tune on, which the client has heard if ``is_said``."""
        client = await self.client.tune(offer, is_said=is_said)
        assert self.line is not None, "it has proposed a tune"
        upstream = tune_for(asked, self.dialler.destination.settings, client, self.line.hop.interpreter)
        said = self.line.hop.frame_with(
            amqp.ConnectionTuneOk, upstream.channel_max, upstream.frame_max, upstream.heartbeat
        )
        if self.client.hop.decoder.has_more:
            # The client has not waited before it said open: neither does the broker wait for tune-ok alone.
            self._unsaid = said
        else:
            await self._to_broker(said)
        return await self._open(watcher, client, upstream)

    async def _tune_from_broker(self, watcher: SaslWatcher) -> amqp.ConnectionTune:
        """Past the challenges, if the mechanism has any."""
        while True:
            method = await self._from_broker(amqp.ConnectionTune, amqp.ConnectionSecure)
            assert self.line is not None, "it has been dialled"
            if isinstance(method, amqp.ConnectionTune):
                check_tune(self.line, self.own, method)
                return method
            if self.own is not None:
                said = await said_in(self.line, secure_ok(self.own, method))
                await self._to_broker(said)
                continue
            answer = await self.client.challenge(method)
            watcher.response(answer.response)
            await self._to_broker(answer)

    # -- open ---------------------------------------------------------------------------------

    async def _open(self, watcher: SaslWatcher, client_tune: Tune, upstream_tune: Tune) -> Established:
        """From tune-ok on."""
        user, settings = self._said(watcher), self.dialler.destination.settings
        if settings.has_login:
            principals = self.client.context.principals
            user = await in_trio(principals.user_of, self.client, self.dialler.destination, user)
        request = await self.client.hear_open()
        if settings.vhost is not None:
            request = attrs.evolve(request, virtual_host=settings.vhost)
        known = upstream_user_of(self.client, settings, user)
        principal = self.client.principal(user, request.virtual_host, known)
        why_not = await self.client.why_not(AdmissionStage.OPEN, principal, amqp.ConnectionOpen)
        if why_not is not None:
            await self._leave_broker()
            await self.client.refuse(why_not)
        said = open_for(self.hop, self.client.hop, request)
        await self._to_broker(
            self.hop.frame_with(amqp.ConnectionOpen, said.virtual_host, said.reserved_1, said.reserved_2)
        )
        return await self._opened(request, client_tune, upstream_tune)

    async def _opened(
        self, request: amqp.ConnectionOpen, client_tune: Tune, upstream_tune: Tune
    ) -> Established:
        """From open on, which the broker has heard."""
        answer = await self._from_broker(amqp.ConnectionOpenOk, ConnectionRedirect)
        if isinstance(answer, ConnectionRedirect):
            upstream_tune = await self._follow(answer, client_tune, request)
        hop = self.hop
        frame_max = relay_frames(self.client, hop) if hop.translated is not None else None
        await self.client.say_usual(amqp.ConnectionOpenOk)
        return established(self.client, client_tune, hop, upstream_tune, self.dialler.destination, frame_max)

    async def _follow(
        self, redirect: ConnectionRedirect, client_tune: Tune, request: amqp.ConnectionOpen
    ) -> Tune:
        """All that the client has said is said to another broker."""
        assert self.line is not None, "it has redirected"
        again = BrokerHandshake(
            self.client, self.dialler, self.client.context.version, client_tune, request, self.line
        )
        try:
            await again.follow(redirect)
            return await again.run()
        finally:
            self.line = again.line

    # -- with the broker ----------------------------------------------------------------------

    async def _leave_broker(self) -> None:
        goodbye = amqp.ConnectionClose(200, "closed by the client", 0, 0)
        with contextlib.suppress(UpstreamFaultError):
            await self._to_broker(goodbye)

    async def _to_broker(self, said: Method | bytes) -> None:
        """A method, or a frame that has been made of one."""
        assert self.line is not None, "dialled before start-ok goes on"
        hop = self.line.hop
        frame = said if isinstance(said, bytes) else hop.frame_of(said)
        if self._unsaid:
            frame, self._unsaid = self._unsaid + frame, b""
        try:
            await hop.send(frame)
        except StreamClosedError as closed:
            raise UpstreamFaultError(str(closed)) from closed

    async def _from_broker(self, expected: type[M], alternative: type[N] | None = None) -> M | N:
        assert self.line is not None, "dialled before start-ok goes on"
        hop = self.line.hop
        try:
            method = await hop.next_method()
        except (ProtocolViolation, StreamClosedError) as error:
            raise UpstreamFaultError(str(error)) from error
        if isinstance(method, amqp.ConnectionClose):
            await self.client.pass_on(method, hop)
        if isinstance(method, expected):
            return method
        if alternative is not None and isinstance(method, alternative):
            return method
        raise UpstreamFaultError(f"expected '{expected.NAME}', got '{method.NAME}'")


def relay_frames(client: ClientHandshake, broker: MethodStream) -> int | None:
    """Where both peers speak the same protocol, and it is not 0-9-1's frames, what they say passes as it
    came from now on: to be called when the broker has said open-ok and the client has not heard it.

    The largest frame that the gateway sees, in bytes; None where they are translated: so are those whose
    messages are to be changed.
    """
    return None if client.policies.transform is not None else client.hop.relay_to(broker)


def established(
    client: ClientHandshake,
    client_tune: Tune,
    broker: MethodStream,
    broker_tune: Tune,
    to: Destination,
    relayed_frame_max: int | None,
) -> Established:
    """What a session is made from, given both ends of the handshake, and what `relay_frames` says."""
    capabilities = client.capabilities
    if relayed_frame_max is not None:
        client_tune = attrs.evolve(client_tune, frame_max=relayed_frame_max)
        broker_tune = attrs.evolve(broker_tune, frame_max=relayed_frame_max)
        # Nothing is said to it that its broker has not said.
        capabilities = frozenset()
    return Established(
        client.policies,
        hand_over(client.hop, client_tune),
        OwnSource(hand_over(broker, broker_tune)),
        broker_tune.channel_max,
        pair_of(client.hop.interpreter, broker.interpreter),
        capabilities,
        to.choice,
        to.cluster.name,
        client.listener.keeps_deliveries,
        relayed_frame_max is not None,
        None if client.token is None else session_token_of(client, to.settings),
    )

"""How a session comes about: one conversation with the client, one with the broker, kept in step.

::

    client                      gateway                        broker
      │ protocol header ──────────▶ │ dial, protocol header ──────▶ │
      │ ◀────────────────── start   │ ◀────────────────────── start │
      │ start-ok ─────────────────▶ │ ─────────────────────▶ start-ok (client properties + amqpgate)
      │ ◀───────── secure, secure-ok, as often as the mechanism asks ─────────▶ │
      │ ◀─────────────────── tune   │ ◀─────────────────────── tune │  each hop its own
      │ tune-ok, open ────────────▶ │ ──────────────▶ tune-ok, open │
      │ ◀──────────────── open-ok   │ ◀──────────────────── open-ok │

Nothing is answered for the broker: its mechanisms, its challenge, its refusal and its open-ok are
what the client sees. The one exception is a broker that cannot be reached: then the gateway says
start itself, only to be able to say connection.close 320 with the reason.
"""

from __future__ import annotations

import contextlib
from typing import TypeVar

import attrs

from amqpgate.bridge import Interpreter, two_of_the_house
from amqpgate.config import USUAL_FRAME_MAX, Upstream
from amqpgate.datapath import relay
from amqpgate.errors import AmqpgateError, ProtocolViolation
from amqpgate.gateway.client_handshake import Caller, ClientHandshake, refusal_of_login
from amqpgate.gateway.door import Stage
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.policy import Principal
from amqpgate.protocol.frames import method_frame
from amqpgate.protocol.handshake import Tune, negotiate
from amqpgate.protocol.sasl import EXTERNAL, PLAIN, SaslWatcher, plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What RabbitMQ accepts in one frame before tune (3.10: FRAME_MIN_SIZE). The entry that amqpgate
#: adds to the client's properties is left out rather than make a start-ok too large for it.
BROKER_FRAME_BEFORE_TUNE = 4096


M = TypeVar("M", bound=Method)
N = TypeVar("N", bound=Method)


class UpstreamFaultError(AmqpgateError):
    """The broker closed its socket, or broke the protocol, while the connection opened."""


@attrs.frozen
class Established:
    """Both hops are open."""

    principal: Principal
    client: relay.Hop
    upstream: relay.Hop
    channel_max: int
    #: Of the client and of the broker, by ``datapath.tables.Side``.
    interpreters: tuple[Interpreter, Interpreter]
    #: What the client says that it understands, such as consumer_cancel_notify.
    capabilities: frozenset[str] = frozenset()


@attrs.define
class Setup:
    """One conversation. ``run`` returns when both hops are open, or raises ``RefusedError``."""

    client: ClientHandshake
    upstream_settings: Upstream
    version: str
    upstream: Hop
    #: The broker's first method, which has been heard already; None once it has been dealt with.
    greeting: Method | None

    async def run(self) -> Established:
        """Raises ``RefusedError``; ``HopClosedError`` and ``ProtocolViolation`` of the client; and
        ``UpstreamFaultError``, of which the client has not been told."""
        with self.client.hanging_up():
            return await self._converse()

    async def _converse(self) -> Established:
        start = await self._from_broker(amqp.ConnectionStart)
        if self._lends_certificate:
            offered = [name for name in start.mechanisms.split() if name != b"EXTERNAL"]
            start = attrs.evolve(start, mechanisms=b" ".join(offered))
        await self.client.say(start)
        watcher = await self._authenticate()
        client_tune, upstream_tune = await self._tune(watcher)
        principal = await self._open(self._user(watcher))
        return Established(
            principal,
            hand_over(self.client.hop, client_tune),
            hand_over(self.upstream, upstream_tune),
            client_tune.channel_max,
            two_of_the_house(),
            self.client.capabilities,
        )

    @property
    def _lends_certificate(self) -> bool:
        """Whether SASL EXTERNAL would log an unproven client in by the gateway's certificate."""
        tls = self.upstream_settings.tls
        return tls is not None and tls.cert is not None and not self.client.listener.proves_clients

    # -- authentication: whatever the mechanism, as often as the broker asks ------------------

    async def _authenticate(self) -> SaslWatcher:
        start_ok = await self.client.hear_start_ok()
        if start_ok.mechanism == EXTERNAL and self._lends_certificate:
            await self.client.refuse(refusal_of_login(EXTERNAL))
        watcher = SaslWatcher(start_ok.mechanism)
        login = self.upstream_settings.login()
        if login is None:
            watcher.response(start_ok.response)
        stranger = self.client.principal(self._user(watcher), "")
        await self.client.admit(Stage.LOGIN, stranger, amqp.ConnectionStartOk)
        if login is not None:
            response = plain_response(login.user, login.password.reveal())
            start_ok = attrs.evolve(start_ok, mechanism=PLAIN, response=response)
        await self._to_broker(introduce(self.client.caller, self.version, start_ok))
        return watcher

    def _user(self, watcher: SaslWatcher) -> str | None:
        """The user whom the broker took the client for; None where only the broker can tell."""
        if self.upstream_settings.user is not None:
            return self.upstream_settings.user
        return (self.client.caller.tls_name if watcher.by_certificate else watcher.user) or None

    # -- tune: each hop has its own limits ----------------------------------------------------

    async def _tune(self, watcher: SaslWatcher) -> tuple[Tune, Tune]:
        """What holds on the client's hop, and on the broker's.

        Where the configuration names nothing, the client is offered what the broker offers, and
        the broker is answered what the client chose; so the two hops agree and no body is re-framed.
        """
        asked = await self._tune_from_broker(watcher)
        own, theirs = self.client.listener, self.upstream_settings
        broker_frame_max = negotiate(asked.frame_max, theirs.frame_max or USUAL_FRAME_MAX)
        offer = Tune(
            frame_max=own.frame_max or broker_frame_max,
            channel_max=negotiate(
                negotiate(asked.channel_max, own.channel_max or 0), theirs.channel_max or 0
            ),
            heartbeat=asked.heartbeat if own.heartbeat is None else own.heartbeat,
        )
        client = await self.client.tune(offer)
        upstream = Tune(
            frame_max=broker_frame_max if theirs.frame_max else min(broker_frame_max, client.frame_max),
            channel_max=client.channel_max,
            heartbeat=asked.heartbeat if theirs.heartbeat is None else theirs.heartbeat,
        )
        await self._to_broker(
            method_frame(
                0, amqp.ConnectionTuneOk(upstream.channel_max, upstream.frame_max, upstream.heartbeat)
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
            await self._to_broker(method_frame(0, answer))

    # -- open ---------------------------------------------------------------------------------

    async def _open(self, user: str | None) -> Principal:
        request = await self.client.hear(amqp.ConnectionOpen)
        vhost = self.upstream_settings.vhost
        if vhost is not None:
            request = attrs.evolve(request, virtual_host=vhost)
        principal = self.client.principal(user, request.virtual_host)
        why_not = await self.client.why_not(Stage.OPEN, principal, amqp.ConnectionOpen)
        if why_not is not None:
            await self._leave_broker()
            await self.client.refuse(why_not)
        await self._to_broker(method_frame(0, request))
        await self.client.say(await self._from_broker(amqp.ConnectionOpenOk))
        return principal

    # -- with the broker ----------------------------------------------------------------------

    async def _leave_broker(self) -> None:
        with contextlib.suppress(UpstreamFaultError):
            await self._to_broker(method_frame(0, amqp.ConnectionClose(200, "closed by the client", 0, 0)))

    async def _to_broker(self, data: bytes) -> None:
        try:
            await self.upstream.send(data)
        except HopClosedError as closed:
            raise UpstreamFaultError(str(closed)) from closed

    async def _from_broker(self, expected: type[M], alternative: type[N] | None = None) -> M | N:
        try:
            method = self.greeting or await self.upstream.next_method()
            self.greeting = None
        except ProtocolViolation as violation:
            raise UpstreamFaultError(str(violation)) from violation
        except HopClosedError as closed:
            raise UpstreamFaultError(str(closed)) from closed
        if isinstance(method, amqp.ConnectionClose):
            await self.client.pass_on(method, self.upstream)
        if isinstance(method, expected):
            return method
        if alternative is not None and isinstance(method, alternative):
            return method
        raise UpstreamFaultError(f"expected '{expected.NAME}', got '{method.NAME}'")


def hand_over(hop: Hop, tune: Tune) -> relay.Hop:
    return relay.Hop(hop.sock, tune.frame_max, float(tune.heartbeat), hop.decoder.take_rest())


def introduce(caller: Caller, version: str, start_ok: amqp.ConnectionStartOk) -> bytes:
    """The start-ok with an entry that shows in the broker's connection list who is calling."""
    entry = {"client_address": caller.address, "session": caller.session_id, "version": version}
    introduced = attrs.evolve(start_ok, client_properties=start_ok.client_properties.with_("amqpgate", entry))
    frame = method_frame(0, introduced)
    return frame if len(frame) <= BROKER_FRAME_BEFORE_TUNE else method_frame(0, start_ok)

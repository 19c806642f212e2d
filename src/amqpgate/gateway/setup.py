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
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

import attrs
import trio

from amqpgate.config import USUAL_FRAME_MAX, Listener, Upstream
from amqpgate.datapath import relay
from amqpgate.errors import AmqpgateError, ProtocolViolation
from amqpgate.gateway.conversation import await_close_ok, say_close
from amqpgate.gateway.door import Door, Stage
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.policy import Choice, Principal, TlsIdentity
from amqpgate.protocol.frames import method_frame
from amqpgate.protocol.handshake import SILENT_STATES, ConnectionState, Tune, negotiate, step
from amqpgate.protocol.methods import Side
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


#: Channel numbers are 16 bits; 0 is the connection's own (section 4.2.3).
MAX_CHANNELS = 65535


class RefusedError(AmqpgateError):
    """The session does not come about; the client has been told all that it will be told."""


@attrs.frozen
class Caller:
    """Who is calling, before it has said a word of AMQP."""

    session_id: str
    #: "10.0.0.7:51234"; from the PROXY header where there is one.
    address: str
    #: The client's verified certificate.
    tls: TlsIdentity | None = None

    @property
    def source(self) -> str:
        """The client's IP address."""
        return self.address.rpartition(":")[0]

    @property
    def tls_name(self) -> str:
        """Common name of the client's verified certificate, or ""."""
        return self.tls.common_name if self.tls is not None else ""

    def principal(
        self, listener: Listener, user: str | None, vhost: str, said: Mapping[str, str]
    ) -> Principal:
        """Who it is, given what it says."""
        return Principal(
            user=user,
            vhost=vhost,
            source=self.source,
            listener=listener.name,
            tls=self.tls,
            client=said,
        )


@attrs.frozen
class Established:
    """Both hops are open."""

    principal: Principal
    client: relay.Hop
    upstream: relay.Hop
    channel_max: int
    #: What the client says that it understands, such as consumer_cancel_notify.
    capabilities: frozenset[str] = frozenset()
    #: The route that was taken; None: none.
    choice: Choice | None = None


def texts_and_capabilities(start_ok: amqp.ConnectionStartOk) -> tuple[dict[str, str], frozenset[str]]:
    """What the client says of itself, as far as it is text; and what it says that it understands."""
    properties = start_ok.client_properties.to_python()
    can = properties.get("capabilities")
    names = [name for name, value in can.items() if value is True] if isinstance(can, dict) else []
    return {key: value for key, value in properties.items() if isinstance(value, str)}, frozenset(names)


@attrs.define
class Setup:
    """One conversation. ``run`` returns when both hops are open, or raises ``RefusedError``."""

    caller: Caller
    listener: Listener
    upstream_settings: Upstream
    version: str
    client: Hop
    upstream: Hop
    #: The broker's first method, which has been heard already; None once it has been dealt with.
    greeting: Method | None
    #: Seconds for the answer to a close.
    close_timeout: float
    #: Whether a vhost may be opened: why not, or None.
    may_open: Callable[[Principal, str], str | None]
    #: How many may come in.
    door: Door
    #: Where the conversation with the client stands.
    state: ConnectionState = attrs.field(default=ConnectionState.GREETED, init=False)
    #: What the client says of itself, as far as it is text.
    said: dict[str, str] = attrs.field(factory=dict, init=False)
    capabilities: frozenset[str] = attrs.field(default=frozenset(), init=False)

    async def run(self) -> Established:
        """Raises ``RefusedError``; ``HopClosedError`` and ``ProtocolViolation`` of the client; and
        ``UpstreamFaultError``, of which the client has not been told."""
        try:
            return await self._converse()
        except ProtocolViolation as violation:
            if self.state in SILENT_STATES:
                # RabbitMQ hangs up, too.
                raise RefusedError(str(violation)) from violation
            raise

    async def _converse(self) -> Established:
        start = await self._from_broker(amqp.ConnectionStart)
        if self._lends_certificate:
            offered = [name for name in start.mechanisms.split() if name != b"EXTERNAL"]
            start = attrs.evolve(start, mechanisms=b" ".join(offered))
        await self._to_client(start)
        watcher = await self._authenticate()
        client_tune, upstream_tune = await self._tune(watcher)
        principal = await self._open(self._user(watcher))
        return Established(
            principal,
            hand_over(self.client, client_tune),
            hand_over(self.upstream, upstream_tune),
            client_tune.channel_max,
            self.capabilities,
        )

    @property
    def _lends_certificate(self) -> bool:
        """Whether SASL EXTERNAL would log an unproven client in by the gateway's certificate."""
        tls = self.upstream_settings.tls
        return tls is not None and tls.cert is not None and not self.listener.proves_clients

    # -- authentication: whatever the mechanism, as often as the broker asks ------------------

    async def _authenticate(self) -> SaslWatcher:
        start_ok = await self._from_client(amqp.ConnectionStartOk)
        if start_ok.mechanism == EXTERNAL and self._lends_certificate:
            await self._refuse(403, f"Login was refused using authentication mechanism {EXTERNAL}")
        self.said, self.capabilities = texts_and_capabilities(start_ok)
        watcher = SaslWatcher(start_ok.mechanism)
        login = self.upstream_settings.login()
        if login is None:
            watcher.response(start_ok.response)
        await self._knock(Stage.LOGIN, self._principal(self._user(watcher), ""), amqp.ConnectionStartOk)
        if login is not None:
            response = plain_response(login.user, login.password.reveal())
            start_ok = attrs.evolve(start_ok, mechanism=PLAIN, response=response)
        await self._to_broker(introduce(self.caller, self.version, start_ok))
        return watcher

    def _user(self, watcher: SaslWatcher) -> str | None:
        """The user whom the broker took the client for; None where only the broker can tell."""
        if self.upstream_settings.user is not None:
            return self.upstream_settings.user
        return (self.caller.tls_name if watcher.by_certificate else watcher.user) or None

    # -- tune: each hop has its own limits ----------------------------------------------------

    async def _tune(self, watcher: SaslWatcher) -> tuple[Tune, Tune]:
        """What holds on the client's hop, and on the broker's.

        Where the configuration names nothing, the client is offered what the broker offers, and
        the broker is answered what the client chose; so the two hops agree and no body is re-framed.
        """
        asked = await self._tune_from_broker(watcher)
        own, theirs = self.listener, self.upstream_settings
        broker_frame_max = negotiate(asked.frame_max, theirs.frame_max or USUAL_FRAME_MAX)
        offer = Tune(
            frame_max=own.frame_max or broker_frame_max,
            channel_max=negotiate(
                negotiate(asked.channel_max, own.channel_max or 0), theirs.channel_max or 0
            ),
            heartbeat=asked.heartbeat if own.heartbeat is None else own.heartbeat,
        )
        await self._to_client(amqp.ConnectionTune(offer.channel_max, offer.frame_max, offer.heartbeat))
        answer = await self._from_client(amqp.ConnectionTuneOk)
        try:
            client = offer.settle(
                Tune(answer.frame_max, answer.channel_max, answer.heartbeat), Tune(channel_max=MAX_CHANNELS)
            )
        except ProtocolViolation as violation:
            # RabbitMQ hangs up here, too.
            raise RefusedError(str(violation)) from violation
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
            await self._to_client(method)
            answer = await self._from_client(amqp.ConnectionSecureOk)
            watcher.response(answer.response)
            await self._to_broker(method_frame(0, answer))

    # -- open ---------------------------------------------------------------------------------

    async def _open(self, user: str | None) -> Principal:
        request = await self._from_client(amqp.ConnectionOpen)
        vhost = self.upstream_settings.vhost
        if vhost is not None:
            request = attrs.evolve(request, virtual_host=vhost)
        principal = self._principal(user, request.virtual_host)
        why_not = self.may_open(principal, self.caller.session_id)
        if why_not is not None:
            await self._leave_broker()
            await self._refuse(
                530, why_not, class_id=amqp.ConnectionOpen.CLASS_ID, method_id=amqp.ConnectionOpen.METHOD_ID
            )
        await self._knock(Stage.OPEN, principal, amqp.ConnectionOpen)
        await self._to_broker(method_frame(0, request))
        await self._to_client(await self._from_broker(amqp.ConnectionOpenOk))
        return principal

    def _principal(self, user: str | None, vhost: str) -> Principal:
        return self.caller.principal(self.listener, user, vhost, self.said)

    async def _knock(self, stage: Stage, principal: Principal, method: type[Method]) -> None:
        """Wait until the client may come in, or refuse it."""
        turned_away = await self.door.enter(stage, principal, self.caller.session_id)
        if turned_away is not None:
            if stage is Stage.OPEN:
                await self._leave_broker()
            await self._refuse(
                turned_away.code,
                turned_away.text,
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
            )

    async def _leave_broker(self) -> None:
        with contextlib.suppress(UpstreamFaultError):
            await self._to_broker(method_frame(0, amqp.ConnectionClose(200, "closed by the client", 0, 0)))

    # -- both conversations -------------------------------------------------------------------

    async def _to_client(self, method: Method) -> None:
        self.state = step(self.state, Side.SERVER, type(method)) or self.state
        await self.client.send_method(method)

    async def _from_client(self, expected: type[M]) -> M:
        method = await self.client.next_method()
        if isinstance(method, amqp.ConnectionClose):
            with trio.move_on_after(self.close_timeout):
                await self.client.send_method(amqp.ConnectionCloseOk())
                await self.client.linger()
            raise RefusedError("client closed while the connection opened")
        self.state = step(self.state, Side.CLIENT, type(method)) or self.state
        assert isinstance(method, expected), "the table leaves the client one method in each state"
        return method

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
            with trio.move_on_after(self.close_timeout):
                await self.client.send_method(method)
                with contextlib.suppress(HopClosedError):
                    await self.upstream.send_method(amqp.ConnectionCloseOk())
                await await_close_ok(self.client)
                await self.client.linger()
            raise RefusedError(f"upstream refused: {method.reply_code} {method.reply_text}")
        if isinstance(method, expected):
            return method
        if alternative is not None and isinstance(method, alternative):
            return method
        raise UpstreamFaultError(f"expected '{expected.NAME}', got '{method.NAME}'")

    async def _refuse(self, code: int, text: str, class_id: int = 0, method_id: int = 0) -> NoReturn:
        with trio.move_on_after(self.close_timeout):
            why = ProtocolViolation(code, text, class_id=class_id, method_id=method_id)
            await say_close(self.client, why)
        raise RefusedError(text)


def hand_over(hop: Hop, tune: Tune) -> relay.Hop:
    return relay.Hop(hop.sock, tune.frame_max, float(tune.heartbeat), hop.decoder.take_rest())


def introduce(caller: Caller, version: str, start_ok: amqp.ConnectionStartOk) -> bytes:
    """The start-ok with an entry that shows in the broker's connection list who is calling."""
    entry = {"client_address": caller.address, "session": caller.session_id, "version": version}
    introduced = attrs.evolve(start_ok, client_properties=start_ok.client_properties.with_("amqpgate", entry))
    frame = method_frame(0, introduced)
    return frame if len(frame) <= BROKER_FRAME_BEFORE_TUNE else method_frame(0, start_ok)

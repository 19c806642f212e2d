"""The beginning of a handshake: PROXY header, TLS, protocol header; then passthrough or late binding.

Everything here happens under one absolute deadline and with bounded memory, since the client has
not proven who it is.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import ssl
from collections.abc import Iterator
from typing import NoReturn

import attrs
import trio

from amqpgate.bridge import NATIVE, for_client, translator_for
from amqpgate.config import Listener
from amqpgate.errors import AmqpgateError, ConfigError, ProtocolViolation
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.client_side import ClientHandshake
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.late_binding import LateBinding
from amqpgate.gateway.handshake.passthrough import Passthrough
from amqpgate.gateway.handshake.pending import PendingHandshake, Silence
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.conversation import invite, say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.tls import identity
from amqpgate.gateway.upstream.broker_side import UpstreamFaultError
from amqpgate.gateway.upstream.client import RefusedError
from amqpgate.gateway.upstream.connect import UpstreamUnavailableError
from amqpgate.gateway.upstream.route_pause import PausedError
from amqpgate.protocol.header import HEADER_SIZE, REFUSAL, name_of
from amqpgate.protocol.methods import Role
from amqpgate.protocol.proxy_header import ProxyHeader, ProxyHeaderError, ProxyHeaderParser

log = logging.getLogger(__name__)


class NotEstablishedError(AmqpgateError):
    """The connection did not become a session. ``outcome`` is the metric's label."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


@attrs.define
class ClientArrival:
    """Receives one connection. ``receive`` returns both open hops or raises ``NotEstablishedError``.

    Whatever it raises, both sockets are closed by then.
    """

    context: HandshakeContext
    listener: Listener
    pending: PendingHandshake
    #: Where it is noted how far the handshake has come; None: nowhere.
    timing: HandshakeTiming | None
    #: Who calls, as far as it is known.
    caller: Caller
    client: MethodStream = attrs.field(init=False)
    broker: MethodStream | None = attrs.field(default=None, init=False)
    deadline: trio.CancelScope = attrs.field(init=False)

    async def receive(self, sock: socket.socket) -> Established:
        limits = self.context.settings.limits
        self.client = MethodStream(sock, frame_max=limits.handshake_frame_max, peer=Role.CLIENT)
        kept = False
        try:
            with trio.fail_after(limits.handshake_timeout) as self.deadline:
                await self._approach()
                established = await self._establish(self.caller)
            kept = True
            self._mark("open-ok")
            return established
        except trio.TooSlowError:
            raise NotEstablishedError(
                "handshake_timeout", f"not established within {limits.handshake_timeout:g} s"
            ) from None
        except StreamClosedError as closed:
            raise NotEstablishedError("handshake_failed", f"client: {closed}") from closed
        except (ssl.SSLError, OSError) as error:
            raise NotEstablishedError("handshake_failed", f"client: {error}") from error
        except (RefusedError, ProxyHeaderError) as refused:
            raise NotEstablishedError("refused", str(refused)) from refused
        except ProtocolViolation as violation:
            await self._say_close(violation)
            raise NotEstablishedError("violation", str(violation)) from violation
        finally:
            if not kept:
                self.client.close()
                if self.broker is not None:
                    self.broker.close()

    async def _approach(self) -> None:
        """What comes before AMQP: where the client really is, and TLS."""
        if self.listener.proxy_protocol != "none":
            header = await self._proxy_header()
            if header.source is not None:
                self.caller = attrs.evolve(self.caller, address=str(header.source))
                if not self.context.pending.of(self.pending, self.caller.source):
                    raise NotEstablishedError("over_limit", "too many handshakes from its address")
        if self.listener.tls is not None:
            try:
                context = self.context.contexts.for_listener(self.listener.tls)
            except ConfigError as error:
                log.error("%s", error)
                raise RefusedError(str(error)) from error
            await self.client.start_tls(context, server_side=True)
            assert isinstance(self.client.sock, ssl.SSLSocket)
            self.caller = attrs.evolve(self.caller, tls=identity(self.client.sock))
            self._mark("tls")

    async def _proxy_header(self) -> ProxyHeader:
        # A byte at a time: what follows may be a TLS handshake, which must find its first byte.
        parser = ProxyHeaderParser()
        while (header := parser.feed(await self.client.receive_exactly(1))) is None:
            pass
        if self.listener.proxy_protocol not in ("any", f"v{header.version}"):
            raise ProxyHeaderError(f"PROXY v{header.version}, not {self.listener.proxy_protocol}")
        return header

    async def _establish(self, caller: Caller) -> Established:
        context, router = self.context, self.context.router
        header = await self.client.receive_exactly(HEADER_SIZE)
        context.pending.awaits(self.pending, None)
        translator = translator_for(header)
        if translator is not None:
            self.client.translate(translator)
        interpreter = for_client(header) if translator is None else NATIVE
        if interpreter is None:
            # The standard's answer (AMQP 0-9-1, section 4.2.2): what we speak, and the end.
            await self.client.send(REFUSAL)
            await self.client.linger()
            raise RefusedError(f"not a protocol header that is spoken here: {name_of(header)}")
        self.client.speak(interpreter)
        self._mark("protocol-header")
        before = caller.principal(self.listener, None, "", {})
        over_limit = await context.admission.enter(AdmissionStage.ARRIVAL, before, caller.session_id)
        if over_limit is not None:
            # Without a word, as where there are too many connections.
            raise NotEstablishedError("over_limit", over_limit.text)
        early = router.choose_early(self.listener, before, caller.session_id)
        if early is None:
            return await self._establish_late(caller)
        try:
            with self._unhurried():
                dialler = await router.dialler(self.listener, before, caller.session_id, early=early)
            greeting, line = await dialler.greet()
            if line is not None:
                self._mark("dial")
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            context.pending.awaits(self.pending, Silence.GREETED)
            await invite(self.client)
            await self._unavailable(error)
        client = self._handshake(caller)
        passthrough = Passthrough(client, dialler, greeting, line)
        try:
            established = await passthrough.run()
            router.count_shadow(router.table.choose(established.principal, caller.session_id))
            return established
        except (UpstreamUnavailableError, ConfigError) as error:
            # No broker answers, or there is no login for it.
            if passthrough.line is not None:
                passthrough.line.hop.close()
            await self._unavailable(error)
        except UpstreamFaultError as fault:
            why = f"upstream {passthrough.address}: {fault}"
            log.warning("%s", why)
            if client.is_silent:
                # The broker hangs up in these states to refuse a login, and that is what the client sees.
                raise NotEstablishedError("refused", why) from fault
            await self._say_close(ProtocolViolation(320, why))
            raise NotEstablishedError("upstream_unavailable", why) from fault
        finally:
            self.broker = None if passthrough.line is None else passthrough.line.hop

    async def _establish_late(self, caller: Caller) -> Established:
        """The broker is chosen by what the client says."""
        client = self._handshake(caller)
        late = LateBinding(client, self._unhurried)
        try:
            return await late.run()
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            await self._unavailable(error)
        finally:
            self.broker = late.broker

    def _handshake(self, caller: Caller) -> ClientHandshake:
        return ClientHandshake(self.context, caller, self.listener, self.client, self.pending, self.timing)

    def _mark(self, stage: str) -> None:
        if self.timing is not None:
            self.timing.mark(stage)

    @contextlib.contextmanager
    def _unhurried(self) -> Iterator[None]:
        """What waits in here has a deadline of its own."""
        left = self.deadline.deadline - trio.current_time()
        self.deadline.deadline = math.inf
        try:
            yield
        finally:
            self.deadline.deadline = trio.current_time() + left

    async def _unavailable(self, error: AmqpgateError) -> NoReturn:
        """There is no broker for the client."""
        if not isinstance(error, UpstreamUnavailableError):
            log.warning("%s", error)
        # Where files are is not the client's business.
        why = "the gateway's log says why" if isinstance(error, ConfigError) else str(error)
        await self._say_close(ProtocolViolation(320, why))
        raise NotEstablishedError("upstream_unavailable", str(error)) from error

    async def _say_close(self, why: ProtocolViolation) -> None:
        with (
            trio.move_on_after(self.context.settings.limits.close_timeout),
            contextlib.suppress(StreamClosedError),
        ):
            await say_close(self.client, why)

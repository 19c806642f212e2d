"""A new connection's way to its session: PROXY header, TLS, protocol header, broker, set-up.

Everything here happens under one absolute deadline and with bounded memory, since the client has
not proven who it is.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import NoReturn

import attrs
import trio

from amqpgate.bridge import for_client
from amqpgate.config import Listener, Settings
from amqpgate.errors import AmqpgateError, ConfigError, ProtocolViolation
from amqpgate.gateway.handshake.admission import AdmissionControl, AdmissionStage
from amqpgate.gateway.handshake.client_side import Caller, ClientHandshake, RefusedError
from amqpgate.gateway.handshake.late_binding import LateBinding
from amqpgate.gateway.handshake.passthrough import Passthrough
from amqpgate.gateway.handshake.pending import PendingHandshake, PendingHandshakes, Silence
from amqpgate.gateway.handshake.principals import Principals
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.pool.registry import PoolRegistry
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.transport.conversation import invite, say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.tls import TlsContexts, identity
from amqpgate.gateway.upstream.broker_side import UpstreamFaultError
from amqpgate.gateway.upstream.connect import UpstreamUnavailableError
from amqpgate.gateway.upstream.route_pause import PausedError
from amqpgate.gateway.upstream.router import Router
from amqpgate.policy import Principal
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

    settings: Settings
    listener: Listener
    routing: Router
    pools: PoolRegistry
    principals: Principals
    contexts: TlsContexts
    version: str
    #: Whether a vhost may be opened: why not, or None.
    may_open: Callable[[Principal, str], Awaitable[str | None]]
    #: How many may come in.
    door: AdmissionControl
    #: Who is not logged in yet, and this one among them.
    handshakes: PendingHandshakes
    handshake: PendingHandshake
    #: Where it is noted how far the set-up has come; None: nowhere.
    stages: HandshakeTiming | None = None
    client: MethodStream = attrs.field(init=False)
    #: Who calls, as far as it is known.
    caller: Caller = attrs.field(init=False)
    broker: MethodStream | None = attrs.field(default=None, init=False)
    deadline: trio.CancelScope = attrs.field(init=False)

    async def receive(self, sock: socket.socket, caller: Caller) -> tuple[Caller, Established]:
        limits = self.settings.limits
        self.client = MethodStream(sock, frame_max=limits.handshake_frame_max, peer=Role.CLIENT)
        self.caller = caller
        kept = False
        try:
            with trio.fail_after(limits.handshake_timeout) as self.deadline:
                await self._approach()
                established = await self._establish(self.caller)
            kept = True
            self._mark("open-ok")
            return self.caller, established
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
                if not self.handshakes.of(self.handshake, self.caller.source):
                    raise NotEstablishedError("over_limit", "too many handshakes from its address")
        if self.listener.tls is not None:
            try:
                context = self.contexts.for_listener(self.listener.tls)
            except ConfigError as error:
                log.error("%s", error)
                raise RefusedError(str(error)) from error
            await self.client.start_tls(context, server_side=True)
            assert isinstance(self.client.sock, ssl.SSLSocket)
            self.caller = attrs.evolve(self.caller, tls=identity(self.client.sock))
            self._mark("tls")

    async def _proxy_header(self) -> ProxyHeader:
        # An octet at a time: what follows may be a TLS handshake, which must find its first octet.
        parser = ProxyHeaderParser()
        while (header := parser.feed(await self.client.receive_exactly(1))) is None:
            pass
        if self.listener.proxy_protocol not in ("any", f"v{header.version}"):
            raise ProxyHeaderError(f"PROXY v{header.version}, not {self.listener.proxy_protocol}")
        return header

    async def _establish(self, caller: Caller) -> Established:
        header = await self.client.receive_exactly(HEADER_SIZE)
        self.handshakes.awaits(self.handshake, None)
        interpreter = for_client(header)
        if interpreter is None:
            # The standard's answer (AMQP 0-9-1, section 4.2.2): what we speak, and the end.
            await self.client.send(REFUSAL)
            await self.client.linger()
            raise RefusedError(f"not a protocol header that is spoken here: {name_of(header)}")
        self.client.interpreter = interpreter
        self._mark("protocol-header")
        before = caller.principal(self.listener, None, "", {})
        turned_away = await self.door.enter(AdmissionStage.ARRIVAL, before, caller.session_id)
        if turned_away is not None:
            # Without a word, as where there are too many connections.
            raise NotEstablishedError("over_limit", turned_away.text)
        if not self.routing.is_early(self.listener, before, caller.session_id):
            return await self._establish_late(caller)
        try:
            with self._unhurried():
                dialler = await self.routing.dialler(self.listener, before, caller.session_id, is_early=True)
            greeting, line = await dialler.greet()
            if line is not None:
                self._mark("dial")
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            self.handshakes.awaits(self.handshake, Silence.GREETED)
            await invite(self.client)
            await self._unavailable(error)
        client = self._handshake(caller)
        setup = Passthrough(client, dialler, greeting, line, self.version, self.principals)
        try:
            established = await setup.run()
            self.routing.count_shadow(self.routing.table.choose(established.principal, caller.session_id))
            return established
        except (UpstreamUnavailableError, ConfigError) as error:
            # No broker answers, or there is no login for it.
            if setup.line is not None:
                setup.line.hop.close()
            await self._unavailable(error)
        except UpstreamFaultError as fault:
            why = f"upstream {setup.address}: {fault}"
            log.warning("%s", why)
            if client.is_silent:
                # The broker hangs up in these states to refuse a login, and that is what the client sees.
                raise NotEstablishedError("refused", why) from fault
            await self._say_close(ProtocolViolation(320, why))
            raise NotEstablishedError("upstream_unavailable", why) from fault
        finally:
            self.broker = None if setup.line is None else setup.line.hop

    async def _establish_late(self, caller: Caller) -> Established:
        """The broker is chosen by what the client says."""
        client = self._handshake(caller)
        setup = LateBinding(client, self.routing, self.pools, self.principals, self.version, self._unhurried)
        try:
            return await setup.run()
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            await self._unavailable(error)
        finally:
            self.broker = setup.broker

    def _handshake(self, caller: Caller) -> ClientHandshake:
        timeout = self.settings.limits.close_timeout
        return ClientHandshake(
            caller,
            self.listener,
            self.client,
            timeout,
            self.may_open,
            self.door,
            partial(self.handshakes.awaits, self.handshake),
            self.stages,
        )

    def _mark(self, stage: str) -> None:
        if self.stages is not None:
            self.stages.mark(stage)

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
        with trio.move_on_after(self.settings.limits.close_timeout), contextlib.suppress(StreamClosedError):
            await say_close(self.client, why)

"""One connection's conversation until both hops are open: from its first byte, or from where the fast path
left it."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from typing import NoReturn

import attrs
import trio

from amqpgate.bridge import VERSIONS, TranslatedVersion
from amqpgate.config import Listener
from amqpgate.errors import AmqpgateError, ConfigError, ProtocolViolation
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.client_side import ClientHandshake, claimed_by
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.late_binding import LateBinding
from amqpgate.gateway.handshake.passthrough import Passthrough
from amqpgate.gateway.handshake.pending import PendingHandshake, Silence
from amqpgate.gateway.handshake.progress import Progress
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.conversation import invite, say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.tls import identity
from amqpgate.gateway.transport.waiting import CancelScope, checkpoint, fail_after, in_trio, move_on_after
from amqpgate.gateway.upstream.broker_side import UpstreamFaultError
from amqpgate.gateway.upstream.client import RefusedError
from amqpgate.gateway.upstream.dialer import Dialer, UpstreamUnavailableError
from amqpgate.gateway.upstream.route_pause import PausedError
from amqpgate.logs import RECURRING
from amqpgate.policy import Principal
from amqpgate.protocol.header import HEADER_SIZE, REFUSAL, name_of
from amqpgate.protocol.methods import Role
from amqpgate.protocol.proxy_header import ProxyHeader, ProxyHeaderError, ProxyHeaderParser
from amqpgate.values import define

log = logging.getLogger(__name__)


class NotEstablishedError(AmqpgateError):
    """The connection did not become a session. ``outcome`` is the metric's label."""

    def __init__(self, outcome: str, why: str, *, code: int | None = None, of_login: bool = False) -> None:
        super().__init__(why)
        self.outcome = outcome
        #: As in `RefusedError`.
        self.code = code
        self.of_login = of_login


@define
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
    deadline: CancelScope = attrs.field(init=False)
    #: The conversation with it, once it has said a protocol header; and the name of the chosen cluster.
    handshake: ClientHandshake | None = attrs.field(default=None, init=False)
    upstream: str | None = attrs.field(default=None, init=False)

    async def receive(self, sock: socket.socket, progress: Progress | None = None) -> Established:
        """``progress``: it has come so far already."""
        limits = self.context.settings.limits
        received: bytes | OSError = b""
        seconds: float = limits.handshake_timeout
        if progress is not None:
            received, seconds = progress.received, progress.until - trio.current_time()
            self.broker = None if progress.line is None else progress.line.hop
        self.client = MethodStream(
            sock, frame_max=limits.handshake_frame_max, peer=Role.CLIENT, received=received
        )
        kept = False
        try:
            with fail_after(seconds) as self.deadline:
                if progress is None or progress.dialler is None:
                    await self._approach()
                    established = await self._establish(self.caller)
                else:
                    # What has been asked to end meanwhile does.
                    await checkpoint()
                    established = await self._go_on(progress, progress.dialler)
            kept = True
            if self.timing is not None:
                self.timing.mark("open-ok")
            return established
        except trio.TooSlowError:
            raise NotEstablishedError(
                "handshake_timeout", f"not established within {limits.handshake_timeout:g} s"
            ) from None
        except StreamClosedError as closed:
            raise NotEstablishedError("handshake_failed", f"client: {closed}") from closed
        except (ssl.SSLError, OSError) as error:
            raise NotEstablishedError("handshake_failed", f"client: {error}") from error
        except RefusedError as refused:
            raise NotEstablishedError(
                "refused", str(refused), code=refused.code, of_login=refused.of_login
            ) from refused
        except ProxyHeaderError as refused:
            raise NotEstablishedError("refused", str(refused)) from refused
        except ProtocolViolation as violation:
            await self._say_close(violation)
            raise NotEstablishedError("violation", str(violation), code=violation.code) from violation
        finally:
            if not kept:
                if progress is not None and progress.dialler is not None:
                    progress.dialler.abandon()
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
                log.error("a client is refused: %s", error, extra=RECURRING)
                raise RefusedError(str(error)) from error
            await self.client.start_tls(context, server_side=True)
            assert isinstance(self.client.sock, ssl.SSLSocket)
            self.caller = attrs.evolve(self.caller, tls=identity(self.client.sock))
            if self.timing is not None:
                self.timing.mark("tls")

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
        version = VERSIONS.of_client(header)
        if version is None:
            # The standard's answer (AMQP 0-9-1, section 4.2.2): what we speak, and the end.
            await self.client.send(REFUSAL)
            await self.client.linger()
            raise RefusedError(f"not a protocol header that is spoken here: {name_of(header)}")
        if isinstance(version, TranslatedVersion):
            # It may be imported, which is nothing for the data path's thread.
            self.client.translate(await in_trio(trio.to_thread.run_sync, version.client))
            self.client.speak(version.interpreter)
        else:
            self.client.speak(version.client())
        if self.timing is not None:
            self.timing.mark("protocol-header")
        before = caller.principal(self.listener, None, "", {})
        stranger = context.policies.of_stranger(before, caller.session_id)
        if stranger is not None:
            over_limit = await context.admission.enter(AdmissionStage.ARRIVAL, stranger)
            if over_limit is not None:
                # Without a word, as where there are too many connections.
                raise NotEstablishedError("over_limit", over_limit.text)
        early = router.choose_early(self.listener, before, caller.session_id)
        if early is None:
            return await self._establish_late(caller)
        try:
            if router.is_paused(early):
                with self.deadline.standing_still():
                    dialler = await router.dialler(self.listener, before, caller.session_id, early=early)
            else:
                dialler = await router.dialler(self.listener, before, caller.session_id, early=early)
            greeting, line = await dialler.greet()
            if line is not None and self.timing is not None:
                self.timing.mark("dial")
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            context.pending.awaits(self.pending, Silence.GREETED)
            await invite(self.client)
            await self._unavailable(error)
        return await self._pass_through(Passthrough(self._handshake(caller), dialler, greeting, line), None)

    async def _go_on(self, progress: Progress, dialler: Dialer) -> Established:
        assert progress.start is not None, "the client has heard it"
        client = self._handshake(self.caller)
        passthrough = Passthrough(client, dialler, progress.start, progress.line)
        return await self._pass_through(passthrough, progress)

    async def _pass_through(self, passthrough: Passthrough, progress: Progress | None) -> Established:
        """``progress``: how far that has come."""
        client = passthrough.client
        self.upstream = passthrough.dialler.destination.cluster.name
        try:
            established = await passthrough.run(progress)
            self.context.router.count_shadows(established.policies.principal, client.caller.session_id)
            return established
        except (UpstreamUnavailableError, ConfigError) as error:
            # No broker answers, or there is no login for it.
            if passthrough.line is not None:
                passthrough.line.hop.close()
            await self._unavailable(error)
        except UpstreamFaultError as fault:
            why = f"upstream {passthrough.address}: {fault}"
            log.warning("upstream %s: %s", passthrough.address, fault, extra=RECURRING)
            if client.is_silent:
                # The broker hangs up in these states to refuse a login, and that is what the client sees.
                raise NotEstablishedError("refused", why, of_login=True) from fault
            if client.is_logging_in:
                await self._say_close(ProtocolViolation(403, "Authentication failed"))
                raise NotEstablishedError("refused", why, code=403, of_login=True) from fault
            await self._say_close(ProtocolViolation(320, why))
            raise NotEstablishedError("upstream_unavailable", why, code=320) from fault
        finally:
            self.broker = None if passthrough.line is None else passthrough.line.hop

    async def _establish_late(self, caller: Caller) -> Established:
        """The broker is chosen by what the client says."""
        client = self._handshake(caller)
        late = LateBinding(client, self.deadline.standing_still)
        try:
            return await late.run()
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            await self._unavailable(error)
        finally:
            self.broker, self.upstream = late.broker, late.upstream

    def _handshake(self, caller: Caller) -> ClientHandshake:
        self.handshake = ClientHandshake(
            self.context, caller, self.listener, self.client, self.pending, self.timing
        )
        return self.handshake

    @property
    def claimed(self) -> Principal:
        """Who the client says it is, as far as it has: nobody need have verified that."""
        if self.handshake is None:
            return self.caller.principal(self.listener, None, "", {})
        return claimed_by(self.handshake)

    async def _unavailable(self, error: AmqpgateError) -> NoReturn:
        """There is no broker for the client."""
        if not isinstance(error, UpstreamUnavailableError):
            log.warning("%s", error, extra=RECURRING)
        # Where files are is not the client's business.
        why = "the gateway's log says why" if isinstance(error, ConfigError) else str(error)
        await self._say_close(ProtocolViolation(320, why))
        raise NotEstablishedError("upstream_unavailable", str(error), code=320) from error

    async def _say_close(self, why: ProtocolViolation) -> None:
        with (
            move_on_after(self.context.settings.limits.close_timeout),
            contextlib.suppress(StreamClosedError),
        ):
            await say_close(self.client, why)

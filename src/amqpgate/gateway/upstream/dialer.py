"""One new connection's attempts to reach a cluster: dial, say the protocol header, hear the start.

`Dialer` chooses among endpoints; `call` is one attempt; `dial` is its socket, TCP and TLS.

Until the broker has heard start-ok, the client has heard nothing but a start; so whatever fails until then is
tried again elsewhere, within the attempts and the budget of the cluster.

A broker that does not speak the version that it is asked for answers with a protocol header that it knows,
and hangs up (AMQP 0-9-1, section 4.2.2). It is dialled again in that version, once for each that there is.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
import ssl
from typing import Final

import attrs
import trio

from amqpgate.bridge import VERSIONS, AnyVersion, Interpreter, TranslatedVersion, for_broker
from amqpgate.bridge.v0_9_1 import VERSION as NATIVE
from amqpgate.config import Address, Upstream
from amqpgate.datapath.tls import tls_errors
from amqpgate.errors import AmqpgateError, ConfigError, ProtocolViolation
from amqpgate.gateway.transport.connecting import begin, connect, prepare
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.transport.waiting import fail_after, in_trio, move_on_after
from amqpgate.gateway.upstream import capabilities
from amqpgate.gateway.upstream.cluster import Cluster, Destination, EndpointHealth, Meeting
from amqpgate.logs import about
from amqpgate.protocol.header import name_of
from amqpgate.protocol.methods import Role
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)

#: What `NATIVE` is by its numbers: a broker of which nothing is known is asked for that.
NEWEST: Final = NATIVE.numbers

#: Characters of the name of who calls, at most, in the names of sessions of AMQP 0-10, which have 255 bytes.
_MOST_NAME: Final = 64


class UpstreamUnavailableError(AmqpgateError):
    """The broker could not be reached; the text says which and why, and holds no credentials."""


@frozen
class DialedBroker:
    """A connection to a broker that has answered."""

    endpoint: EndpointHealth
    hop: MethodStream
    #: Its first method: start, or close.
    greeting: amqp.ConnectionStart | amqp.ConnectionClose


@frozen
class BegunCall:
    """A connection that has been told the protocol header of 0-9-1, and has not answered all of its start."""

    endpoint: EndpointHealth
    hop: MethodStream
    #: On trio's clock: since when, and until when its start is waited for.
    since: float
    until: float


@define
class Dialer:
    """The attempts of one session. ``connect`` may be called again when what it gave has failed later."""

    destination: Destination
    session: str
    #: Endpoints that are left to be tried; None: none has been.
    _left: list[EndpointHealth] | None = None
    _error: UpstreamUnavailableError | None = attrs.field(default=None, init=False)
    #: The attempt that has begun elsewhere, and the endpoint of one that has not.
    _begun: BegunCall | None = attrs.field(default=None, init=False)
    _again: EndpointHealth | None = attrs.field(default=None, init=False)

    def resume(self, begun: BegunCall) -> None:
        """`connect` goes on with this, to the endpoint that `next` gave."""
        self._begun = begun

    def put_back(self, endpoint: EndpointHealth) -> None:
        """It was not tried: `next` gives it again."""
        self._again = endpoint

    def abandon(self) -> None:
        """What has begun elsewhere, and nobody has gone on with, is closed."""
        if self._begun is not None:
            self._begun.hop.close()
            self._begun = None

    async def greet(self) -> tuple[amqp.ConnectionStart | amqp.ConnectionClose, DialedBroker | None]:
        """What the client hears first: what the broker said last; or on a connection that is there now, since
        nothing is known of that broker. Of many that come at once then, one dials, and the others wait for
        what it hears. Raises as `connect`.
        """
        now, to = trio.current_time(), self.destination
        endpoint, version = to.cluster.ordered(self.session, now)[0], to.settings.version
        start = endpoint.starts.known(version, now)
        if start is None and await endpoint.inquiry.wait():
            start = endpoint.starts.known(version, trio.current_time())
        if start is not None:
            return start, None
        with endpoint.inquiry.asking():
            line = await self.connect()
        return line.greeting, line

    async def connect(self) -> DialedBroker:
        """Raises the last attempt's ``UpstreamUnavailableError``; ``ConfigError`` for its TLS files."""
        while True:
            begun, self._begun = self._begun, None
            began = trio.current_time() if begun is None else begun.since
            endpoint = self.next(began) if begun is None else begun.endpoint
            try:
                line = await self._call(endpoint, begun)
            except UpstreamUnavailableError as error:
                self.give_up(endpoint, error)
                continue
            self.destination.answered(endpoint, line.greeting, trio.current_time() - began)
            return line

    async def follow(self, host: str) -> DialedBroker:
        """Where a broker redirects to: ``name:port``, or a name alone.

        Raises ``UpstreamUnavailableError`` where that fails, or is not followed: a broker must not choose
        whom the gateway connects to, unless the settings say that it may.
        """
        endpoint = self._named(host)
        name = self.destination.cluster.name
        log.info("upstream %s redirects to %s", name, endpoint.address, extra=about(upstream=name))
        return await self._call(endpoint)

    async def _call(self, endpoint: EndpointHealth, begun: BegunCall | None = None) -> DialedBroker:
        to = self.destination
        return await call(
            endpoint, to.settings, to.contexts, frame_max=to.frame_max, name=self.session, begun=begun
        )

    def _named(self, host: str) -> EndpointHealth:
        settings = self.destination.settings
        try:
            address = Address.parse(host if ":" in host else f"{host}:{settings.port}")
        except ValueError as error:
            raise UpstreamUnavailableError(str(error)) from None
        allowed = settings.redirects
        for endpoint in self.destination.cluster.endpoints if allowed != "never" else ():
            if endpoint.address == address:
                return endpoint
        if allowed != "any":
            raise UpstreamUnavailableError(f"not followed, since the settings say 'redirects: {allowed}'")
        return EndpointHealth(address, 1)

    def give_up(
        self, endpoint: EndpointHealth, error: UpstreamUnavailableError, *, answered: bool = False
    ) -> None:
        """An attempt has failed, or what ``connect`` gave (``answered``): the next one goes elsewhere."""
        to, address = self.destination, endpoint.name
        name = to.settings.name
        log.warning("%s", error, extra=about(upstream=name, session=self.session))
        self._error = error
        to.metrics.dials[name, address, "broken" if answered else "failed"] += 1
        if to.cluster.failed(endpoint, trio.current_time()):
            to.metrics.ejected(name, address)
            how = about(upstream=name)
            log.warning("upstream %s is left out for %g s", address, endpoint.sentence, extra=how)

    def next(self, now: float) -> EndpointHealth:
        """The endpoint to be tried next. Raises as `connect`."""
        if self._again is not None:
            endpoint, self._again = self._again, None
            return endpoint
        if self._left is None:
            self._left = self.destination.cluster.order(self.session, now)
            return self._left.pop(0)
        assert self._error is not None, "a second attempt follows a failure"
        if not self._left:
            raise self._error
        if not self.destination.cluster.may_retry():
            self.destination.metrics.unaffordable(self.destination.cluster.name)
            raise self._error
        return self._left.pop(0)


async def call(
    endpoint: EndpointHealth,
    settings: Upstream,
    contexts: TlsContexts,
    *,
    frame_max: int,
    name: str,
    begun: BegunCall | None = None,
) -> DialedBroker:
    """One attempt, in the version that is set, or that the endpoint turns out to speak.

    ``name`` is of who calls; ``begun`` is how the attempt has begun elsewhere.
    Raises ``UpstreamUnavailableError``, and ``ConfigError`` for the TLS files.
    """
    is_set = settings.version != "auto"
    named = settings.version if is_set else endpoint.version
    version = NATIVE if named is None else VERSIONS.named(named)
    tried: set[AnyVersion] = set()
    while True:
        if settings.connections == "pooled" and isinstance(version, TranslatedVersion):
            # What it speaks may change: next time it is asked.
            endpoint.unheard(settings.version)
            raise UpstreamUnavailableError(
                f"upstream {endpoint.address}: it speaks AMQP {version.name}, of which clients cannot share "
                "connections: that needs 'connections: own'"
            )
        until: float | None = None
        if begun is None:
            hop = await dial(settings, contexts, address=endpoint.address, frame_max=frame_max)
        else:
            hop, until, begun = begun.hop, begun.until, None
        try:
            greeting = await _greeting(hop, endpoint, settings, version, name, until)
            if isinstance(greeting, amqp.ConnectionStart):
                interpreter, start = _meet(greeting, endpoint, version, is_set=is_set)
                if interpreter is not hop.interpreter:
                    hop.speak(interpreter)
                endpoint.starts.heard(settings.version, start, trio.current_time())
                return DialedBroker(endpoint, hop, start)
            if isinstance(greeting, amqp.ConnectionClose):
                return DialedBroker(endpoint, hop, greeting)
        except BaseException:
            hop.close()
            endpoint.unheard(settings.version)
            raise
        # It has closed its end by now, or will: another version needs another connection.
        hop.close()
        tried.add(version)
        asked, wanted = version, VERSIONS.of_broker(greeting)
        version = wanted or asked
        if is_set or version in tried:
            raise UpstreamUnavailableError(
                f"upstream {endpoint.address}: it answers the protocol header of AMQP {asked.name} "
                f"with {name_of(greeting)}"
            )


async def ask_once(cluster: Cluster, session: str, contexts: TlsContexts, *, frame_max: int) -> None:
    """Ask a cluster what it offers. Of many that do so at once, one dials, and the others wait for it."""
    if await cluster.inquiry.wait():
        return
    with cluster.inquiry.asking(), move_on_after(cluster.settings.connect_timeout):
        for endpoint in cluster.order(session, trio.current_time()):
            with contextlib.suppress(UpstreamUnavailableError, ConfigError):
                line = await call(endpoint, cluster.settings, contexts, frame_max=frame_max, name=session)
                line.hop.close()
                if isinstance(line.greeting, amqp.ConnectionStart):
                    cluster.heard(line.greeting)
                    return
    cluster.asked_in_vain(trio.current_time())


def _meet(
    start: amqp.ConnectionStart, endpoint: EndpointHealth, asked: AnyVersion, *, is_set: bool
) -> tuple[Interpreter, amqp.ConnectionStart]:
    """The interpreter of the version that the broker speaks, and its start in the canonical model.

    One that is not known hears nothing more (AMQP 0-9-1, connection.start, rule "client-support").
    """
    met = endpoint.starts.met
    if met is not None and met.is_again(start, asked, is_set=is_set):
        return met.interpreter, met.start
    numbers = start.version_major, start.version_minor
    spoken = VERSIONS.started(numbers, asked)
    if spoken is None:
        raise UpstreamUnavailableError(
            f"upstream {endpoint.address}: it starts AMQP {numbers[0]}-{numbers[1]}, "
            f"which is not known; it was asked for AMQP {asked.name}"
        )
    if spoken is not asked and is_set:
        raise UpstreamUnavailableError(
            f"upstream {endpoint.address}: it starts AMQP {spoken.name}, not {asked.name}"
        )
    if not is_set:
        endpoint.answered(spoken.name, start)
    major, minor = NATIVE.start
    interpreter, properties = for_broker(spoken, start), start.server_properties
    if not interpreter.is_native:
        properties = capabilities.of_broker(interpreter, properties)
    canonical = attrs.evolve(start, version_major=major, version_minor=minor, server_properties=properties)
    endpoint.starts.meet(Meeting(start, asked, is_set, interpreter, canonical))
    return interpreter, canonical


async def _greeting(
    hop: MethodStream,
    endpoint: EndpointHealth,
    settings: Upstream,
    version: AnyVersion,
    name: str,
    until: float | None,
) -> amqp.ConnectionStart | amqp.ConnectionClose | bytes:
    """The broker's first words: a method, or a protocol header other than what it was told.

    ``until``: it has been told, and is waited for so long.
    """
    timeout = settings.answer_timeout
    why = f"said nothing within {timeout:g} s"
    with move_on_after(timeout if until is None else until - trio.current_time()):
        try:
            if isinstance(version, TranslatedVersion):
                hop.speak(version.interpreter)
            else:
                hop.speak(version.interpreter(version.broker))
            if until is None:
                await hop.send(version.header)
            header = await hop.next_header()
            # Qpid says the header that it was told before it starts.
            if header is not None and header != version.header:
                return header
            if isinstance(version, TranslatedVersion):
                await _translate(hop, version, header, name)
            method = await hop.next_method()
        except (ProtocolViolation, StreamClosedError) as error:
            why = str(error)
        else:
            if isinstance(method, amqp.ConnectionStart | amqp.ConnectionClose):
                return method
            why = f"expected '{amqp.ConnectionStart.NAME}', got '{method.NAME}'"
    raise UpstreamUnavailableError(f"upstream {endpoint.address}: {why}")


async def _translate(hop: MethodStream, version: TranslatedVersion, header: bytes | None, name: str) -> None:
    """What the broker says is translated from now on. Violation 501 where it has not said its header."""
    if header is None:
        raise ProtocolViolation(501, f"it does not answer the protocol header of AMQP {version.name}")
    unique = f"amqpgate.{name[:_MOST_NAME]}.{secrets.token_hex(8)}"
    # It may be imported, which is nothing for the data path's thread.
    hop.translate(await in_trio(trio.to_thread.run_sync, version.broker, unique))


async def dial(
    upstream: Upstream, contexts: TlsContexts, *, address: Address, frame_max: int
) -> MethodStream:
    """Connect to one endpoint within ``upstream.connect_timeout`` seconds, TLS handshake included.

    A name with several addresses is tried in the manner of RFC 8305. Raises
    ``UpstreamUnavailableError``.
    """
    hop: MethodStream | None = None
    try:
        attempt = begin(address.host, address.port)
        if attempt is not None and attempt.stands and upstream.tls is None:
            return _prepared(attempt.sock, address.host, frame_max)
        with fail_after(upstream.connect_timeout):
            sock = await (connect(address.host, address.port) if attempt is None else attempt.finish())
            hop = _prepared(sock, None if attempt is None else address.host, frame_max)
            if upstream.tls is not None:
                await hop.start_tls(
                    contexts.for_upstream(upstream.tls),
                    server_side=False,
                    name=upstream.tls.server_name or address.host,
                )
    except trio.TooSlowError:
        _drop(hop)
        raise too_slow(address, upstream) from None
    except tls_errors() as error:
        _drop(hop)
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted: {error.verify_message}"
        else:
            why = error.reason or str(error)
        raise UpstreamUnavailableError(f"TLS with upstream {address} failed: {why}") from error
    except OSError as error:
        _drop(hop)
        raise unreachable(address, error) from error
    except BaseException:
        _drop(hop)
        raise
    assert hop is not None, "connected within the time"
    return hop


def too_slow(address: Address, upstream: Upstream) -> UpstreamUnavailableError:
    """It has not been connected in time."""
    return UpstreamUnavailableError(
        f"upstream {address} did not answer within {upstream.connect_timeout:g} s"
    )


def unreachable(address: Address, error: OSError) -> UpstreamUnavailableError:
    """It could not be connected."""
    cause = error.__cause__ or error
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return UpstreamUnavailableError(f"cannot connect to upstream {address}: {cause}")


def _prepared(sock: socket.socket, address: str | None, frame_max: int) -> MethodStream:
    try:
        prepare(sock, address)
        return MethodStream(sock, frame_max=frame_max, peer=Role.SERVER)
    except BaseException:
        sock.close()
        raise


def _drop(hop: MethodStream | None) -> None:
    if hop is not None:
        hop.close()

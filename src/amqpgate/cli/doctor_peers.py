"""Whom ``amqpgate doctor`` asks: names, brokers, Redis, the collector of traces."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.cli.diagnosis import Diagnosis, bad, milliseconds, note, ok
from amqpgate.cli.doctor_machine import lasting
from amqpgate.cli.failures import cause_of
from amqpgate.logs import on_one_line
from amqpgate.values import frozen
from amqpgate.yamldoc import Seconds

if TYPE_CHECKING:
    from amqpgate.config import Address, Otlp, Settings, SharedLimits, Tracing, Upstream
    from amqpgate.config.audit_sinks import AuditSinkSettings
    from amqpgate.config.upstream import UpstreamTls
    from amqpgate.gateway.transport.method_stream import MethodStream
    from amqpgate.gateway.transport.tls import TlsContexts
    from amqpgate.gateway.upstream.cluster import EndpointHealth
    from amqpgate.wire.generated import v0_9_1 as amqp

#: A start has the broker's properties in it; RabbitMQ's has some 500 bytes.
_FRAME_MAX: Final = 16 * 1024

_NO_BROKER: Final = "start the broker, or correct the upstream's url"
_NO_AUTHORITY: Final = "name the authority that signed it in tls.ca"
_OTHER_NAME: Final = "say in tls.serverName a name that its certificate has, or have one made for this name"
#: How AMQP 0-9-1 is asked for, and how brokers begin: with a frame on channel 0, or with a header of theirs.
_HEADER: Final = b"AMQP\x00\x00\x09\x01"
_AMQP: Final = (b"\x01\x00\x00", b"AMQP")
#: Bytes that are shown of who speaks something else.
_SHOWN: Final = 40
_NO_AMQP: Final = "correct the port in the upstream's url: 5672 is AMQP, 5671 AMQP in TLS (amqps://)"
#: Which of a collector's two ports is meant.
_OTLP: Final = "OTLP over HTTP is port 4318, with /v1/{}; 4317 is gRPC"
#: What helps by the code of a verification that failed (X509_V_ERR_* of OpenSSL's x509_vfy.h).
_DISTRUST: Final = {
    9: "correct the clock here, or at who signed it",
    10: "renew the broker's certificate, or correct the clock here",
    23: "renew the broker's certificate: its authority took it back",
    62: _OTHER_NAME,
    64: _OTHER_NAME,
}


def peers_of(settings: Settings, timeout: float) -> Iterator[Diagnosis]:
    """Everybody whom the gateway talks to; ``timeout``, in seconds, is for each answer."""
    from amqpgate.gateway.transport.tls import TlsContexts
    from amqpgate.gateway.upstream.cluster import Cluster

    contexts = TlsContexts()
    for upstream in settings.upstreams:
        for endpoint in Cluster(upstream).endpoints:
            yield from trio.run(_BrokerCheck(upstream, endpoint, contexts, timeout).findings)
    if settings.shared_limits is not None:
        yield trio.run(_RedisCheck(settings.shared_limits, timeout).finding)
    if settings.tracing is not None:
        yield _collector(settings.tracing, timeout)
    if settings.otlp is not None:
        yield from _otlp(settings.otlp, timeout)
    if settings.audit is not None:
        for sink in settings.audit.sinks:
            yield _audit_sink(sink, timeout)


@frozen
class _BrokerCheck:
    """One endpoint, from its name to the login that the settings have for it."""

    upstream: Upstream
    endpoint: EndpointHealth
    contexts: TlsContexts
    #: Seconds for each answer.
    patience: float

    async def findings(self) -> list[Diagnosis]:
        what, address = f"upstream {self.upstream.name} {self.endpoint.address}", self.endpoint.address
        found = [await self._name(f"{what}: name", address)]
        if found[0].state != "bad":
            if self.upstream.tls is not None:
                found.append(await self._tls(f"{what}: TLS", address, self.upstream.tls))
            # Without TLS the broker is not reached, and nothing is known of it.
            if found[-1].state != "bad":
                found += [finding async for finding in self._broker(what)]
        return found

    async def _name(self, what: str, address: Address) -> Diagnosis:
        began = time.monotonic()
        try:
            with trio.fail_after(self.patience):
                found = await trio.socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except (OSError, trio.TooSlowError) as error:
            slow = isinstance(error, trio.TooSlowError)
            why = "the resolver does not answer" if slow else getattr(error, "strerror", None) or str(error)
            return bad(what, why, "write a name that this machine's resolver knows (getent hosts NAME)")
        numbers = ", ".join(dict.fromkeys(str(place[0]) for *_, place in found))
        return ok(what, f"{numbers}, in {milliseconds(began)}")

    async def _tls(self, what: str, address: Address, tls: UpstreamTls) -> Diagnosis:
        """The TLS handshake alone, so that what is wrong with a certificate is not taken for AMQP's."""
        from amqpgate.gateway.transport.certificates import expiry

        context = self.contexts.for_upstream(tls)
        stream: trio.SocketStream | None = None
        try:
            with trio.fail_after(self.patience):
                stream = await trio.open_tcp_stream(address.host, address.port)
                secured = trio.SSLStream(stream, context, server_hostname=tls.server_name or address.host)
                try:
                    await secured.do_handshake()
                    version, der = secured.version(), secured.getpeercert(binary_form=True)
                finally:
                    await trio.aclose_forcefully(secured)
        except trio.TooSlowError:
            return bad(what, "no answer", "does the broker speak TLS at that port?")
        except (OSError, trio.BrokenResourceError) as error:
            cause = error.__cause__ or error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return bad(what, cause.verify_message, _DISTRUST.get(cause.verify_code, _NO_AUTHORITY))
            if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
                return bad(what, "it does not speak TLS there", "correct the port, or write amqp://")
            if isinstance(error, OSError) and stream is None:
                return bad(what, cause_of(error), _NO_BROKER)
            return bad(what, str(cause), "does the broker speak TLS at that port, and take this certificate?")
        found = lasting(what, expiry(ssl.DER_cert_to_PEM_cert(der or b"")), "renew the broker's certificate")
        return attrs.evolve(found, text=f"{version}, its certificate {found.text}")

    async def _broker(self, what: str) -> AsyncIterator[Diagnosis]:
        """What it greets with, and whether it takes the login that the settings have."""
        from amqpgate.errors import ConfigError
        from amqpgate.gateway.upstream.dialer import UpstreamUnavailableError, call
        from amqpgate.wire.generated import v0_9_1 as amqp

        broker, began = f"{what}: broker", time.monotonic()
        try:
            with trio.fail_after(self.patience):
                line = await call(
                    self.endpoint, self.upstream, self.contexts, frame_max=_FRAME_MAX, name="doctor"
                )
        except trio.TooSlowError:
            why = f"no answer within {self.patience:g} s"
            yield bad(broker, why, "is that a broker's AMQP port, and is no firewall between?")
            return
        except (UpstreamUnavailableError, ConfigError) as error:
            begin = b"" if self.upstream.tls is not None else await self._begin()
            if begin and not begin.startswith(_AMQP):
                said = on_one_line(begin.decode("ascii", "backslashreplace").strip())
                yield bad(broker, f"it speaks no AMQP: it begins with '{said}'", _NO_AMQP)
                return
            remedy = _NO_BROKER if self.upstream.tls is not None else f"{_NO_BROKER}; amqps:// for TLS"
            yield bad(broker, str(error), remedy)
            return
        try:
            if not isinstance(line.greeting, amqp.ConnectionStart):
                said = f"it says connection.close {line.greeting.reply_code}"
                yield bad(broker, said, "the broker's log says why")
                return
            told = (line.greeting.server_properties.get(name) for name in ("product", "version"))
            product = " ".join(map(str, filter(None, told))) or "a broker"
            version = self.endpoint.version or "0-9-1"
            yield ok(broker, f"{product}, AMQP {version}, in {milliseconds(began)}")
            if self.upstream.has_login:
                yield await self._login(f"{what}: login", line.hop, line.greeting)
        finally:
            line.hop.close()

    async def _begin(self) -> bytes:
        """The first bytes that somebody says there; none where nobody does soon."""
        address, begin = self.endpoint.address, b""
        with trio.move_on_after(min(self.patience, 1.0)), suppress(OSError, trio.BrokenResourceError):
            stream = await trio.open_tcp_stream(address.host, address.port)
            try:
                await stream.send_all(_HEADER)
                begin = bytes(await stream.receive_some(_SHOWN))
            finally:
                await trio.aclose_forcefully(stream)
        return begin

    async def _login(self, what: str, hop: MethodStream, start: amqp.ConnectionStart) -> Diagnosis:
        from amqpgate.errors import ConfigError, ProtocolViolation
        from amqpgate.gateway.transport.method_stream import StreamClosedError
        from amqpgate.gateway.upstream.own_login import NotLetInError, log_in, own_credentials
        from amqpgate.wire.tables import Table

        remedy = "correct the upstream's user and password, or give the user its rights at the broker"
        about = Table.of({"product": "amqpgate", "connection_name": "amqpgate doctor"})
        try:
            login = own_credentials(self.upstream)
        except ConfigError as error:
            return bad(what, str(error), remedy)
        assert login is not None, "asked where there is one"
        try:
            with trio.fail_after(self.patience):
                await log_in(hop, start, login, about, self.upstream)
        except (NotLetInError, ProtocolViolation) as error:
            return bad(what, str(error), remedy)
        except (StreamClosedError, trio.TooSlowError):
            return bad(what, f"user {login.user!r} is not let in: the broker says nothing more", remedy)
        return ok(what, f"user {login.user!r} is let in")


@frozen
class _RedisCheck:
    """Where limits of several gateways are counted."""

    settings: SharedLimits
    #: Seconds for an answer.
    patience: float

    async def finding(self) -> Diagnosis:
        from coredis.exceptions import RedisError

        from amqpgate.gateway.limits.distributed import client_of

        what, began = f"redis {self.settings.redis}", time.monotonic()
        why = ""
        async with client_of(self.settings) as redis:
            try:
                with trio.fail_after(self.patience):
                    await redis.ping()
            except trio.TooSlowError:
                why = f"no answer within {self.patience:g} s"
            except (RedisError, OSError, TimeoutError) as error:
                why = str(error) or type(error).__name__
        if why:
            return bad(what, why, "start it, or correct sharedLimits: redis, user, password")
        return ok(what, f"answers in {milliseconds(began)}")


def _otlp(settings: Otlp, timeout: float) -> Iterator[Diagnosis]:
    """Each place where metrics and log lines go, asked as the gateway does."""
    from amqpgate.telemetry.http_request import NoHttpError, NotTakenError
    from amqpgate.telemetry.otlp.post import Poster

    asking = attrs.evolve(settings, timeout=Seconds(timeout))
    for name, url in (("metrics", settings.metrics), ("logs", settings.logs)):
        if url is None:
            continue
        what, began = f"{name} {url}", time.monotonic()
        try:
            Poster(url, asking).post(b"")
        except NoHttpError as error:
            yield note(what, str(error), f"correct otlp.{name}: {_OTLP.format(name)}")
        except NotTakenError as error:
            yield note(
                what, str(error), f"start the collector, or correct otlp.{name}: they are dropped until then"
            )
        else:
            yield ok(what, f"takes {name}, in {milliseconds(began)}")


def _audit_sink(sink: AuditSinkSettings, timeout: float) -> Diagnosis:
    """Who gets audit records: asked as the gateway does, without a record."""
    from amqpgate.telemetry.audit.outlets.opening import receiver_of
    from amqpgate.telemetry.http_request import NotTakenError

    what, began = f"audit.{sink.NAME} {sink.shown}", time.monotonic()
    receiver = receiver_of(attrs.evolve(sink, timeout=Seconds(timeout)), "doctor")
    try:
        text = receiver.ask()
    except NotTakenError as error:
        waits = "clients that cause events wait" if sink.when_full == "wait" else "records are dropped"
        return bad(what, str(error), f"start it, or correct audit.{sink.NAME}: in the end {waits}")
    finally:
        receiver.close()
    return ok(what, f"{text}, in {milliseconds(began)}")


def _collector(settings: Tracing, timeout: float) -> Diagnosis:
    """An empty request, which a collector takes (OTLP 1.0, section OTLP/HTTP); by the proxy that the
    environment names, as the exporter of spans."""
    import http.client
    import urllib.error
    import urllib.request

    from amqpgate.telemetry.http_request import why_of

    what, began = f"traces {settings.endpoint}", time.monotonic()
    headers = {"Content-Type": "application/x-protobuf", **settings.headers()}
    # HttpUrl takes no other scheme than http and https.
    request = urllib.request.Request(str(settings.endpoint), b"", headers)  # noqa: S310
    context = ssl.create_default_context(cafile=_authorities(settings)) if settings.endpoint.is_tls else None
    try:
        with urllib.request.urlopen(request, timeout=timeout, context=context):  # noqa: S310
            return ok(what, f"takes spans, in {milliseconds(began)}")
    except urllib.error.HTTPError as error:
        is_login = error.code in (401, 403)
        remedy = "tracing.headersFile has its login" if is_login else "correct tracing.endpoint"
        return bad(what, f"HTTP {error.code} {error.reason}", remedy)
    except OSError as error:
        why = getattr(error, "reason", error)
        return note(what, f"no answer: {why}", "start the collector: spans are dropped until then")
    except http.client.HTTPException as error:
        return bad(what, why_of(error), f"correct tracing.endpoint: {_OTLP.format('traces')}")


def _authorities(settings: Tracing) -> str:
    if settings.ca is not None:
        return str(settings.ca)
    import certifi

    return str(Path(certifi.where()))

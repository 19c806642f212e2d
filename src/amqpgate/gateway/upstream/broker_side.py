"""The broker's half of a set-up: what it is told of the client, and how all of it is said at once.

Where the client has said everything before the broker is there (`late_binding`), and where a broker sends the
gateway to another one (connection.redirect, AMQP 0-8, 0-9 and 0-10), the client's half is said again::

    gateway                        broker
      │ protocol header ──────────▶ │
      │ ◀────────────────── start   │
      │ start-ok ─────────────────▶ │
      │ ◀─────────────────── tune   │
      │ tune-ok, open ────────────▶ │
      │ ◀─────── open-ok, or redirect: once more, to the host that it names
"""

from __future__ import annotations

import math
from collections.abc import Awaitable
from functools import lru_cache
from typing import Final, NoReturn, TypeVar

import attrs

from amqpgate.bridge import ConnectionRedirect, Interpreter
from amqpgate.config import USUAL_FRAME_MAX, Upstream
from amqpgate.errors import AmqpgateError, ProtocolViolation
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.waiting import move_on_after
from amqpgate.gateway.upstream import capabilities
from amqpgate.gateway.upstream.client import Client, RefusedError, refusal_of_login
from amqpgate.gateway.upstream.dialer import NEWEST, DialedBroker, Dialer, UpstreamUnavailableError
from amqpgate.gateway.upstream.own_login import own_credentials, secure_ok
from amqpgate.protocol.frames import FRAME_OVERHEAD
from amqpgate.protocol.handshake import Tune, negotiate, too_small
from amqpgate.protocol.login import Exchange, exchange
from amqpgate.protocol.sasl import in_terms_of, offered_by
from amqpgate.protocol.scram import SaslError
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table

M = TypeVar("M", bound=Method)

#: What RabbitMQ accepts in one frame before tune (3.10: FRAME_MIN_SIZE). The entry that amqpgate
#: adds to the client's properties is left out rather than make a start-ok too large for it.
BROKER_FRAME_BEFORE_TUNE: Final = 4096

#: RabbitMQ 4.1 says 530 to less than this, and every broker that offers it takes it. A client with less has
#: its bodies cut on its own hop.
BROKER_FRAME_MIN: Final = 8192

#: Redirects that are followed for one connection.
MOST_REDIRECTS: Final = 3

#: Hosts that are tried for one of them.
MOST_HOSTS: Final = 8

#: A broker that says so has not judged the client; another one may take it: CONNECTION_FORCED (it shuts
#: down) and INTERNAL_ERROR (RabbitMQ's word for a virtual host that is down on this node).
NOT_A_VERDICT: Final = frozenset({320, 541})

#: Agreements on limits that are kept.
_MOST_TUNES: Final = 64


class UpstreamFaultError(AmqpgateError):
    """The broker closed its socket, or broke the protocol, while the connection opened."""


def own_exchange(line: DialedBroker, settings: Upstream) -> Exchange | None:
    """The upstream's own login; None: clients log in themselves.

    Raises ``UpstreamUnavailableError`` where the broker has no mechanism for it; ``ConfigError``.
    """
    if not settings.has_login or isinstance(line.greeting, amqp.ConnectionClose):
        return None
    own = own_credentials(settings)
    assert own is not None, "it has a login"
    try:
        return exchange(offered_by(line.greeting.mechanisms), own, settings.mechanisms)
    except SaslError as error:
        raise UpstreamUnavailableError(f"upstream {line.endpoint.address}: {error}") from error


def start_ok_for(
    hop: MethodStream,
    start: amqp.ConnectionStart,
    client: Client,
    own: Exchange | None,
    version: str,
) -> bytes:
    """The start-ok that a broker hears, as a frame; ``own`` is the upstream's own login.

    Its login is the client's, or the upstream's own, by a mechanism that this broker has; an entry shows in
    the broker's connection list who is calling, if there is room. ``version`` is the gateway's.
    """
    said, caller = client.start_ok, client.caller
    if own is not None:
        mechanism, response = own.mechanism, own.first()
    else:
        mechanism, response = in_terms_of(offered_by(start.mechanisms), said.mechanism, said.response)
    properties = said.client_properties
    if not hop.interpreter.is_native:
        properties = capabilities.of_client(hop.interpreter, properties)
    shown = (("client_address", caller.address), ("session", caller.session_id), ("version", version))
    entry = Table(tuple([(name, Field("S", value)) for name, value in shown]))
    extended = properties.with_("amqpgate", entry)
    frame = hop.frame_of(amqp.ConnectionStartOk(extended, mechanism, response, said.locale))
    if len(frame) <= BROKER_FRAME_BEFORE_TUNE:
        return frame
    # Nobody else says who is calling, either.
    without = properties.without("amqpgate") if "amqpgate" in properties else properties
    return hop.frame_of(amqp.ConnectionStartOk(without, mechanism, response, said.locale))


def tune_for(asked: amqp.ConnectionTune, settings: Upstream, client: Tune, broker: Interpreter) -> Tune:
    """What holds on the broker's hop, given what it proposes and what holds on the client's."""
    wanted = settings.heartbeat
    return _tune_for(
        (asked.channel_max, asked.frame_max),
        (settings.channel_max or 0, settings.frame_max or 0),
        (client.channel_max, client.frame_max),
        asked.heartbeat if wanted is None else broker.heartbeat(wanted, asked.heartbeat),
    )


@lru_cache(maxsize=_MOST_TUNES)
def _tune_for(
    asked: tuple[int, int], settings: tuple[int, int], client: tuple[int, int], heartbeat: int
) -> Tune:
    """Of the largest channel and the largest frame that each has."""
    frame_max = negotiate(asked[1], settings[1] or USUAL_FRAME_MAX)
    if not settings[1]:
        # A multiple of the client's payload, so that bodies are cut for it where the broker would cut them.
        payload = client[1] - FRAME_OVERHEAD
        pieces = math.ceil((BROKER_FRAME_MIN - FRAME_OVERHEAD) / payload)
        frame_max = min(frame_max, pieces * payload + FRAME_OVERHEAD)
    channel_max = negotiate(asked[0], settings[0], client[0])
    return Tune(frame_max=frame_max, channel_max=channel_max, heartbeat=heartbeat)


def open_for(broker: MethodStream, client: MethodStream, request: amqp.ConnectionOpen) -> amqp.ConnectionOpen:
    """The open that a broker hears: what only those have that may redirect is for those who both have it."""
    if is_newest(client) == broker.interpreter.redirects:
        return amqp.ConnectionOpen(request.virtual_host)
    return request


def insists(client: MethodStream, request: amqp.ConnectionOpen) -> bool:
    """Whether the client wants this broker and no other: 0-8 and 0-9 have a bit for it, "insist"."""
    return not is_newest(client) and request.reserved_2


def is_newest(hop: MethodStream) -> bool:
    """Whether the peer speaks 0-9-1, of any dialect."""
    return hop.interpreter.dialect.version == NEWEST


@define
class BrokerHandshake:
    """All of the broker's half for a client that has said its own. ``run`` returns when its hop is open."""

    client: Client
    dialler: Dialer
    #: Of the gateway.
    version: str
    #: What holds on the client's hop.
    tune: Tune
    request: amqp.ConnectionOpen
    #: The connection that it is said on; another one after a redirect.
    line: DialedBroker
    _followed: int = attrs.field(default=0, init=False)

    async def run(self) -> Tune:
        """What holds on the broker's hop.

        Raises ``UpstreamFaultError``, and ``RefusedError`` when the client has been told.
        """
        while isinstance(answer := await self._say_all(), ConnectionRedirect):
            await self.follow(answer)
        return answer

    async def follow(self, redirect: ConnectionRedirect) -> None:
        """Leave this broker for the one that it names, or, if that is not there, for another one that it
        knows (AMQP 0-8, connection.redirect). Raises ``UpstreamFaultError``."""
        self.line.hop.close()
        if self._followed == MOST_REDIRECTS:
            raise UpstreamFaultError(f"redirects more than {MOST_REDIRECTS} times")
        self._followed += 1
        if insists(self.client.hop, self.request):
            raise UpstreamFaultError(f"redirects to '{redirect.host}', and the client insists")
        failed: UpstreamUnavailableError | None = None
        hosts = dict.fromkeys((redirect.host, *redirect.known_hosts.replace(",", " ").split()))
        for host in list(hosts)[:MOST_HOSTS]:
            try:
                self.line = await self.dialler.follow(host)
            except UpstreamUnavailableError as error:
                failed = failed or error
            else:
                return
        raise UpstreamFaultError(f"redirects to '{redirect.host}': {failed}") from failed

    async def _say_all(self) -> Tune | ConnectionRedirect:
        line, settings, client = self.line, self.dialler.destination.settings, self.client
        if isinstance(line.greeting, amqp.ConnectionClose):
            await self._pass_on(line.greeting)
        own = own_exchange(line, settings)
        await self._send(start_ok_for(line.hop, line.greeting, client, own, self.version))
        method = await self._answer()
        while own is not None and isinstance(method, amqp.ConnectionSecure):
            await self._send(line.hop.frame_of(await said_in(line, secure_ok(own, method))))
            method = await self._answer()
        mechanism = client.start_ok.mechanism
        if method is None and "authentication_failure_close" not in client.capabilities:
            # How RabbitMQ refuses clients that do not ask to be told why. This one has logged in, for all
            # that it knows, and waits for open-ok, so it is told in RabbitMQ's words.
            try:
                await client.refuse(refusal_of_login(mechanism, ". For details see the broker logfile."))
            except RefusedError as told:
                raise RefusedError(str(told), code=told.code, of_login=True) from None
        if isinstance(method, amqp.ConnectionSecure):
            why = ": the broker's challenge comes too late for a client whose broker is chosen by its login"
            await client.refuse(refusal_of_login(mechanism, why))
        asked = _expect(method, amqp.ConnectionTune)
        check_tune(line, own, asked)
        self.dialler.destination.cluster.offered(asked)
        tune = tune_for(asked, settings, self.tune, line.hop.interpreter)
        tune_ok = amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat)
        request = open_for(line.hop, client.hop, self.request)
        await self._send(line.hop.frame_of(tune_ok) + line.hop.frame_of(request))
        method = await self._answer()
        if isinstance(method, ConnectionRedirect):
            return method
        _expect(method, amqp.ConnectionOpenOk)
        return tune

    async def _send(self, data: bytes) -> None:
        try:
            await self.line.hop.send(data)
        except StreamClosedError as closed:
            raise UpstreamFaultError(str(closed)) from closed

    async def _answer(self) -> Method | None:
        """The broker's next method that is no refusal; None where it hung up."""
        settings = self.dialler.destination.settings
        timeout = settings.answer_timeout
        method: Method | None = None
        with move_on_after(timeout) as patience:
            try:
                method = await self.line.hop.next_method()
            except ProtocolViolation as violation:
                raise UpstreamFaultError(str(violation)) from violation
            except StreamClosedError:
                return None
        if patience.cancelled_caught:
            raise UpstreamFaultError(f"did not answer within {timeout:g} s")
        if isinstance(method, amqp.ConnectionClose):
            await self._pass_on(method)
        return method

    async def _pass_on(self, refusal: amqp.ConnectionClose) -> NoReturn:
        """The broker does not want the client, or nobody at the moment."""
        if refusal.reply_code in NOT_A_VERDICT:
            raise UpstreamFaultError(f"{refusal.reply_code} {refusal.reply_text}")
        self.line.endpoint.succeeded()  # a refusal is an answer
        await self.client.pass_on(refusal, self.line.hop)


async def said_in(line: DialedBroker, answer: Awaitable[M]) -> M:
    """What a mechanism answers. Raises ``UpstreamUnavailableError`` where the broker does not keep to it."""
    try:
        return await answer
    except SaslError as error:
        raise UpstreamUnavailableError(f"upstream {line.endpoint.address}: {error}") from error


def check_tune(line: DialedBroker, own: Exchange | None, asked: amqp.ConnectionTune) -> None:
    """The broker lets us in. Raises ``UpstreamUnavailableError`` where it has not proven itself, or takes
    frames in which nothing fits."""
    why_not = too_small(asked.frame_max)
    if why_not is not None:
        raise UpstreamUnavailableError(f"upstream {line.endpoint.address}: {why_not}")
    if own is None:
        return
    try:
        own.finish()
    except SaslError as error:
        raise UpstreamUnavailableError(f"upstream {line.endpoint.address}: {error}") from error


def _expect(method: Method | None, expected: type[M]) -> M:
    if isinstance(method, expected):
        return method
    got = "the end of the connection" if method is None else f"'{method.NAME}'"
    raise UpstreamFaultError(f"expected '{expected.NAME}', got {got}")

"""How a session comes about whose broker is chosen by user, virtual host or client properties.

::

    client                      gateway                        broker
      │ protocol header ──────────▶ │
      │ ◀────────────────── start   │  what all that may be chosen offer (`offers`)
      │ start-ok ─────────────────▶ │  kept
      │ ◀─────────────────── tune   │
      │ tune-ok, open ────────────▶ │  the route is chosen; a paused one makes wait
      │                             │ dial, protocol header ──────▶ │
      │                             │ ◀────────────────────── start │
      │                             │ start-ok, again ────────────▶ │
      │                             │ ◀─────────────────────── tune │
      │                             │ tune-ok, open ──────────────▶ │
      │ ◀──────────────── open-ok   │ ◀──────────────────── open-ok │

The client's login is only repeated, never judged: open-ok still comes from the broker, and so do its
refusals, which reach the client where it waits for open-ok. Until then the client has heard nothing of this
broker, so what fails is tried at the next endpoint. A refusal is an answer, and is not tried elsewhere.

A mechanism with challenges cannot be repeated to a broker that was not there when it began: 403.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NoReturn, TypeVar

import attrs
import trio

from amqpgate.bridge import two_of_the_house
from amqpgate.config import USUAL_FRAME_MAX, Upstream
from amqpgate.errors import ConfigError, ProtocolViolation
from amqpgate.gateway.client_handshake import ClientHandshake, refusal_of_login
from amqpgate.gateway.clusters import Cluster
from amqpgate.gateway.dialling import Line, call
from amqpgate.gateway.door import Stage
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.gateway.offers import REPEATABLE, start_for, tune_for
from amqpgate.gateway.routing import Routing
from amqpgate.gateway.setup import Established, UpstreamFaultError, hand_over, introduce
from amqpgate.gateway.upstream import UpstreamUnavailableError
from amqpgate.protocol.frames import method_frame
from amqpgate.protocol.handshake import Tune, negotiate
from amqpgate.protocol.sasl import EXTERNAL, PLAIN, SaslWatcher, plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

M = TypeVar("M", bound=Method)

#: A broker that says so has not judged the client; another one may take it: CONNECTION_FORCED (it shuts
#: down) and INTERNAL_ERROR (RabbitMQ's word for a virtual host that is down on this node).
_NOT_A_VERDICT = frozenset({320, 541})

#: How long a cluster that could not be asked what it offers is not asked again, in seconds.
_PATIENCE = 5.0


@attrs.define
class DeferredSetup:
    """One conversation. ``run`` returns when both hops are open."""

    client: ClientHandshake
    routing: Routing
    version: str
    #: Within it the handshake's deadline stands still.
    unhurried: Callable[[], AbstractContextManager[None]]
    broker: Hop | None = attrs.field(default=None, init=False)

    async def run(self) -> Established:
        """Raises ``RefusedError``, of which the client has been told; ``HopClosedError`` and
        ``ProtocolViolation`` of the client; and ``UpstreamUnavailableError``, ``ConfigError`` and
        ``PausedError``, of which the client has not been told."""
        with self.client.hanging_up():
            return await self._converse()

    async def _converse(self) -> Established:
        client, listener, session = self.client, self.client.listener, self.client.caller.session_id
        clusters = self.routing.candidates(listener, client.principal(None, ""), session)
        await self._get_acquainted(clusters)
        start = start_for(clusters, listener)
        await client.say(start)
        start_ok, user = await self._authenticate(start)
        await client.admit(Stage.LOGIN, client.principal(user, ""), amqp.ConnectionStartOk)
        tune = await client.tune(tune_for(clusters, listener))
        request = await client.hear(amqp.ConnectionOpen)
        asked = client.principal(user, request.virtual_host)
        with self.unhurried():
            dialler = await self.routing.dialler(listener, asked, session, is_early=False)
        settings = dialler.settings
        principal = attrs.evolve(
            asked, user=settings.user or user, vhost=asked.vhost if settings.vhost is None else settings.vhost
        )
        request = attrs.evolve(request, virtual_host=principal.vhost)
        await client.admit(Stage.OPEN, principal, amqp.ConnectionOpen)
        while True:
            line = await dialler.connect()
            self.broker = line.hop
            try:
                upstream = await self._replay(line, settings, start_ok, tune, request, dialler.cluster)
            except UpstreamFaultError as fault:
                line.hop.close()
                error = UpstreamUnavailableError(f"upstream {line.endpoint.address}: {fault}")
                dialler.give_up(line.endpoint, error, answered=True)
                continue
            dialler.cluster.succeeded(line.endpoint)
            await client.say(amqp.ConnectionOpenOk())
            return Established(
                principal,
                hand_over(client.hop, tune),
                hand_over(line.hop, upstream),
                upstream.channel_max,
                two_of_the_house(),
                client.capabilities,
            )

    async def _get_acquainted(self, clusters: list[Cluster]) -> None:
        """Ask clusters what they offer that have not said so yet."""
        async with trio.open_nursery() as nursery:
            for cluster in clusters:
                if cluster.start is None and trio.current_time() - cluster.asked >= _PATIENCE:
                    nursery.start_soon(self._ask, cluster)

    async def _ask(self, cluster: Cluster) -> None:
        with trio.move_on_after(cluster.settings.connect_timeout):
            for endpoint in cluster.order(self.client.caller.session_id, trio.current_time()):
                with contextlib.suppress(UpstreamUnavailableError, ConfigError):
                    line = await call(
                        endpoint,
                        cluster.settings,
                        self.routing.contexts,
                        frame_max=self.routing.settings.largest_frame,
                    )
                    line.hop.close()
                    if isinstance(line.greeting, amqp.ConnectionStart):
                        cluster.start = line.greeting
                        return
        cluster.asked = trio.current_time()

    # -- with the client ----------------------------------------------------------------------

    async def _authenticate(self, start: amqp.ConnectionStart) -> tuple[amqp.ConnectionStartOk, str | None]:
        """What the client says of itself, and the user that it says it is."""
        start_ok = await self.client.hear_start_ok()
        mechanism = start_ok.mechanism
        offered = start.mechanisms.decode(errors="replace").split()
        if mechanism not in REPEATABLE:
            why = (
                f"{mechanism[:32]}: its challenges cannot "
                "be passed to a broker that is chosen by the login; use PLAIN or AMQPLAIN"
            )
            await self.client.refuse(refusal_of_login(why))
        if mechanism not in offered:
            await self.client.refuse(refusal_of_login(mechanism))
        watcher = SaslWatcher(mechanism)
        watcher.response(start_ok.response)
        if mechanism == EXTERNAL:
            return start_ok, self.client.caller.tls_name or None
        if watcher.user is None:
            why = f"{mechanism}: the response must come with start-ok, for the broker is chosen by it"
            await self.client.refuse(refusal_of_login(why))
        return start_ok, watcher.user

    # -- with the broker ----------------------------------------------------------------------

    async def _replay(
        self,
        line: Line,
        settings: Upstream,
        start_ok: amqp.ConnectionStartOk,
        client: Tune,
        request: amqp.ConnectionOpen,
        cluster: Cluster,
    ) -> Tune:
        """Say to the broker what the client has said; what holds on its hop.

        Raises ``UpstreamFaultError``, and ``RefusedError`` when the client has been told.
        """
        if isinstance(line.greeting, amqp.ConnectionClose):
            await self._pass_on(line, line.greeting)
        login = settings.login()
        if login is not None:
            response = plain_response(login.user, login.password.reveal())
            start_ok = attrs.evolve(start_ok, mechanism=PLAIN, response=response)
        await _send(line, introduce(self.client.caller, self.version, start_ok))
        method = await self._answer(line, settings)
        if method is None and not _is_told_why(start_ok):
            # How RabbitMQ refuses clients that do not ask to be told why. This one has logged in, for all
            # that it knows, and waits for open-ok, so it is told in RabbitMQ's words.
            why = f"{start_ok.mechanism}. For details see the broker logfile."
            await self.client.refuse(refusal_of_login(why))
        if isinstance(method, amqp.ConnectionSecure):
            why = (
                f"{start_ok.mechanism}: the broker's "
                "challenge comes too late for a client whose broker is chosen by its login"
            )
            await self.client.refuse(refusal_of_login(why))
        asked = _expect(method, amqp.ConnectionTune)
        cluster.tune = asked
        frame_max = negotiate(asked.frame_max, settings.frame_max or USUAL_FRAME_MAX)
        tune = Tune(
            frame_max=frame_max if settings.frame_max else min(frame_max, client.frame_max),
            channel_max=negotiate(
                negotiate(asked.channel_max, settings.channel_max or 0), client.channel_max
            ),
            heartbeat=asked.heartbeat if settings.heartbeat is None else settings.heartbeat,
        )
        tune_ok = amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat)
        await _send(line, method_frame(0, tune_ok) + method_frame(0, request))
        _expect(await self._answer(line, settings), amqp.ConnectionOpenOk)
        return tune

    async def _answer(self, line: Line, settings: Upstream) -> Method | None:
        """The broker's next method that is no refusal; None where it hung up."""
        timeout = settings.handshake_timeout or settings.connect_timeout
        method: Method | None = None
        with trio.move_on_after(timeout) as patience:
            try:
                method = await line.hop.next_method()
            except ProtocolViolation as violation:
                raise UpstreamFaultError(str(violation)) from violation
            except HopClosedError:
                return None
        if patience.cancelled_caught:
            raise UpstreamFaultError(f"did not answer within {timeout:g} s")
        if isinstance(method, amqp.ConnectionClose):
            await self._pass_on(line, method)
        return method

    async def _pass_on(self, line: Line, refusal: amqp.ConnectionClose) -> NoReturn:
        """The broker does not want the client, or nobody at the moment."""
        if refusal.reply_code in _NOT_A_VERDICT:
            raise UpstreamFaultError(f"{refusal.reply_code} {refusal.reply_text}")
        line.endpoint.failures = 0  # a refusal is an answer
        await self.client.pass_on(refusal, line.hop)


async def _send(line: Line, data: bytes) -> None:
    try:
        await line.hop.send(data)
    except HopClosedError as closed:
        raise UpstreamFaultError(str(closed)) from closed


def _is_told_why(start_ok: amqp.ConnectionStartOk) -> bool:
    """Whether the client asks for connection.close 403 where a login is refused."""
    found = start_ok.client_properties.field("capabilities")
    return (
        found is not None
        and isinstance(found.value, Table)
        and found.value.get("authentication_failure_close") is True
    )


def _expect(method: Method | None, expected: type[M]) -> M:
    if isinstance(method, expected):
        return method
    got = "the end of the connection" if method is None else f"'{method.NAME}'"
    raise UpstreamFaultError(f"expected '{expected.NAME}', got {got}")

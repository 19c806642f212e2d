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
refusals, which reach the client where it waits for open-ok. (Of clients that share connections to a broker
that is known beforehand, a login that is refused is told at once: `pooled_login`.) Until then the client has
heard nothing of this broker, so what fails is tried at the next endpoint. A refusal is an answer, and is not
tried elsewhere.

A mechanism with challenges cannot be repeated to a broker that was not there when it began. It is not
offered, and who chooses it, or another that is not offered, is hung up on, as by RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import attrs
import trio

from amqpgate.bridge import interpreter_for, pair_of
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.client_side import ClientHandshake, session_token_of, upstream_user_of
from amqpgate.gateway.handshake.offers import start_for, tune_for
from amqpgate.gateway.handshake.passthrough import established, relay_frames
from amqpgate.gateway.handshake.pooled_login import PooledLogin, needs_own
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.transport.method_stream import MethodStream, hand_over
from amqpgate.gateway.transport.waiting import in_trio
from amqpgate.gateway.upstream.broker_side import BrokerHandshake, UpstreamFaultError
from amqpgate.gateway.upstream.client import RefusedError, refusal_of_login
from amqpgate.gateway.upstream.cluster import Cluster, Destination
from amqpgate.gateway.upstream.dialer import UpstreamUnavailableError, ask_once
from amqpgate.protocol.sasl import EXTERNAL, REPEATABLE, SaslWatcher
from amqpgate.values import define
from amqpgate.wire.dialects import RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.pool.dial import Preauthenticated
    from amqpgate.gateway.pool.pool import Pool


@define
class LateBinding:
    """The handshake of one client that must speak first. ``run`` returns when both hops are open."""

    client: ClientHandshake
    #: Within it the handshake's deadline stands still.
    unhurried: Callable[[], AbstractContextManager[None]]
    broker: MethodStream | None = attrs.field(default=None, init=False)
    #: The name of the cluster that was chosen; None: none yet.
    upstream: str | None = attrs.field(default=None, init=False)

    async def run(self) -> Established:
        """Raises ``RefusedError``, of which the client has been told; ``StreamClosedError`` and
        ``ProtocolViolation`` of the client; and ``UpstreamUnavailableError``, ``ConfigError`` and
        ``PausedError``, of which the client has not been told."""
        try:
            return await self._converse()
        except ProtocolViolation as violation:
            self.client.hang_up(violation)

    async def _converse(self) -> Established:
        client, listener, session = self.client, self.client.listener, self.client.caller.session_id
        context = client.context
        router, pools, principals = context.router, context.pools, context.principals
        clusters = router.candidates(listener, client.principal(None, ""), session)
        await self._get_acquainted(clusters)
        start = start_for(clusters, listener)
        await client.say_start(start)
        user = await self._authenticate(start)
        pooled, preauthenticated = PooledLogin(client, pools), None
        certain = router.certain(listener, client.principal(None, ""), session)
        named = user
        if certain is not None and certain.destination.settings.has_login:
            named = principals.at_login(client, certain.destination, user)
        await client.admit_login(named)
        if certain is not None:
            self.upstream = certain.destination.cluster.name
        if certain is not None and pooled.may_share(certain.destination):
            preauthenticated = await in_trio(pooled.preauthenticate, certain)
            self.broker = None if preauthenticated is None else preauthenticated.broker.hop
        tune = await client.tune(tune_for(clusters, listener))
        request = await client.hear_open()
        asked = client.principal(user, request.virtual_host)
        with self.unhurried():
            dialler = await router.dialler(listener, asked, session, early=None)
        to, settings = dialler.destination, dialler.destination.settings
        self.upstream = to.cluster.name
        principal = attrs.evolve(
            asked,
            user=await in_trio(principals.user_of, client, to, user) if settings.has_login else user,
            vhost=asked.vhost if settings.vhost is None else settings.vhost,
            upstream_user=upstream_user_of(client, settings, user),
        )
        request = attrs.evolve(request, virtual_host=principal.vhost)
        await client.admit(AdmissionStage.OPEN, principal, amqp.ConnectionOpen)
        shares = pooled.may_share(to)
        if shares and needs_own(client.policies, to):
            shares = False
            if preauthenticated is not None:
                await in_trio(pooled.part_with, preauthenticated)
                self.broker = None
        if shares:
            pool = await in_trio(self._admit, pooled, to, principal.vhost, preauthenticated)
            await client.say(amqp.ConnectionOpenOk())
            from amqpgate.gateway.pool.pooled_upstream import PooledSource

            return Established(
                client.policies,
                hand_over(client.hop, tune),
                PooledSource(pool),
                tune.channel_max,
                pair_of(client.hop.interpreter, interpreter_for(RABBITMQ_0_9_1)),
                client.capabilities,
                to.choice,
                to.cluster.name,
                client.listener.keeps_deliveries,
                token=None if client.token is None else session_token_of(client, settings),
            )
        while True:
            line = await dialler.connect()
            client.mark("dial")
            broker = BrokerHandshake(client, dialler, context.version, tune, request, line)
            try:
                upstream = await broker.run()
            except UpstreamUnavailableError:
                # There is no login for it.
                broker.line.hop.close()
                raise
            except UpstreamFaultError as fault:
                broker.line.hop.close()
                error = UpstreamUnavailableError(f"upstream {line.endpoint.address}: {fault}")
                dialler.give_up(line.endpoint, error, answered=True)
                continue
            finally:
                self.broker = broker.line.hop
            line.endpoint.succeeded()
            frame_max = relay_frames(client, broker.line.hop)
            await client.say(amqp.ConnectionOpenOk())
            return established(client, tune, broker.line.hop, upstream, to, frame_max)

    async def _admit(
        self, pooled: PooledLogin, to: Destination, vhost: str, preauthenticated: Preauthenticated | None
    ) -> Pool:
        # The pool's from here on: others may share it before this client has heard that it is let in.
        self.broker = None
        return await pooled.admit(to, vhost, preauthenticated)

    async def _get_acquainted(self, clusters: list[Cluster]) -> None:
        """Ask clusters what they offer that have not said so yet."""
        now = trio.current_time()
        unknown = [cluster for cluster in clusters if cluster.is_to_be_asked(now)]
        if unknown:
            await in_trio(self._ask, unknown)

    async def _ask(self, clusters: list[Cluster]) -> None:
        context, session = self.client.context, self.client.caller.session_id
        async with trio.open_nursery() as nursery:
            for cluster in clusters:
                nursery.start_soon(
                    partial(
                        ask_once,
                        cluster,
                        session,
                        context.contexts,
                        frame_max=context.settings.largest_frame,
                    )
                )

    # -- with the client ----------------------------------------------------------------------

    async def _authenticate(self, start: amqp.ConnectionStart) -> str | None:
        """The user that the client says it is."""
        start_ok = await self.client.hear_start_ok()
        mechanism = start_ok.mechanism
        offered = start.mechanisms.decode(errors="replace").split()
        if mechanism not in REPEATABLE:
            why = (
                ": its challenges cannot be passed to a broker that is chosen by the login; "
                "use PLAIN or AMQPLAIN"
            )
            raise _not_offered(mechanism, why)
        if mechanism not in offered:
            raise _not_offered(mechanism)
        if self.client.token is not None:
            return self.client.token.user
        watcher = SaslWatcher(mechanism)
        watcher.response(start_ok.response)
        if mechanism == EXTERNAL:
            return self.client.caller.tls_name or None
        if watcher.user is None:
            why = ": the broker is chosen by the response, and there is none"
            await self.client.refuse(refusal_of_login(mechanism, why))
        return watcher.user


def _not_offered(mechanism: str, why: str = "") -> RefusedError:
    """RabbitMQ hangs up without a word, also on who wants to hear of failed logins: none was tried."""
    return RefusedError(refusal_of_login(mechanism, why).text)

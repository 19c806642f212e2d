"""One new connection's attempts to reach a cluster: dial, say the protocol header, hear the start.

Until the broker has said its first method the client has heard nothing that depends on which broker it is;
so whatever fails until then is tried again elsewhere, within the attempts and the budget of the cluster.
"""

from __future__ import annotations

import logging

import attrs
import trio

from amqpgate.config import Upstream
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.clusters import Cluster, Endpoint
from amqpgate.gateway.hop import Hop, HopClosedError
from amqpgate.gateway.tls import TlsContexts
from amqpgate.gateway.upstream import UpstreamUnavailableError, dial
from amqpgate.policy import Choice
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)


@attrs.frozen
class Line:
    """A connection to a broker that has answered."""

    endpoint: Endpoint
    hop: Hop
    #: Its first method: start, or close.
    greeting: amqp.ConnectionStart | amqp.ConnectionClose


@attrs.define
class Dialler:
    """The attempts of one session. ``connect`` may be called again when what it gave has failed later."""

    cluster: Cluster
    #: Those of the cluster, with what a route changes.
    settings: Upstream
    contexts: TlsContexts
    frame_max: int
    session: str
    metrics: UpstreamMetrics
    #: The route that leads there; None: the listener's own upstream.
    choice: Choice | None = None
    _left: list[Endpoint] | None = attrs.field(default=None, init=False)
    _error: UpstreamUnavailableError | None = attrs.field(default=None, init=False)

    async def connect(self) -> Line:
        """Raises the last attempt's ``UpstreamUnavailableError``; ``ConfigError`` for its TLS files."""
        while True:
            endpoint = self._next()
            try:
                line = await call(endpoint, self.settings, self.contexts, frame_max=self.frame_max)
            except UpstreamUnavailableError as error:
                self.give_up(endpoint, error)
                continue
            self.metrics.dialled(self.cluster.name, str(endpoint.address), "connected")
            if isinstance(line.greeting, amqp.ConnectionStart):
                self.cluster.start = line.greeting
            return line

    def give_up(self, endpoint: Endpoint, error: UpstreamUnavailableError, *, answered: bool = False) -> None:
        """An attempt has failed, or what ``connect`` gave (``answered``): the next one goes elsewhere."""
        log.warning("%s", error)
        self._error = error
        name, address = self.cluster.name, str(endpoint.address)
        self.metrics.dialled(name, address, "broken" if answered else "failed")
        if self.cluster.failed(endpoint, trio.current_time()):
            self.metrics.ejected(name, address)
            log.warning("upstream %s is left out for %g s", address, endpoint.sentence)

    def _next(self) -> Endpoint:
        if self._left is None:
            self._left = self.cluster.order(self.session, trio.current_time())
            return self._left.pop(0)
        assert self._error is not None, "a second attempt follows a failure"
        if not self._left:
            raise self._error
        if not self.cluster.may_retry():
            self.metrics.unaffordable(self.cluster.name)
            raise self._error
        return self._left.pop(0)


async def call(endpoint: Endpoint, settings: Upstream, contexts: TlsContexts, *, frame_max: int) -> Line:
    """One attempt. Raises ``UpstreamUnavailableError``, and ``ConfigError`` for the TLS files."""
    hop = await dial(settings, contexts, address=endpoint.address, frame_max=frame_max)
    try:
        return Line(endpoint, hop, await _greeting(hop, endpoint, settings))
    except BaseException:
        hop.close()
        raise


async def _greeting(
    hop: Hop, endpoint: Endpoint, settings: Upstream
) -> amqp.ConnectionStart | amqp.ConnectionClose:
    timeout = settings.handshake_timeout or settings.connect_timeout
    why = f"said nothing within {timeout:g} s"
    with trio.move_on_after(timeout):
        try:
            await hop.send(amqp.PROTOCOL_HEADER)
            method = await hop.next_method()
        except (ProtocolViolation, HopClosedError) as error:
            why = str(error)
        else:
            if isinstance(method, amqp.ConnectionStart | amqp.ConnectionClose):
                return method
            why = f"expected '{amqp.ConnectionStart.NAME}', got '{method.NAME}'"
    raise UpstreamUnavailableError(f"upstream {endpoint.address}: {why}")

"""Health checks: one task per endpoint, which dials, looks, and hangs up."""

from __future__ import annotations

import logging

import trio

from amqpgate.errors import ConfigError
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.cluster import Cluster, EndpointHealth
from amqpgate.gateway.upstream.dialer import UpstreamUnavailableError, call, dial
from amqpgate.logs import about
from amqpgate.telemetry.events import Events
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)

#: A start has the broker's properties and capabilities in it; RabbitMQ's has some 500 bytes.
_FRAME_MAX = 16 * 1024


async def look_after(
    cluster: Cluster, contexts: TlsContexts, metrics: UpstreamMetrics, events: Events
) -> None:
    """Check every endpoint of a cluster for ever; returns at once where none are to be checked."""
    if cluster.settings.health is None:
        return
    async with trio.open_nursery() as nursery:
        for endpoint in cluster.endpoints:
            nursery.start_soon(_watch, cluster, endpoint, contexts, metrics, events)


async def _watch(
    cluster: Cluster,
    endpoint: EndpointHealth,
    contexts: TlsContexts,
    metrics: UpstreamMetrics,
    events: Events,
) -> None:
    health = cluster.settings.health
    assert health is not None
    while True:
        try:
            why_not = await check(cluster, endpoint, contexts)
        except Exception as error:
            # One check's fault is that check's; the gateway goes on.
            log.exception("the check of upstream %s failed", endpoint.address)
            why_not = str(error)
        if cluster.checked(endpoint, why_not is None):
            name, address = cluster.name, endpoint.name
            metrics.checked(name, address, endpoint.up)
            events.tell("upstream", upstream=name, endpoint=address, up=endpoint.up, why=why_not)
            if endpoint.up:
                log.info("upstream %s is up again", address, extra=about(upstream=name))
            else:
                log.warning("upstream %s counts as down: %s", address, why_not, extra=about(upstream=name))
        await trio.sleep(health.interval)


async def check(cluster: Cluster, endpoint: EndpointHealth, contexts: TlsContexts) -> str | None:
    """Look once: why it is not well, or None. What the broker says in its start is kept for later."""
    health = cluster.settings.health
    timeout = health.timeout if health is not None else cluster.settings.connect_timeout
    with trio.move_on_after(timeout):
        try:
            if health is not None and health.check == "tcp":
                hop = await dial(cluster.settings, contexts, address=endpoint.address, frame_max=_FRAME_MAX)
                hop.close()
                return None
            line = await call(endpoint, cluster.settings, contexts, frame_max=_FRAME_MAX, name="health")
        except (UpstreamUnavailableError, ConfigError) as error:
            return str(error)
        line.hop.close()
        if isinstance(line.greeting, amqp.ConnectionStart):
            cluster.heard(line.greeting)
            return None
        return f"it said connection.close {line.greeting.reply_code}"
    return f"no answer within {timeout:g} s"

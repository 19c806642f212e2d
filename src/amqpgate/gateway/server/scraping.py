"""The numbers of a gateway: what its metrics are read from, and their text."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from prometheus_client.metrics_core import Metric

from amqpgate.datapath import reserve
from amqpgate.datapath.engine import Pump
from amqpgate.gateway.handshake.accept import Acceptor
from amqpgate.gateway.observers.stats.labelled import LabelledTotals
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.pool.usage import unsent, usage
from amqpgate.gateway.server import scrape
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.telemetry.faults import FAULTS
from amqpgate.telemetry.labelled import LabelledMetrics
from amqpgate.telemetry.memory_reserve import ReserveMetrics
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.readings import Totals
from amqpgate.values import define


@define(eq=False)
class Scraper:
    """Reads one gateway."""

    metrics: Metrics
    pump: Pump
    sessions: SessionRegistry
    acceptor: Acceptor
    #: What the sessions that are over have passed.
    ended: SessionTotals
    #: None: the settings ask for no labels.
    labelled: LabelledTotals | None
    #: What the last scrape has read; None: there was none.
    latest: Totals | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        registry = self.metrics.registry
        ReserveMetrics(registry, reserve.numbers)
        if self.labelled is not None:
            registry.register(LabelledMetrics(lambda: self.latest, self.labelled.settings.by))

    async def totals(self) -> Totals:
        """What the metrics are read from."""
        context = self.acceptor.context
        return await scrape.totals(
            self.sessions.live.values(),
            self.ended,
            self.pump.counters,
            connections=self.acceptor.connections.count,
            handshakes=len(context.pending),
            routes=(route.id for _, route in context.router.table.routes),
            pools=usage(context.pools.pools.values()),
            unsent=unsent(context.pools.pools.values()),
            certificates=scrape.certificates(context.settings.listeners, context.contexts),
            labelled=self.labelled,
        )

    async def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        await self._look()
        return self.metrics.text()

    async def open_text(self) -> bytes:
        """The metrics in OpenMetrics' text format, with exemplars."""
        await self._look()
        return self.metrics.open_text()

    async def families(self) -> Sequence[Metric]:
        """The metrics, for who makes something else of them."""
        await self._look()
        return list(self.metrics.registry.collect())

    async def _look(self) -> None:
        try:
            self.latest = await self.totals()
        except Exception:
            # What was read last is better than nothing of all that can be read.
            FAULTS.caught("metrics", "the totals")

"""The gateway's metrics by OTLP: a look after each interval, sent by a thread while everybody goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

import attrs
import trio
from prometheus_client.metrics_core import Metric

from amqpgate.config import HttpUrl, Otlp
from amqpgate.gateway.server.scraping import Scraper
from amqpgate.logs import RECURRING
from amqpgate.telemetry.http_request import NotTakenError
from amqpgate.telemetry.otlp.counts import COUNTS
from amqpgate.telemetry.otlp.metrics import request_of
from amqpgate.telemetry.otlp.post import MOST_ASKED, Poster, rejected_points, resource_of
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Seconds that the last look may take, when the gateway ends.
_LAST: Final = 1.0


@define(eq=False)
class MetricsPush:
    """Of one gateway."""

    scraper: Scraper
    poster: Poster[Otlp]
    resource: dict[str, str | int]
    version: str
    _began: int = attrs.field(factory=time.time_ns, init=False)

    @classmethod
    def of(cls, settings: Otlp, url: HttpUrl, version: str, scraper: Scraper) -> MetricsPush:
        """To where the settings say."""
        return cls(scraper, Poster(url, settings), resource_of(settings, version), version)

    async def run(self) -> None:
        """For ever."""
        asked = 0.0
        try:
            while True:
                await trio.sleep(max(float(self.poster.settings.interval), asked))
                asked = await self._push()
        finally:
            with trio.move_on_after(_LAST, shield=True):
                await self._push()

    async def _push(self) -> float:
        """One at a time: while a collector thinks no other look is taken. How long it asks to be left alone
        then, in seconds."""
        families = await self.scraper.families()
        # A thread that waits for an answer when the gateway ends is left behind.
        return await trio.to_thread.run_sync(
            partial(self._send, families, time.time_ns()), abandon_on_cancel=True
        )

    def _send(self, families: Sequence[Metric], now: int) -> float:
        asked, why = 0.0, ""
        try:
            body = request_of(families, self.resource, self.version, began=self._began, now=now)
            lost = rejected_points(self.poster.post(body))
            why = f"it says that it rejects {lost} data points" if lost else ""
        except NotTakenError as error:
            asked, why = min(error.pause, MOST_ASKED), str(error)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        COUNTS.add("metrics", "refused" if why else "sent")
        if why:
            log.warning("metrics are not taken by %s: %s", self.poster.url, why, extra=RECURRING)
        return asked

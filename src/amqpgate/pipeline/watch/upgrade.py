"""Who would fail on a newer RabbitMQ: each user and request once, when it is first seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from amqpgate.pipeline.jobs.preflight import seen
from amqpgate.pipeline.watch.alert import Alert, id_of
from amqpgate.pipeline.watch.course import Batch
from amqpgate.policy.tools.preflight import Target, troubles
from amqpgate.records import Sort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    #: Records of both sorts as frames.
    Frames = Callable[[pa.Table, pa.Table], AbstractContextManager[tuple[DataFrame, DataFrame]]]

#: Ids that are remembered. Of older ones the same may be told again, with the same id.
MOST_TOLD: Final = 20_000


@attrs.define
class Upgrade:
    """Watches for requests that fail."""

    target: Target
    frames: Frames
    sorts: tuple[Sort, ...] = ("usage", "events")
    _told: dict[str, None] = attrs.field(init=False, factory=dict)

    def is_due(self, _now: object) -> bool:
        """Nothing is without records."""
        return False

    def step(self, batch: Batch) -> list[Alert]:
        """What was not told before."""
        found: list[Alert] = []
        with self.frames(batch.records["usage"], batch.records["events"]) as (usage, events):
            requests = seen(usage, events).requests
        for one in requests:
            for trouble in troubles(one.request, self.target):
                request = one.request
                who = (request.vhost, one.user, request.kind, request.name)
                id_ = id_of("preflight", trouble.outcome, trouble.item, *who)
                if id_ in self._told:
                    continue
                self._told[id_] = None
                found.append(
                    Alert(
                        id=id_,
                        kind="preflight",
                        time=one.first,
                        user=one.user,
                        vhost=request.vhost,
                        what=f"{request.kind} {request.name}",
                        value=one.times,
                        detail={
                            "outcome": trouble.outcome,
                            "item": trouble.item,
                            "says": trouble.says,
                            "mended_by": trouble.mended_by,
                        },
                    )
                )
        for id_ in list(self._told)[: max(0, len(self._told) - MOST_TOLD)]:
            del self._told[id_]
        return found

    def dump(self) -> str:
        """What it has to know of after a restart."""
        return json.dumps(list(self._told))

    def load(self, text: str) -> None:
        """Know it again."""
        self._told = dict.fromkeys(json.loads(text))

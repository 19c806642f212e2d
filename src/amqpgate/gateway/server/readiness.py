"""Whether new connections are accepted, for probes, metrics and the supervisor."""

from __future__ import annotations

import attrs
import trio

from amqpgate.telemetry.instruments import GaugeMetric


@attrs.define(eq=False)
class Readiness:
    """The readiness of one gateway."""

    gauge: GaugeMetric
    ready: bool = attrs.field(default=False, init=False)
    #: Whether it ever was ready.
    started: bool = attrs.field(default=False, init=False)
    #: Set, and made anew, when it changes.
    changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    def become(self, ready: bool) -> None:
        """New connections are accepted from now on, or not any more."""
        if ready != self.ready:
            self.changed.set()
            self.changed = trio.Event()
        self.ready = ready
        self.started = self.started or ready
        self.gauge.set(ready)

"""Whether new connections are accepted, for probes, metrics and the supervisor."""

from __future__ import annotations

import attrs
import trio
from prometheus_client import Gauge

from amqpgate.gateway.server.standing import Impairment
from amqpgate.values import define


@define(eq=False)
class Readiness:
    """The readiness of one gateway."""

    gauge: Gauge
    ready: bool = attrs.field(default=False, init=False)
    #: Why not, though the phase would let it.
    impairments: Impairment = attrs.field(default=Impairment(0), init=False)
    #: Whether it ever was ready.
    started: bool = attrs.field(default=False, init=False)
    #: Set, and made anew, when it changes.
    changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    def become(self, accepting: bool, impairments: Impairment | None = None) -> None:
        """Whether the phase lets new connections in from now on, and what keeps them out nevertheless; None:
        what did before."""
        before = self.ready, self.impairments
        if impairments is not None:
            self.impairments = impairments
        ready = self.ready = accepting and not self.impairments
        if (ready, self.impairments) != before:
            self.changed.set()
            self.changed = trio.Event()
        self.started = self.started or ready
        self.gauge.set(ready)

"""What a gateway has for the observers of its sessions, and where they tell what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.gateway.observers.mirror.registry import MirrorRegistry
from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.observers.stats.decisions import Decisions
from amqpgate.gateway.observers.stats.rates import Rates
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.observers.tap.taps import TapRegistry
from amqpgate.telemetry.events import Events
from amqpgate.telemetry.metrics import Metrics
from amqpgate.values import frozen

if TYPE_CHECKING:
    from amqpgate.gateway.observers.audit.audit import AuditTrail
    from amqpgate.gateway.observers.trace.tracer import Tracer


@frozen(eq=False)
class GatewayObservers:
    """The services of one gateway."""

    metrics: Metrics
    events: Events
    decisions: Decisions
    bindings: Bindings
    reports: Reports
    #: What the sessions that are over have passed.
    ended: SessionTotals
    rates: Rates
    selected: Selected
    mirrors: MirrorRegistry
    taps: TapRegistry
    #: None: there are no audit records.
    audit: AuditTrail | None
    #: None: nothing is traced.
    tracer: Tracer | None

    def note(self, action: str, **detail: str) -> None:
        """An operator has done something."""
        if self.audit is not None:
            self.audit.admin(action, **detail)

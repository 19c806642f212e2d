"""All observers of a gateway's sessions: one line for each kind, in the order in which they are told.

What is traced is mirrored with its trace context: ``traces`` come before ``mirrors``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import attrs

from amqpgate.config import Settings
from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.observers.mirror.registry import MirrorRegistry
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.session import StatsFactory
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.observers.tap.session import TapFactory
from amqpgate.gateway.observers.tap.taps import TapRegistry
from amqpgate.gateway.observers.trace.factory import TraceFactory
from amqpgate.gateway.session.observer_factory import ObserverFactory

if TYPE_CHECKING:
    from amqpgate.gateway.observers.trace.tracer import Tracer


@attrs.frozen
class ObserverServices:
    """What a gateway has for them."""

    settings: Settings
    reports: Reports
    #: What the sessions that are over have passed.
    ended: SessionTotals
    taps: TapRegistry
    #: None: there are no audit records.
    audit: AuditTrail | None
    #: None: nothing is traced.
    tracer: Callable[[], Tracer | None]
    mirrors: MirrorRegistry


Make: TypeAlias = Callable[[ObserverServices], ObserverFactory | None]

#: Each gives the factory of one gateway; None: it needs none.
OBSERVERS: tuple[Make, ...] = (
    lambda gateway: StatsFactory(gateway.reports, gateway.ended),
    lambda gateway: TapFactory(gateway.taps),
    lambda gateway: gateway.audit,
    lambda gateway: TraceFactory(gateway.tracer),
    lambda gateway: gateway.mirrors,
)


def factories_of(services: ObserverServices) -> tuple[ObserverFactory, ...]:
    """Those of one gateway."""
    made = (make(services) for make in OBSERVERS)
    return tuple(factory for factory in made if factory is not None)

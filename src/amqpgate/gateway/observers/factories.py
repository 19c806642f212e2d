"""All observers of a gateway's sessions: one line for each kind, in the order in which they are told.

What is traced is mirrored with its trace context: ``traces`` come before ``mirrors``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from amqpgate.gateway.observers.services import GatewayObservers
from amqpgate.gateway.observers.stats.session import StatsFactory
from amqpgate.gateway.observers.tap.factory import TapFactory
from amqpgate.gateway.observers.trace.factory import TraceFactory
from amqpgate.gateway.session.registry import ObserverFactory

Make: TypeAlias = Callable[[GatewayObservers], ObserverFactory | None]

#: Each gives the factory of one gateway; None: it needs none.
OBSERVERS: tuple[Make, ...] = (
    lambda gateway: StatsFactory(gateway.reports, gateway.ended),
    lambda gateway: TapFactory(gateway.taps),
    lambda gateway: gateway.audit,
    lambda gateway: None if gateway.tracer is None else TraceFactory(gateway.tracer),
    lambda gateway: gateway.mirrors,
)


def factories_of(gateway: GatewayObservers) -> tuple[ObserverFactory, ...]:
    """Those of one gateway."""
    made = (make(gateway) for make in OBSERVERS)
    return tuple([factory for factory in made if factory is not None])

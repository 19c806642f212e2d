"""All scenarios."""

from ..steps import Scenario
from . import (
    acks,
    channels,
    consuming,
    exchanges,
    handshake,
    publishing,
    qos,
    queues,
    replies,
    routing,
    transactions,
)

SCENARIOS: tuple[Scenario, ...] = tuple(
    scenario
    for module in (
        handshake,
        channels,
        exchanges,
        routing,
        queues,
        consuming,
        qos,
        acks,
        publishing,
        transactions,
        replies,
    )
    for scenario in module.SCENARIOS
)

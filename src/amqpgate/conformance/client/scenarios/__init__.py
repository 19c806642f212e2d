"""What is played on clients, in the order in which connections get it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amqpgate.conformance.client.rules import PASSIVE, ClientSection
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.client.scenarios import deliveries, endings, handshake, publishing

_PLAYED: Final = (
    ("played.handshake", "Played: handshakes", handshake.SCENARIOS),
    ("played.deliveries", "Played: deliveries", deliveries.SCENARIOS),
    ("played.publishes", "Played: confirms, returns and flow control", publishing.SCENARIOS),
    ("played.endings", "Played: closes, cancels and heartbeats", endings.SCENARIOS),
)

#: By the id of its rule.
SCENARIOS: Final[Mapping[str, type[Scenario]]] = {
    one.rule.id: one for _, _, scenarios in _PLAYED for one in scenarios
}

#: All rules on clients: those that every connection is judged by, and those that are played.
CLIENT_SECTIONS: Final[Sequence[ClientSection]] = (
    *PASSIVE,
    *(ClientSection(name, title, [one.rule for one in scenarios]) for name, title, scenarios in _PLAYED),
)

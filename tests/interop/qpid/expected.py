"""What of Qpid's suite passes where (`expected.txt`), and why the others do not.

Under 0-8 directly 7 of 50 pass, through the gateway 44; under 0-9 directly 47 of 70, through the gateway 58.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs


@attrs.frozen
class Why:
    """Why a test does not pass."""

    #: What the test says then.
    words: str
    reason: str


WHY: Final[Mapping[str, Why]] = {
    "table": Why(
        "cannot decode",
        "RabbitMQ's 0-8 has no table in basic.consume, and Qpid's client sends one",
    ),
    "recover-ok": Why(
        "hangs",
        "Qpid's client waits for an answer to basic.recover, and RabbitMQ's 0-8 has none",
    ),
    "scope": Why("'connection' != 'channel'", "RabbitMQ closes the channel where Qpid ends the connection"),
    "harsher": Why("'channel' != 'connection'", "RabbitMQ ends the connection where Qpid closes the channel"),
    "default exchange": Why(
        "operation not permitted on the default exchange",
        "RabbitMQ binds nothing to the default exchange, and neither can the gateway",
    ),
    "delete": Why(
        "Expected delete of non-existant queue to fail",
        "RabbitMQ answers queue.delete of a queue that does not exist as if it had",
    ),
    "no-local": Why(
        "Received locally published message",
        "RabbitMQ does not know no-local, and a delivery does not say who published it",
    ),
    "durable": Why(
        "inequivalent arg 'durable'",
        "RabbitMQ compares durable with that of an exchange which exists; the standard ignores it",
    ),
    "exclusive": Why(
        "RESOURCE_LOCKED",
        "RabbitMQ compares exclusive with that of a queue which exists, for its owner, too",
    ),
    "count": Why(
        "3 != ",
        "RabbitMQ's queue.declare-ok may overtake publishes, and so count fewer messages than there are",
    ),
    "requeue": Why("NOT_IMPLEMENTED - requeue=false", "RabbitMQ does not have basic.recover without requeue"),
    "prefetch": Why("Got unexpected 6th message", "RabbitMQ's limits are for consumers to come"),
    "prefetch size": Why("NOT_IMPLEMENTED - prefetch_size!=0", "RabbitMQ has no prefetch-size"),
    "one by one": Why(
        "Empty",
        "a prefetch-size becomes a prefetch-count of 1; the test wants five messages of nine bytes at once",
    ),
    "subscription": Why(
        "Empty",
        "the test's queue is exclusive and outlives its connection: RabbitMQ deletes it with that",
    ),
    "immediate": Why("NOT_IMPLEMENTED - immediate=true", "RabbitMQ has no immediate"),
    "not immediate": Why(
        "Empty",
        "immediate is refused with 406: RabbitMQ has none, and would return nothing",
    ),
    "flow": Why("NOT_IMPLEMENTED - active=false", "RabbitMQ does not stop deliveries"),
    "rollback": Why(
        "Empty",
        "Qpid delivers again what was acknowledged; RabbitMQ leaves that to basic.recover",
    ),
    "query": Why("AttributeError: ", "the client's own specification lacks the method, at any broker"),
    "capacity": Why("Flow Control did not work", "the capacity of a queue (x-qpid-capacity) is Qpid's own"),
}

#: What may pass, or not, as it happens.
EITHER: Final = frozenset({"count"})

#: Version of the client, and its way to the broker.
WAYS: Final = (("0-8", "direct"), ("0-8", "gateway"), ("0-9", "direct"), ("0-9", "gateway"))

_LINES: Final = Path(__file__).with_suffix(".txt").read_text().splitlines()
_ROWS: Final = [[cell.strip() for cell in line.split("|")] for line in _LINES if not line.startswith("#")]

#: By the test's name, for each of the ways: None where it passes, or the key of `WHY`.
OUTCOMES: Final[Mapping[str, list[str | None]]] = {
    name: [None if cell in ("-", "") else cell for cell in cells] for name, *cells in _ROWS
}


def names() -> list[str]:
    """Every test."""
    return list(OUTCOMES)

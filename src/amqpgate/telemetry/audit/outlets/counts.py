"""What became of the records that an outlet was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from amqpgate.values import frozen

#: ``dropped``: too many waited. ``rejected``: the receiver will never take it. ``unroutable``: a broker took
#: it, and no queue has it. ``stopped``: the process ended first.
Outcome: TypeAlias = Literal["written", "dropped", "rejected", "unroutable", "stopped"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("written", "dropped", "rejected", "unroutable", "stopped")


@frozen
class OutletCounts:
    """A reading."""

    #: Records that wait, and their bytes.
    queued: int
    queued_bytes: int
    outcomes: Mapping[Outcome, int]
    #: Times that records were to be sent again.
    retries: int

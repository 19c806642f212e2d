"""Whether a message left a step of the delay ladder late: RabbitMQ may have sent it on from there before.

Where RabbitMQ dies between the arrival of a message in one queue and its departure from another, both have
it, and the latter sends it on again, at its next start or some minutes later. Nothing in a message says so
but the time at which it left, and its copy may have been delivered by a gateway that is gone, or by another
one. So the times are compared::

    published      at, by the gateway's clock      ┐ + 2^k ms, what the first rung takes
    left rung k    x-death, by the broker's        ┘┐ + 2^j ms
    left rung j    x-death                          ┘┐ + 0
    left to.X      x-death                           ┘

A time of ``x-death`` is cut to its second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amqpgate.gateway.session.delay_ladder import HIGHEST, LOWEST, OWN, PREFIX, rung_name
from amqpgate.wire.tables import Table

#: The header with the time of the publish, in milliseconds since 1970.
AT: Final = f"{OWN}at"

#: A step of this many seconds beyond its time is late. RabbitMQ takes longer to start, and a tenth for a step
#: unless it is overloaded.
PATIENCE: Final = 2.0

#: How the names of the last queues begin (`delay_ladder.end_of`).
_END: Final = f"{PREFIX}to"
#: The milliseconds of each rung, by its name.
_STAYS: Final = {rung_name(k): 1 << k for k in range(LOWEST, HIGHEST + 1)}


def is_late(headers: Table) -> bool:
    """Of a message that comes from the ladder; one that an older gateway led there has no `AT`."""
    at = headers.get(AT)
    before = at / 1000 if isinstance(at, int) else None
    for milliseconds, time in sorted(_times(headers), reverse=True):
        if before is not None and time - before - milliseconds / 1000 > PATIENCE:
            return True
        before = time
    return False


def _times(headers: Table) -> Iterator[tuple[int, int]]:
    """What a message was to stay in a queue, and when it left."""
    deaths = headers.field("x-death")
    for death in deaths.value if deaths is not None and isinstance(deaths.value, tuple) else ():
        if isinstance(death.value, Table):
            queue, time = death.value.get("queue"), death.value.field("time")
            stay = _STAYS.get(queue) if isinstance(queue, str) else None
            if stay is None and isinstance(queue, str) and queue.startswith(_END):
                stay = 0
            if stay is not None and time is not None and isinstance(time.value, int):
                yield stay, time.value

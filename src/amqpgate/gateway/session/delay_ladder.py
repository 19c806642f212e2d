"""The ladder that delayed messages climb down on the broker: its objects as data, and who takes which rungs.

RabbitMQ 4 has no exchange that delays. A rung is a quorum queue whose messages expire after 2^k ms; a delay
is a sum of rungs. Each rung is behind a headers exchange of its own name, which takes the message if its
headers say so, and leaves it to the rung below if not (``alternate-exchange``). Rungs dead-letter to the rung
below. So the message keeps its routing keys, ``CC`` and ``BCC`` among them, and passes each rung once.

::

    31 ──▶ queue 31 ─expires─┐         rung k: 2^k ms, k = 6 ... 31
     │ not this one          │
     ▼                       │
    30 ◀─────────────────────┘ ...
     ▼
    due ──▶ queue to.X ─expires at once─▶ done ──▶ exchange X, as its clients have bound it
     │ no such exchange                    └─────▶ sink, which keeps nothing
     └────▶ gone ──▶ sink

Queues dead-letter at least once: a message leaves one when all queues that it goes to have confirmed it. One
that goes nowhere, because X has no queue for it, would stay and hold up those behind it; that is why the sink
gets a copy of each. A queue that takes no more (``x-overflow: reject-publish``) holds up ``to.X``, and no
other exchange.

Whoever declares an object of the ladder declares it like this: the definitions never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

import attrs

from amqpgate.policy.engine.operations import DELAY_LADDER
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Table

#: How the names of all its exchanges and queues begin.
PREFIX: Final = DELAY_LADDER
#: How the names of all headers begin that are its own. RabbitMQ's headers exchanges do not look at ``x-...``.
OWN: Final = "amqpgate-delay-"
#: The header with the name of the exchange at the end.
TARGET: Final = f"{OWN}to"
#: Where messages come from that have been delayed.
DONE: Final = f"{PREFIX}done"

_DUE: Final = f"{PREFIX}due"
_GONE: Final = f"{PREFIX}gone"
_SINK: Final = f"{PREFIX}sink"

#: Milliseconds of delay: what the plugin takes, and RabbitMQ as ``x-message-ttl``.
LONGEST: Final = 2**32 - 1
#: The lowest rung: 64 ms.
LOWEST: Final = 6
#: The highest rung: 24.9 days.
HIGHEST: Final = 31
#: So many bits of a delay count: it is rounded up by less than 1/128, and takes eight rungs at most.
_BITS: Final = 8
#: What a longer delay is: one step less than all rungs.
_MOST: Final = (1 << HIGHEST + 1) - (1 << HIGHEST + 1 - _BITS)

#: A queue's name has 255 bytes at most.
_LONGEST_NAME: Final = 255

_QUEUE: Final = Table.of(
    {
        "x-queue-type": "quorum",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
)


def rungs_of(delay: int) -> tuple[int, ...]:
    """Which rungs a message takes, the highest first: of ``delay`` milliseconds, 1 to `LONGEST`.

    Their sum is at least the delay, and less than 64 ms or 1/128 more; delays of more than 49.5 days get up
    to 1/256 less.
    """
    step = 1 << max(LOWEST, delay.bit_length() - _BITS)
    rounded = min(-(-delay // step) * step, _MOST)
    return tuple([k for k in range(HIGHEST, LOWEST - 1, -1) if rounded >> k & 1])


def rung_name(k: int) -> str:
    """Of the queue, and of the exchange before it."""
    return f"{PREFIX}{k:02}"


def rung_header(k: int) -> str:
    """The header whose value true says that the message takes this rung."""
    return f"{OWN}{k:02}"


def end_of(exchange: str) -> str:
    """The queue that the delayed messages of an exchange come to, and leave at once."""
    name = f"{PREFIX}to.{exchange}"
    if len(name.encode(errors="surrogateescape")) <= _LONGEST_NAME:
        return name
    return f"{PREFIX}to:{hashlib.sha256(exchange.encode(errors='surrogateescape')).hexdigest()}"


def is_of_ladder(name: str) -> bool:
    """Whether an exchange or a queue is one of the ladder's."""
    return name.startswith(PREFIX)


def foot() -> Iterator[Method]:
    """What declares all that is below the rungs, without an answer."""
    yield _exchange(DONE, is_internal=True)
    yield attrs.evolve(ANSWERED, no_wait=True)
    yield _binding(_SINK, DONE, EMPTY_TABLE)
    yield _exchange(_GONE, kind="fanout", is_internal=True)
    yield _binding(_SINK, _GONE, EMPTY_TABLE)
    yield _exchange(_DUE, otherwise=_GONE, is_internal=True)


def rung(k: int) -> Iterator[Method]:
    """What declares one rung, without an answer. Those below it are there."""
    name, below = rung_name(k), _DUE if k == LOWEST else rung_name(k - 1)
    yield _queue(name, _QUEUE.with_("x-message-ttl", 1 << k).with_("x-dead-letter-exchange", below))
    yield _exchange(name, otherwise=below)
    yield _binding(name, name, Table.of({rung_header(k): True}))


def end(exchange: str) -> Iterator[Method]:
    """What declares the end for one exchange, without an answer; it is not bound to the exchange yet."""
    name = end_of(exchange)
    yield _queue(name, _QUEUE.with_("x-message-ttl", 0).with_("x-dead-letter-exchange", DONE))
    yield _binding(name, _DUE, Table.of({TARGET: exchange}))


def way_to(exchange: str) -> Method:
    """What binds the exchange, which is there. RabbitMQ asks whether its user may write to it."""
    return amqp.ExchangeBind(
        destination=exchange, source=DONE, no_wait=True, arguments=Table.of({TARGET: exchange})
    )


#: The sink, which is there: what the broker answers behind all that its channel has declared.
ANSWERED: Final = amqp.QueueDeclare(
    queue=_SINK, durable=True, arguments=Table.of({"x-queue-type": "quorum", "x-max-length": 0})
)


def _queue(name: str, arguments: Table) -> Method:
    return amqp.QueueDeclare(queue=name, durable=True, no_wait=True, arguments=arguments)


def _exchange(
    name: str, *, kind: str = "headers", otherwise: str | None = None, is_internal: bool = False
) -> Method:
    arguments = EMPTY_TABLE if otherwise is None else Table.of({"alternate-exchange": otherwise})
    return amqp.ExchangeDeclare(
        exchange=name, type=kind, durable=True, internal=is_internal, no_wait=True, arguments=arguments
    )


def _binding(queue: str, exchange: str, arguments: Table) -> Method:
    return amqp.QueueBind(queue=queue, exchange=exchange, no_wait=True, arguments=arguments)

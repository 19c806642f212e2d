"""A message on its way into the ladder (`delay_ladder`), and as its consumer sees it: pure functions.

What the ladder would act on, or RabbitMQ writes over, is kept in headers of the gateway's own meanwhile:

===============================  ==========================================================================
of the publisher's               in the ladder
===============================  ==========================================================================
exchange                         the header `TARGET`
``expiration``                   a header: a rung would take it for its own, and dead-lettering drops it
``x-death`` and its like         headers: RabbitMQ writes its own
``x-delay``                      negated and of 64 bits, as the plugin shows it to consumers
routing keys, all other          as they are
===============================  ==========================================================================
"""

from __future__ import annotations

import math
import re
from typing import Final, TypeAlias, TypeVar

import attrs

from amqpgate.gateway.session.delay_ladder import (
    DONE,
    LONGEST,
    OWN,
    TARGET,
    is_of_ladder,
    rung_header,
    rung_name,
    rungs_of,
)
from amqpgate.gateway.session.late_steps import AT
from amqpgate.policy.engine.naming import precondition_failed
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table

#: The header that says how long, in milliseconds.
DELAY: Final = "x-delay"

#: Whole numbers as the plugin of RabbitMQ 3.13 knows them: the signed byte is none of them.
_WHOLE: Final = frozenset("lBsuIi")
_FLOATS: Final = frozenset("df")
_TEXTS: Final = frozenset("Sx")
_TEXT: Final = re.compile(rb"[+-]?[0-9]{1,4096}")

#: A number that each message has of its own, by which it is known where it comes twice.
ID: Final = f"{OWN}id"

_EXPIRATION: Final = f"{OWN}expiration"
_DEATH: Final = "x-death"
_FIRST: Final = "x-first-death-"
_LAST: Final = "x-last-death-"
#: Parts of what RabbitMQ says of a first and of a last death.
_PARTS: Final = ("queue", "reason", "exchange")
#: What RabbitMQ writes into a dead letter.
_DEATHS: Final = (_DEATH, *(f"{order}{part}" for order in (_FIRST, _LAST) for part in _PARTS))

_Sent: TypeAlias = "amqp.BasicDeliver | amqp.BasicGetOk | amqp.BasicReturn"
S = TypeVar("S", bound="_Sent")


def delay_of(header: ContentHeader) -> int | None:
    """For how many milliseconds the plugin would delay a message; None: it would not.

    Raises `NotTransformedError` for a text that is no number: RabbitMQ 3 ends the connection for that.
    """
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    field = None if properties.headers is None else properties.headers.field(DELAY)
    delay = None if field is None else _number(field)
    return delay if delay is not None and 0 < delay <= LONGEST else None


def _number(field: Field) -> int | None:
    value = field.value
    if field.tag in _WHOLE and isinstance(value, int):
        return value
    if field.tag in _FLOATS and isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if field.tag in _TEXTS and isinstance(value, str | bytes):
        text = value.encode(errors="surrogateescape") if isinstance(value, str) else value
        if not _TEXT.fullmatch(text):
            raise precondition_failed(f"invalid header '{DELAY}': it is no number of milliseconds")
        return int(text)
    return None


def into_ladder(
    method: amqp.BasicPublish, header: ContentHeader, delay: int, number: int, at: int
) -> tuple[amqp.BasicPublish, ContentHeader]:
    """The message as it enters the ladder ``at`` a time (ms), with its own ``number`` (63 bits).

    Its names are the broker's.
    """
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    rungs = rungs_of(delay)
    entries: list[tuple[str, Field]] = []
    for name, field in properties.headers or EMPTY_TABLE:
        if name in _DEATHS:
            entries.append((OWN + name, field))
        elif name != DELAY and not name.startswith(OWN):
            entries.append((name, field))
    entries.append((DELAY, Field("l", -delay)))
    entries.append((TARGET, Field("S", method.exchange)))
    entries.append((ID, Field("l", number)))
    entries.append((AT, Field("l", at)))
    entries += [(rung_header(k), Field("t", True)) for k in rungs]
    if properties.expiration is not None:
        entries.append((_EXPIRATION, Field("S", properties.expiration)))
    changed = attrs.evolve(properties, headers=Table(tuple(entries)), expiration=None)
    return (
        attrs.evolve(method, exchange=rung_name(rungs[0])),
        attrs.evolve(header, properties=changed),
    )


def out_of_ladder(method: S, header: ContentHeader) -> tuple[S, ContentHeader]:
    """A message to the client as if it had not been in the ladder; the very objects where it was not."""
    properties = header.properties
    if not isinstance(properties, amqp.BasicProperties) or properties.headers is None:
        return method, header
    target = properties.headers.get(TARGET)
    if isinstance(target, bytes):
        # No UTF-8. In methods such a name is text with these in it.
        target = target.decode(errors="surrogateescape")
    if not isinstance(target, str):
        return method, header
    kept: dict[str, Field] = {}
    own: dict[str, Field] = {}
    for name, field in properties.headers:
        (own if name.startswith(OWN) else kept).setdefault(name, field)
    expiration = properties.expiration
    if not _without_rungs(kept, target):
        # Nobody but the ladder has dead-lettered it.
        kept |= {name: own[OWN + name] for name in _DEATHS if OWN + name in own}
        said = own.get(_EXPIRATION)
        if expiration is None and said is not None and isinstance(said.value, str):
            expiration = said.value
    changed = attrs.evolve(properties, headers=Table(tuple(kept.items())), expiration=expiration)
    if method.exchange == DONE:
        method = attrs.evolve(method, exchange=target)
    return method, attrs.evolve(header, properties=changed)


def number_of(headers: Table) -> int | None:
    """That of a message which comes from the ladder."""
    number = headers.get(ID)
    return number if isinstance(number, int) else None


def _without_rungs(headers: dict[str, Field], target: str) -> bool:
    """Take what the ladder did out of a message's history. Whether there is anything else in it."""
    deaths = headers.get(_DEATH)
    others = [
        _renamed(death, target)
        for death in (deaths.value if deaths is not None and isinstance(deaths.value, tuple) else ())
        if not _is_rung(death)
    ]
    if not others:
        for name in _DEATHS:
            headers.pop(name, None)
        return False
    headers[_DEATH] = Field("A", tuple(others))
    # The latest is the first in the list.
    first = min(reversed(others), key=_time)
    for part in _PARTS:
        field = _part(first, part)
        if field is not None:
            headers[_FIRST + part] = field
    if (last := headers.get(f"{_LAST}exchange")) is not None and last.value == DONE:
        headers[f"{_LAST}exchange"] = Field("S", target)
    return True


def _is_rung(death: Field) -> bool:
    queue = _part(death, "queue")
    return queue is not None and isinstance(queue.value, str) and is_of_ladder(queue.value)


def _renamed(death: Field, target: str) -> Field:
    """A death in a queue behind the exchange, which RabbitMQ says to be behind the ladder."""
    table = death.value
    if not isinstance(table, Table) or table.get("exchange") != DONE:
        return death
    return Field(death.tag, table.with_("exchange", target))


def _part(death: Field, name: str) -> Field | None:
    return death.value.field(name) if isinstance(death.value, Table) else None


def _time(death: Field) -> int:
    time = _part(death, "time")
    return time.value if time is not None and isinstance(time.value, int) else 0

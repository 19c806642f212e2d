"""Dead letters that are published again: their ``x-death`` counts on, as on RabbitMQ 3.

RabbitMQ 3 goes on with the ``x-death`` that a publisher sends along; RabbitMQ 4 takes no notice of it, and
begins anew. So what a client publishes is kept in a header of the gateway's own, and what it gets is both,
merged.

::

    client ── x-death: [retry 2] ──▶ gateway ── x-amqpgate-death: {x-death: [retry 2]} ──▶ broker
    client ◀─ x-death: [retry 3] ─── gateway ◀─ likewise, x-death: [retry 1] ──────────── broker

Merged is as RabbitMQ 3.10 merges: by queue and reason; what died last comes first; an entry that counts on
keeps its time, exchange and routing keys. ``x-first-death-...`` stay the client's.

A header of that name which a client makes up is taken out where it is published through a gateway with such a
policy, and says no more than an ``x-death`` that it might have made up where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

from amqpgate.policy import Compatibility, Peek
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table

DEATHS: Final = "x-death"
#: The gateway's own: a table of the headers below, as the client published them.
SAVED: Final = "x-amqpgate-death"
_FIRST: Final = ("x-first-death-exchange", "x-first-death-queue", "x-first-death-reason")

#: Which messages must be shown: of those that are published, and of those that are delivered.
PEEK_PUBLISHED: Final = Peek(headers=frozenset({DEATHS, SAVED}))
PEEK_DELIVERED: Final = Peek(headers=frozenset({SAVED}))

#: Deaths that are counted on, one for each queue and reason. A message with more stays as it is.
MOST: Final = 128
#: RabbitMQ counts in 64 bits.
_LARGEST: Final = (1 << 63) - 1

#: A death's queue and reason; or its place, where it has none.
_Key: TypeAlias = "tuple[str, str] | int"


def are_counted(policy: Compatibility | None) -> bool:
    """Whether the policy of a session has them count on."""
    return policy is not None and policy.counts_deaths


def is_published_again(frame: memoryview) -> bool:
    """Whether the header frame of a publish may have anything of this."""
    data = bytes(frame)
    return DEATHS.encode() in data or SAVED.encode() in data


def is_saved(frame: memoryview) -> bool:
    """Whether the header frame of a message to a client may have it."""
    return SAVED.encode() in bytes(frame)


def saved(header: ContentHeader) -> ContentHeader:
    """A header as it is published: itself where there is nothing to keep."""
    properties = header.properties
    headers = properties.headers if isinstance(properties, amqp.BasicProperties) else None
    if headers is None:
        return header
    kept = headers.without(SAVED) if SAVED in headers else headers
    if _deaths_of(headers) is not None:
        names = (DEATHS, *_FIRST)
        fields = tuple([(name, field) for name in names if (field := headers.field(name)) is not None])
        kept = kept.without(DEATHS).with_(SAVED, Table(fields))
    return header if kept is headers else _with_headers(header, kept)


def merged(header: ContentHeader) -> ContentHeader:
    """A header as the client gets it: itself where nothing was kept."""
    properties = header.properties
    headers = properties.headers if isinstance(properties, amqp.BasicProperties) else None
    field = None if headers is None else headers.field(SAVED)
    if headers is None or field is None or not isinstance(field.value, Table):
        return header
    before = _deaths_of(field.value)
    if before is None:
        return header
    told = headers.field(DEATHS)
    since = () if told is None or not isinstance(told.value, tuple) else told.value
    if not since:
        return _with_headers(header, headers.without(SAVED).with_(DEATHS, field.value.field(DEATHS)))
    headers = headers.without(SAVED).with_(DEATHS, Field("A", tuple(_counted_on(before, since))))
    for name in _FIRST:
        first = field.value.field(name)
        if first is not None:
            headers = headers.with_(name, first)
    return _with_headers(header, headers)


def _deaths_of(headers: Table) -> tuple[Field, ...] | None:
    """What ``x-death`` says, where that is a list that can be counted on."""
    field = headers.field(DEATHS)
    if field is None or not isinstance(field.value, tuple) or not 0 < len(field.value) <= MOST:
        return None
    return field.value


def _counted_on(before: tuple[Field, ...], since: tuple[Field, ...]) -> Iterator[Field]:
    """All deaths, the latest first, as both have them."""
    # The first of several with one key is the one that counts: it comes last here.
    known: dict[_Key, Table] = {}
    for place in range(len(before) - 1, -1, -1):
        death = before[place].value
        if isinstance(death, Table):
            _put(known, _key_of(death, place), death)
    for place in range(len(since) - 1, -1, -1):
        death = since[place].value
        if isinstance(death, Table):
            key = _key_of(death, len(before) + place)
            earlier = known.get(key)
            if earlier is not None:
                count = min(_count_of(earlier) + _count_of(death), _LARGEST)
                death = earlier.with_("count", Field("l", count))
            _put(known, key, death)
    return (Field("F", death) for death in reversed(known.values()))


def _put(known: dict[_Key, Table], key: _Key, death: Table) -> None:
    known.pop(key, None)
    known[key] = death


def _key_of(death: Table, place: int) -> _Key:
    queue, reason = death.get("queue"), death.get("reason")
    return (queue, reason) if isinstance(queue, str) and isinstance(reason, str) else place


def _count_of(death: Table) -> int:
    count = death.get("count")
    return count if type(count) is int else 0


def _with_headers(header: ContentHeader, headers: Table) -> ContentHeader:
    assert isinstance(header.properties, amqp.BasicProperties)
    return attrs.evolve(header, properties=attrs.evolve(header.properties, headers=headers))

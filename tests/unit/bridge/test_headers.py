"""Content headers from every kind of peer to every other: properties stay, tables mean the same."""

from __future__ import annotations

import json
from decimal import Decimal

import attrs
import pytest
from hypothesis import given

from amqpgate.bridge import interpreter_for
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.dialects import DIALECTS, Dialect
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import Field, Table
from tests.unit.wire import checks
from tests.unit.wire.strategies import TABLE

PROPERTIES = amqp.BasicProperties(
    content_type="text/plain", delivery_mode=2, priority=9, timestamp=7, user_id="guest", reserved="cluster"
)


def means(said: Field, heard: Field) -> bool:
    """Whether a value is what it was, or what `wire.mapping` makes of it for who lacks its type."""
    was, now = said.value, heard.value
    match was:
        case Table():
            if isinstance(now, str):
                return list(json.loads(now)) == list(was.to_python())
            assert isinstance(now, Table)
            return same(was, now)
        case tuple():
            items = tuple(now) if isinstance(now, tuple) else None
            if items is not None:
                return len(items) == len(was) and all(map(means, was, items))
            table = Table(tuple((str(number), item) for number, item in enumerate(was)))
            return means(Field("F", table), heard)
        case None:
            return now is None or now == ""
        case str() | bytes():
            return raw(was) == raw(now)
        case Decimal():
            return now in (was, str(was)) or now == float(was)
        case float():
            return now in (was, repr(was))
        case bool():
            return now in (was, str(int(was)))
    return now in (was, str(was))


def raw(text: object) -> bytes:
    assert isinstance(text, str | bytes)
    return text.encode() if isinstance(text, str) else text


def same(said: Table, heard: Table) -> bool:
    return len(said) == len(heard) and all(
        name == again and means(field, other)
        for (name, field), (again, other) in zip(said, heard, strict=True)
    )


@pytest.mark.parametrize("reader", DIALECTS.values(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("writer", DIALECTS.values(), ids=lambda dialect: dialect.name)
@given(table=TABLE)
@checks.quick
def test_headers_reach_every_reader(writer: Dialect, reader: Dialect, table: Table) -> None:
    as_written = attrs.evolve(writer, encodes=writer.decodes)
    as_read = attrs.evolve(reader, decodes=reader.encodes)
    written = put_table(table, as_written)
    said, _ = get_table(written, 0, len(written), writer)
    payload = encode_header(ContentHeader(60, 9, attrs.evolve(PROPERTIES, headers=said)), as_written)

    there, here = interpreter_for(writer), interpreter_for(reader)
    told = here.header_from_canonical(there.header_to_canonical(payload))

    again = interpreter_for(as_read).header_to_canonical(told)
    heard = again.properties
    assert isinstance(heard, amqp.BasicProperties)
    assert (again.body_size, again.class_id) == (9, 60)
    assert attrs.evolve(heard, headers=None) == PROPERTIES
    assert heard.headers is not None
    assert same(said, heard.headers)
    if here.reads_tables_of(there):
        assert told == payload

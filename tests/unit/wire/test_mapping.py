"""The nearest type of a peer that has fewer: whatever comes, the peer can read what goes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.wire.dialects import (
    DIALECTS,
    LEGACY_CLIENT,
    QPID_0_9,
    QPID_PYTHON_0_9,
    RABBITMQ_0_9_1,
    STANDARD_0_9_1,
    Dialect,
)
from amqpgate.wire.mapping import nearest
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import Field, Table
from tests.unit.wire.strategies import TABLE

INNER = Table((("a", Field("I", 1)),))


def only(*tags: str) -> Dialect:
    """A peer that has text and these."""
    types = {tag: RABBITMQ_0_9_1.encodes[tag] for tag in ("S", *tags)}
    return evolve(RABBITMQ_0_9_1, encodes=types)


@pytest.mark.parametrize(
    ("dialect", "field", "mapped"),
    [
        (LEGACY_CLIENT, Field("b", -5), Field("I", -5)),
        (LEGACY_CLIENT, Field("l", 7), Field("I", 7)),
        (LEGACY_CLIENT, Field("i", 2**31), Field("S", "2147483648")),
        (LEGACY_CLIENT, Field("l", -(2**40)), Field("S", "-1099511627776")),
        (LEGACY_CLIENT, Field("d", 0.1), Field("S", "0.1")),
        (LEGACY_CLIENT, Field("x", b"\xff\x00"), Field("S", b"\xff\x00")),
        (LEGACY_CLIENT, Field("V", None), Field("S", "")),
        (LEGACY_CLIENT, Field("t", True), Field("I", 1)),
        (LEGACY_CLIENT, Field("D", Decimal(2**32)), Field("S", "4294967296")),
        (
            LEGACY_CLIENT,
            Field("A", (Field("V", None), Field("I", 1))),
            Field("F", Table((("0", Field("V", None)), ("1", Field("I", 1))))),
        ),
        (STANDARD_0_9_1, Field("s", -5), Field("I", -5)),
        (STANDARD_0_9_1, Field("l", -(2**40)), Field("L", -(2**40))),
        (STANDARD_0_9_1, Field("x", b"a"), Field("S", b"a")),
        (RABBITMQ_0_9_1, Field("l", 2**63), Field("S", str(2**63))),
        (RABBITMQ_0_9_1, Field("s", "text"), Field("S", "text")),
        (RABBITMQ_0_9_1, Field("D", Decimal("-0.5")), Field("d", -0.5)),
        (QPID_0_9, Field("L", 2**40), Field("l", 2**40)),
        (QPID_PYTHON_0_9, Field("D", Decimal("0.5")), Field("d", 0.5)),
        (QPID_PYTHON_0_9, Field("T", 5), Field("I", 5)),
        (QPID_PYTHON_0_9, Field("F", INNER), Field("S", '{"a": 1}')),
        (QPID_PYTHON_0_9, Field("A", (Field("I", 1),)), Field("S", '{"0": 1}')),
        (only("I"), Field("t", True), Field("I", 1)),
        (only("I"), Field("t", 2), Field("I", 1)),
        (only("t"), Field("t", 2), Field("t", True)),
        (only("f"), Field("d", 1.5), Field("f", 1.5)),
        (only("f"), Field("d", 0.1), Field("S", "0.1")),
        (only("f"), Field("d", 1e300), Field("S", "1e+300")),
        (only(), Field("T", 5), Field("S", "5")),
    ],
)
def test_the_nearest_type(dialect: Dialect, field: Field, mapped: Field) -> None:
    found = nearest(field, dialect)
    assert found == mapped
    assert type(found.value) is type(mapped.value)


@pytest.mark.parametrize("name", DIALECTS)
@given(table=TABLE)
# Tables are large: 30 of them have some thousand values.
@settings(max_examples=30)
def test_every_peer_can_read_what_it_is_sent(name: str, table: Table) -> None:
    dialect = DIALECTS[name]
    # The peer's own reader knows the types that it is sent, and no others.
    reader = evolve(dialect, decodes=dialect.encodes)
    data = put_table(table, dialect)
    read, pos = get_table(data, 0, len(data), reader)
    assert pos == len(data)
    assert [entry for entry, _ in read] == [entry for entry, _ in table]


@given(TABLE)
# Tables are large: 30 of them have some thousand values.
@settings(max_examples=30)
def test_mapping_once_is_enough(table: Table) -> None:
    data = put_table(table, LEGACY_CLIENT)
    read, _ = get_table(data, 0, len(data), LEGACY_CLIENT)
    assert put_table(read, LEGACY_CLIENT) == data


@given(st.integers(-(2**63), 2**64 - 1), st.sampled_from(sorted(DIALECTS)))
def test_integers_keep_their_value_or_become_digits(value: int, name: str) -> None:
    mapped = nearest(Field("?", value), DIALECTS[name])
    assert mapped.value == (str(value) if mapped.tag == "S" else value)

"""Field tables in bytes: each type, both directions, malformed and outsized ones."""

from __future__ import annotations

import struct
import tracemalloc
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.dialects import (
    DIALECTS,
    LEGACY_CLIENT,
    QPID_0_9_1,
    RABBITMQ_0_9_1,
    STANDARD_0_9_1,
    Dialect,
)
from amqpgate.wire.table_codec import TableLimits, get_table, put_table
from amqpgate.wire.tables import EMPTY_TABLE, Field, FieldValue, Table
from tests.unit.wire.strategies import TABLE


def with_length(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def decode(data: bytes, dialect: Dialect = RABBITMQ_0_9_1, limits: TableLimits | None = None) -> Table:
    table, pos = get_table(data, 0, len(data), dialect, limits or TableLimits())
    assert pos == len(data)
    return table


# One vector per letter and dialect; the bytes are written out by hand.
TYPES: list[tuple[Dialect, str, FieldValue, str]] = [
    (RABBITMQ_0_9_1, "t", True, "01"),
    (RABBITMQ_0_9_1, "t", False, "00"),
    (RABBITMQ_0_9_1, "t", 2, "02"),
    (RABBITMQ_0_9_1, "b", -2, "fe"),
    (RABBITMQ_0_9_1, "B", 254, "fe"),
    (RABBITMQ_0_9_1, "s", -2, "fffe"),
    (RABBITMQ_0_9_1, "u", 65534, "fffe"),
    (RABBITMQ_0_9_1, "I", -2, "fffffffe"),
    (RABBITMQ_0_9_1, "i", 2**32 - 2, "fffffffe"),
    (RABBITMQ_0_9_1, "l", -2, "fffffffffffffffe"),
    (RABBITMQ_0_9_1, "L", -2, "fffffffffffffffe"),
    (RABBITMQ_0_9_1, "f", 1.5, "3fc00000"),
    (RABBITMQ_0_9_1, "d", -1.5, "bff8000000000000"),
    (RABBITMQ_0_9_1, "D", Decimal("42949672.95"), "02ffffffff"),
    (RABBITMQ_0_9_1, "S", "é", "00000002c3a9"),
    (RABBITMQ_0_9_1, "S", b"\xff", "00000001ff"),
    (RABBITMQ_0_9_1, "x", b"a", "0000000161"),
    (RABBITMQ_0_9_1, "T", 2**64 - 1, "ffffffffffffffff"),
    (RABBITMQ_0_9_1, "V", None, ""),
    (RABBITMQ_0_9_1, "F", EMPTY_TABLE, "00000000"),
    (RABBITMQ_0_9_1, "F", Table((("k", Field("V", None)),)), "00000003016b56"),
    (RABBITMQ_0_9_1, "A", (), "00000000"),
    (RABBITMQ_0_9_1, "A", (Field("V", None), Field("b", 1)), "00000003566201"),
    (STANDARD_0_9_1, "U", -2, "fffe"),
    (STANDARD_0_9_1, "s", "ab", "026162"),
    (STANDARD_0_9_1, "l", 2**64 - 2, "fffffffffffffffe"),
    (STANDARD_0_9_1, "L", -2, "fffffffffffffffe"),
    (QPID_0_9_1, "s", -2, "fffe"),
    (QPID_0_9_1, "l", -2, "fffffffffffffffe"),
    (QPID_0_9_1, "D", Decimal("-0.01"), "02ffffffff"),
    (QPID_0_9_1, "c", "ab", "000000026162"),
    (QPID_0_9_1, "k", "a", "61"),
    (LEGACY_CLIENT, "I", -2, "fffffffe"),
]


@pytest.mark.parametrize(("dialect", "tag", "value", "data"), TYPES)
def test_each_type(dialect: Dialect, tag: str, value: FieldValue, data: str) -> None:
    wire = with_length(b"\x01n" + tag.encode() + bytes.fromhex(data))
    table = Table((("n", Field(tag, value)),))
    assert decode(wire, dialect) == table
    assert put_table(table, dialect) == wire


@pytest.mark.parametrize(
    ("dialect", "tag", "value", "data"), [vector for vector in TYPES if "A" in vector[0].encodes]
)
def test_each_type_in_an_array(dialect: Dialect, tag: str, value: FieldValue, data: str) -> None:
    wire = with_length(b"\x01nA" + with_length(tag.encode() + bytes.fromhex(data) + b"I\x00\x00\x00\x05"))
    table = Table((("n", Field("A", (Field(tag, value), Field("I", 5)))),))
    assert decode(wire, dialect) == table
    assert put_table(table, dialect) == wire


def test_every_type_of_rabbitmq_has_a_vector() -> None:
    assert {tag for dialect, tag, _, _ in TYPES if dialect is RABBITMQ_0_9_1} == set(RABBITMQ_0_9_1.decodes)


@given(TABLE)
def test_round_trip(table: Table) -> None:
    data = put_table(table)
    again = decode(data)
    assert again == table
    assert put_table(again) == data


@given(TABLE)
# Tables are large: 30 of them have some thousand values.
@settings(max_examples=30)
def test_a_table_ends_where_it_says(table: Table) -> None:
    data = put_table(table)
    padded = b"\xff" + data + b"\xff\xff"
    assert get_table(padded, 1, len(padded)) == (table, 1 + len(data))
    assert get_table(memoryview(padded), 1, len(padded)) == (table, 1 + len(data))


def test_names_may_be_any_bytes_as_with_rabbitmq() -> None:
    wire = with_length(b"\x02\xff\xfeV" + b"\x00V")
    table = decode(wire)
    assert [name for name, _ in table] == ["\udcff\udcfe", ""]
    assert put_table(table) == wire


def test_names_longer_than_their_length_byte_cannot_be_written() -> None:
    assert len(put_table(Table.of({"é" * 127: None}))) == 4 + 1 + 254 + 1
    with pytest.raises(ValueError, match="256"):
        put_table(Table.of({"é" * 128: None}))


# RabbitMQ 3.10.8 answers each of these, sent as the headers of a message, with 541 "INTERNAL_ERROR"; sent
# in a method it drops the connection, for its parser has no clause for them.
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x05ab", id="name longer than the table"),
        pytest.param(b"\x01a", id="no type"),
        pytest.param(b"\x00", id="empty name, no type"),
        pytest.param(b"\x01aU\x00\x01", id="U"),
        pytest.param(b"\x01as\x02ab", id="s as a short string"),
        pytest.param(b"\x01a?", id="unknown letter"),
        pytest.param(b"\x01a\xc3\x00", id="not even a letter"),
        pytest.param(b"\x01at", id="bool cut short"),
        pytest.param(b"\x01al\x00\x00\x00\x00", id="number cut short"),
        pytest.param(b"\x01aS\x00\x00\x00", id="length cut short"),
        pytest.param(b"\x01aS\x00\x00\x00\x07abc", id="text longer than the table"),
        pytest.param(b"\x01ax\xff\xff\xff\xff", id="bytes of 4 GiB"),
        pytest.param(b"\x01aF\x00\x00\x00\x01", id="inner table past the outer one"),
        pytest.param(b"\x01aF\x00\x00\x00\x05\x01bS\x00\x00\x00\x01x", id="value past the inner table"),
        pytest.param(b"\x01aA\x00\x00\x00\x01I\x00\x00\x00\x01", id="value past the array"),
        pytest.param(b"\x01ad" + struct.pack(">d", float("nan")), id="not a number"),
        pytest.param(b"\x01af" + struct.pack(">f", float("-inf")), id="infinity"),
    ],
)
def test_malformed_inside(data: bytes) -> None:
    # With something after it, so that reading past the end would find bytes.
    wire = with_length(data) + b"\x00" * 16
    with pytest.raises(ProtocolViolation) as caught:
        get_table(wire, 0, len(wire))
    assert caught.value.code == 541


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x01", b"\xff\xff\xff\xff" + bytes(50)])
def test_a_table_longer_than_its_method_is_a_frame_error(data: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        get_table(data, 0, len(data))
    assert caught.value.code == 501


@pytest.mark.parametrize("data", [b"\x01as", b"\x01as\x03ab"])
def test_short_strings_inside_are_measured_too(data: bytes) -> None:
    wire = with_length(data) + b"\x00" * 16
    with pytest.raises(ProtocolViolation) as caught:
        get_table(wire, 0, len(wire), STANDARD_0_9_1)
    assert caught.value.code == 541


def test_floats_that_are_no_numbers_pass_where_the_peer_has_them() -> None:
    wire = with_length(b"\x01ad" + struct.pack(">d", float("inf")))
    assert decode(wire, STANDARD_0_9_1).get("a") == float("inf")


@given(TABLE)
# Each example is cut at every byte.
@settings(max_examples=40)
def test_cut_anywhere(table: Table) -> None:
    data = put_table(table)
    for size in range(len(data)):
        with pytest.raises(ProtocolViolation) as caught:
            get_table(data, 0, size)
        assert caught.value.code == 501
    body = data[4:]
    for size in range(len(body)):
        # A shorter table that says so: an entry may end there, or the cut is found inside.
        wire = with_length(body[:size])
        try:
            shorter = decode(wire)
        except ProtocolViolation as violation:
            if violation.code != 541:
                raise
        else:
            assert put_table(shorter) == wire


def nested(depth: int, tag: bytes = b"F", inner: bytes = b"") -> bytes:
    """A table with `depth` levels, itself included."""
    data = inner
    for level in range(depth - 1):
        data = (b"" if tag == b"A" and level < depth - 2 else b"\x01n") + tag + with_length(data)
    return with_length(data)


@pytest.mark.parametrize("tag", [b"F", b"A"])
def test_depth_is_limited(tag: bytes) -> None:
    decode(nested(64, tag))
    with pytest.raises(ProtocolViolation) as caught:
        decode(nested(65, tag))
    assert caught.value.code == 506
    decode(nested(3, tag), limits=TableLimits(depth=3))
    with pytest.raises(ProtocolViolation):
        decode(nested(4, tag), limits=TableLimits(depth=3))
    with pytest.raises(ProtocolViolation):
        decode(nested(20_000, tag))


def test_neither_decoding_nor_encoding_recurses() -> None:
    deep = nested(20_000)
    table = decode(deep, limits=TableLimits(depth=20_000, entries=20_000))
    assert put_table(table) == deep


def test_entries_of_all_levels_are_counted_together() -> None:
    wire = with_length(b"\x00V" * 3 + b"\x00A" + with_length(b"VVV"))
    assert len(decode(wire, limits=TableLimits(entries=7))) == 4
    with pytest.raises(ProtocolViolation) as caught:
        decode(wire, limits=TableLimits(entries=6))
    assert caught.value.code == 506


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(with_length(b"\x00A" + with_length(b"V" * 131_000)), id="array of nothing"),
        pytest.param(with_length(b"\x00V" * 65_000), id="nameless nothings"),
        pytest.param(with_length(b"\x00F\x00\x00\x00\x00" * 21_000), id="empty tables"),
        pytest.param(with_length(b"\x00S\xff\xff\xff\xff" + bytes(1000)), id="text of 4 GiB"),
        pytest.param(nested(18_000), id="tables in tables"),
    ],
)
def test_a_bomb_of_one_frame_costs_little_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation):
            get_table(data, 0, len(data))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024


@given(st.binary(max_size=60), st.sampled_from(sorted(DIALECTS)))
# Bytes at random seldom get far: more examples than others.
@settings(max_examples=400)
def test_any_bytes_decode_or_are_a_violation(data: bytes, name: str) -> None:
    wire = with_length(data)
    try:
        table = decode(wire, DIALECTS[name])
    except ProtocolViolation:
        return
    if name.startswith("rabbitmq"):
        assert put_table(table, DIALECTS[name]) == wire


_LETTERS = "tbBsuIilLfdDSATFVxUcCk"


@given(
    st.lists(
        st.tuples(st.sampled_from(_LETTERS), st.binary(max_size=12)).map(
            lambda pair: b"\x01n" + pair[0].encode() + pair[1]
        ),
        max_size=4,
    ).map(b"".join)
)
# Bytes at random seldom get far: more examples than others.
@settings(max_examples=400)
def test_almost_tables_decode_or_are_a_violation(data: bytes) -> None:
    wire = with_length(data)
    try:
        table = decode(wire)
    except ProtocolViolation:
        return
    assert put_table(table) == wire

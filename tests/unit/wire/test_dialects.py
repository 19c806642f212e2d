"""Dialects are data: the facts that people trip over, and that all of them can be served."""

from __future__ import annotations

import pytest

from amqpgate.wire import dialects
from amqpgate.wire.codec import methods
from amqpgate.wire.dialects import DIALECTS, Dialect, FieldKind
from amqpgate.wire.generated import v0_8, v0_9, v0_9_1
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import Field, Table

BY_NAME = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))


@pytest.mark.parametrize(
    ("tag", "rabbitmq", "standard", "qpid"),
    [
        ("s", FieldKind.INT16, FieldKind.SHORTSTR, FieldKind.INT16),
        ("U", None, FieldKind.INT16, None),
        ("u", FieldKind.UINT16, FieldKind.UINT16, FieldKind.UINT16),
        ("l", FieldKind.INT64, FieldKind.UINT64, FieldKind.INT64),
        ("L", FieldKind.INT64, FieldKind.INT64, None),
        ("I", FieldKind.INT32, FieldKind.INT32, FieldKind.INT32),
        ("i", FieldKind.UINT32, FieldKind.UINT32, FieldKind.UINT32),
        ("b", FieldKind.INT8, FieldKind.INT8, FieldKind.INT8),
        ("x", FieldKind.BYTES, None, FieldKind.BYTES),
        ("D", FieldKind.DECIMAL, FieldKind.DECIMAL, FieldKind.SIGNED_DECIMAL),
    ],
)
def test_letters_that_differ(
    tag: str, rabbitmq: FieldKind | None, standard: FieldKind | None, qpid: FieldKind | None
) -> None:
    assert dialects.RABBITMQ_0_9_1.decodes.get(tag) is rabbitmq
    assert dialects.STANDARD_0_9_1.decodes.get(tag) is standard
    assert dialects.QPID_0_9_1.decodes.get(tag) is qpid


def test_rabbitmq_speaks_the_same_types_under_every_header() -> None:
    assert dialects.RABBITMQ_0_8.decodes == dialects.RABBITMQ_0_9_1.decodes
    assert "".join(sorted(dialects.RABBITMQ_0_9_1.decodes)) == "".join(sorted("tbBusIiLlfdDSATFVx"))


def test_broker_j_is_not_sent_the_letter_that_it_writes_longer_than_it_reads() -> None:
    assert set(dialects.QPID_0_9.decodes) - set(dialects.QPID_0_9.encodes) == {"i"}
    assert put_table(Table((("n", Field("i", 5)),)), dialects.QPID_0_9)[6:7] == b"I"


def test_legacy_clients_take_five_types_or_six() -> None:
    assert set(dialects.LEGACY_CLIENT.encodes) == set("SIDTF")
    assert set(dialects.LEGACY_CLIENT_0_9.encodes) == set("SIDTFt")


def test_a_decimal_for_a_legacy_client_keeps_its_bytes() -> None:
    """It reads them as signed, as they were written; the gateway need not."""
    data = b"\x00\x00\x00\x08\x01n" + b"D\x02\xff\xff\xff\xfb"
    read, _ = get_table(data, 0, len(data), dialects.RABBITMQ_0_9_1)
    assert put_table(read, dialects.LEGACY_CLIENT) == data


@BY_NAME
def test_header_is_that_of_the_version(dialect: Dialect) -> None:
    module = {(0, 8, 0): v0_8, (0, 9, 0): v0_9, (0, 9, 1): v0_9_1}[dialect.version]
    # qpid-python sends the same one for 0-9 and 0-9-1.
    ambiguous = dialect.name == "qpid-python-0-9-1"
    assert dialect.header == (v0_9.PROTOCOL_HEADER if ambiguous else module.PROTOCOL_HEADER)
    assert len(dialect.header) == 8


@BY_NAME
def test_every_letter_is_one_byte_and_text_always_goes(dialect: Dialect) -> None:
    assert all(len(tag.encode()) == 1 for tag in (*dialect.decodes, *dialect.encodes))
    # What `mapping` falls back to.
    assert dialect.encodes["S"] is FieldKind.LONGSTR


@BY_NAME
def test_extensions_exist(dialect: Dialect) -> None:
    known = {method.EXTENSION for method in methods(dialect).values()}
    assert known - {""} <= dialect.extensions


def test_constants_are_listed_by_name() -> None:
    constants = [value for value in vars(dialects).values() if isinstance(value, Dialect)]
    assert {dialect.name: dialect for dialect in constants} == dict(DIALECTS)
    assert len(constants) == len(DIALECTS)

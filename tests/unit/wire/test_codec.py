"""Payloads to methods and headers: which methods a dialect knows, and how RabbitMQ words its refusals."""

from __future__ import annotations

import struct

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.wire import codec
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method, encode_header
from amqpgate.wire.dialects import (
    LEGACY_CLIENT,
    QPID_0_8,
    QPID_0_9,
    QPID_0_9_1,
    RABBITMQ_0_8,
    RABBITMQ_0_9_1,
    STANDARD_0_8,
    STANDARD_0_9_1,
    Dialect,
)
from amqpgate.wire.generated import v0_8, v0_9, v0_9_1
from amqpgate.wire.tables import Table

DECLARE = v0_9_1.QueueDeclare(queue="wq", auto_delete=True)


def refusal(payload: bytes, dialect: Dialect = RABBITMQ_0_9_1) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode_method(payload, dialect)
    return caught.value


def test_a_method_there_and_back() -> None:
    payload = DECLARE.encode()
    assert payload == bytes.fromhex("0032000a 0000 02 7771 08 00000000".replace(" ", ""))
    assert decode_method(payload) == DECLARE
    assert decode_method(memoryview(payload)) == DECLARE


# The codes and ids below are those of RabbitMQ 3.10.8, sent these payloads on channel 1; it quotes them, too.
@pytest.mark.parametrize(
    ("payload", "size"),
    [
        (DECLARE.encode()[:-3], 7),
        (DECLARE.encode() + b"x", 11),
        (DECLARE.encode()[:-4] + b"\x00\x00\x00\x05abc", 13),
        (DECLARE.encode()[:6] + bytes(100_000), 100_002),
    ],
)
def test_arguments_that_do_not_match(payload: bytes, size: int) -> None:
    violation = refusal(payload)
    assert (violation.code, violation.class_id, violation.method_id) == (501, 50, 10)
    assert (
        violation.reply_text
        == f"FRAME_ERROR - cannot decode the {size} bytes of arguments of 'queue.declare'"
    )
    assert violation.scope == "connection"


@pytest.mark.parametrize("payload", [b"", b"\x00\x0a\x00"])
def test_no_room_for_the_ids(payload: bytes) -> None:
    violation = refusal(payload)
    assert (violation.code, violation.class_id, violation.method_id) == (501, 0, 0)
    assert violation.reply_text == f"FRAME_ERROR - type 1, {len(payload)} bytes: unknown_frame"


def test_short_strings_that_are_no_utf_8() -> None:
    violation = refusal(bytes.fromhex("0032000a 0000 01 ff 08 00000000".replace(" ", "")))
    assert (violation.code, violation.class_id, violation.method_id) == (501, 50, 10)
    assert violation.reply_text == "FRAME_ERROR - Malformed UTF-8 in shortstr"


@pytest.mark.parametrize(
    "method",
    [
        v0_9_1.BasicPublish(exchange="\udcff", routing_key="\udcfe"),
        v0_9_1.BasicReturn(reply_text="\udcff", exchange="\udcfe", routing_key="\udcfd"),
        v0_9_1.BasicDeliver(consumer_tag="\udcff", exchange="\udcfe", routing_key="\udcfd"),
        v0_9_1.BasicGetOk(exchange="\udcff", routing_key="\udcfe"),
    ],
)
def test_content_methods_carry_any_bytes_as_rabbitmqs_do(method: v0_9_1.Method) -> None:
    payload = method.encode()
    assert b"\xff" in payload
    assert decode_method(payload) == method


def test_a_malformed_table_names_its_method() -> None:
    violation = refusal(DECLARE.encode()[:-4] + b"\x00\x00\x00\x05\x01aU\x00\x01")
    assert (violation.code, violation.class_id, violation.method_id) == (541, 50, 10)


@pytest.mark.parametrize(("class_id", "method_id"), [(60, 999), (99, 10), (0, 0), (0xFFFF, 0xFFFF)])
def test_unknown_methods(class_id: int, method_id: int) -> None:
    violation = refusal(struct.pack(">HH", class_id, method_id))
    assert (violation.code, violation.class_id, violation.method_id) == (540, class_id, method_id)


BOUND = v0_9_1.ExchangeBound(exchange="x")
BLOCKED = v0_9_1.ConnectionBlocked(reason="low on memory")


@pytest.mark.parametrize(
    ("dialect", "payload", "known"),
    [
        (RABBITMQ_0_9_1, BLOCKED.encode(), True),
        (STANDARD_0_9_1, BLOCKED.encode(), False),
        (RABBITMQ_0_9_1, BOUND.encode(), False),
        (QPID_0_9_1, BOUND.encode(), True),
        (QPID_0_8, BOUND.encode(), True),
        (QPID_0_9, BOUND.encode(), True),
        (RABBITMQ_0_8, BOUND.encode(), False),
        (LEGACY_CLIENT, BOUND.encode(), True),
        (RABBITMQ_0_8, v0_8.QueueUnbind().encode(), True),
        (QPID_0_8, v0_8.QueueUnbind().encode(), False),
        (STANDARD_0_8, v0_8.BasicRecover().encode(), False),
    ],
)
def test_extensions_belong_to_dialects(dialect: Dialect, payload: bytes, known: bool) -> None:
    if known:
        assert decode_method(payload, dialect).encode(dialect) == payload
    else:
        assert refusal(payload, dialect).code == 540


def test_one_payload_is_another_method_in_another_version() -> None:
    # 10,60 is connection.close in 0-8 and RabbitMQ's connection.blocked in 0-9-1.
    payload = v0_8.ConnectionClose(reply_code=320, reply_text="bye").encode(RABBITMQ_0_8)
    assert isinstance(decode_method(payload, RABBITMQ_0_8), v0_8.ConnectionClose)
    assert refusal(payload, RABBITMQ_0_9_1).class_id == 10
    unblocked = v0_9_1.ConnectionUnblocked().encode()
    assert isinstance(decode_method(unblocked, RABBITMQ_0_8), v0_8.ConnectionCloseOk)


def test_consume_of_0_8_with_and_without_a_table() -> None:
    without = v0_8.BasicConsume(queue="q").encode(RABBITMQ_0_8)
    with_table = v0_8.BasicConsume(queue="q", arguments=Table()).encode(QPID_0_8)
    assert with_table == without + b"\x00\x00\x00\x00"
    for dialect in (RABBITMQ_0_8, QPID_0_8):
        assert decode_method(without, dialect) == v0_8.BasicConsume(queue="q")
        assert decode_method(with_table, dialect) == v0_8.BasicConsume(queue="q", arguments=Table())


def test_tables_follow_the_dialect() -> None:
    declare = v0_9_1.QueueDeclare(arguments=Table.of({"n": None, "big": 2**40}))
    payload = declare.encode(LEGACY_CLIENT)
    assert payload.endswith(b"\x01nS\x00\x00\x00\x00\x03bigS\x00\x00\x00\x0d1099511627776")


def test_unused_bits_are_dropped() -> None:
    payload = bytearray(DECLARE.encode())
    payload[9] |= 0xE0
    assert decode_method(payload) == DECLARE


HEADER = ContentHeader(
    60, 2**40, v0_9_1.BasicProperties(content_type="text/plain", headers=Table.of({"a": 1}), priority=0)
)


def test_a_header_there_and_back() -> None:
    payload = encode_header(HEADER)
    assert payload[:14] == bytes.fromhex("003c 0000 0000010000000000 a800".replace(" ", ""))
    assert decode_header(payload) == HEADER
    assert decode_header(bytearray(payload)) == HEADER


def test_properties_that_are_there_but_empty_are_kept() -> None:
    properties = v0_9_1.BasicProperties(content_type="", headers=Table(), timestamp=0, delivery_mode=0)
    payload = encode_header(ContentHeader(60, 0, properties))
    assert decode_header(payload).properties == properties
    assert v0_9_1.BasicProperties().encode() == b"\x00\x00"


def header_refusal(payload: bytes, dialect: Dialect = RABBITMQ_0_9_1) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode_header(payload, dialect)
    return caught.value


# As RabbitMQ 3.10.8 answers on a channel where basic.publish was sent before.
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        pytest.param(b"", 501, id="empty"),
        pytest.param(struct.pack(">HHQ", 60, 0, 0)[:11], 501, id="eleven bytes"),
        pytest.param(struct.pack(">HHQH", 60, 1, 0, 0), 505, id="weight"),
        pytest.param(struct.pack(">HHQH", 50, 0, 0, 0), 505, id="class without content"),
        pytest.param(struct.pack(">HHQ", 60, 0, 0), 541, id="no flags"),
        pytest.param(struct.pack(">HHQH", 60, 0, 0, 0x8000), 541, id="property missing"),
        pytest.param(struct.pack(">HHQH", 60, 0, 0, 0) + b"x", 541, id="something after"),
        pytest.param(
            struct.pack(">HHQH", 60, 0, 0, 0x2000) + b"\x00\x00\x00\x05\x01aU\x00\x01", 541, id="table"
        ),
    ],
)
def test_malformed_headers(payload: bytes, code: int) -> None:
    assert header_refusal(payload).code == code


def test_texts_of_malformed_headers() -> None:
    assert header_refusal(struct.pack(">HHQH", 60, 1, 0, 0)).reply_text == (
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"
    )
    assert header_refusal(b"\x00\x3c\x00").reply_text == ("FRAME_ERROR - type 2, 3 bytes: unknown_frame")


@pytest.mark.parametrize("flags", [0x0001, 0x0002])
def test_flag_bits_without_a_property(flags: int) -> None:
    payload = struct.pack(">HHQH", 60, 0, 0, flags)
    # RabbitMQ passes over them; by the standard the lowest says that more flags follow.
    assert decode_header(payload).properties == v0_9_1.BasicProperties()
    assert header_refusal(payload, STANDARD_0_9_1).code == 541


def test_headers_of_the_old_classes() -> None:
    payload = encode_header(ContentHeader(110, 3, v0_8.TunnelProperties(proxy_name="p", broadcast=1)))
    assert decode_header(payload, RABBITMQ_0_8).properties == v0_8.TunnelProperties(
        proxy_name="p", broadcast=1
    )
    stage = encode_header(ContentHeader(70, 3, v0_9.FileProperties(filename="f")))
    assert decode_header(stage, QPID_0_9).properties == v0_9.FileProperties(filename="f")


def test_lookups_are_made_once() -> None:
    assert codec.methods(RABBITMQ_0_9_1) is codec.methods(RABBITMQ_0_9_1)
    assert codec.properties(RABBITMQ_0_9_1)[60] is v0_9_1.BasicProperties


def test_what_each_connection_says_is_decoded_once() -> None:
    opened = v0_9_1.ConnectionOpen("/known").encode()
    assert decode_method(opened) is decode_method(memoryview(opened))
    # A login is not kept, however short.
    said = v0_9_1.ConnectionSecureOk(b"secret").encode()
    assert decode_method(said) is not decode_method(said)
    long = v0_9_1.ConnectionOpen("/" + 64 * "x").encode()
    assert decode_method(long) is not decode_method(long)


def test_what_a_broker_starts_with_is_decoded_once() -> None:
    start = v0_9_1.ConnectionStart(server_properties=Table.of({"product": "a broker"})).encode()
    assert decode_method(start) is decode_method(memoryview(start))
    long = v0_9_1.ConnectionStart(server_properties=Table.of({"product": 1024 * "x"})).encode()
    assert decode_method(long) is not decode_method(long)


def test_the_same_bytes_in_another_dialect_are_another_method() -> None:
    opened = v0_9_1.ConnectionOpen("/both").encode()
    assert isinstance(decode_method(opened), v0_9_1.ConnectionOpen)
    assert isinstance(decode_method(opened, RABBITMQ_0_8), v0_8.ConnectionOpen)


def test_what_is_kept_of_them_is_bounded() -> None:
    first = decode_method(v0_9_1.ConnectionOpen("/first").encode())
    for number in range(100):
        decode_method(v0_9_1.ConnectionOpen(f"/{number}").encode())
    assert decode_method(v0_9_1.ConnectionOpen("/first").encode()) is not first
    assert len(codec._KNOWN) <= 64

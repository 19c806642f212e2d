# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:
#   amqp0-9-1.extended.xml
#   rabbitmq-0-9-1.overlay.xml
#   qpid-0-9-1.overlay.xml
#   content-methods.overlay.xml
"""Bytes and round trips of every method and property of AMQP 0-9-1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.wire.generated import v0_9_1 as wire
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.tables import Table
from tests.unit.wire import checks
from tests.unit.wire import strategies as values

#: Worked out from the sizes of the fields by another piece of code than the one under test.
METHOD_BYTES: list[tuple[Method, str]] = [
    (
        wire.ConnectionStart(
            version_major=0x80,
            version_minor=0x80,
            server_properties=Table.of({"k": "v", "n": 7}),
            mechanisms=b"\x00\xff\x03",
            locales=b"\x00\xff\x04",
        ),
        "000a000a80800000000f016b530000000176016e49000000070000000300ff030000000300ff04",
    ),
    (
        wire.ConnectionStartOk(
            client_properties=Table.of({"k": "v", "n": 7}),
            mechanism="é1",
            response=b"\x00\xff\x02",
            locale="é3",
        ),
        "000a000b0000000f016b530000000176016e490000000703c3a9310000000300ff0203c3a933",
    ),
    (
        wire.ConnectionSecure(challenge=b"\x00\xff\x00"),
        "000a00140000000300ff00",
    ),
    (
        wire.ConnectionSecureOk(response=b"\x00\xff\x00"),
        "000a00150000000300ff00",
    ),
    (
        wire.ConnectionTune(channel_max=0x8001, frame_max=0x80020304, heartbeat=0x8003),
        "000a001e8001800203048003",
    ),
    (
        wire.ConnectionTuneOk(channel_max=0x8001, frame_max=0x80020304, heartbeat=0x8003),
        "000a001f8001800203048003",
    ),
    (
        wire.ConnectionOpen(virtual_host="é0", reserved_1="é1", reserved_2=True),
        "000a002803c3a93003c3a93101",
    ),
    (
        wire.ConnectionOpenOk(reserved_1="é0"),
        "000a002903c3a930",
    ),
    (
        wire.ConnectionClose(reply_code=0x8001, reply_text="é1", class_id=0x8003, method_id=0x8004),
        "000a0032800103c3a93180038004",
    ),
    (
        wire.ConnectionCloseOk(),
        "000a0033",
    ),
    (
        wire.ConnectionBlocked(reason="é0"),
        "000a003c03c3a930",
    ),
    (
        wire.ConnectionUnblocked(),
        "000a003d",
    ),
    (
        wire.ConnectionUpdateSecret(new_secret=b"\x00\xff\x00", reason="é1"),
        "000a00460000000300ff0003c3a931",
    ),
    (
        wire.ConnectionUpdateSecretOk(),
        "000a0047",
    ),
    (
        wire.ChannelOpen(reserved_1="é0"),
        "0014000a03c3a930",
    ),
    (
        wire.ChannelOpenOk(reserved_1=b"\x00\xff\x00"),
        "0014000b0000000300ff00",
    ),
    (
        wire.ChannelFlow(active=True),
        "0014001401",
    ),
    (
        wire.ChannelFlowOk(active=True),
        "0014001501",
    ),
    (
        wire.ChannelClose(reply_code=0x8001, reply_text="é1", class_id=0x8003, method_id=0x8004),
        "00140028800103c3a93180038004",
    ),
    (
        wire.ChannelCloseOk(),
        "00140029",
    ),
    (
        wire.AccessRequest(realm="é0", exclusive=False, passive=True, active=False, write=True, read=False),
        "001e000a03c3a9300a",
    ),
    (
        wire.AccessRequestOk(ticket=0x8001),
        "001e000b8001",
    ),
    (
        wire.ExchangeDeclare(
            reserved_1=0x8001,
            exchange="é1",
            type="é2",
            passive=False,
            durable=True,
            auto_delete=False,
            internal=True,
            no_wait=False,
            arguments=Table.of({"k": "v", "n": 7}),
        ),
        "0028000a800103c3a93103c3a9320a0000000f016b530000000176016e4900000007",
    ),
    (
        wire.ExchangeDeclareOk(),
        "0028000b",
    ),
    (
        wire.ExchangeDelete(reserved_1=0x8001, exchange="é1", if_unused=True, no_wait=False),
        "00280014800103c3a93101",
    ),
    (
        wire.ExchangeDeleteOk(),
        "00280015",
    ),
    (
        wire.ExchangeBound(exchange="é0", routing_key="é1", queue="é2"),
        "0028001603c3a93003c3a93103c3a932",
    ),
    (
        wire.ExchangeBoundOk(reply_code=0x8001, reply_text="é1"),
        "00280017800103c3a931",
    ),
    (
        wire.ExchangeBind(
            reserved_1=0x8001,
            destination="é1",
            source="é2",
            routing_key="é3",
            no_wait=True,
            arguments=Table.of({"k": "v", "n": 7}),
        ),
        "0028001e800103c3a93103c3a93203c3a933010000000f016b530000000176016e4900000007",
    ),
    (
        wire.ExchangeBindOk(),
        "0028001f",
    ),
    (
        wire.ExchangeUnbind(
            reserved_1=0x8001,
            destination="é1",
            source="é2",
            routing_key="é3",
            no_wait=True,
            arguments=Table.of({"k": "v", "n": 7}),
        ),
        "00280028800103c3a93103c3a93203c3a933010000000f016b530000000176016e4900000007",
    ),
    (
        wire.ExchangeUnbindOk(),
        "00280033",
    ),
    (
        wire.QueueDeclare(
            reserved_1=0x8001,
            queue="é1",
            passive=True,
            durable=False,
            exclusive=True,
            auto_delete=False,
            no_wait=True,
            arguments=Table.of({"k": "v", "n": 7}),
        ),
        "0032000a800103c3a931150000000f016b530000000176016e4900000007",
    ),
    (
        wire.QueueDeclareOk(queue="é0", message_count=0x80020304, consumer_count=0x80030405),
        "0032000b03c3a9308002030480030405",
    ),
    (
        wire.QueueBind(
            reserved_1=0x8001,
            queue="é1",
            exchange="é2",
            routing_key="é3",
            no_wait=True,
            arguments=Table.of({"k": "v", "n": 7}),
        ),
        "00320014800103c3a93103c3a93203c3a933010000000f016b530000000176016e4900000007",
    ),
    (
        wire.QueueBindOk(),
        "00320015",
    ),
    (
        wire.QueuePurge(reserved_1=0x8001, queue="é1", no_wait=True),
        "0032001e800103c3a93101",
    ),
    (
        wire.QueuePurgeOk(message_count=0x80010203),
        "0032001f80010203",
    ),
    (
        wire.QueueDelete(reserved_1=0x8001, queue="é1", if_unused=True, if_empty=False, no_wait=True),
        "00320028800103c3a93105",
    ),
    (
        wire.QueueDeleteOk(message_count=0x80010203),
        "0032002980010203",
    ),
    (
        wire.QueueUnbind(
            reserved_1=0x8001,
            queue="é1",
            exchange="é2",
            routing_key="é3",
            arguments=Table.of({"k": "v", "n": 7}),
        ),
        "00320032800103c3a93103c3a93203c3a9330000000f016b530000000176016e4900000007",
    ),
    (
        wire.QueueUnbindOk(),
        "00320033",
    ),
    (
        wire.BasicQos(prefetch_size=0x80010203, prefetch_count=0x8002, global_=True),
        "003c000a80010203800201",
    ),
    (
        wire.BasicQosOk(),
        "003c000b",
    ),
    (
        wire.BasicConsume(
            reserved_1=0x8001,
            queue="é1",
            consumer_tag="é2",
            no_local=False,
            no_ack=True,
            exclusive=False,
            no_wait=True,
            arguments=Table.of({"k": "v", "n": 7}),
        ),
        "003c0014800103c3a93103c3a9320a0000000f016b530000000176016e4900000007",
    ),
    (
        wire.BasicConsumeOk(consumer_tag="é0"),
        "003c001503c3a930",
    ),
    (
        wire.BasicCancel(consumer_tag="é0", no_wait=False),
        "003c001e03c3a93000",
    ),
    (
        wire.BasicCancelOk(consumer_tag="é0"),
        "003c001f03c3a930",
    ),
    (
        wire.BasicPublish(
            reserved_1=0x8001, exchange="é1", routing_key="é2", mandatory=False, immediate=True
        ),
        "003c0028800103c3a93103c3a93202",
    ),
    (
        wire.BasicReturn(reply_code=0x8001, reply_text="é1", exchange="é2", routing_key="é3"),
        "003c0032800103c3a93103c3a93203c3a933",
    ),
    (
        wire.BasicDeliver(
            consumer_tag="é0",
            delivery_tag=0x8002030405060708,
            redelivered=True,
            exchange="é3",
            routing_key="é4",
        ),
        "003c003c03c3a93080020304050607080103c3a93303c3a934",
    ),
    (
        wire.BasicGet(reserved_1=0x8001, queue="é1", no_ack=True),
        "003c0046800103c3a93101",
    ),
    (
        wire.BasicGetOk(
            delivery_tag=0x8001020304050607,
            redelivered=False,
            exchange="é2",
            routing_key="é3",
            message_count=0x80050607,
        ),
        "003c004780010203040506070003c3a93203c3a93380050607",
    ),
    (
        wire.BasicGetEmpty(reserved_1="é0"),
        "003c004803c3a930",
    ),
    (
        wire.BasicAck(delivery_tag=0x8001020304050607, multiple=False),
        "003c0050800102030405060700",
    ),
    (
        wire.BasicReject(delivery_tag=0x8001020304050607, requeue=False),
        "003c005a800102030405060700",
    ),
    (
        wire.BasicRecoverAsync(requeue=True),
        "003c006401",
    ),
    (
        wire.BasicRecover(requeue=True),
        "003c006e01",
    ),
    (
        wire.BasicRecoverOk(),
        "003c006f",
    ),
    (
        wire.BasicNack(delivery_tag=0x8001020304050607, multiple=False, requeue=True),
        "003c0078800102030405060702",
    ),
    (
        wire.BasicCredit(consumer_tag="é0", credit=0x80020304, drain=True),
        "003c00c803c3a9308002030401",
    ),
    (
        wire.BasicCreditOk(available=0x80010203),
        "003c00c980010203",
    ),
    (
        wire.BasicCreditDrained(consumer_tag="é0", credit_drained=0x80020304),
        "003c00ca03c3a93080020304",
    ),
    (
        wire.ConfirmSelect(no_wait=True),
        "0055000a01",
    ),
    (
        wire.ConfirmSelectOk(),
        "0055000b",
    ),
    (
        wire.TxSelect(),
        "005a000a",
    ),
    (
        wire.TxSelectOk(),
        "005a000b",
    ),
    (
        wire.TxCommit(),
        "005a0014",
    ),
    (
        wire.TxCommitOk(),
        "005a0015",
    ),
    (
        wire.TxRollback(),
        "005a001e",
    ),
    (
        wire.TxRollbackOk(),
        "005a001f",
    ),
]

#: Every property set.
PROPERTY_BYTES: list[tuple[Properties, str]] = [
    (
        wire.BasicProperties(
            content_type="é0",
            content_encoding="é1",
            headers=Table.of({"k": "v", "n": 7}),
            delivery_mode=0x80,
            priority=0x80,
            correlation_id="é5",
            reply_to="é6",
            expiration="é7",
            message_id="é8",
            timestamp=0x800A0B0C0D0E0F10,
            type="é10",
            user_id="é11",
            app_id="é12",
            reserved="é13",
        ),
        "fffc03c3a93003c3a9310000000f016b530000000176016e4900000007808003c3a93503c3a93603c3a93703c3a93880"
        "0a0b0c0d0e0f1004c3a9313004c3a9313104c3a9313204c3a93133",
    ),
]

METHODS: dict[str, st.SearchStrategy[Method]] = {
    "connection.start": st.builds(
        wire.ConnectionStart,
        version_major=values.OCTET,
        version_minor=values.OCTET,
        server_properties=values.TABLE,
        mechanisms=values.LONGSTR,
        locales=values.LONGSTR,
    ),
    "connection.start-ok": st.builds(
        wire.ConnectionStartOk,
        client_properties=values.TABLE,
        mechanism=values.SHORTSTR,
        response=values.LONGSTR,
        locale=values.SHORTSTR,
    ),
    "connection.secure": st.builds(wire.ConnectionSecure, challenge=values.LONGSTR),
    "connection.secure-ok": st.builds(wire.ConnectionSecureOk, response=values.LONGSTR),
    "connection.tune": st.builds(
        wire.ConnectionTune, channel_max=values.SHORT, frame_max=values.LONG, heartbeat=values.SHORT
    ),
    "connection.tune-ok": st.builds(
        wire.ConnectionTuneOk, channel_max=values.SHORT, frame_max=values.LONG, heartbeat=values.SHORT
    ),
    "connection.open": st.builds(
        wire.ConnectionOpen, virtual_host=values.SHORTSTR, reserved_1=values.SHORTSTR, reserved_2=values.BIT
    ),
    "connection.open-ok": st.builds(wire.ConnectionOpenOk, reserved_1=values.SHORTSTR),
    "connection.close": st.builds(
        wire.ConnectionClose,
        reply_code=values.SHORT,
        reply_text=values.SHORTSTR,
        class_id=values.SHORT,
        method_id=values.SHORT,
    ),
    "connection.close-ok": st.builds(wire.ConnectionCloseOk),
    "connection.blocked": st.builds(wire.ConnectionBlocked, reason=values.SHORTSTR),
    "connection.unblocked": st.builds(wire.ConnectionUnblocked),
    "connection.update-secret": st.builds(
        wire.ConnectionUpdateSecret, new_secret=values.LONGSTR, reason=values.SHORTSTR
    ),
    "connection.update-secret-ok": st.builds(wire.ConnectionUpdateSecretOk),
    "channel.open": st.builds(wire.ChannelOpen, reserved_1=values.SHORTSTR),
    "channel.open-ok": st.builds(wire.ChannelOpenOk, reserved_1=values.LONGSTR),
    "channel.flow": st.builds(wire.ChannelFlow, active=values.BIT),
    "channel.flow-ok": st.builds(wire.ChannelFlowOk, active=values.BIT),
    "channel.close": st.builds(
        wire.ChannelClose,
        reply_code=values.SHORT,
        reply_text=values.SHORTSTR,
        class_id=values.SHORT,
        method_id=values.SHORT,
    ),
    "channel.close-ok": st.builds(wire.ChannelCloseOk),
    "access.request": st.builds(
        wire.AccessRequest,
        realm=values.SHORTSTR,
        exclusive=values.BIT,
        passive=values.BIT,
        active=values.BIT,
        write=values.BIT,
        read=values.BIT,
    ),
    "access.request-ok": st.builds(wire.AccessRequestOk, ticket=values.SHORT),
    "exchange.declare": st.builds(
        wire.ExchangeDeclare,
        reserved_1=values.SHORT,
        exchange=values.SHORTSTR,
        type=values.SHORTSTR,
        passive=values.BIT,
        durable=values.BIT,
        auto_delete=values.BIT,
        internal=values.BIT,
        no_wait=values.BIT,
        arguments=values.TABLE,
    ),
    "exchange.declare-ok": st.builds(wire.ExchangeDeclareOk),
    "exchange.delete": st.builds(
        wire.ExchangeDelete,
        reserved_1=values.SHORT,
        exchange=values.SHORTSTR,
        if_unused=values.BIT,
        no_wait=values.BIT,
    ),
    "exchange.delete-ok": st.builds(wire.ExchangeDeleteOk),
    "exchange.bound": st.builds(
        wire.ExchangeBound, exchange=values.SHORTSTR, routing_key=values.SHORTSTR, queue=values.SHORTSTR
    ),
    "exchange.bound-ok": st.builds(wire.ExchangeBoundOk, reply_code=values.SHORT, reply_text=values.SHORTSTR),
    "exchange.bind": st.builds(
        wire.ExchangeBind,
        reserved_1=values.SHORT,
        destination=values.SHORTSTR,
        source=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        no_wait=values.BIT,
        arguments=values.TABLE,
    ),
    "exchange.bind-ok": st.builds(wire.ExchangeBindOk),
    "exchange.unbind": st.builds(
        wire.ExchangeUnbind,
        reserved_1=values.SHORT,
        destination=values.SHORTSTR,
        source=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        no_wait=values.BIT,
        arguments=values.TABLE,
    ),
    "exchange.unbind-ok": st.builds(wire.ExchangeUnbindOk),
    "queue.declare": st.builds(
        wire.QueueDeclare,
        reserved_1=values.SHORT,
        queue=values.SHORTSTR,
        passive=values.BIT,
        durable=values.BIT,
        exclusive=values.BIT,
        auto_delete=values.BIT,
        no_wait=values.BIT,
        arguments=values.TABLE,
    ),
    "queue.declare-ok": st.builds(
        wire.QueueDeclareOk, queue=values.SHORTSTR, message_count=values.LONG, consumer_count=values.LONG
    ),
    "queue.bind": st.builds(
        wire.QueueBind,
        reserved_1=values.SHORT,
        queue=values.SHORTSTR,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        no_wait=values.BIT,
        arguments=values.TABLE,
    ),
    "queue.bind-ok": st.builds(wire.QueueBindOk),
    "queue.purge": st.builds(
        wire.QueuePurge, reserved_1=values.SHORT, queue=values.SHORTSTR, no_wait=values.BIT
    ),
    "queue.purge-ok": st.builds(wire.QueuePurgeOk, message_count=values.LONG),
    "queue.delete": st.builds(
        wire.QueueDelete,
        reserved_1=values.SHORT,
        queue=values.SHORTSTR,
        if_unused=values.BIT,
        if_empty=values.BIT,
        no_wait=values.BIT,
    ),
    "queue.delete-ok": st.builds(wire.QueueDeleteOk, message_count=values.LONG),
    "queue.unbind": st.builds(
        wire.QueueUnbind,
        reserved_1=values.SHORT,
        queue=values.SHORTSTR,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        arguments=values.TABLE,
    ),
    "queue.unbind-ok": st.builds(wire.QueueUnbindOk),
    "basic.qos": st.builds(
        wire.BasicQos, prefetch_size=values.LONG, prefetch_count=values.SHORT, global_=values.BIT
    ),
    "basic.qos-ok": st.builds(wire.BasicQosOk),
    "basic.consume": st.builds(
        wire.BasicConsume,
        reserved_1=values.SHORT,
        queue=values.SHORTSTR,
        consumer_tag=values.SHORTSTR,
        no_local=values.BIT,
        no_ack=values.BIT,
        exclusive=values.BIT,
        no_wait=values.BIT,
        arguments=values.TABLE,
    ),
    "basic.consume-ok": st.builds(wire.BasicConsumeOk, consumer_tag=values.SHORTSTR),
    "basic.cancel": st.builds(wire.BasicCancel, consumer_tag=values.SHORTSTR, no_wait=values.BIT),
    "basic.cancel-ok": st.builds(wire.BasicCancelOk, consumer_tag=values.SHORTSTR),
    "basic.publish": st.builds(
        wire.BasicPublish,
        reserved_1=values.SHORT,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        mandatory=values.BIT,
        immediate=values.BIT,
    ),
    "basic.return": st.builds(
        wire.BasicReturn,
        reply_code=values.SHORT,
        reply_text=values.SHORTSTR,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
    ),
    "basic.deliver": st.builds(
        wire.BasicDeliver,
        consumer_tag=values.SHORTSTR,
        delivery_tag=values.LONGLONG,
        redelivered=values.BIT,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
    ),
    "basic.get": st.builds(wire.BasicGet, reserved_1=values.SHORT, queue=values.SHORTSTR, no_ack=values.BIT),
    "basic.get-ok": st.builds(
        wire.BasicGetOk,
        delivery_tag=values.LONGLONG,
        redelivered=values.BIT,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        message_count=values.LONG,
    ),
    "basic.get-empty": st.builds(wire.BasicGetEmpty, reserved_1=values.SHORTSTR),
    "basic.ack": st.builds(wire.BasicAck, delivery_tag=values.LONGLONG, multiple=values.BIT),
    "basic.reject": st.builds(wire.BasicReject, delivery_tag=values.LONGLONG, requeue=values.BIT),
    "basic.recover-async": st.builds(wire.BasicRecoverAsync, requeue=values.BIT),
    "basic.recover": st.builds(wire.BasicRecover, requeue=values.BIT),
    "basic.recover-ok": st.builds(wire.BasicRecoverOk),
    "basic.nack": st.builds(
        wire.BasicNack, delivery_tag=values.LONGLONG, multiple=values.BIT, requeue=values.BIT
    ),
    "basic.credit": st.builds(
        wire.BasicCredit, consumer_tag=values.SHORTSTR, credit=values.LONG, drain=values.BIT
    ),
    "basic.credit-ok": st.builds(wire.BasicCreditOk, available=values.LONG),
    "basic.credit-drained": st.builds(
        wire.BasicCreditDrained, consumer_tag=values.SHORTSTR, credit_drained=values.LONG
    ),
    "confirm.select": st.builds(wire.ConfirmSelect, no_wait=values.BIT),
    "confirm.select-ok": st.builds(wire.ConfirmSelectOk),
    "tx.select": st.builds(wire.TxSelect),
    "tx.select-ok": st.builds(wire.TxSelectOk),
    "tx.commit": st.builds(wire.TxCommit),
    "tx.commit-ok": st.builds(wire.TxCommitOk),
    "tx.rollback": st.builds(wire.TxRollback),
    "tx.rollback-ok": st.builds(wire.TxRollbackOk),
}

PROPERTIES: dict[str, st.SearchStrategy[Properties]] = {
    "basic": st.builds(
        wire.BasicProperties,
        content_type=st.none() | values.SHORTSTR,
        content_encoding=st.none() | values.SHORTSTR,
        headers=st.none() | values.TABLE,
        delivery_mode=st.none() | values.OCTET,
        priority=st.none() | values.OCTET,
        correlation_id=st.none() | values.SHORTSTR,
        reply_to=st.none() | values.SHORTSTR,
        expiration=st.none() | values.SHORTSTR,
        message_id=st.none() | values.SHORTSTR,
        timestamp=st.none() | values.LONGLONG,
        type=st.none() | values.SHORTSTR,
        user_id=st.none() | values.SHORTSTR,
        app_id=st.none() | values.SHORTSTR,
        reserved=st.none() | values.SHORTSTR,
    ),
}


@pytest.mark.parametrize(("method", "encoded"), METHOD_BYTES, ids=checks.name)
def test_method_bytes(method: Method, encoded: str) -> None:
    checks.check_method_bytes(method, bytes.fromhex(encoded), wire.METHODS)


@pytest.mark.parametrize(("properties", "encoded"), PROPERTY_BYTES, ids=checks.name)
def test_property_bytes(properties: Properties, encoded: str) -> None:
    checks.check_property_bytes(properties, bytes.fromhex(encoded), wire.PROPERTIES)


@pytest.mark.parametrize("name", METHODS)
@given(data=st.data())
@checks.quick
def test_method_round_trip(name: str, data: st.DataObject) -> None:
    checks.check_method_round_trip(data.draw(METHODS[name]), wire.METHODS)


@pytest.mark.parametrize("name", PROPERTIES)
@given(data=st.data())
@checks.quick
def test_property_round_trip(name: str, data: st.DataObject) -> None:
    checks.check_property_round_trip(data.draw(PROPERTIES[name]), wire.PROPERTIES)


def test_every_method_is_tested() -> None:
    assert sorted(METHODS) == sorted(method.NAME for method in wire.METHODS.values())
    assert [method.INDEX for method, _ in METHOD_BYTES] == list(wire.METHODS)

# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:
#   amqp0-9.xml
#   qpid-0-9.overlay.xml
#   content-methods.overlay.xml
"""Bytes and round trips of every method and property of AMQP 0-9."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.wire.generated import v0_9 as wire
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
        wire.ConnectionOpen(virtual_host="é0", capabilities="é1", insist=True),
        "000a002803c3a93003c3a93101",
    ),
    (
        wire.ConnectionOpenOk(known_hosts="é0"),
        "000a002903c3a930",
    ),
    (
        wire.ConnectionRedirect(host="é0", known_hosts="é1"),
        "000a002a03c3a93003c3a931",
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
        wire.ChannelOpen(out_of_band="é0"),
        "0014000a03c3a930",
    ),
    (
        wire.ChannelOpenOk(channel_id=b"\x00\xff\x00"),
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
        wire.ChannelResume(channel_id=b"\x00\xff\x00"),
        "001400320000000300ff00",
    ),
    (
        wire.ChannelPing(),
        "0014003c",
    ),
    (
        wire.ChannelPong(),
        "00140046",
    ),
    (
        wire.ChannelOk(),
        "00140050",
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
            ticket=0x8001,
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
        wire.ExchangeDelete(ticket=0x8001, exchange="é1", if_unused=True, no_wait=False),
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
        wire.QueueDeclare(
            ticket=0x8001,
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
            ticket=0x8001,
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
        wire.QueuePurge(ticket=0x8001, queue="é1", no_wait=True),
        "0032001e800103c3a93101",
    ),
    (
        wire.QueuePurgeOk(message_count=0x80010203),
        "0032001f80010203",
    ),
    (
        wire.QueueDelete(ticket=0x8001, queue="é1", if_unused=True, if_empty=False, no_wait=True),
        "00320028800103c3a93105",
    ),
    (
        wire.QueueDeleteOk(message_count=0x80010203),
        "0032002980010203",
    ),
    (
        wire.QueueUnbind(
            ticket=0x8001, queue="é1", exchange="é2", routing_key="é3", arguments=Table.of({"k": "v", "n": 7})
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
            ticket=0x8001,
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
        wire.BasicPublish(ticket=0x8001, exchange="é1", routing_key="é2", mandatory=False, immediate=True),
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
        wire.BasicGet(ticket=0x8001, queue="é1", no_ack=True),
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
        wire.BasicGetEmpty(cluster_id="é0"),
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
        wire.BasicRecoverSyncOk(),
        "003c0065",
    ),
    (
        wire.BasicRecoverSync(requeue=True),
        "003c006601",
    ),
    (
        wire.FileQos(prefetch_size=0x80010203, prefetch_count=0x8002, global_=True),
        "0046000a80010203800201",
    ),
    (
        wire.FileQosOk(),
        "0046000b",
    ),
    (
        wire.FileConsume(
            ticket=0x8001,
            queue="é1",
            consumer_tag="é2",
            no_local=False,
            no_ack=True,
            exclusive=False,
            no_wait=True,
            filter=Table.of({"k": "v", "n": 7}),
        ),
        "00460014800103c3a93103c3a9320a0000000f016b530000000176016e4900000007",
    ),
    (
        wire.FileConsumeOk(consumer_tag="é0"),
        "0046001503c3a930",
    ),
    (
        wire.FileCancel(consumer_tag="é0", no_wait=False),
        "0046001e03c3a93000",
    ),
    (
        wire.FileCancelOk(consumer_tag="é0"),
        "0046001f03c3a930",
    ),
    (
        wire.FileOpen(identifier="é0", content_size=0x8002030405060708),
        "0046002803c3a9308002030405060708",
    ),
    (
        wire.FileOpenOk(staged_size=0x8001020304050607),
        "004600298001020304050607",
    ),
    (
        wire.FileStage(),
        "00460032",
    ),
    (
        wire.FilePublish(
            ticket=0x8001, exchange="é1", routing_key="é2", mandatory=False, immediate=True, identifier="é5"
        ),
        "0046003c800103c3a93103c3a9320203c3a935",
    ),
    (
        wire.FileReturn(reply_code=0x8001, reply_text="é1", exchange="é2", routing_key="é3"),
        "00460046800103c3a93103c3a93203c3a933",
    ),
    (
        wire.FileDeliver(
            consumer_tag="é0",
            delivery_tag=0x8002030405060708,
            redelivered=True,
            exchange="é3",
            routing_key="é4",
            identifier="é5",
        ),
        "0046005003c3a93080020304050607080103c3a93303c3a93403c3a935",
    ),
    (
        wire.FileAck(delivery_tag=0x8001020304050607, multiple=False),
        "0046005a800102030405060700",
    ),
    (
        wire.FileReject(delivery_tag=0x8001020304050607, requeue=False),
        "00460064800102030405060700",
    ),
    (
        wire.StreamQos(
            prefetch_size=0x80010203, prefetch_count=0x8002, consume_rate=0x80030405, global_=False
        ),
        "0050000a8001020380028003040500",
    ),
    (
        wire.StreamQosOk(),
        "0050000b",
    ),
    (
        wire.StreamConsume(
            ticket=0x8001,
            queue="é1",
            consumer_tag="é2",
            no_local=False,
            exclusive=True,
            no_wait=False,
            filter=Table.of({"k": "v", "n": 7}),
        ),
        "00500014800103c3a93103c3a932020000000f016b530000000176016e4900000007",
    ),
    (
        wire.StreamConsumeOk(consumer_tag="é0"),
        "0050001503c3a930",
    ),
    (
        wire.StreamCancel(consumer_tag="é0", no_wait=False),
        "0050001e03c3a93000",
    ),
    (
        wire.StreamCancelOk(consumer_tag="é0"),
        "0050001f03c3a930",
    ),
    (
        wire.StreamPublish(ticket=0x8001, exchange="é1", routing_key="é2", mandatory=False, immediate=True),
        "00500028800103c3a93103c3a93202",
    ),
    (
        wire.StreamReturn(reply_code=0x8001, reply_text="é1", exchange="é2", routing_key="é3"),
        "00500032800103c3a93103c3a93203c3a933",
    ),
    (
        wire.StreamDeliver(consumer_tag="é0", delivery_tag=0x8002030405060708, exchange="é2", queue="é3"),
        "0050003c03c3a930800203040506070803c3a93203c3a933",
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
    (
        wire.DtxSelect(),
        "0064000a",
    ),
    (
        wire.DtxSelectOk(),
        "0064000b",
    ),
    (
        wire.DtxStart(dtx_identifier="é0"),
        "0064001403c3a930",
    ),
    (
        wire.DtxStartOk(),
        "00640015",
    ),
    (
        wire.TunnelRequest(meta_data=Table.of({"k": "v", "n": 7})),
        "006e000a0000000f016b530000000176016e4900000007",
    ),
    (
        wire.MessageTransfer(
            ticket=0x8001,
            destination="é1",
            redelivered=True,
            immediate=False,
            ttl=0x8005060708090A0B,
            priority=0x80,
            timestamp=0x800708090A0B0C0D,
            delivery_mode=0x80,
            expiration=0x80090A0B0C0D0E0F,
            exchange="é9",
            routing_key="é10",
            message_id="é11",
            correlation_id="é12",
            reply_to="é13",
            content_type="é14",
            content_encoding="é15",
            user_id="é16",
            app_id="é17",
            transaction_id="é18",
            security_token=b"\x00\xff\x13",
            application_headers=Table.of({"k": "v", "n": 7}),
            body_kind=0x80,
            body=b"\x00\xff\x16",
        ),
        "0078000a800103c3a931018005060708090a0b80800708090a0b0c0d8080090a0b0c0d0e0f03c3a93904c3a9313004c3"
        "a9313104c3a9313204c3a9313304c3a9313404c3a9313504c3a9313604c3a9313704c3a931380000000300ff13000000"
        "0f016b530000000176016e4900000007800000000300ff16",
    ),
    (
        wire.MessageConsume(
            ticket=0x8001,
            queue="é1",
            destination="é2",
            no_local=False,
            no_ack=True,
            exclusive=False,
            filter=Table.of({"k": "v", "n": 7}),
        ),
        "00780014800103c3a93103c3a932020000000f016b530000000176016e4900000007",
    ),
    (
        wire.MessageCancel(destination="é0"),
        "0078001e03c3a930",
    ),
    (
        wire.MessageGet(ticket=0x8001, queue="é1", destination="é2", no_ack=False),
        "00780028800103c3a93103c3a93200",
    ),
    (
        wire.MessageRecover(requeue=True),
        "0078003201",
    ),
    (
        wire.MessageOpen(reference=b"\x00\xff\x00"),
        "0078003c0000000300ff00",
    ),
    (
        wire.MessageClose(reference=b"\x00\xff\x00"),
        "007800460000000300ff00",
    ),
    (
        wire.MessageAppend(reference=b"\x00\xff\x00", bytes_=b"\x00\xff\x01"),
        "007800500000000300ff000000000300ff01",
    ),
    (
        wire.MessageCheckpoint(reference=b"\x00\xff\x00", identifier="é1"),
        "0078005a0000000300ff0003c3a931",
    ),
    (
        wire.MessageResume(reference=b"\x00\xff\x00", identifier="é1"),
        "007800640000000300ff0003c3a931",
    ),
    (
        wire.MessageQos(prefetch_size=0x80010203, prefetch_count=0x8002, global_=True),
        "0078006e80010203800201",
    ),
    (
        wire.MessageOk(),
        "007801f4",
    ),
    (
        wire.MessageEmpty(),
        "007801fe",
    ),
    (
        wire.MessageReject(code=0x8001, text="é1"),
        "00780208800103c3a931",
    ),
    (
        wire.MessageOffset(value=0x8001020304050607),
        "007802128001020304050607",
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
            cluster_id="é13",
        ),
        "fffc03c3a93003c3a9310000000f016b530000000176016e4900000007808003c3a93503c3a93603c3a93703c3a93880"
        "0a0b0c0d0e0f1004c3a9313004c3a9313104c3a9313204c3a93133",
    ),
    (
        wire.FileProperties(
            content_type="é0",
            content_encoding="é1",
            headers=Table.of({"k": "v", "n": 7}),
            priority=0x80,
            reply_to="é4",
            message_id="é5",
            filename="é6",
            timestamp=0x8008090A0B0C0D0E,
            cluster_id="é8",
        ),
        "ff8003c3a93003c3a9310000000f016b530000000176016e49000000078003c3a93403c3a93503c3a9368008090a0b0c"
        "0d0e03c3a938",
    ),
    (
        wire.StreamProperties(
            content_type="é0",
            content_encoding="é1",
            headers=Table.of({"k": "v", "n": 7}),
            priority=0x80,
            timestamp=0x8005060708090A0B,
        ),
        "f80003c3a93003c3a9310000000f016b530000000176016e4900000007808005060708090a0b",
    ),
    (
        wire.TunnelProperties(
            headers=Table.of({"k": "v", "n": 7}),
            proxy_name="é1",
            data_name="é2",
            durable=0x80,
            broadcast=0x80,
        ),
        "f8000000000f016b530000000176016e490000000703c3a93103c3a9328080",
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
        wire.ConnectionOpen, virtual_host=values.SHORTSTR, capabilities=values.SHORTSTR, insist=values.BIT
    ),
    "connection.open-ok": st.builds(wire.ConnectionOpenOk, known_hosts=values.SHORTSTR),
    "connection.redirect": st.builds(
        wire.ConnectionRedirect, host=values.SHORTSTR, known_hosts=values.SHORTSTR
    ),
    "connection.close": st.builds(
        wire.ConnectionClose,
        reply_code=values.SHORT,
        reply_text=values.SHORTSTR,
        class_id=values.SHORT,
        method_id=values.SHORT,
    ),
    "connection.close-ok": st.builds(wire.ConnectionCloseOk),
    "channel.open": st.builds(wire.ChannelOpen, out_of_band=values.SHORTSTR),
    "channel.open-ok": st.builds(wire.ChannelOpenOk, channel_id=values.LONGSTR),
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
    "channel.resume": st.builds(wire.ChannelResume, channel_id=values.LONGSTR),
    "channel.ping": st.builds(wire.ChannelPing),
    "channel.pong": st.builds(wire.ChannelPong),
    "channel.ok": st.builds(wire.ChannelOk),
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
        ticket=values.SHORT,
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
        ticket=values.SHORT,
        exchange=values.SHORTSTR,
        if_unused=values.BIT,
        no_wait=values.BIT,
    ),
    "exchange.delete-ok": st.builds(wire.ExchangeDeleteOk),
    "exchange.bound": st.builds(
        wire.ExchangeBound, exchange=values.SHORTSTR, routing_key=values.SHORTSTR, queue=values.SHORTSTR
    ),
    "exchange.bound-ok": st.builds(wire.ExchangeBoundOk, reply_code=values.SHORT, reply_text=values.SHORTSTR),
    "queue.declare": st.builds(
        wire.QueueDeclare,
        ticket=values.SHORT,
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
        ticket=values.SHORT,
        queue=values.SHORTSTR,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        no_wait=values.BIT,
        arguments=values.TABLE,
    ),
    "queue.bind-ok": st.builds(wire.QueueBindOk),
    "queue.purge": st.builds(wire.QueuePurge, ticket=values.SHORT, queue=values.SHORTSTR, no_wait=values.BIT),
    "queue.purge-ok": st.builds(wire.QueuePurgeOk, message_count=values.LONG),
    "queue.delete": st.builds(
        wire.QueueDelete,
        ticket=values.SHORT,
        queue=values.SHORTSTR,
        if_unused=values.BIT,
        if_empty=values.BIT,
        no_wait=values.BIT,
    ),
    "queue.delete-ok": st.builds(wire.QueueDeleteOk, message_count=values.LONG),
    "queue.unbind": st.builds(
        wire.QueueUnbind,
        ticket=values.SHORT,
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
        ticket=values.SHORT,
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
        ticket=values.SHORT,
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
    "basic.get": st.builds(wire.BasicGet, ticket=values.SHORT, queue=values.SHORTSTR, no_ack=values.BIT),
    "basic.get-ok": st.builds(
        wire.BasicGetOk,
        delivery_tag=values.LONGLONG,
        redelivered=values.BIT,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        message_count=values.LONG,
    ),
    "basic.get-empty": st.builds(wire.BasicGetEmpty, cluster_id=values.SHORTSTR),
    "basic.ack": st.builds(wire.BasicAck, delivery_tag=values.LONGLONG, multiple=values.BIT),
    "basic.reject": st.builds(wire.BasicReject, delivery_tag=values.LONGLONG, requeue=values.BIT),
    "basic.recover-async": st.builds(wire.BasicRecoverAsync, requeue=values.BIT),
    "basic.recover-sync-ok": st.builds(wire.BasicRecoverSyncOk),
    "basic.recover-sync": st.builds(wire.BasicRecoverSync, requeue=values.BIT),
    "file.qos": st.builds(
        wire.FileQos, prefetch_size=values.LONG, prefetch_count=values.SHORT, global_=values.BIT
    ),
    "file.qos-ok": st.builds(wire.FileQosOk),
    "file.consume": st.builds(
        wire.FileConsume,
        ticket=values.SHORT,
        queue=values.SHORTSTR,
        consumer_tag=values.SHORTSTR,
        no_local=values.BIT,
        no_ack=values.BIT,
        exclusive=values.BIT,
        no_wait=values.BIT,
        filter=values.TABLE,
    ),
    "file.consume-ok": st.builds(wire.FileConsumeOk, consumer_tag=values.SHORTSTR),
    "file.cancel": st.builds(wire.FileCancel, consumer_tag=values.SHORTSTR, no_wait=values.BIT),
    "file.cancel-ok": st.builds(wire.FileCancelOk, consumer_tag=values.SHORTSTR),
    "file.open": st.builds(wire.FileOpen, identifier=values.SHORTSTR, content_size=values.LONGLONG),
    "file.open-ok": st.builds(wire.FileOpenOk, staged_size=values.LONGLONG),
    "file.stage": st.builds(wire.FileStage),
    "file.publish": st.builds(
        wire.FilePublish,
        ticket=values.SHORT,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        mandatory=values.BIT,
        immediate=values.BIT,
        identifier=values.SHORTSTR,
    ),
    "file.return": st.builds(
        wire.FileReturn,
        reply_code=values.SHORT,
        reply_text=values.SHORTSTR,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
    ),
    "file.deliver": st.builds(
        wire.FileDeliver,
        consumer_tag=values.SHORTSTR,
        delivery_tag=values.LONGLONG,
        redelivered=values.BIT,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        identifier=values.SHORTSTR,
    ),
    "file.ack": st.builds(wire.FileAck, delivery_tag=values.LONGLONG, multiple=values.BIT),
    "file.reject": st.builds(wire.FileReject, delivery_tag=values.LONGLONG, requeue=values.BIT),
    "stream.qos": st.builds(
        wire.StreamQos,
        prefetch_size=values.LONG,
        prefetch_count=values.SHORT,
        consume_rate=values.LONG,
        global_=values.BIT,
    ),
    "stream.qos-ok": st.builds(wire.StreamQosOk),
    "stream.consume": st.builds(
        wire.StreamConsume,
        ticket=values.SHORT,
        queue=values.SHORTSTR,
        consumer_tag=values.SHORTSTR,
        no_local=values.BIT,
        exclusive=values.BIT,
        no_wait=values.BIT,
        filter=values.TABLE,
    ),
    "stream.consume-ok": st.builds(wire.StreamConsumeOk, consumer_tag=values.SHORTSTR),
    "stream.cancel": st.builds(wire.StreamCancel, consumer_tag=values.SHORTSTR, no_wait=values.BIT),
    "stream.cancel-ok": st.builds(wire.StreamCancelOk, consumer_tag=values.SHORTSTR),
    "stream.publish": st.builds(
        wire.StreamPublish,
        ticket=values.SHORT,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        mandatory=values.BIT,
        immediate=values.BIT,
    ),
    "stream.return": st.builds(
        wire.StreamReturn,
        reply_code=values.SHORT,
        reply_text=values.SHORTSTR,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
    ),
    "stream.deliver": st.builds(
        wire.StreamDeliver,
        consumer_tag=values.SHORTSTR,
        delivery_tag=values.LONGLONG,
        exchange=values.SHORTSTR,
        queue=values.SHORTSTR,
    ),
    "tx.select": st.builds(wire.TxSelect),
    "tx.select-ok": st.builds(wire.TxSelectOk),
    "tx.commit": st.builds(wire.TxCommit),
    "tx.commit-ok": st.builds(wire.TxCommitOk),
    "tx.rollback": st.builds(wire.TxRollback),
    "tx.rollback-ok": st.builds(wire.TxRollbackOk),
    "dtx.select": st.builds(wire.DtxSelect),
    "dtx.select-ok": st.builds(wire.DtxSelectOk),
    "dtx.start": st.builds(wire.DtxStart, dtx_identifier=values.SHORTSTR),
    "dtx.start-ok": st.builds(wire.DtxStartOk),
    "tunnel.request": st.builds(wire.TunnelRequest, meta_data=values.TABLE),
    "message.transfer": st.builds(
        wire.MessageTransfer,
        ticket=values.SHORT,
        destination=values.SHORTSTR,
        redelivered=values.BIT,
        immediate=values.BIT,
        ttl=values.LONGLONG,
        priority=values.OCTET,
        timestamp=values.LONGLONG,
        delivery_mode=values.OCTET,
        expiration=values.LONGLONG,
        exchange=values.SHORTSTR,
        routing_key=values.SHORTSTR,
        message_id=values.SHORTSTR,
        correlation_id=values.SHORTSTR,
        reply_to=values.SHORTSTR,
        content_type=values.SHORTSTR,
        content_encoding=values.SHORTSTR,
        user_id=values.SHORTSTR,
        app_id=values.SHORTSTR,
        transaction_id=values.SHORTSTR,
        security_token=values.LONGSTR,
        application_headers=values.TABLE,
        body_kind=values.OCTET,
        body=values.LONGSTR,
    ),
    "message.consume": st.builds(
        wire.MessageConsume,
        ticket=values.SHORT,
        queue=values.SHORTSTR,
        destination=values.SHORTSTR,
        no_local=values.BIT,
        no_ack=values.BIT,
        exclusive=values.BIT,
        filter=values.TABLE,
    ),
    "message.cancel": st.builds(wire.MessageCancel, destination=values.SHORTSTR),
    "message.get": st.builds(
        wire.MessageGet,
        ticket=values.SHORT,
        queue=values.SHORTSTR,
        destination=values.SHORTSTR,
        no_ack=values.BIT,
    ),
    "message.recover": st.builds(wire.MessageRecover, requeue=values.BIT),
    "message.open": st.builds(wire.MessageOpen, reference=values.LONGSTR),
    "message.close": st.builds(wire.MessageClose, reference=values.LONGSTR),
    "message.append": st.builds(wire.MessageAppend, reference=values.LONGSTR, bytes_=values.LONGSTR),
    "message.checkpoint": st.builds(
        wire.MessageCheckpoint, reference=values.LONGSTR, identifier=values.SHORTSTR
    ),
    "message.resume": st.builds(wire.MessageResume, reference=values.LONGSTR, identifier=values.SHORTSTR),
    "message.qos": st.builds(
        wire.MessageQos, prefetch_size=values.LONG, prefetch_count=values.SHORT, global_=values.BIT
    ),
    "message.ok": st.builds(wire.MessageOk),
    "message.empty": st.builds(wire.MessageEmpty),
    "message.reject": st.builds(wire.MessageReject, code=values.SHORT, text=values.SHORTSTR),
    "message.offset": st.builds(wire.MessageOffset, value=values.LONGLONG),
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
        cluster_id=st.none() | values.SHORTSTR,
    ),
    "file": st.builds(
        wire.FileProperties,
        content_type=st.none() | values.SHORTSTR,
        content_encoding=st.none() | values.SHORTSTR,
        headers=st.none() | values.TABLE,
        priority=st.none() | values.OCTET,
        reply_to=st.none() | values.SHORTSTR,
        message_id=st.none() | values.SHORTSTR,
        filename=st.none() | values.SHORTSTR,
        timestamp=st.none() | values.LONGLONG,
        cluster_id=st.none() | values.SHORTSTR,
    ),
    "stream": st.builds(
        wire.StreamProperties,
        content_type=st.none() | values.SHORTSTR,
        content_encoding=st.none() | values.SHORTSTR,
        headers=st.none() | values.TABLE,
        priority=st.none() | values.OCTET,
        timestamp=st.none() | values.LONGLONG,
    ),
    "tunnel": st.builds(
        wire.TunnelProperties,
        headers=st.none() | values.TABLE,
        proxy_name=st.none() | values.SHORTSTR,
        data_name=st.none() | values.SHORTSTR,
        durable=st.none() | values.OCTET,
        broadcast=st.none() | values.OCTET,
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

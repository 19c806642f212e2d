# DO NOT EDIT. Made by `python -m amqpgate.codegen` from spec/amqp:
#   amqp0-10.qpid-errata.xml
"""Bytes and round trips of every control, command and struct of AMQP 0-10."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.wire.generated import v0_10 as wire
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.types import Array, Map, Value
from tests.unit.wire.v0_10 import checks
from tests.unit.wire.v0_10 import strategies as values
from tests.unit.wire.v0_10.checks import Packed

#: Without fields, with all of them, with each alone. The bytes are worked out from the sizes of
#: fields, by other code than that under test.
VECTORS: dict[str, list[tuple[Packed, str]]] = {
    "session.header": [
        (wire.SessionHeader(), "00"),
        (wire.SessionHeader(sync=True), "01"),
    ],
    "session.command-fragment": [
        (wire.CommandFragment(command_id=0x80010203, byte_ranges=b"\x00\xff\x01"), "80010203000300ff01"),
    ],
    "message.reply-to": [
        (wire.ReplyTo(), "0000"),
        (wire.ReplyTo(exchange=b"\x00\xff\x00", routing_key=b"\x00\xff\x01"), "03000300ff000300ff01"),
        (wire.ReplyTo(exchange=b"\x00\xff\x00"), "01000300ff00"),
        (wire.ReplyTo(routing_key=b"\x00\xff\x01"), "02000300ff01"),
    ],
    "message.delivery-properties": [
        (wire.DeliveryProperties(), "04010000"),
        (
            wire.DeliveryProperties(
                discard_unroutable=True,
                immediate=True,
                redelivered=True,
                priority=0x80,
                delivery_mode=0x80,
                ttl=0x80060708090A0B0C,
                timestamp=0x800708090A0B0C0D,
                expiration=0x8008090A0B0C0D0E,
                exchange=b"\x00\xff\x08",
                routing_key=b"\x00\xff\t",
                resume_id=b"\x00\xff\n",
                resume_ttl=0x800C0D0E0F101112,
            ),
            "0401ff0f808080060708090a0b0c800708090a0b0c0d8008090a0b0c0d0e0300ff080300ff09000300ff0a800c0d"
            "0e0f101112",
        ),
        (wire.DeliveryProperties(discard_unroutable=True), "04010100"),
        (wire.DeliveryProperties(immediate=True), "04010200"),
        (wire.DeliveryProperties(redelivered=True), "04010400"),
        (wire.DeliveryProperties(priority=0x80), "0401080080"),
        (wire.DeliveryProperties(delivery_mode=0x80), "0401100080"),
        (wire.DeliveryProperties(ttl=0x80060708090A0B0C), "0401200080060708090a0b0c"),
        (wire.DeliveryProperties(timestamp=0x800708090A0B0C0D), "04014000800708090a0b0c0d"),
        (wire.DeliveryProperties(expiration=0x8008090A0B0C0D0E), "040180008008090a0b0c0d0e"),
        (wire.DeliveryProperties(exchange=b"\x00\xff\x08"), "040100010300ff08"),
        (wire.DeliveryProperties(routing_key=b"\x00\xff\t"), "040100020300ff09"),
        (wire.DeliveryProperties(resume_id=b"\x00\xff\n"), "04010004000300ff0a"),
        (wire.DeliveryProperties(resume_ttl=0x800C0D0E0F101112), "04010008800c0d0e0f101112"),
    ],
    "message.fragment-properties": [
        (wire.FragmentProperties(), "04020000"),
        (
            wire.FragmentProperties(first=True, last=True, fragment_size=0x8003040506070809),
            "040207008003040506070809",
        ),
        (wire.FragmentProperties(first=True), "04020100"),
        (wire.FragmentProperties(last=True), "04020200"),
        (wire.FragmentProperties(fragment_size=0x8003040506070809), "040204008003040506070809"),
    ],
    "message.message-properties": [
        (wire.MessageProperties(), "04030000"),
        (
            wire.MessageProperties(
                content_length=0x8001020304050607,
                message_id=b"\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff",
                correlation_id=b"\x00\xff\x02",
                reply_to=wire.ReplyTo(routing_key=b"\x00\xff\x01"),
                content_type=b"\x00\xff\x04",
                content_encoding=b"\x00\xff\x05",
                user_id=b"\x00\xff\x06",
                app_id=b"\x00\xff\x07",
                application_headers=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "0403ff018001020304050607f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000300ff02000602000300ff010300ff0403"
            "00ff05000300ff06000300ff070000000e00000002016b95000176016e0207",
        ),
        (wire.MessageProperties(content_length=0x8001020304050607), "040301008001020304050607"),
        (
            wire.MessageProperties(
                message_id=b"\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff"
            ),
            "04030200f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
        ),
        (wire.MessageProperties(correlation_id=b"\x00\xff\x02"), "04030400000300ff02"),
        (
            wire.MessageProperties(reply_to=wire.ReplyTo(routing_key=b"\x00\xff\x01")),
            "04030800000602000300ff01",
        ),
        (wire.MessageProperties(content_type=b"\x00\xff\x04"), "040310000300ff04"),
        (wire.MessageProperties(content_encoding=b"\x00\xff\x05"), "040320000300ff05"),
        (wire.MessageProperties(user_id=b"\x00\xff\x06"), "04034000000300ff06"),
        (wire.MessageProperties(app_id=b"\x00\xff\x07"), "04038000000300ff07"),
        (
            wire.MessageProperties(
                application_headers=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))
            ),
            "040300010000000e00000002016b95000176016e0207",
        ),
    ],
    "message.acquired": [
        (wire.Acquired(), "04040000"),
        (
            wire.Acquired(transfers=SequenceSet(((1, 2), (4, 4)))),
            "04040100001000000001000000020000000400000004",
        ),
    ],
    "message.message-resume-result": [
        (wire.MessageResumeResult(), "04050000"),
        (wire.MessageResumeResult(offset=0x8001020304050607), "040501008001020304050607"),
    ],
    "dtx.xa-result": [
        (wire.XaResult(), "06010000"),
        (wire.XaResult(status=0x8001), "060101008001"),
    ],
    "dtx.get-timeout-result": [
        (wire.GetTimeoutResult(), "06020000"),
        (wire.GetTimeoutResult(timeout=0x80010203), "0602010080010203"),
    ],
    "dtx.recover-result": [
        (wire.RecoverResult(), "06030000"),
        (wire.RecoverResult(in_doubt=Array(0x95, (b"a", b""))), "060301000000000a95000000020001610000"),
    ],
    "dtx.xid": [
        (wire.Xid(), "06040000"),
        (
            wire.Xid(format=0x80010203, global_id=b"\x00\xff\x01", branch_id=b"\x00\xff\x02"),
            "06040700800102030300ff010300ff02",
        ),
        (wire.Xid(format=0x80010203), "0604010080010203"),
        (wire.Xid(global_id=b"\x00\xff\x01"), "060402000300ff01"),
        (wire.Xid(branch_id=b"\x00\xff\x02"), "060404000300ff02"),
    ],
    "exchange.exchange-query-result": [
        (wire.ExchangeQueryResult(), "07010000"),
        (
            wire.ExchangeQueryResult(
                type=b"\x00\xff\x00",
                durable=True,
                not_found=True,
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "07010f000300ff000000000e00000002016b95000176016e0207",
        ),
        (wire.ExchangeQueryResult(type=b"\x00\xff\x00"), "070101000300ff00"),
        (wire.ExchangeQueryResult(durable=True), "07010200"),
        (wire.ExchangeQueryResult(not_found=True), "07010400"),
        (
            wire.ExchangeQueryResult(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "070108000000000e00000002016b95000176016e0207",
        ),
    ],
    "exchange.exchange-bound-result": [
        (wire.ExchangeBoundResult(), "07020000"),
        (
            wire.ExchangeBoundResult(
                exchange_not_found=True,
                queue_not_found=True,
                queue_not_matched=True,
                key_not_matched=True,
                args_not_matched=True,
            ),
            "07021f00",
        ),
        (wire.ExchangeBoundResult(exchange_not_found=True), "07020100"),
        (wire.ExchangeBoundResult(queue_not_found=True), "07020200"),
        (wire.ExchangeBoundResult(queue_not_matched=True), "07020400"),
        (wire.ExchangeBoundResult(key_not_matched=True), "07020800"),
        (wire.ExchangeBoundResult(args_not_matched=True), "07021000"),
    ],
    "queue.queue-query-result": [
        (wire.QueueQueryResult(), "08010000"),
        (
            wire.QueueQueryResult(
                queue=b"\x00\xff\x00",
                alternate_exchange=b"\x00\xff\x01",
                durable=True,
                exclusive=True,
                auto_delete=True,
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
                message_count=0x80070809,
                subscriber_count=0x8008090A,
            ),
            "0801ff000300ff000300ff010000000e00000002016b95000176016e0207800708098008090a",
        ),
        (wire.QueueQueryResult(queue=b"\x00\xff\x00"), "080101000300ff00"),
        (wire.QueueQueryResult(alternate_exchange=b"\x00\xff\x01"), "080102000300ff01"),
        (wire.QueueQueryResult(durable=True), "08010400"),
        (wire.QueueQueryResult(exclusive=True), "08010800"),
        (wire.QueueQueryResult(auto_delete=True), "08011000"),
        (
            wire.QueueQueryResult(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "080120000000000e00000002016b95000176016e0207",
        ),
        (wire.QueueQueryResult(message_count=0x80070809), "0801400080070809"),
        (wire.QueueQueryResult(subscriber_count=0x8008090A), "080180008008090a"),
    ],
    "file.file-properties": [
        (wire.FileProperties(), "09010000"),
        (
            wire.FileProperties(
                content_type=b"\x00\xff\x00",
                content_encoding=b"\x00\xff\x01",
                headers=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
                priority=0x80,
                reply_to=b"\x00\xff\x04",
                message_id=b"\x00\xff\x05",
                filename=b"\x00\xff\x06",
                timestamp=0x8008090A0B0C0D0E,
                cluster_id=b"\x00\xff\x08",
            ),
            "0901ff010300ff000300ff010000000e00000002016b95000176016e0207800300ff040300ff050300ff06800809"
            "0a0b0c0d0e0300ff08",
        ),
        (wire.FileProperties(content_type=b"\x00\xff\x00"), "090101000300ff00"),
        (wire.FileProperties(content_encoding=b"\x00\xff\x01"), "090102000300ff01"),
        (
            wire.FileProperties(headers=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "090104000000000e00000002016b95000176016e0207",
        ),
        (wire.FileProperties(priority=0x80), "0901080080"),
        (wire.FileProperties(reply_to=b"\x00\xff\x04"), "090110000300ff04"),
        (wire.FileProperties(message_id=b"\x00\xff\x05"), "090120000300ff05"),
        (wire.FileProperties(filename=b"\x00\xff\x06"), "090140000300ff06"),
        (wire.FileProperties(timestamp=0x8008090A0B0C0D0E), "090180008008090a0b0c0d0e"),
        (wire.FileProperties(cluster_id=b"\x00\xff\x08"), "090100010300ff08"),
    ],
    "stream.stream-properties": [
        (wire.StreamProperties(), "0a010000"),
        (
            wire.StreamProperties(
                content_type=b"\x00\xff\x00",
                content_encoding=b"\x00\xff\x01",
                headers=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
                priority=0x80,
                timestamp=0x8005060708090A0B,
            ),
            "0a011f000300ff000300ff010000000e00000002016b95000176016e0207808005060708090a0b",
        ),
        (wire.StreamProperties(content_type=b"\x00\xff\x00"), "0a0101000300ff00"),
        (wire.StreamProperties(content_encoding=b"\x00\xff\x01"), "0a0102000300ff01"),
        (
            wire.StreamProperties(headers=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0a0104000000000e00000002016b95000176016e0207",
        ),
        (wire.StreamProperties(priority=0x80), "0a01080080"),
        (wire.StreamProperties(timestamp=0x8005060708090A0B), "0a0110008005060708090a0b"),
    ],
    "connection.start": [
        (wire.ConnectionStart(), "01010000"),
        (
            wire.ConnectionStart(
                server_properties=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
                mechanisms=Array(0x95, (b"a", b"")),
                locales=Array(0x95, (b"a", b"")),
            ),
            "010107000000000e00000002016b95000176016e02070000000a950000000200016100000000000a950000000200"
            "01610000",
        ),
        (
            wire.ConnectionStart(server_properties=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "010101000000000e00000002016b95000176016e0207",
        ),
        (wire.ConnectionStart(mechanisms=Array(0x95, (b"a", b""))), "010102000000000a95000000020001610000"),
        (wire.ConnectionStart(locales=Array(0x95, (b"a", b""))), "010104000000000a95000000020001610000"),
    ],
    "connection.start-ok": [
        (wire.ConnectionStartOk(), "01020000"),
        (
            wire.ConnectionStartOk(
                client_properties=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
                mechanism=b"\x00\xff\x01",
                response=b"\x00\xff\x02",
                locale=b"\x00\xff\x03",
            ),
            "01020f000000000e00000002016b95000176016e02070300ff010000000300ff020300ff03",
        ),
        (
            wire.ConnectionStartOk(
                client_properties=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))
            ),
            "010201000000000e00000002016b95000176016e0207",
        ),
        (wire.ConnectionStartOk(mechanism=b"\x00\xff\x01"), "010202000300ff01"),
        (wire.ConnectionStartOk(response=b"\x00\xff\x02"), "010204000000000300ff02"),
        (wire.ConnectionStartOk(locale=b"\x00\xff\x03"), "010208000300ff03"),
    ],
    "connection.secure": [
        (wire.ConnectionSecure(), "01030000"),
        (wire.ConnectionSecure(challenge=b"\x00\xff\x00"), "010301000000000300ff00"),
    ],
    "connection.secure-ok": [
        (wire.ConnectionSecureOk(), "01040000"),
        (wire.ConnectionSecureOk(response=b"\x00\xff\x00"), "010401000000000300ff00"),
    ],
    "connection.tune": [
        (wire.ConnectionTune(), "01050000"),
        (
            wire.ConnectionTune(
                channel_max=0x8001, max_frame_size=0x8002, heartbeat_min=0x8003, heartbeat_max=0x8004
            ),
            "01050f008001800280038004",
        ),
        (wire.ConnectionTune(channel_max=0x8001), "010501008001"),
        (wire.ConnectionTune(max_frame_size=0x8002), "010502008002"),
        (wire.ConnectionTune(heartbeat_min=0x8003), "010504008003"),
        (wire.ConnectionTune(heartbeat_max=0x8004), "010508008004"),
    ],
    "connection.tune-ok": [
        (wire.ConnectionTuneOk(), "01060000"),
        (
            wire.ConnectionTuneOk(channel_max=0x8001, max_frame_size=0x8002, heartbeat=0x8003),
            "01060700800180028003",
        ),
        (wire.ConnectionTuneOk(channel_max=0x8001), "010601008001"),
        (wire.ConnectionTuneOk(max_frame_size=0x8002), "010602008002"),
        (wire.ConnectionTuneOk(heartbeat=0x8003), "010604008003"),
    ],
    "connection.open": [
        (wire.ConnectionOpen(), "01070000"),
        (
            wire.ConnectionOpen(
                virtual_host=b"\x00\xff\x00", capabilities=Array(0x95, (b"a", b"")), insist=True
            ),
            "010707000300ff000000000a95000000020001610000",
        ),
        (wire.ConnectionOpen(virtual_host=b"\x00\xff\x00"), "010701000300ff00"),
        (wire.ConnectionOpen(capabilities=Array(0x95, (b"a", b""))), "010702000000000a95000000020001610000"),
        (wire.ConnectionOpen(insist=True), "01070400"),
    ],
    "connection.open-ok": [
        (wire.ConnectionOpenOk(), "01080000"),
        (wire.ConnectionOpenOk(known_hosts=Array(0x95, (b"a", b""))), "010801000000000a95000000020001610000"),
    ],
    "connection.redirect": [
        (wire.ConnectionRedirect(), "01090000"),
        (
            wire.ConnectionRedirect(host=b"\x00\xff\x00", known_hosts=Array(0x95, (b"a", b""))),
            "01090300000300ff000000000a95000000020001610000",
        ),
        (wire.ConnectionRedirect(host=b"\x00\xff\x00"), "01090100000300ff00"),
        (
            wire.ConnectionRedirect(known_hosts=Array(0x95, (b"a", b""))),
            "010902000000000a95000000020001610000",
        ),
    ],
    "connection.heartbeat": [
        (wire.ConnectionHeartbeat(), "010a0000"),
    ],
    "connection.close": [
        (wire.ConnectionClose(), "010b0000"),
        (wire.ConnectionClose(reply_code=0x8001, reply_text=b"\x00\xff\x01"), "010b030080010300ff01"),
        (wire.ConnectionClose(reply_code=0x8001), "010b01008001"),
        (wire.ConnectionClose(reply_text=b"\x00\xff\x01"), "010b02000300ff01"),
    ],
    "connection.close-ok": [
        (wire.ConnectionCloseOk(), "010c0000"),
    ],
    "session.attach": [
        (wire.SessionAttach(), "02010000"),
        (wire.SessionAttach(name=b"\x00\xff\x00", force=True), "02010300000300ff00"),
        (wire.SessionAttach(name=b"\x00\xff\x00"), "02010100000300ff00"),
        (wire.SessionAttach(force=True), "02010200"),
    ],
    "session.attached": [
        (wire.SessionAttached(), "02020000"),
        (wire.SessionAttached(name=b"\x00\xff\x00"), "02020100000300ff00"),
    ],
    "session.detach": [
        (wire.SessionDetach(), "02030000"),
        (wire.SessionDetach(name=b"\x00\xff\x00"), "02030100000300ff00"),
    ],
    "session.detached": [
        (wire.SessionDetached(), "02040000"),
        (wire.SessionDetached(name=b"\x00\xff\x00", code=0x80), "02040300000300ff0080"),
        (wire.SessionDetached(name=b"\x00\xff\x00"), "02040100000300ff00"),
        (wire.SessionDetached(code=0x80), "0204020080"),
    ],
    "session.request-timeout": [
        (wire.SessionRequestTimeout(), "02050000"),
        (wire.SessionRequestTimeout(timeout=0x80010203), "0205010080010203"),
    ],
    "session.timeout": [
        (wire.SessionTimeout(), "02060000"),
        (wire.SessionTimeout(timeout=0x80010203), "0206010080010203"),
    ],
    "session.command-point": [
        (wire.SessionCommandPoint(), "02070000"),
        (
            wire.SessionCommandPoint(command_id=0x80010203, command_offset=0x8002030405060708),
            "02070300800102038002030405060708",
        ),
        (wire.SessionCommandPoint(command_id=0x80010203), "0207010080010203"),
        (wire.SessionCommandPoint(command_offset=0x8002030405060708), "020702008002030405060708"),
    ],
    "session.expected": [
        (wire.SessionExpected(), "02080000"),
        (
            wire.SessionExpected(commands=SequenceSet(((1, 2), (4, 4))), fragments=Array(0x95, (b"a", b""))),
            "020803000010000000010000000200000004000000040000000a95000000020001610000",
        ),
        (
            wire.SessionExpected(commands=SequenceSet(((1, 2), (4, 4)))),
            "02080100001000000001000000020000000400000004",
        ),
        (wire.SessionExpected(fragments=Array(0x95, (b"a", b""))), "020802000000000a95000000020001610000"),
    ],
    "session.confirmed": [
        (wire.SessionConfirmed(), "02090000"),
        (
            wire.SessionConfirmed(commands=SequenceSet(((1, 2), (4, 4))), fragments=Array(0x95, (b"a", b""))),
            "020903000010000000010000000200000004000000040000000a95000000020001610000",
        ),
        (
            wire.SessionConfirmed(commands=SequenceSet(((1, 2), (4, 4)))),
            "02090100001000000001000000020000000400000004",
        ),
        (wire.SessionConfirmed(fragments=Array(0x95, (b"a", b""))), "020902000000000a95000000020001610000"),
    ],
    "session.completed": [
        (wire.SessionCompleted(), "020a0000"),
        (
            wire.SessionCompleted(commands=SequenceSet(((1, 2), (4, 4))), timely_reply=True),
            "020a0300001000000001000000020000000400000004",
        ),
        (
            wire.SessionCompleted(commands=SequenceSet(((1, 2), (4, 4)))),
            "020a0100001000000001000000020000000400000004",
        ),
        (wire.SessionCompleted(timely_reply=True), "020a0200"),
    ],
    "session.known-completed": [
        (wire.SessionKnownCompleted(), "020b0000"),
        (
            wire.SessionKnownCompleted(commands=SequenceSet(((1, 2), (4, 4)))),
            "020b0100001000000001000000020000000400000004",
        ),
    ],
    "session.flush": [
        (wire.SessionFlush(), "020c0000"),
        (wire.SessionFlush(expected=True, confirmed=True, completed=True), "020c0700"),
        (wire.SessionFlush(expected=True), "020c0100"),
        (wire.SessionFlush(confirmed=True), "020c0200"),
        (wire.SessionFlush(completed=True), "020c0400"),
    ],
    "session.gap": [
        (wire.SessionGap(), "020d0000"),
        (
            wire.SessionGap(commands=SequenceSet(((1, 2), (4, 4)))),
            "020d0100001000000001000000020000000400000004",
        ),
    ],
    "execution.sync": [
        (wire.ExecutionSync(), "030101000000"),
    ],
    "execution.result": [
        (wire.ExecutionResult(), "030201000000"),
        (
            wire.ExecutionResult(command_id=0x80010203, value=b"\x00\xff\x01"),
            "030201000300800102030000000300ff01",
        ),
        (wire.ExecutionResult(command_id=0x80010203), "03020100010080010203"),
        (wire.ExecutionResult(value=b"\x00\xff\x01"), "0302010002000000000300ff01"),
    ],
    "execution.exception": [
        (wire.ExecutionException(), "030301000000"),
        (
            wire.ExecutionException(
                error_code=0x8001,
                command_id=0x80020304,
                class_code=0x80,
                command_code=0x80,
                field_index=0x80,
                description=b"\x00\xff\x05",
                error_info=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "030301007f00800180020304808080000300ff050000000e00000002016b95000176016e0207",
        ),
        (wire.ExecutionException(error_code=0x8001), "0303010001008001"),
        (wire.ExecutionException(command_id=0x80020304), "03030100020080020304"),
        (wire.ExecutionException(class_code=0x80), "03030100040080"),
        (wire.ExecutionException(command_code=0x80), "03030100080080"),
        (wire.ExecutionException(field_index=0x80), "03030100100080"),
        (wire.ExecutionException(description=b"\x00\xff\x05"), "030301002000000300ff05"),
        (
            wire.ExecutionException(error_info=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0303010040000000000e00000002016b95000176016e0207",
        ),
    ],
    "message.transfer": [
        (wire.MessageTransfer(), "040101000000"),
        (
            wire.MessageTransfer(destination=b"\x00\xff\x00", accept_mode=0x80, acquire_mode=0x80),
            "0401010007000300ff008080",
        ),
        (wire.MessageTransfer(destination=b"\x00\xff\x00"), "0401010001000300ff00"),
        (wire.MessageTransfer(accept_mode=0x80), "04010100020080"),
        (wire.MessageTransfer(acquire_mode=0x80), "04010100040080"),
    ],
    "message.accept": [
        (wire.MessageAccept(), "040201000000"),
        (
            wire.MessageAccept(transfers=SequenceSet(((1, 2), (4, 4)))),
            "040201000100001000000001000000020000000400000004",
        ),
    ],
    "message.reject": [
        (wire.MessageReject(), "040301000000"),
        (
            wire.MessageReject(transfers=SequenceSet(((1, 2), (4, 4))), code=0x8002, text=b"\x00\xff\x02"),
            "04030100070000100000000100000002000000040000000480020300ff02",
        ),
        (
            wire.MessageReject(transfers=SequenceSet(((1, 2), (4, 4)))),
            "040301000100001000000001000000020000000400000004",
        ),
        (wire.MessageReject(code=0x8002), "0403010002008002"),
        (wire.MessageReject(text=b"\x00\xff\x02"), "0403010004000300ff02"),
    ],
    "message.release": [
        (wire.MessageRelease(), "040401000000"),
        (
            wire.MessageRelease(transfers=SequenceSet(((1, 2), (4, 4))), set_redelivered=True),
            "040401000300001000000001000000020000000400000004",
        ),
        (
            wire.MessageRelease(transfers=SequenceSet(((1, 2), (4, 4)))),
            "040401000100001000000001000000020000000400000004",
        ),
        (wire.MessageRelease(set_redelivered=True), "040401000200"),
    ],
    "message.acquire": [
        (wire.MessageAcquire(), "040501000000"),
        (
            wire.MessageAcquire(transfers=SequenceSet(((1, 2), (4, 4)))),
            "040501000100001000000001000000020000000400000004",
        ),
    ],
    "message.resume": [
        (wire.MessageResume(), "040601000000"),
        (
            wire.MessageResume(destination=b"\x00\xff\x00", resume_id=b"\x00\xff\x01"),
            "0406010003000300ff00000300ff01",
        ),
        (wire.MessageResume(destination=b"\x00\xff\x00"), "0406010001000300ff00"),
        (wire.MessageResume(resume_id=b"\x00\xff\x01"), "040601000200000300ff01"),
    ],
    "message.subscribe": [
        (wire.MessageSubscribe(), "040701000000"),
        (
            wire.MessageSubscribe(
                queue=b"\x00\xff\x00",
                destination=b"\x00\xff\x01",
                accept_mode=0x80,
                acquire_mode=0x80,
                exclusive=True,
                resume_id=b"\x00\xff\x05",
                resume_ttl=0x800708090A0B0C0D,
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "04070100ff000300ff000300ff018080000300ff05800708090a0b0c0d0000000e00000002016b95000176016e0207",
        ),
        (wire.MessageSubscribe(queue=b"\x00\xff\x00"), "0407010001000300ff00"),
        (wire.MessageSubscribe(destination=b"\x00\xff\x01"), "0407010002000300ff01"),
        (wire.MessageSubscribe(accept_mode=0x80), "04070100040080"),
        (wire.MessageSubscribe(acquire_mode=0x80), "04070100080080"),
        (wire.MessageSubscribe(exclusive=True), "040701001000"),
        (wire.MessageSubscribe(resume_id=b"\x00\xff\x05"), "040701002000000300ff05"),
        (wire.MessageSubscribe(resume_ttl=0x800708090A0B0C0D), "040701004000800708090a0b0c0d"),
        (
            wire.MessageSubscribe(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0407010080000000000e00000002016b95000176016e0207",
        ),
    ],
    "message.cancel": [
        (wire.MessageCancel(), "040801000000"),
        (wire.MessageCancel(destination=b"\x00\xff\x00"), "0408010001000300ff00"),
    ],
    "message.set-flow-mode": [
        (wire.MessageSetFlowMode(), "040901000000"),
        (wire.MessageSetFlowMode(destination=b"\x00\xff\x00", flow_mode=0x80), "0409010003000300ff0080"),
        (wire.MessageSetFlowMode(destination=b"\x00\xff\x00"), "0409010001000300ff00"),
        (wire.MessageSetFlowMode(flow_mode=0x80), "04090100020080"),
    ],
    "message.flow": [
        (wire.MessageFlow(), "040a01000000"),
        (
            wire.MessageFlow(destination=b"\x00\xff\x00", unit=0x80, value=0x80030405),
            "040a010007000300ff008080030405",
        ),
        (wire.MessageFlow(destination=b"\x00\xff\x00"), "040a010001000300ff00"),
        (wire.MessageFlow(unit=0x80), "040a0100020080"),
        (wire.MessageFlow(value=0x80030405), "040a0100040080030405"),
    ],
    "message.flush": [
        (wire.MessageFlush(), "040b01000000"),
        (wire.MessageFlush(destination=b"\x00\xff\x00"), "040b010001000300ff00"),
    ],
    "message.stop": [
        (wire.MessageStop(), "040c01000000"),
        (wire.MessageStop(destination=b"\x00\xff\x00"), "040c010001000300ff00"),
    ],
    "tx.select": [
        (wire.TxSelect(), "050101000000"),
    ],
    "tx.commit": [
        (wire.TxCommit(), "050201000000"),
    ],
    "tx.rollback": [
        (wire.TxRollback(), "050301000000"),
    ],
    "dtx.select": [
        (wire.DtxSelect(), "060101000000"),
    ],
    "dtx.start": [
        (wire.DtxStart(), "060201000000"),
        (
            wire.DtxStart(xid=wire.Xid(branch_id=b"\x00\xff\x02"), join=True, resume=True),
            "06020100070000000008060404000300ff02",
        ),
        (wire.DtxStart(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "06020100010000000008060404000300ff02"),
        (wire.DtxStart(join=True), "060201000200"),
        (wire.DtxStart(resume=True), "060201000400"),
    ],
    "dtx.end": [
        (wire.DtxEnd(), "060301000000"),
        (
            wire.DtxEnd(xid=wire.Xid(branch_id=b"\x00\xff\x02"), fail=True, suspend=True),
            "06030100070000000008060404000300ff02",
        ),
        (wire.DtxEnd(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "06030100010000000008060404000300ff02"),
        (wire.DtxEnd(fail=True), "060301000200"),
        (wire.DtxEnd(suspend=True), "060301000400"),
    ],
    "dtx.commit": [
        (wire.DtxCommit(), "060401000000"),
        (
            wire.DtxCommit(xid=wire.Xid(branch_id=b"\x00\xff\x02"), one_phase=True),
            "06040100030000000008060404000300ff02",
        ),
        (wire.DtxCommit(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "06040100010000000008060404000300ff02"),
        (wire.DtxCommit(one_phase=True), "060401000200"),
    ],
    "dtx.forget": [
        (wire.DtxForget(), "060501000000"),
        (wire.DtxForget(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "06050100010000000008060404000300ff02"),
    ],
    "dtx.get-timeout": [
        (wire.DtxGetTimeout(), "060601000000"),
        (wire.DtxGetTimeout(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "06060100010000000008060404000300ff02"),
    ],
    "dtx.prepare": [
        (wire.DtxPrepare(), "060701000000"),
        (wire.DtxPrepare(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "06070100010000000008060404000300ff02"),
    ],
    "dtx.recover": [
        (wire.DtxRecover(), "060801000000"),
    ],
    "dtx.rollback": [
        (wire.DtxRollback(), "060901000000"),
        (wire.DtxRollback(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "06090100010000000008060404000300ff02"),
    ],
    "dtx.set-timeout": [
        (wire.DtxSetTimeout(), "060a01000000"),
        (
            wire.DtxSetTimeout(xid=wire.Xid(branch_id=b"\x00\xff\x02"), timeout=0x80020304),
            "060a0100030000000008060404000300ff0280020304",
        ),
        (wire.DtxSetTimeout(xid=wire.Xid(branch_id=b"\x00\xff\x02")), "060a0100010000000008060404000300ff02"),
        (wire.DtxSetTimeout(timeout=0x80020304), "060a0100020080020304"),
    ],
    "exchange.declare": [
        (wire.ExchangeDeclare(), "070101000000"),
        (
            wire.ExchangeDeclare(
                exchange=b"\x00\xff\x00",
                type=b"\x00\xff\x01",
                alternate_exchange=b"\x00\xff\x02",
                passive=True,
                durable=True,
                auto_delete=True,
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "070101007f000300ff000300ff010300ff020000000e00000002016b95000176016e0207",
        ),
        (wire.ExchangeDeclare(exchange=b"\x00\xff\x00"), "0701010001000300ff00"),
        (wire.ExchangeDeclare(type=b"\x00\xff\x01"), "0701010002000300ff01"),
        (wire.ExchangeDeclare(alternate_exchange=b"\x00\xff\x02"), "0701010004000300ff02"),
        (wire.ExchangeDeclare(passive=True), "070101000800"),
        (wire.ExchangeDeclare(durable=True), "070101001000"),
        (wire.ExchangeDeclare(auto_delete=True), "070101002000"),
        (
            wire.ExchangeDeclare(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0701010040000000000e00000002016b95000176016e0207",
        ),
    ],
    "exchange.delete": [
        (wire.ExchangeDelete(), "070201000000"),
        (wire.ExchangeDelete(exchange=b"\x00\xff\x00", if_unused=True), "0702010003000300ff00"),
        (wire.ExchangeDelete(exchange=b"\x00\xff\x00"), "0702010001000300ff00"),
        (wire.ExchangeDelete(if_unused=True), "070201000200"),
    ],
    "exchange.query": [
        (wire.ExchangeQuery(), "070301000000"),
        (wire.ExchangeQuery(name=b"\x00\xff\x00"), "0703010001000300ff00"),
    ],
    "exchange.bind": [
        (wire.ExchangeBind(), "070401000000"),
        (
            wire.ExchangeBind(
                queue=b"\x00\xff\x00",
                exchange=b"\x00\xff\x01",
                binding_key=b"\x00\xff\x02",
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "070401000f000300ff000300ff010300ff020000000e00000002016b95000176016e0207",
        ),
        (wire.ExchangeBind(queue=b"\x00\xff\x00"), "0704010001000300ff00"),
        (wire.ExchangeBind(exchange=b"\x00\xff\x01"), "0704010002000300ff01"),
        (wire.ExchangeBind(binding_key=b"\x00\xff\x02"), "0704010004000300ff02"),
        (
            wire.ExchangeBind(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0704010008000000000e00000002016b95000176016e0207",
        ),
    ],
    "exchange.unbind": [
        (wire.ExchangeUnbind(), "070501000000"),
        (
            wire.ExchangeUnbind(queue=b"\x00\xff\x00", exchange=b"\x00\xff\x01", binding_key=b"\x00\xff\x02"),
            "0705010007000300ff000300ff010300ff02",
        ),
        (wire.ExchangeUnbind(queue=b"\x00\xff\x00"), "0705010001000300ff00"),
        (wire.ExchangeUnbind(exchange=b"\x00\xff\x01"), "0705010002000300ff01"),
        (wire.ExchangeUnbind(binding_key=b"\x00\xff\x02"), "0705010004000300ff02"),
    ],
    "exchange.bound": [
        (wire.ExchangeBound(), "070601000000"),
        (
            wire.ExchangeBound(
                exchange=b"\x00\xff\x00",
                queue=b"\x00\xff\x01",
                binding_key=b"\x00\xff\x02",
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "070601000f000300ff000300ff010300ff020000000e00000002016b95000176016e0207",
        ),
        (wire.ExchangeBound(exchange=b"\x00\xff\x00"), "0706010001000300ff00"),
        (wire.ExchangeBound(queue=b"\x00\xff\x01"), "0706010002000300ff01"),
        (wire.ExchangeBound(binding_key=b"\x00\xff\x02"), "0706010004000300ff02"),
        (
            wire.ExchangeBound(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0706010008000000000e00000002016b95000176016e0207",
        ),
    ],
    "queue.declare": [
        (wire.QueueDeclare(), "080101000000"),
        (
            wire.QueueDeclare(
                queue=b"\x00\xff\x00",
                alternate_exchange=b"\x00\xff\x01",
                passive=True,
                durable=True,
                exclusive=True,
                auto_delete=True,
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "080101007f000300ff000300ff010000000e00000002016b95000176016e0207",
        ),
        (wire.QueueDeclare(queue=b"\x00\xff\x00"), "0801010001000300ff00"),
        (wire.QueueDeclare(alternate_exchange=b"\x00\xff\x01"), "0801010002000300ff01"),
        (wire.QueueDeclare(passive=True), "080101000400"),
        (wire.QueueDeclare(durable=True), "080101000800"),
        (wire.QueueDeclare(exclusive=True), "080101001000"),
        (wire.QueueDeclare(auto_delete=True), "080101002000"),
        (
            wire.QueueDeclare(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0801010040000000000e00000002016b95000176016e0207",
        ),
    ],
    "queue.delete": [
        (wire.QueueDelete(), "080201000000"),
        (wire.QueueDelete(queue=b"\x00\xff\x00", if_unused=True, if_empty=True), "0802010007000300ff00"),
        (wire.QueueDelete(queue=b"\x00\xff\x00"), "0802010001000300ff00"),
        (wire.QueueDelete(if_unused=True), "080201000200"),
        (wire.QueueDelete(if_empty=True), "080201000400"),
    ],
    "queue.purge": [
        (wire.QueuePurge(), "080301000000"),
        (wire.QueuePurge(queue=b"\x00\xff\x00"), "0803010001000300ff00"),
    ],
    "queue.query": [
        (wire.QueueQuery(), "080401000000"),
        (wire.QueueQuery(queue=b"\x00\xff\x00"), "0804010001000300ff00"),
    ],
    "file.qos": [
        (wire.FileQos(), "090101000000"),
        (
            wire.FileQos(prefetch_size=0x80010203, prefetch_count=0x8002, global_=True),
            "090101000700800102038002",
        ),
        (wire.FileQos(prefetch_size=0x80010203), "09010100010080010203"),
        (wire.FileQos(prefetch_count=0x8002), "0901010002008002"),
        (wire.FileQos(global_=True), "090101000400"),
    ],
    "file.qos-ok": [
        (wire.FileQosOk(), "090201000000"),
    ],
    "file.consume": [
        (wire.FileConsume(), "090301000000"),
        (
            wire.FileConsume(
                queue=b"\x00\xff\x00",
                consumer_tag=b"\x00\xff\x01",
                no_local=True,
                no_ack=True,
                exclusive=True,
                no_wait=True,
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "090301007f000300ff000300ff010000000e00000002016b95000176016e0207",
        ),
        (wire.FileConsume(queue=b"\x00\xff\x00"), "0903010001000300ff00"),
        (wire.FileConsume(consumer_tag=b"\x00\xff\x01"), "0903010002000300ff01"),
        (wire.FileConsume(no_local=True), "090301000400"),
        (wire.FileConsume(no_ack=True), "090301000800"),
        (wire.FileConsume(exclusive=True), "090301001000"),
        (wire.FileConsume(no_wait=True), "090301002000"),
        (
            wire.FileConsume(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0903010040000000000e00000002016b95000176016e0207",
        ),
    ],
    "file.consume-ok": [
        (wire.FileConsumeOk(), "090401000000"),
        (wire.FileConsumeOk(consumer_tag=b"\x00\xff\x00"), "0904010001000300ff00"),
    ],
    "file.cancel": [
        (wire.FileCancel(), "090501000000"),
        (wire.FileCancel(consumer_tag=b"\x00\xff\x00"), "0905010001000300ff00"),
    ],
    "file.open": [
        (wire.FileOpen(), "090601000000"),
        (
            wire.FileOpen(identifier=b"\x00\xff\x00", content_size=0x8002030405060708),
            "0906010003000300ff008002030405060708",
        ),
        (wire.FileOpen(identifier=b"\x00\xff\x00"), "0906010001000300ff00"),
        (wire.FileOpen(content_size=0x8002030405060708), "0906010002008002030405060708"),
    ],
    "file.open-ok": [
        (wire.FileOpenOk(), "090701000000"),
        (wire.FileOpenOk(staged_size=0x8001020304050607), "0907010001008001020304050607"),
    ],
    "file.stage": [
        (wire.FileStage(), "090801000000"),
    ],
    "file.publish": [
        (wire.FilePublish(), "090901000000"),
        (
            wire.FilePublish(
                exchange=b"\x00\xff\x00",
                routing_key=b"\x00\xff\x01",
                mandatory=True,
                immediate=True,
                identifier=b"\x00\xff\x04",
            ),
            "090901001f000300ff000300ff010300ff04",
        ),
        (wire.FilePublish(exchange=b"\x00\xff\x00"), "0909010001000300ff00"),
        (wire.FilePublish(routing_key=b"\x00\xff\x01"), "0909010002000300ff01"),
        (wire.FilePublish(mandatory=True), "090901000400"),
        (wire.FilePublish(immediate=True), "090901000800"),
        (wire.FilePublish(identifier=b"\x00\xff\x04"), "0909010010000300ff04"),
    ],
    "file.return": [
        (wire.FileReturn(), "090a01000000"),
        (
            wire.FileReturn(
                reply_code=0x8001,
                reply_text=b"\x00\xff\x01",
                exchange=b"\x00\xff\x02",
                routing_key=b"\x00\xff\x03",
            ),
            "090a01000f0080010300ff010300ff020300ff03",
        ),
        (wire.FileReturn(reply_code=0x8001), "090a010001008001"),
        (wire.FileReturn(reply_text=b"\x00\xff\x01"), "090a010002000300ff01"),
        (wire.FileReturn(exchange=b"\x00\xff\x02"), "090a010004000300ff02"),
        (wire.FileReturn(routing_key=b"\x00\xff\x03"), "090a010008000300ff03"),
    ],
    "file.deliver": [
        (wire.FileDeliver(), "090b01000000"),
        (
            wire.FileDeliver(
                consumer_tag=b"\x00\xff\x00",
                delivery_tag=0x8002030405060708,
                redelivered=True,
                exchange=b"\x00\xff\x03",
                routing_key=b"\x00\xff\x04",
                identifier=b"\x00\xff\x05",
            ),
            "090b01003f000300ff0080020304050607080300ff030300ff040300ff05",
        ),
        (wire.FileDeliver(consumer_tag=b"\x00\xff\x00"), "090b010001000300ff00"),
        (wire.FileDeliver(delivery_tag=0x8002030405060708), "090b010002008002030405060708"),
        (wire.FileDeliver(redelivered=True), "090b01000400"),
        (wire.FileDeliver(exchange=b"\x00\xff\x03"), "090b010008000300ff03"),
        (wire.FileDeliver(routing_key=b"\x00\xff\x04"), "090b010010000300ff04"),
        (wire.FileDeliver(identifier=b"\x00\xff\x05"), "090b010020000300ff05"),
    ],
    "file.ack": [
        (wire.FileAck(), "090c01000000"),
        (wire.FileAck(delivery_tag=0x8001020304050607, multiple=True), "090c010003008001020304050607"),
        (wire.FileAck(delivery_tag=0x8001020304050607), "090c010001008001020304050607"),
        (wire.FileAck(multiple=True), "090c01000200"),
    ],
    "file.reject": [
        (wire.FileReject(), "090d01000000"),
        (wire.FileReject(delivery_tag=0x8001020304050607, requeue=True), "090d010003008001020304050607"),
        (wire.FileReject(delivery_tag=0x8001020304050607), "090d010001008001020304050607"),
        (wire.FileReject(requeue=True), "090d01000200"),
    ],
    "stream.qos": [
        (wire.StreamQos(), "0a0101000000"),
        (
            wire.StreamQos(
                prefetch_size=0x80010203, prefetch_count=0x8002, consume_rate=0x80030405, global_=True
            ),
            "0a0101000f0080010203800280030405",
        ),
        (wire.StreamQos(prefetch_size=0x80010203), "0a010100010080010203"),
        (wire.StreamQos(prefetch_count=0x8002), "0a01010002008002"),
        (wire.StreamQos(consume_rate=0x80030405), "0a010100040080030405"),
        (wire.StreamQos(global_=True), "0a0101000800"),
    ],
    "stream.qos-ok": [
        (wire.StreamQosOk(), "0a0201000000"),
    ],
    "stream.consume": [
        (wire.StreamConsume(), "0a0301000000"),
        (
            wire.StreamConsume(
                queue=b"\x00\xff\x00",
                consumer_tag=b"\x00\xff\x01",
                no_local=True,
                exclusive=True,
                no_wait=True,
                arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7)))),
            ),
            "0a0301003f000300ff000300ff010000000e00000002016b95000176016e0207",
        ),
        (wire.StreamConsume(queue=b"\x00\xff\x00"), "0a03010001000300ff00"),
        (wire.StreamConsume(consumer_tag=b"\x00\xff\x01"), "0a03010002000300ff01"),
        (wire.StreamConsume(no_local=True), "0a0301000400"),
        (wire.StreamConsume(exclusive=True), "0a0301000800"),
        (wire.StreamConsume(no_wait=True), "0a0301001000"),
        (
            wire.StreamConsume(arguments=Map(((b"k", Value(0x95, b"v")), (b"n", Value(0x02, 7))))),
            "0a03010020000000000e00000002016b95000176016e0207",
        ),
    ],
    "stream.consume-ok": [
        (wire.StreamConsumeOk(), "0a0401000000"),
        (wire.StreamConsumeOk(consumer_tag=b"\x00\xff\x00"), "0a04010001000300ff00"),
    ],
    "stream.cancel": [
        (wire.StreamCancel(), "0a0501000000"),
        (wire.StreamCancel(consumer_tag=b"\x00\xff\x00"), "0a05010001000300ff00"),
    ],
    "stream.publish": [
        (wire.StreamPublish(), "0a0601000000"),
        (
            wire.StreamPublish(
                exchange=b"\x00\xff\x00", routing_key=b"\x00\xff\x01", mandatory=True, immediate=True
            ),
            "0a0601000f000300ff000300ff01",
        ),
        (wire.StreamPublish(exchange=b"\x00\xff\x00"), "0a06010001000300ff00"),
        (wire.StreamPublish(routing_key=b"\x00\xff\x01"), "0a06010002000300ff01"),
        (wire.StreamPublish(mandatory=True), "0a0601000400"),
        (wire.StreamPublish(immediate=True), "0a0601000800"),
    ],
    "stream.return": [
        (wire.StreamReturn(), "0a0701000000"),
        (
            wire.StreamReturn(
                reply_code=0x8001,
                reply_text=b"\x00\xff\x01",
                exchange=b"\x00\xff\x02",
                routing_key=b"\x00\xff\x03",
            ),
            "0a0701000f0080010300ff010300ff020300ff03",
        ),
        (wire.StreamReturn(reply_code=0x8001), "0a07010001008001"),
        (wire.StreamReturn(reply_text=b"\x00\xff\x01"), "0a07010002000300ff01"),
        (wire.StreamReturn(exchange=b"\x00\xff\x02"), "0a07010004000300ff02"),
        (wire.StreamReturn(routing_key=b"\x00\xff\x03"), "0a07010008000300ff03"),
    ],
    "stream.deliver": [
        (wire.StreamDeliver(), "0a0801000000"),
        (
            wire.StreamDeliver(
                consumer_tag=b"\x00\xff\x00",
                delivery_tag=0x8002030405060708,
                exchange=b"\x00\xff\x02",
                queue=b"\x00\xff\x03",
            ),
            "0a0801000f000300ff0080020304050607080300ff020300ff03",
        ),
        (wire.StreamDeliver(consumer_tag=b"\x00\xff\x00"), "0a08010001000300ff00"),
        (wire.StreamDeliver(delivery_tag=0x8002030405060708), "0a08010002008002030405060708"),
        (wire.StreamDeliver(exchange=b"\x00\xff\x02"), "0a08010004000300ff02"),
        (wire.StreamDeliver(queue=b"\x00\xff\x03"), "0a08010008000300ff03"),
    ],
}

STRATEGIES: dict[str, st.SearchStrategy[Packed]] = {
    "session.header": st.builds(wire.SessionHeader, sync=values.BIT),
    "session.command-fragment": st.builds(
        wire.CommandFragment, command_id=values.SEQUENCE_NO, byte_ranges=values.BYTE_RANGES
    ),
    "message.reply-to": st.builds(
        wire.ReplyTo, exchange=st.none() | values.STR8, routing_key=st.none() | values.STR8
    ),
    "message.delivery-properties": st.builds(
        wire.DeliveryProperties,
        discard_unroutable=values.BIT,
        immediate=values.BIT,
        redelivered=values.BIT,
        priority=st.none() | values.UINT8,
        delivery_mode=st.none() | values.UINT8,
        ttl=st.none() | values.UINT64,
        timestamp=st.none() | values.DATETIME,
        expiration=st.none() | values.DATETIME,
        exchange=st.none() | values.STR8,
        routing_key=st.none() | values.STR8,
        resume_id=st.none() | values.STR16,
        resume_ttl=st.none() | values.UINT64,
    ),
    "message.fragment-properties": st.builds(
        wire.FragmentProperties, first=values.BIT, last=values.BIT, fragment_size=st.none() | values.UINT64
    ),
    "message.message-properties": st.builds(
        wire.MessageProperties,
        content_length=st.none() | values.UINT64,
        message_id=st.none() | values.UUID,
        correlation_id=st.none() | values.VBIN16,
        reply_to=st.none() | values.REPLY_TO,
        content_type=st.none() | values.STR8,
        content_encoding=st.none() | values.STR8,
        user_id=st.none() | values.VBIN16,
        app_id=st.none() | values.VBIN16,
        application_headers=st.none() | values.MAP,
    ),
    "message.acquired": st.builds(wire.Acquired, transfers=st.none() | values.SEQUENCE_SET),
    "message.message-resume-result": st.builds(wire.MessageResumeResult, offset=st.none() | values.UINT64),
    "dtx.xa-result": st.builds(wire.XaResult, status=st.none() | values.UINT16),
    "dtx.get-timeout-result": st.builds(wire.GetTimeoutResult, timeout=st.none() | values.UINT32),
    "dtx.recover-result": st.builds(wire.RecoverResult, in_doubt=st.none() | values.ARRAY),
    "dtx.xid": st.builds(
        wire.Xid,
        format=st.none() | values.UINT32,
        global_id=st.none() | values.VBIN8,
        branch_id=st.none() | values.VBIN8,
    ),
    "exchange.exchange-query-result": st.builds(
        wire.ExchangeQueryResult,
        type=st.none() | values.STR8,
        durable=values.BIT,
        not_found=values.BIT,
        arguments=st.none() | values.MAP,
    ),
    "exchange.exchange-bound-result": st.builds(
        wire.ExchangeBoundResult,
        exchange_not_found=values.BIT,
        queue_not_found=values.BIT,
        queue_not_matched=values.BIT,
        key_not_matched=values.BIT,
        args_not_matched=values.BIT,
    ),
    "queue.queue-query-result": st.builds(
        wire.QueueQueryResult,
        queue=st.none() | values.STR8,
        alternate_exchange=st.none() | values.STR8,
        durable=values.BIT,
        exclusive=values.BIT,
        auto_delete=values.BIT,
        arguments=st.none() | values.MAP,
        message_count=st.none() | values.UINT32,
        subscriber_count=st.none() | values.UINT32,
    ),
    "file.file-properties": st.builds(
        wire.FileProperties,
        content_type=st.none() | values.STR8,
        content_encoding=st.none() | values.STR8,
        headers=st.none() | values.MAP,
        priority=st.none() | values.UINT8,
        reply_to=st.none() | values.STR8,
        message_id=st.none() | values.STR8,
        filename=st.none() | values.STR8,
        timestamp=st.none() | values.DATETIME,
        cluster_id=st.none() | values.STR8,
    ),
    "stream.stream-properties": st.builds(
        wire.StreamProperties,
        content_type=st.none() | values.STR8,
        content_encoding=st.none() | values.STR8,
        headers=st.none() | values.MAP,
        priority=st.none() | values.UINT8,
        timestamp=st.none() | values.DATETIME,
    ),
    "connection.start": st.builds(
        wire.ConnectionStart,
        server_properties=st.none() | values.MAP,
        mechanisms=st.none() | values.ARRAY,
        locales=st.none() | values.ARRAY,
    ),
    "connection.start-ok": st.builds(
        wire.ConnectionStartOk,
        client_properties=st.none() | values.MAP,
        mechanism=st.none() | values.STR8,
        response=st.none() | values.VBIN32,
        locale=st.none() | values.STR8,
    ),
    "connection.secure": st.builds(wire.ConnectionSecure, challenge=st.none() | values.VBIN32),
    "connection.secure-ok": st.builds(wire.ConnectionSecureOk, response=st.none() | values.VBIN32),
    "connection.tune": st.builds(
        wire.ConnectionTune,
        channel_max=st.none() | values.UINT16,
        max_frame_size=st.none() | values.UINT16,
        heartbeat_min=st.none() | values.UINT16,
        heartbeat_max=st.none() | values.UINT16,
    ),
    "connection.tune-ok": st.builds(
        wire.ConnectionTuneOk,
        channel_max=st.none() | values.UINT16,
        max_frame_size=st.none() | values.UINT16,
        heartbeat=st.none() | values.UINT16,
    ),
    "connection.open": st.builds(
        wire.ConnectionOpen,
        virtual_host=st.none() | values.STR8,
        capabilities=st.none() | values.ARRAY,
        insist=values.BIT,
    ),
    "connection.open-ok": st.builds(wire.ConnectionOpenOk, known_hosts=st.none() | values.ARRAY),
    "connection.redirect": st.builds(
        wire.ConnectionRedirect, host=st.none() | values.STR16, known_hosts=st.none() | values.ARRAY
    ),
    "connection.heartbeat": st.builds(wire.ConnectionHeartbeat),
    "connection.close": st.builds(
        wire.ConnectionClose, reply_code=st.none() | values.UINT16, reply_text=st.none() | values.STR8
    ),
    "connection.close-ok": st.builds(wire.ConnectionCloseOk),
    "session.attach": st.builds(wire.SessionAttach, name=st.none() | values.VBIN16, force=values.BIT),
    "session.attached": st.builds(wire.SessionAttached, name=st.none() | values.VBIN16),
    "session.detach": st.builds(wire.SessionDetach, name=st.none() | values.VBIN16),
    "session.detached": st.builds(
        wire.SessionDetached, name=st.none() | values.VBIN16, code=st.none() | values.UINT8
    ),
    "session.request-timeout": st.builds(wire.SessionRequestTimeout, timeout=st.none() | values.UINT32),
    "session.timeout": st.builds(wire.SessionTimeout, timeout=st.none() | values.UINT32),
    "session.command-point": st.builds(
        wire.SessionCommandPoint,
        command_id=st.none() | values.SEQUENCE_NO,
        command_offset=st.none() | values.UINT64,
    ),
    "session.expected": st.builds(
        wire.SessionExpected, commands=st.none() | values.SEQUENCE_SET, fragments=st.none() | values.ARRAY
    ),
    "session.confirmed": st.builds(
        wire.SessionConfirmed, commands=st.none() | values.SEQUENCE_SET, fragments=st.none() | values.ARRAY
    ),
    "session.completed": st.builds(
        wire.SessionCompleted, commands=st.none() | values.SEQUENCE_SET, timely_reply=values.BIT
    ),
    "session.known-completed": st.builds(
        wire.SessionKnownCompleted, commands=st.none() | values.SEQUENCE_SET
    ),
    "session.flush": st.builds(
        wire.SessionFlush, expected=values.BIT, confirmed=values.BIT, completed=values.BIT
    ),
    "session.gap": st.builds(wire.SessionGap, commands=st.none() | values.SEQUENCE_SET),
    "execution.sync": st.builds(wire.ExecutionSync),
    "execution.result": st.builds(
        wire.ExecutionResult, command_id=st.none() | values.SEQUENCE_NO, value=st.none() | values.STRUCT32
    ),
    "execution.exception": st.builds(
        wire.ExecutionException,
        error_code=st.none() | values.UINT16,
        command_id=st.none() | values.SEQUENCE_NO,
        class_code=st.none() | values.UINT8,
        command_code=st.none() | values.UINT8,
        field_index=st.none() | values.UINT8,
        description=st.none() | values.STR16,
        error_info=st.none() | values.MAP,
    ),
    "message.transfer": st.builds(
        wire.MessageTransfer,
        destination=st.none() | values.STR8,
        accept_mode=st.none() | values.UINT8,
        acquire_mode=st.none() | values.UINT8,
    ),
    "message.accept": st.builds(wire.MessageAccept, transfers=st.none() | values.SEQUENCE_SET),
    "message.reject": st.builds(
        wire.MessageReject,
        transfers=st.none() | values.SEQUENCE_SET,
        code=st.none() | values.UINT16,
        text=st.none() | values.STR8,
    ),
    "message.release": st.builds(
        wire.MessageRelease, transfers=st.none() | values.SEQUENCE_SET, set_redelivered=values.BIT
    ),
    "message.acquire": st.builds(wire.MessageAcquire, transfers=st.none() | values.SEQUENCE_SET),
    "message.resume": st.builds(
        wire.MessageResume, destination=st.none() | values.STR8, resume_id=st.none() | values.STR16
    ),
    "message.subscribe": st.builds(
        wire.MessageSubscribe,
        queue=st.none() | values.STR8,
        destination=st.none() | values.STR8,
        accept_mode=st.none() | values.UINT8,
        acquire_mode=st.none() | values.UINT8,
        exclusive=values.BIT,
        resume_id=st.none() | values.STR16,
        resume_ttl=st.none() | values.UINT64,
        arguments=st.none() | values.MAP,
    ),
    "message.cancel": st.builds(wire.MessageCancel, destination=st.none() | values.STR8),
    "message.set-flow-mode": st.builds(
        wire.MessageSetFlowMode, destination=st.none() | values.STR8, flow_mode=st.none() | values.UINT8
    ),
    "message.flow": st.builds(
        wire.MessageFlow,
        destination=st.none() | values.STR8,
        unit=st.none() | values.UINT8,
        value=st.none() | values.UINT32,
    ),
    "message.flush": st.builds(wire.MessageFlush, destination=st.none() | values.STR8),
    "message.stop": st.builds(wire.MessageStop, destination=st.none() | values.STR8),
    "tx.select": st.builds(wire.TxSelect),
    "tx.commit": st.builds(wire.TxCommit),
    "tx.rollback": st.builds(wire.TxRollback),
    "dtx.select": st.builds(wire.DtxSelect),
    "dtx.start": st.builds(wire.DtxStart, xid=st.none() | values.XID, join=values.BIT, resume=values.BIT),
    "dtx.end": st.builds(wire.DtxEnd, xid=st.none() | values.XID, fail=values.BIT, suspend=values.BIT),
    "dtx.commit": st.builds(wire.DtxCommit, xid=st.none() | values.XID, one_phase=values.BIT),
    "dtx.forget": st.builds(wire.DtxForget, xid=st.none() | values.XID),
    "dtx.get-timeout": st.builds(wire.DtxGetTimeout, xid=st.none() | values.XID),
    "dtx.prepare": st.builds(wire.DtxPrepare, xid=st.none() | values.XID),
    "dtx.recover": st.builds(wire.DtxRecover),
    "dtx.rollback": st.builds(wire.DtxRollback, xid=st.none() | values.XID),
    "dtx.set-timeout": st.builds(
        wire.DtxSetTimeout, xid=st.none() | values.XID, timeout=st.none() | values.UINT32
    ),
    "exchange.declare": st.builds(
        wire.ExchangeDeclare,
        exchange=st.none() | values.STR8,
        type=st.none() | values.STR8,
        alternate_exchange=st.none() | values.STR8,
        passive=values.BIT,
        durable=values.BIT,
        auto_delete=values.BIT,
        arguments=st.none() | values.MAP,
    ),
    "exchange.delete": st.builds(wire.ExchangeDelete, exchange=st.none() | values.STR8, if_unused=values.BIT),
    "exchange.query": st.builds(wire.ExchangeQuery, name=st.none() | values.STR8),
    "exchange.bind": st.builds(
        wire.ExchangeBind,
        queue=st.none() | values.STR8,
        exchange=st.none() | values.STR8,
        binding_key=st.none() | values.STR8,
        arguments=st.none() | values.MAP,
    ),
    "exchange.unbind": st.builds(
        wire.ExchangeUnbind,
        queue=st.none() | values.STR8,
        exchange=st.none() | values.STR8,
        binding_key=st.none() | values.STR8,
    ),
    "exchange.bound": st.builds(
        wire.ExchangeBound,
        exchange=st.none() | values.STR8,
        queue=st.none() | values.STR8,
        binding_key=st.none() | values.STR8,
        arguments=st.none() | values.MAP,
    ),
    "queue.declare": st.builds(
        wire.QueueDeclare,
        queue=st.none() | values.STR8,
        alternate_exchange=st.none() | values.STR8,
        passive=values.BIT,
        durable=values.BIT,
        exclusive=values.BIT,
        auto_delete=values.BIT,
        arguments=st.none() | values.MAP,
    ),
    "queue.delete": st.builds(
        wire.QueueDelete, queue=st.none() | values.STR8, if_unused=values.BIT, if_empty=values.BIT
    ),
    "queue.purge": st.builds(wire.QueuePurge, queue=st.none() | values.STR8),
    "queue.query": st.builds(wire.QueueQuery, queue=st.none() | values.STR8),
    "file.qos": st.builds(
        wire.FileQos,
        prefetch_size=st.none() | values.UINT32,
        prefetch_count=st.none() | values.UINT16,
        global_=values.BIT,
    ),
    "file.qos-ok": st.builds(wire.FileQosOk),
    "file.consume": st.builds(
        wire.FileConsume,
        queue=st.none() | values.STR8,
        consumer_tag=st.none() | values.STR8,
        no_local=values.BIT,
        no_ack=values.BIT,
        exclusive=values.BIT,
        no_wait=values.BIT,
        arguments=st.none() | values.MAP,
    ),
    "file.consume-ok": st.builds(wire.FileConsumeOk, consumer_tag=st.none() | values.STR8),
    "file.cancel": st.builds(wire.FileCancel, consumer_tag=st.none() | values.STR8),
    "file.open": st.builds(
        wire.FileOpen, identifier=st.none() | values.STR8, content_size=st.none() | values.UINT64
    ),
    "file.open-ok": st.builds(wire.FileOpenOk, staged_size=st.none() | values.UINT64),
    "file.stage": st.builds(wire.FileStage),
    "file.publish": st.builds(
        wire.FilePublish,
        exchange=st.none() | values.STR8,
        routing_key=st.none() | values.STR8,
        mandatory=values.BIT,
        immediate=values.BIT,
        identifier=st.none() | values.STR8,
    ),
    "file.return": st.builds(
        wire.FileReturn,
        reply_code=st.none() | values.UINT16,
        reply_text=st.none() | values.STR8,
        exchange=st.none() | values.STR8,
        routing_key=st.none() | values.STR8,
    ),
    "file.deliver": st.builds(
        wire.FileDeliver,
        consumer_tag=st.none() | values.STR8,
        delivery_tag=st.none() | values.UINT64,
        redelivered=values.BIT,
        exchange=st.none() | values.STR8,
        routing_key=st.none() | values.STR8,
        identifier=st.none() | values.STR8,
    ),
    "file.ack": st.builds(wire.FileAck, delivery_tag=st.none() | values.UINT64, multiple=values.BIT),
    "file.reject": st.builds(wire.FileReject, delivery_tag=st.none() | values.UINT64, requeue=values.BIT),
    "stream.qos": st.builds(
        wire.StreamQos,
        prefetch_size=st.none() | values.UINT32,
        prefetch_count=st.none() | values.UINT16,
        consume_rate=st.none() | values.UINT32,
        global_=values.BIT,
    ),
    "stream.qos-ok": st.builds(wire.StreamQosOk),
    "stream.consume": st.builds(
        wire.StreamConsume,
        queue=st.none() | values.STR8,
        consumer_tag=st.none() | values.STR8,
        no_local=values.BIT,
        exclusive=values.BIT,
        no_wait=values.BIT,
        arguments=st.none() | values.MAP,
    ),
    "stream.consume-ok": st.builds(wire.StreamConsumeOk, consumer_tag=st.none() | values.STR8),
    "stream.cancel": st.builds(wire.StreamCancel, consumer_tag=st.none() | values.STR8),
    "stream.publish": st.builds(
        wire.StreamPublish,
        exchange=st.none() | values.STR8,
        routing_key=st.none() | values.STR8,
        mandatory=values.BIT,
        immediate=values.BIT,
    ),
    "stream.return": st.builds(
        wire.StreamReturn,
        reply_code=st.none() | values.UINT16,
        reply_text=st.none() | values.STR8,
        exchange=st.none() | values.STR8,
        routing_key=st.none() | values.STR8,
    ),
    "stream.deliver": st.builds(
        wire.StreamDeliver,
        consumer_tag=st.none() | values.STR8,
        delivery_tag=st.none() | values.UINT64,
        exchange=st.none() | values.STR8,
        queue=st.none() | values.STR8,
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_bytes(name: str) -> None:
    for value, encoded in VECTORS[name]:
        checks.check_bytes(value, bytes.fromhex(encoded))


@pytest.mark.parametrize("name", STRATEGIES)
@given(data=st.data())
@checks.quick
def test_round_trip(name: str, data: st.DataObject) -> None:
    checks.check_round_trip(data.draw(STRATEGIES[name]))


def test_everything_is_tested() -> None:
    known = [*wire.CONTROLS.values(), *wire.COMMANDS.values(), *wire.STRUCTS.values()]
    assert {cls.NAME for cls in known} <= set(VECTORS)
    assert VECTORS.keys() == STRATEGIES.keys()
    assert all(name == value.NAME for name, vectors in VECTORS.items() for value, _ in vectors)

"""Segments to controls, commands and headers: what is answered with which code, and what bends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_10
from amqpgate.wire.generated.v0_10 import (
    CloseCode,
    ConnectionStartOk,
    ConnectionTuneOk,
    DeliveryProperties,
    DtxStart,
    ErrorCode,
    ExecutionResult,
    ExecutionSync,
    FragmentProperties,
    MessageAccept,
    MessageProperties,
    MessageTransfer,
    QueueDeclare,
    QueueQueryResult,
    ReplyTo,
    SessionCompleted,
    SessionFlush,
    Xid,
)
from amqpgate.wire.v0_10.codec import (
    decode_command,
    decode_control,
    decode_header,
    decode_struct32,
    encode_command,
    encode_control,
    encode_header,
    encode_struct32,
)
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Control, Struct, Unknown
from amqpgate.wire.v0_10.types import EMPTY_MAP, Array, Map, Value
from tests.support import recorded_0_10 as recorded

DELIVERY = DeliveryProperties(routing_key=b"k")
MESSAGE = MessageProperties(content_length=5, reply_to=ReplyTo(routing_key=b"r"))


def of_hex(data: str) -> bytes:
    return bytes.fromhex(data)


# -- what it looks like --------------------------------------------------------------------------------------


def test_the_protocol_header() -> None:
    assert v0_10.PROTOCOL_HEADER == recorded.HEADER


@pytest.mark.parametrize(
    ("control", "data"),
    [
        # As qpid-python, low-level, sends it: the channel-max that is required is not there.
        (ConnectionTuneOk(), "0106 0000"),
        (ConnectionTuneOk(channel_max=32767, max_frame_size=65535, heartbeat=0), "0106 0700 7fff ffff 0000"),
        # An initial response that is empty is not one that is absent.
        (ConnectionStartOk(mechanism=b"PLAIN"), "0102 0200 05504c41494e"),
        (ConnectionStartOk(mechanism=b"PLAIN", response=b""), "0102 0600 05504c41494e 00000000"),
        (SessionCompleted(SequenceSet(), timely_reply=True), "020a 0300 0000"),
        (SessionFlush(completed=True), "020c 0400"),
    ],
)
def test_controls(control: Control, data: str) -> None:
    assert encode_control(control) == of_hex(data)
    assert decode_control(of_hex(data)) == control


def test_commands_and_their_sync_bit() -> None:
    transfer = MessageTransfer(destination=b"x", accept_mode=1)
    data = of_hex("0401 0100 0300 0178 01")
    assert encode_command(transfer) == data
    assert decode_command(data) == (transfer, False)
    assert encode_command(ExecutionSync(), sync=True) == of_hex("0301 0101 0000")
    assert decode_command(of_hex("0301 0101 0000")) == (ExecutionSync(), True)


def test_packing_flags_are_one_number_its_lowest_byte_first() -> None:
    declare = QueueDeclare(queue=b"q", durable=True, arguments=EMPTY_MAP)
    assert encode_command(declare) == of_hex("0801 0100 4900 0171 00000004 00000000")
    properties = DeliveryProperties(redelivered=True, exchange=b"", resume_ttl=1)
    assert encode_header([properties]) == of_hex("0000000d 0401 0409 00 0000000000000001")


def test_structs_within_others() -> None:
    # The size of a reply-to is 16 bits and it has no code; that of an xid is 32 bits, and it has one.
    assert encode_header([MESSAGE]) == of_hex("00000012 0403 0900 0000000000000005 0004 0200 0172")
    start = DtxStart(Xid(format=1, global_id=b"g", branch_id=b""), join=True)
    assert encode_command(start) == of_hex("0602 0100 0300 0000000b 0604 0700 00000001 0167 00")
    assert decode_command(encode_command(start)) == (start, False)


def test_the_enumerations_are_those_of_the_standard() -> None:
    assert [code.value for code in CloseCode] == [200, 320, 402, 501]
    assert [code.value for code in ErrorCode] == [
        *(403, 404, 405, 406, 408, 409),
        *(503, 506, 530, 531, 540, 541, 542),
    ]


def test_what_a_command_results_in() -> None:
    assert v0_10.QueueQuery.RESULT == 0x0801
    assert v0_10.STRUCTS[v0_10.QueueQuery.RESULT] is QueueQueryResult
    assert QueueDeclare.RESULT == 0
    assert {cls.NAME for cls in v0_10.COMMANDS.values() if cls.CONTENT} == {
        "message.transfer",
        "file.stage",
        "file.return",
        "stream.publish",
        "stream.return",
        "stream.deliver",
    }


def test_no_secret_is_shown() -> None:
    assert "hunter2" not in repr(ConnectionStartOk(response=b"\0guest\0hunter2"))
    assert "hunter2" not in repr(v0_10.ConnectionSecureOk(response=b"hunter2"))


def test_a_result_and_what_is_in_it() -> None:
    found = QueueQueryResult(queue=b"q", durable=True, message_count=3)
    result = ExecutionResult(command_id=7, value=encode_struct32(found))
    data = of_hex("0302 0100 0300 00000007 0000000a 0801 4500 0171 00000003")
    assert encode_command(result) == data
    assert decode_command(data) == (result, False)
    assert result.value is not None
    assert decode_struct32(result.value) == found
    # Nothing was found.
    assert decode_struct32(of_hex("0801 0000")) == QueueQueryResult()


def test_structs_in_an_array() -> None:
    xids = [Xid(format=0, global_id=b"a", branch_id=b"b"), Xid(format=0, global_id=b"a", branch_id=b"c")]
    found = v0_10.RecoverResult(Array(0xAB, tuple(encode_struct32(xid) for xid in xids)))
    again = decode_struct32(encode_struct32(found))
    assert again == found
    assert isinstance(again, v0_10.RecoverResult)
    assert again.in_doubt is not None
    assert [decode_struct32(item) for item in again.in_doubt.items if isinstance(item, bytes)] == xids


def test_values_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="255 bytes"):
        encode_command(MessageTransfer(destination=b"x" * 256))
    with pytest.raises(ValueError, match="16 bytes"):
        encode_header([MessageProperties(message_id=b"short")])
    with pytest.raises(ValueError, match="65535 bytes"):
        encode_control(v0_10.SessionAttach(name=bytes(65536)))


# -- what is wrong -------------------------------------------------------------------------------------------


def refusal_of_control(data: str) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode_control(of_hex(data))
    return caught.value


def refusal_of_command(data: str) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode_command(of_hex(data))
    return caught.value


def refusal_of_header(data: str) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        decode_header(of_hex(data))
    return caught.value


@pytest.mark.parametrize("data", ["", "01"])
def test_no_room_for_a_control(data: str) -> None:
    violation = refusal_of_control(data)
    assert (violation.code, violation.class_id, violation.method_id) == (501, 0, 0)


@pytest.mark.parametrize("data", ["0100 0000", "010d 0000", "0301 0101 0000", "ff01 0000", "0301 0000"])
def test_unknown_controls(data: str) -> None:
    violation = refusal_of_control(data)
    assert (violation.code, violation.class_id) == (501, int(data[:2], 16))
    assert violation.text.startswith("unknown control")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("0106 0800", "connection.tune-ok: a packing flag of no field is set"),
        ("0106 0001", "connection.tune-ok: a packing flag of no field is set"),
        ("0106 00", "connection.tune-ok: a value is cut short"),
        ("0106 0100 7f", "connection.tune-ok: a value is cut short"),
        ("0106 0000 00", "connection.tune-ok: there are bytes behind the last field"),
        ("010a 0000 00", "connection.heartbeat: there are bytes behind the last field"),
        (
            "020a 0100 0007 00000000 000000",
            "session.completed: malformed sequence-set: 7 bytes are no whole ranges",
        ),
    ],
)
def test_malformed_controls(data: str, text: str) -> None:
    """A control is answered by a close of the connection, which knows framing-error."""
    violation = refusal_of_control(data)
    assert (violation.code, violation.text) == (501, text)
    assert (violation.class_id, violation.method_id) == (int(data[:2], 16), int(data[2:4], 16))


@pytest.mark.parametrize("data", ["", "03", "0301", "0301 01"])
def test_no_room_for_a_command(data: str) -> None:
    assert refusal_of_command(data).code == 503


@pytest.mark.parametrize("data", ["0300 0100 0000", "0304 0100 0000", "0101 0100 0000", "0b01 0100 0000"])
def test_unknown_commands(data: str) -> None:
    violation = refusal_of_command(data)
    assert (violation.code, violation.class_id) == (503, int(data[:2], 16))
    assert violation.text.startswith("unknown command")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("0301 0000 0000", "execution.sync: malformed session header"),
        ("0301 0201 0000", "execution.sync: malformed session header"),
        ("0301 0102 0000", "execution.sync: malformed session header"),
        ("0301 0181 0000", "execution.sync: malformed session header"),
        ("0301 0101 0100", "execution.sync: a packing flag of no field is set"),
        ("0301 0101 0000 00", "execution.sync: there are bytes behind the last field"),
        ("0401 0100 0800", "message.transfer: a packing flag of no field is set"),
        ("0401 0100 0001", "message.transfer: a packing flag of no field is set"),
        ("0401 0100 0100 05 6161", "message.transfer: a value is cut short"),
        ("0401 0100 0100 01 6161", "message.transfer: there are bytes behind the last field"),
        (
            "0402 0100 0100 0008 00000003 00000002",
            "message.accept: malformed sequence-set: its ranges do not ascend",
        ),
        (
            "0402 0100 0100 0008 00000000 ffffffff",
            "message.accept: malformed sequence-set: its ranges do not ascend",
        ),
        ("0602 0100 0100 0000000b 0601 0700 00000001 0167 00", "dtx.start: no xid"),
        (
            "0602 0100 0100 0000000c 0604 0700 00000001 0167 00 00",
            "dtx.start: there are bytes behind the last field",
        ),
        (
            "0602 0100 0100 0000000b 0604 0f00 00000001 0167 00",
            "dtx.start: a packing flag of no field is set",
        ),
        ("0602 0100 0100 00000001 06", "dtx.start: no xid"),
    ],
)
def test_malformed_commands(data: str, text: str) -> None:
    violation = refusal_of_command(data)
    assert (violation.code, violation.text) == (503, text)
    assert (violation.class_id, violation.method_id) == (int(data[:2], 16), int(data[2:4], 16))


@pytest.mark.parametrize(
    "data",
    [
        "0402 0100 0100 0008 00000000 7fffffff",
        # Ids start anew, and so do sets of them.
        "0402 0100 0100 0008 fffffff0 00000010",
    ],
)
def test_sets_of_thousands_of_millions_are_no_work(data: str) -> None:
    command, _ = decode_command(of_hex(data))
    assert isinstance(command, MessageAccept)
    assert encode_command(command) == of_hex(data)


def test_limits_keep_their_own_code() -> None:
    deep = Map()
    for _ in range(40):
        deep = Map(((b"", Value(0xA8, deep)),))
    with pytest.raises(ProtocolViolation) as caught:
        decode_command(encode_command(QueueDeclare(arguments=deep)))
    assert (caught.value.code, caught.value.class_id, caught.value.method_id) == (506, 8, 1)
    with pytest.raises(ProtocolViolation) as caught:
        decode_control(encode_control(ConnectionStartOk(client_properties=deep)))
    assert (caught.value.code, caught.value.class_id, caught.value.method_id) == (506, 1, 2)
    # Forty bytes of a control, as they were once sent to lock up a broker.
    nothing = "0101 0200 00000005 f0 ffffffff"
    assert refusal_of_control(nothing).code == 506


# -- headers -------------------------------------------------------------------------------------------------


def test_a_header_keeps_its_order() -> None:
    for structs in [
        (),
        (DELIVERY,),
        (DELIVERY, MESSAGE),
        (MESSAGE, DELIVERY),
        (MESSAGE, FragmentProperties()),
    ]:
        assert decode_header(encode_header(structs)) == structs


def test_structs_that_nobody_knows_are_kept() -> None:
    data = of_hex("00000005 04ee ff0001 00000002 ee01")
    structs = decode_header(data)
    assert structs == (Unknown(4, 0xEE, b"\xff\0\1"), Unknown(0xEE, 1, b""))
    assert (
        encode_header((structs[1], DELIVERY, structs[0])) == data[9:] + encode_header([DELIVERY]) + data[:9]
    )
    assert decode_struct32(of_hex("ee01 aa")) == Unknown(0xEE, 1, b"\xaa")
    assert encode_struct32(Unknown(0xEE, 1, b"\xaa")) == of_hex("ee01 aa")


@pytest.mark.parametrize(
    "structs",
    [
        (DELIVERY, DELIVERY),
        (DELIVERY, MESSAGE, DeliveryProperties(routing_key=b"other")),
        (MESSAGE, MESSAGE),
        (Unknown(9, 9, b""), DELIVERY, Unknown(9, 9, b"x")),
    ],
)
def test_two_of_a_kind(structs: tuple[Struct | Unknown, ...]) -> None:
    """Two routing keys are two judgements, and a broker goes by one of them."""
    with pytest.raises(ProtocolViolation, match="twice") as caught:
        decode_header(encode_header(structs))
    assert caught.value.code == 503


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("000000", id="no size"),
        pytest.param("00000000", id="no code"),
        pytest.param("00000001 04", id="half a code"),
        pytest.param("00000002 0401", id="no packing flags"),
        pytest.param("00000004 0401 0010", id="a packing flag of no field"),
        pytest.param("00000004 0401 0000 00", id="a byte behind"),
        pytest.param("00000005 0401 0000 00", id="a byte within"),
        pytest.param("00000005 0401 0000", id="larger than what there is"),
        pytest.param("ffffffff 0401 0000", id="much larger"),
        pytest.param("00000006 0401 0002 05 61 00000005 0402 0000 00", id="a key that reaches into the next"),
        pytest.param("0000000b 0403 0800 0006 0200 01 72 00", id="a reply-to that is longer than its fields"),
        pytest.param("0000000a 0403 0800 0004 0400 01 72", id="a reply-to with a flag of no field"),
        pytest.param("00000009 0403 0800 0004 0200 01", id="a reply-to that is cut short"),
    ],
)
def test_malformed_headers(data: str) -> None:
    assert refusal_of_header(data).code == 503


def test_many_structs_are_no_work() -> None:
    """Two thousand million comparisons, if it were a list of those that were seen."""
    data = b"".join(b"\0\0\0\2" + number.to_bytes(2, "big") for number in range(0x1000, 0x1000 + 10_900))
    assert len(decode_header(data)) == 10_900


# -- bent ----------------------------------------------------------------------------------------------------


def _again(kind: int, payload: bytes) -> bytes:
    if kind == v0_10.SegmentType.CONTROL:
        return encode_control(decode_control(payload))
    if kind == v0_10.SegmentType.COMMAND:
        return encode_command(*decode_command(payload))
    return encode_header(decode_header(payload))


#: One of each kind and size that Qpid's clients and broker sent.
SEGMENTS = sorted(
    {
        (frame.type, frame.payload[:2], len(frame.payload)): frame
        for stream in recorded.streams()
        for frame in recorded.frames(stream)
        if frame.type != v0_10.SegmentType.BODY
    }.items()
)


@given(st.data())
@settings(max_examples=500)
def test_bent_segments(data: st.DataObject) -> None:
    """Bytes changed, put in, taken out: what can still be read is written as it was, all else is refused."""
    _, frame = data.draw(st.sampled_from(SEGMENTS))
    payload = bytearray(frame.payload)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(len(payload) - 1, 0)))
        size = data.draw(st.integers(0, 4))
        payload[at : at + size] = data.draw(st.binary(max_size=4))
    raw = bytes(payload)
    again, violation = b"", None
    try:
        again = _again(frame.type, raw)
    except ProtocolViolation as raised:
        violation = raised
    if violation is not None:
        assert violation.code in ({501, 506} if frame.type == v0_10.SegmentType.CONTROL else {503, 506})
    elif again != raw:
        # A map, list or array of no bytes at all, which comes out with its count.
        assert bytes(4) in raw
        assert len(again) > len(raw)
        assert _again(frame.type, again) == again

"""The connection to a 0-10 broker, its channels, and brokers that are hostile."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.bridge.canonical import ConnectionRedirect
from amqpgate.bridge.v0_10 import VERSION, broker_incoming
from amqpgate.bridge.v0_10.broker import MOST_KEPT, BrokerTranslator
from amqpgate.bridge.v0_10.broker_incoming import IncomingMessages
from amqpgate.bridge.v0_10.broker_login import start_of
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEADER,
    HEARTBEAT,
    FrameDecoder,
    encode_frame,
    method_frame,
)
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.events import ConnectionClosed, IncomingBody, IncomingCommand
from amqpgate.wire.codec import ContentHeader, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.types import Array, Map, Value
from tests.support.said_0_10 import NAMES, conversations
from tests.support.talk_0_10 import ALONE, B, b, command, control, e, frame
from tests.unit.bridge.v0_10.broker_lab import START, START_OK, BrokerLab, Heard, steps


def methods(translator: BrokerTranslator) -> list[tuple[int, object]]:
    decoder = FrameDecoder(0)
    while translator.has_frames:
        decoder.feed(translator.frames_for_gateway(1000))
    found = []
    while (one := decoder.next()) is not None:
        found.append((one.channel, decode_method(one.payload)))
    return found


def test_start_has_the_mechanisms_that_can_be_read_and_what_is_done_here() -> None:
    lab = BrokerLab()
    lab.broker.send(START)
    lab.settle()
    start = lab.heard[0].method
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.mechanisms == b"PLAIN ANONYMOUS"
    assert start.locales == b"en_US"
    said = start.server_properties.to_python()
    assert said["product"] == "qpid-cpp"
    assert said["capabilities"]["publisher_confirms"] is True


def test_start_ok_leaves_out_what_makes_a_broker_of_a_client() -> None:
    lab = BrokerLab()
    lab.broker.send(START)
    lab.settle()
    properties = Table.of({"product": "pika", "qpid.fed_link": 1, "qpid.federation_tag": "x"})
    lab.say(0, amqp.ConnectionStartOk(properties, "PLAIN", b"\0a\0b", "en_US"))
    (start_ok,) = lab.controls
    assert [key for key, _ in start_ok.client_properties.entries] == [b"product"]
    assert (start_ok.mechanism, start_ok.response, start_ok.locale) == (b"PLAIN", b"\0a\0b", b"en_US")


@pytest.mark.parametrize(
    ("mechanism", "response", "said"),
    [("CRAM-MD5", b"", None), ("ANONYMOUS", b"", b""), ("EXTERNAL", b"", b""), ("PLAIN", b"x", b"x")],
)
def test_an_empty_response_is_none_where_the_server_begins(mechanism, response, said) -> None:
    lab = BrokerLab()
    lab.broker.send(START)
    lab.settle()
    lab.say(0, amqp.ConnectionStartOk(mechanism=mechanism, response=response, locale="en_US"))
    assert lab.controls[0].response == said


def test_client_properties_that_fit_into_no_frame_are_left_out() -> None:
    lab = BrokerLab()
    lab.broker.send(START)
    lab.settle()
    properties = Table.of({"x": "y" * 5000})
    lab.say(0, amqp.ConnectionStartOk(properties, "PLAIN", b"\0a\0b", "en_US"))
    assert lab.controls[0].client_properties.entries == ()
    assert lab.controls[0].response == b"\0a\0b"


def test_challenges_go_back_and_forth() -> None:
    lab = BrokerLab()
    lab.broker.send(START)
    lab.settle()
    lab.say(0, amqp.ConnectionStartOk(mechanism="CRAM-MD5", locale="en_US"))
    lab.broker.send(amqp10.ConnectionSecure(challenge=b"why?"))
    lab.settle()
    assert lab.heard[-1].method == amqp.ConnectionSecure(b"why?")
    lab.say(0, amqp.ConnectionSecureOk(b"because"))
    assert lab.controls[-1] == amqp10.ConnectionSecureOk(b"because")


def test_tune_and_open() -> None:
    lab = BrokerLab(tuning=Tuning(channel_max=65534, heartbeat=120)).login()
    _, tune_ok, open_ = lab.controls
    assert tune_ok == amqp10.ConnectionTuneOk(2047, 65535, 120)
    assert open_.virtual_host == b"/"


@pytest.mark.parametrize(
    ("tuning", "offered", "wanted", "answer"),
    [
        # Frames are cut anew.
        (Tuning(), (256, 131_072, 120), (0, 0, 0), (256, 65535, 0)),
        (Tuning(), (256, 131_072, 120), (10, 8192, 60), (10, 65535, 60)),
        (Tuning(channel_max=7, max_frame_size=4096), (7, 131_072, 120), (7, 4096, 500), (7, 4096, 120)),
        (Tuning(heartbeat_min=10), (256, 131_072, 120), (1, 4096, 0), (1, 65535, 10)),
    ],
)
def test_tune_is_answered_within_the_offer(tuning, offered, wanted, answer) -> None:
    lab = BrokerLab(tuning=tuning)
    lab.broker.send(START)
    lab.settle()
    lab.say(0, START_OK)
    lab.broker.send(tuning.offer())
    lab.settle()
    assert lab.heard[-1].method == amqp.ConnectionTune(*offered)
    lab.say(0, amqp.ConnectionTuneOk(*wanted))
    assert lab.controls[-1] == amqp10.ConnectionTuneOk(*answer)


@pytest.mark.parametrize(
    "tune",
    [
        amqp10.ConnectionTune(0, 65535, 0, 120),
        amqp10.ConnectionTune(256, 4095, 0, 120),
        amqp10.ConnectionTune(256, 65535, 121, 120),
    ],
)
def test_an_offer_that_nobody_could_take_is_a_violation(tune) -> None:
    translator = BrokerTranslator("gate")
    translator.from_peer(control(START))
    translator.from_gateway(method_frame(0, START_OK))
    with pytest.raises(ProtocolViolation) as caught:
        translator.from_peer(control(tune))
    assert caught.value.code == 501


def test_a_login_that_is_refused_is_403() -> None:
    lab = BrokerLab()
    lab.broker.send(START)
    lab.settle()
    lab.say(0, START_OK)
    lab.broker.send(amqp10.ConnectionClose(320, b"connection-forced: Authentication failed"))
    lab.settle()
    close = lab.heard[-1].method
    assert close.reply_code == 403
    assert "Authentication failed" in close.reply_text
    assert lab.say(0, amqp.ConnectionCloseOk()) == []


def test_both_ends_close() -> None:
    lab = BrokerLab().login().open()
    assert lab.say(0, amqp.ConnectionClose(200, "bye")) == [Heard(0, amqp.ConnectionCloseOk())]
    assert isinstance(lab.controls[-1], ConnectionClosed)
    lab = BrokerLab().login().open()
    lab.broker.close(320, "shutting down")
    lab.settle()
    assert lab.heard[-1].method.reply_code == 320
    # What comes before the gateway knows is dropped.
    assert lab.say(1, amqp.BasicQos()) == []
    assert lab.publish(b"x") == []
    assert lab.say(0, amqp.ConnectionCloseOk()) == []


@pytest.mark.parametrize(
    ("host", "known", "heard"),
    [
        (b"amqp:tcp:a.test:5672,b.test", (), ("a.test:5672", "b.test")),
        (b"a.test", (b"amqp:tls:b.test:1,c", b"\x93NUMPY", b"d"), ("a.test", "b.test:1 c d")),
        (b"amqp:" + b"x" * 256 + b",y", (b"z" * 200, b"y" * 100), ("y", "z" * 200)),
        (b"else where,\xff", (), ("", "")),
        (None, (), ("", "")),
    ],
)
def test_a_redirect_names_addresses(host, known, heard) -> None:
    redirected = redirect(amqp10.ConnectionRedirect(host, Array(TypeCode.STR16, known)))
    assert redirected == ConnectionRedirect(*heard)


def redirect(said: amqp10.ConnectionRedirect) -> Method:
    """What the gateway makes of a broker's answer to its connection.open."""
    lab = BrokerLab()
    lab.broker.send(START)
    lab.settle()
    lab.say(0, START_OK)
    lab.broker.send(Tuning().offer())
    lab.settle()
    lab.say(0, amqp.ConnectionTuneOk(1, 4096), amqp.ConnectionOpen("/", reserved_2=True))
    assert lab.controls[-1].insist
    lab.translator.from_peer(control(said))
    frames = FrameDecoder(0)
    frames.feed(lab.translator.frames_for_gateway(1000))
    return VERSION.interpreter.to_canonical(frames.next().payload, Role.SERVER)


def test_what_a_client_says_is_no_redirect() -> None:
    with pytest.raises(ProtocolViolation, match="unknown method"):
        VERSION.interpreter.to_canonical(ConnectionRedirect("a").encode(), Role.CLIENT)


def test_a_new_secret_is_refused() -> None:
    lab = BrokerLab().login()
    (heard,) = lab.say(0, amqp.ConnectionUpdateSecret(b"x"))
    assert (heard.method.reply_code, heard.method.class_id, heard.method.method_id) == (540, 10, 70)


def test_heartbeats_go_to_the_broker_when_it_takes_them() -> None:
    translator = BrokerTranslator("gate")
    translator.from_gateway(HEARTBEAT)
    assert translator.bytes_for_peer() == b""
    lab = BrokerLab().login()
    lab.translator.from_gateway(HEARTBEAT)
    assert lab.translator.bytes_for_peer() == control(amqp10.ConnectionHeartbeat())


# -- channels


def test_channels_are_sessions_with_names_of_their_own() -> None:
    lab = BrokerLab().login().open(1).open(2047)
    assert {number: one.name for number, one in lab.broker.sessions.items()} == {
        0: b"gate.1",
        2046: b"gate.2",
    }
    lab.publish(b"x", channel=2047)
    assert lab.asked[0].channel == 2046


def test_a_channel_is_closed_and_opened_again() -> None:
    lab = BrokerLab().login().open()
    lab.publish(b"x")
    assert lab.say(1, amqp.ChannelClose(200, "")) == [Heard(1, amqp.ChannelCloseOk())]
    assert lab.broker.sessions == {}
    assert lab.asked[0].body == b"x"
    lab.open()
    assert lab.session().name == b"gate.2"


def test_a_session_that_the_broker_detaches_closes_the_channel() -> None:
    lab = BrokerLab().login().open()
    lab.session().detach()
    lab.settle()
    assert lab.heard[-1].method.reply_code == 541
    # The client closes at the same time.
    assert lab.say(1, amqp.ChannelClose(200, "")) == [Heard(1, amqp.ChannelCloseOk())]
    assert lab.say(1, amqp.ChannelCloseOk()) == []
    lab.open()


def test_a_session_that_is_refused_closes_the_channel() -> None:
    lab = BrokerLab(is_live=False).login()
    lab.translator.from_gateway(method_frame(1, amqp.ChannelOpen()))
    assert amqp10.SessionAttach(name=b"gate.1").encode() in lab.translator.bytes_for_peer()
    busy = amqp10.SessionDetached(name=b"gate.1", code=amqp10.DetachCode.SESSION_BUSY)
    lab.translator.from_peer(control(busy, 0))
    ((number, close),) = methods(lab.translator)
    assert (number, close.reply_code) == (1, 541)


@pytest.mark.parametrize("is_behind", [True, False])
def test_the_client_closes_while_the_exception_is_on_its_way(is_behind: bool) -> None:
    lab = BrokerLab(is_live=False).login().open()
    lab.say(1, amqp.QueueDeclare(queue="q"))
    if is_behind:
        assert lab.say(1, amqp.ChannelClose(200, "")) == []
    lab.session().send(amqp10.ExecutionException(404, 0, description=b"no"))
    lab.settle()
    if not is_behind:
        assert lab.say(1, amqp.ChannelClose(200, "")) == []
    lab.session().detach()
    lab.settle()
    # As with RabbitMQ it is told why, and answered.
    close, close_ok = lab.heard[-2:]
    assert isinstance(close.method, amqp.ChannelClose)
    assert close.method.reply_code == 404
    assert close_ok == Heard(1, amqp.ChannelCloseOk())
    assert lab.say(1, amqp.ChannelCloseOk()) == []
    lab.open()


def test_a_channel_above_channel_max_closes_the_connection() -> None:
    lab = BrokerLab(is_live=False).login()
    (closed,) = lab.say(2048, amqp.ChannelOpen())
    assert isinstance(closed.method, amqp.ConnectionClose)
    assert (closed.channel, closed.method.reply_code) == (0, 504)


def test_what_waits_is_bounded() -> None:
    lab = BrokerLab(is_live=False).login().open().open(2)
    lab.say(1, amqp.QueueDeclare(queue="q"))
    lab.publish(b"x" * (MOST_KEPT + 1), channel=2)
    assert lab.translator.wants_frames
    lab.publish(b"x" * (MOST_KEPT + 1))
    assert not lab.translator.wants_frames
    lab.fail(amqp10.ExecutionException(403, 0, description=b"no"))
    assert lab.translator.wants_frames


def test_messages_of_the_brokers_are_bounded() -> None:
    messages = IncomingMessages(100)
    transfer = IncomingCommand(0, 0, amqp10.MessageTransfer(), False, True)
    messages.take(transfer)
    messages.take(transfer._replace(channel=1))
    assert messages.take(IncomingBody(0, 0, b"x" * 60, False)) is None
    assert messages.take(IncomingBody(1, 0, b"x" * 40, False)) is None
    with pytest.raises(ProtocolViolation) as caught:
        messages.take(IncomingBody(1, 0, b"x", False))
    assert caught.value.code == 506
    assert messages.take(IncomingBody(0, 0, b"x" * 40, True)).body == b"x" * 100
    assert broker_incoming.MOST_BODIES == 128 * 1024 * 1024


def test_too_large_a_message_ends_the_session_only() -> None:
    lab = BrokerLab().login().open().open(2)
    lab.translator._incoming = IncomingMessages(1000)
    (heard,) = lab.transfer("tag", b"x" * 1001)
    assert heard.method.reply_code == 541
    assert lab.say(2, amqp.BasicQos()) == [Heard(2, amqp.BasicQosOk())]


# -- hostile brokers


HOSTILE = [
    # A frame that is none, an unknown control, a control of the connection's on another channel.
    (frame(ALONE, 0, b"", size=11), None),
    (frame(ALONE | 0x80, 0, b""), None),
    (frame(ALONE, 9, b""), None),
    (control(amqp10.ConnectionHeartbeat(), 3), None),
    (control(START), None),
    # What ends a session.
    (command(amqp10.QueueDeclare(queue=b"q")), 541),
    (command(amqp10.ExecutionResult(0, b"\xff")), 541),
    (control(amqp10.SessionGap()), 541),
    (command(amqp10.MessageCancel(b"x")), 541),
    (frame(ALONE, 1, b"\x04\x63\x01\x00\x00\x00"), 541),
    (frame(B | b | e, 1, amqp10.ExecutionSync().encode()), 541),
    (frame(ALONE, 1, bytes.fromhex("0402010001000010000000090000000000")), 541),
]


@pytest.mark.parametrize(("data", "code"), HOSTILE)
def test_a_hostile_broker_ends_its_connection_or_a_session(data: bytes, code: int | None) -> None:
    lab = BrokerLab(is_live=False).login().open().open(2)
    lab.say(1, amqp.QueueDeclare(queue="q"))
    lab.heard.clear()
    if code is None:
        with pytest.raises(ProtocolViolation):
            lab.translator.from_peer(data)
        # The gateway closes; nothing is raised, and the broker is told.
        lab.settle()
        assert isinstance(lab.controls[-1], ConnectionClosed)
        assert lab.controls[-1].violation.code == 501
        assert lab.say(2, amqp.BasicQos()) == []
        assert lab.publish(b"x", channel=2) == []
        assert lab.say(0, amqp.ConnectionClose(501, "bye")) == [Heard(0, amqp.ConnectionCloseOk())]
        return
    lab.translator.from_peer(data)
    lab.settle()
    lab.translator.from_peer(control(amqp10.SessionDetached(name=b"gate.1", code=0)))
    lab.settle()
    assert [(one.channel, one.method.reply_code) for one in lab.heard] == [(1, code)]


def test_ids_that_were_never_sent_end_the_session() -> None:
    lab = BrokerLab().login().open()
    lab.tell_completed(5, 9)
    lab.translator.from_peer(control(amqp10.SessionDetached(name=b"gate.1", code=0)))
    lab.settle()
    assert lab.heard[-1].method.reply_code == 541


def test_a_session_that_fails_in_the_middle_of_a_body_ends_behind_it() -> None:
    lab = BrokerLab().login().open()
    publish = method_frame(1, amqp.BasicPublish(routing_key="q"))
    header = encode_frame(FRAME_HEADER, 1, encode_header(ContentHeader(60, 10, amqp.BasicProperties())))
    lab.give(publish + header + encode_frame(FRAME_BODY, 1, b"12345"))
    assert lab.tell(amqp10.MessageCancel(b"x")) == []
    (heard,) = lab.give(encode_frame(FRAME_BODY, 1, b"67890"))
    assert heard.method.reply_code == 541
    assert lab.asked[0].body == b"1234567890"
    lab.say(1, amqp.ChannelCloseOk())
    lab.open()
    lab.publish(b"next")
    assert lab.asked[-1].body == b"next"


def test_a_message_that_fits_into_no_frame_is_rejected() -> None:
    lab = BrokerLab().login().open()
    lab.say(1, amqp.BasicConsume(queue="q", consumer_tag="tag"))
    lab.commands()
    lab.translator._writer.allow(4096)
    headers = Map(((b"x", Value(TypeCode.STR16, b"y" * 5000)),))
    heard = lab.transfer("tag", b"body", amqp10.MessageProperties(application_headers=headers))
    assert heard == []
    assert [one.NAME for one in lab.commands()] == ["message.reject"]
    (heard,) = lab.transfer("tag", b"z" * 9000)
    assert heard.body == b"z" * 9000


def test_names_that_are_no_words_are_not_offered() -> None:
    translator = BrokerTranslator("gate")
    names = (b"PLAIN", b"A B", b"", b"\xff", b"x" * 300)
    translator.from_peer(control(amqp10.ConnectionStart(None, Array(TypeCode.VBIN16, names), None)))
    ((_, start),) = methods(translator)
    assert start.mechanisms == b"PLAIN"
    translator = BrokerTranslator("gate")
    numbers = Array(TypeCode.UINT8, (1, 2))
    translator.from_peer(control(amqp10.ConnectionStart(None, numbers, numbers)))
    ((_, start),) = methods(translator)
    assert start.mechanisms == b""


def test_server_properties_that_fit_into_no_frame_are_left_out() -> None:
    properties = Map(((b"x", Value(TypeCode.STR16, b"y" * 60_000)),))
    start = start_of(amqp10.ConnectionStart(properties, Array(TypeCode.STR16, (b"PLAIN",))), 4096)
    assert [name for name, _ in start.server_properties] == ["capabilities"]
    assert start.mechanisms == b"PLAIN"


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=200)
def test_any_bytes_are_a_violation_or_nothing(data: bytes, is_open: bool) -> None:
    if is_open:
        lab = BrokerLab().login().open()
        translator = lab.translator
    else:
        translator = BrokerTranslator("gate")
    with contextlib.suppress(ProtocolViolation):
        translator.from_peer(data)
    translator.bytes_for_peer()
    methods(translator)


# -- recordings: what qpidd said


@pytest.mark.parametrize("name", NAMES)
def test_real_brokers_are_understood_up_to_open(name: str) -> None:
    for conversation in conversations(name)[:5]:
        said = b"".join(read.data for read in conversation if read.sender is Role.SERVER)
        translator = BrokerTranslator("gate")
        heard: list[str] = []
        data = said[8:]
        # Each control in one read, as far as open-ok; then all sorts of answers to what was never asked.
        while data and "connection.open-ok" not in heard:
            size = int.from_bytes(data[2:4], "big")
            translator.from_peer(data[:size])
            data = data[size:]
            for _, method in methods(translator):
                heard.append(method.NAME)
                _answer(translator, method)
        assert heard[0] == "connection.start"
        assert heard[-1] in ("connection.open-ok", "connection.close")
        if heard[-1] == "connection.close":
            continue
        for number in range(1, 4):
            translator.from_gateway(method_frame(number, amqp.ChannelOpen()))
        translator.bytes_for_peer()
        with contextlib.suppress(ProtocolViolation):
            for piece in steps(data, 777):
                translator.from_peer(piece)
                translator.bytes_for_peer()
                methods(translator)


def _answer(translator: BrokerTranslator, method: object) -> None:
    match method:
        case amqp.ConnectionStart(mechanisms=mechanisms):
            assert b"PLAIN" in mechanisms or b"ANONYMOUS" in mechanisms
            translator.from_gateway(method_frame(0, START_OK))
        case amqp.ConnectionSecure():
            translator.from_gateway(method_frame(0, amqp.ConnectionSecureOk(b"x")))
        case amqp.ConnectionTune():
            assert method == amqp.ConnectionTune(65534, 131_072, 120)
            tune_ok = amqp.ConnectionTuneOk(2047, 131_072, 60)
            translator.from_gateway(method_frame(0, tune_ok) + method_frame(0, amqp.ConnectionOpen("/")))
    translator.bytes_for_peer()

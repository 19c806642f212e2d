"""The way from the first octet to open-ok, with the test as client and as broker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import pytest

from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.protocol.frames import HEARTBEAT, Frame, encode_frame, method_frame
from amqpgate.protocol.header import HEADER_0_10
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.support.inprocess import eventually
from tests.support.ports import is_asked_after
from tests.support.talker import CAPABILITIES, Gone, Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.papers import Papers

MakeStage = Callable[..., Stage]

START_OK = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US")
TUNE = amqp.ConnectionTune(2047, 131072, 60)
OPEN = amqp.ConnectionOpen("/")
REFUSAL = amqp.ConnectionClose(530, "NOT_ALLOWED - vhost shop not found", 10, 40)

#: What each side says in turn until the connection is open.
CONVERSATION: list[tuple[str, Method]] = [
    ("client", START_OK),
    ("broker", amqp.ConnectionSecure(b"once more")),
    ("client", amqp.ConnectionSecureOk(b"once again")),
    ("broker", TUNE),
    ("client", amqp.ConnectionTuneOk(2047, 131072, 60)),
    ("client", OPEN),
    ("broker", amqp.ConnectionOpenOk()),
]


def converse(client: Talker, broker: Talker, steps: int = len(CONVERSATION)) -> None:
    """The first `steps` of the conversation, after start."""
    for who, method in CONVERSATION[:steps]:
        speaker, listener = (client, broker) if who == "client" else (broker, client)
        speaker.say(method)
        listener.expect(type(method))


def payload_of(frame: Frame) -> bytes:
    assert frame.type == 1
    assert frame.channel == 0
    return frame.payload


# -- what passes unchanged ---------------------------------------------------------------------------------


def test_the_brokers_start_is_passed_on_as_it_is(stage: Stage) -> None:
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    properties = Table(
        (
            ("product", Field("S", "RabbitMQ")),
            ("licence", Field("x", b"\0\xff")),
            ("empty", Field("F", Table())),
        )
    )
    start = broker.greet(mechanisms=b"ONE TWO  THREE", properties=properties)
    assert payload_of(client.frame()) == start.encode()


#: One value of every kind, two entries of one name, and a string that is no UTF-8.
ODD = Table(
    (
        ("t", Field("t", True)),
        ("b", Field("b", -7)),
        ("B", Field("B", 200)),
        ("s", Field("s", -300)),
        ("u", Field("u", 60000)),
        ("I", Field("I", -70000)),
        ("i", Field("i", 4_000_000_000)),
        ("l", Field("l", -5_000_000_000)),
        ("f", Field("f", 1.5)),
        ("d", Field("d", 0.1)),
        ("S", Field("S", b"\xff\xfe")),
        ("twice", Field("S", "one")),
        ("twice", Field("S", "two")),
        ("A", Field("A", (Field("S", "x"), Field("V", None)))),
        ("T", Field("T", 1_700_000_000)),
        ("F", Field("F", Table((("inner", Field("x", b"\0")),)))),
        ("V", Field("V", None)),
    )
)


def test_start_ok_is_passed_on_with_one_entry_more(stage: Stage) -> None:
    client, broker = stage.greeted()
    said = amqp.ConnectionStartOk(ODD, "PLAIN", b"\0guest\0guest", "de_DE")
    client.say(said)
    heard = decode_method(payload_of(broker.frame()))
    assert isinstance(heard, amqp.ConnectionStartOk)
    *others, (name, entry) = heard.client_properties
    assert (
        amqp.ConnectionStartOk(Table(tuple(others)), "PLAIN", heard.response, "de_DE").encode()
        == said.encode()
    )
    assert name == "amqpgate"
    assert isinstance(entry.value, Table)
    host, port = client.sock.getsockname()
    assert entry.value.to_python() == {
        "client_address": f"{host}:{port}",
        "session": entry.value.get("session"),
        "version": stage.running.gateway.acceptor.context.version,
    }
    assert len(str(entry.value.get("session"))) == 16


def padded(size: int) -> amqp.ConnectionStartOk:
    """A start-ok whose frame has this many bytes."""

    def make(padding: int) -> amqp.ConnectionStartOk:
        return amqp.ConnectionStartOk(
            Table.of({"padding": "p" * padding}), "PLAIN", b"\0guest\0guest", "en_US"
        )

    return make(size - len(method_frame(0, make(0))))


def test_the_entry_is_left_out_of_a_start_ok_that_would_become_too_large(stage: Stage) -> None:
    for size, introduced in ((3900, True), (4090, False), (4096, False)):
        client, broker = stage.greeted()
        said = padded(size)
        client.say(said)
        heard = broker.expect(amqp.ConnectionStartOk)
        assert ("amqpgate" in heard.client_properties) == introduced
        assert len(method_frame(0, heard)) <= 4096
        if not introduced:
            assert heard == said


def test_a_client_that_claims_to_be_the_gateway_is_overruled(stage: Stage) -> None:
    forged = CAPABILITIES.with_("amqpgate", {"client_address": "10.9.8.7:6"})
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(forged, "PLAIN", b"\0guest\0guest", "en_US"))
    heard = broker.expect(amqp.ConnectionStartOk).client_properties
    assert [name for name, _ in heard].count("amqpgate") == 1
    assert heard.to_python()["amqpgate"]["client_address"] == f"127.0.0.1:{client.sock.getsockname()[1]}"


def test_nor_is_it_believed_where_there_is_no_room_for_the_truth(stage: Stage) -> None:
    forged = padded(4050).client_properties.with_("amqpgate", {"session": "x"})
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(forged, "PLAIN", b"\0guest\0guest", "en_US"))
    heard = broker.expect(amqp.ConnectionStartOk).client_properties
    assert "amqpgate" not in heard
    assert heard == forged.without("amqpgate")


def test_any_mechanism_passes_in_as_many_rounds_as_it_takes(stage: Stage) -> None:
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "X-NEW", b"\0\1\2", "en_US"))
    heard = broker.expect(amqp.ConnectionStartOk)
    assert (heard.mechanism, heard.response) == ("X-NEW", b"\0\1\2")
    for round_ in range(3):
        challenge = b"challenge\xff%d" % round_
        broker.say(amqp.ConnectionSecure(challenge))
        assert client.expect(amqp.ConnectionSecure).challenge == challenge
        client.say(amqp.ConnectionSecureOk(challenge[::-1]))
        assert broker.expect(amqp.ConnectionSecureOk).response == challenge[::-1]
    broker.say(TUNE)
    client.expect(amqp.ConnectionTune)


@pytest.mark.parametrize(
    ("mechanism", "responses", "user"),
    [
        ("PLAIN", [b"\0alice\0secret"], "alice"),
        ("RABBIT-CR-DEMO", [b"alice", b"My password is secret"], "alice"),
        ("CRAM-MD5", [b"", b"alice 0123456789abcdef"], "alice"),
        ("X-NEW", [b"alice", b"alice"], None),
        # Without a certificate, only the broker knows.
        ("EXTERNAL", [b""], None),
    ],
)
def test_whom_policies_take_the_client_for(
    stage: Stage, mechanism: str, responses: list[bytes], user: str | None
) -> None:
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, mechanism, responses[0], "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    for response in responses[1:]:
        broker.say(amqp.ConnectionSecure(b"?"))
        client.expect(amqp.ConnectionSecure)
        client.say(amqp.ConnectionSecureOk(response))
        broker.expect(amqp.ConnectionSecureOk)
    broker.say(TUNE)
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 60))
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    eventually(lambda: bool(stage.running.gateway.sessions))
    (session,) = stage.running.gateway.sessions.values()
    assert session.principal.user == user
    assert session.principal.source == "127.0.0.1"


def test_open_ok_comes_from_the_broker(stage: Stage) -> None:
    client, broker = stage.greeted()
    converse(client, broker, len(CONVERSATION) - 1)
    client.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.frame()
    broker.say(amqp.ConnectionOpenOk())
    client.sock.settimeout(20)
    client.expect(amqp.ConnectionOpenOk)


# -- tune --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listener", "upstream", "asked", "offered", "answer", "told"),
    [
        # Without settings the client sees the broker's own, and the broker the client's answer.
        ("", "", (2047, 131072, 60), (2047, 131072, 60), (2047, 131072, 60), (2047, 131072, 60)),
        ("", "", (2047, 131072, 60), (2047, 131072, 60), (100, 8192, 5), (100, 8192, 60)),
        # RabbitMQ 4.1 insists on 8192; three times the client's payload is more than that.
        ("", "", (2047, 131072, 60), (2047, 131072, 60), (100, 4096, 5), (100, 12272, 60)),
        ("", "", (2047, 8192, 60), (2047, 8192, 60), (100, 4096, 5), (100, 8192, 60)),
        ("", "", (2047, 4096, 60), (2047, 4096, 60), (100, 4096, 5), (100, 4096, 60)),
        ("", "", (2047, 131072, 60), (2047, 131072, 60), (0, 0, 0), (2047, 131072, 60)),
        ("", "", (0, 0, 0), (0, 131072, 0), (0, 0, 0), (65535, 131072, 0)),
        ("", "", (0, 0, 0), (0, 131072, 0), (7, 8192, 3), (7, 8192, 0)),
        # A broker that takes more than is usual.
        ("", "", (2047, 1 << 20, 60), (2047, 131072, 60), (2047, 131072, 60), (2047, 131072, 60)),
        # Each hop has its own.
        ("frameMax: 4096", "", (10, 131072, 9), (10, 4096, 9), (10, 4096, 9), (10, 12272, 9)),
        (
            "frameMax: 4096",
            "frameMax: 131072",
            (10, 131072, 9),
            (10, 4096, 9),
            (10, 4096, 9),
            (10, 131072, 9),
        ),
        (
            "frameMax: 131072",
            "frameMax: 4096",
            (10, 131072, 9),
            (10, 131072, 9),
            (10, 131072, 9),
            (10, 4096, 9),
        ),
        (
            "frameMax: 65536",
            "frameMax: 1Mi",
            (10, 131072, 9),
            (10, 65536, 9),
            (10, 65536, 9),
            (10, 131072, 9),
        ),
        ("channelMax: 5", "", (10, 131072, 9), (5, 131072, 9), (5, 131072, 9), (5, 131072, 9)),
        ("channelMax: 50", "", (10, 131072, 9), (10, 131072, 9), (10, 131072, 9), (10, 131072, 9)),
        ("", "channelMax: 6", (0, 131072, 9), (6, 131072, 9), (6, 131072, 9), (6, 131072, 9)),
        ("heartbeat: 0", "", (10, 131072, 9), (10, 131072, 0), (10, 131072, 0), (10, 131072, 9)),
        (
            "heartbeat: 30",
            "heartbeat: 7",
            (10, 131072, 9),
            (10, 131072, 30),
            (10, 131072, 20),
            (10, 131072, 7),
        ),
    ],
)
def test_tune_is_clamped_per_hop(
    make_stage: MakeStage,
    listener: str,
    upstream: str,
    asked: tuple[int, int, int],
    offered: tuple[int, int, int],
    answer: tuple[int, int, int],
    told: tuple[int, int, int],
) -> None:
    client, broker = make_stage(listener=listener, upstream=upstream).greeted()
    client.say(START_OK)
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(*asked))
    assert client.expect(amqp.ConnectionTune) == amqp.ConnectionTune(*offered)
    client.say(amqp.ConnectionTuneOk(*answer))
    assert broker.expect(amqp.ConnectionTuneOk) == amqp.ConnectionTuneOk(*told)


# -- the gateway's own login and virtual host ---------------------------------------------------------------


def test_own_credentials_take_the_place_of_the_clients(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="user: gate, password: 'p:w'")
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "AMQPLAIN", b"whatever", "en_US"))
    heard = broker.expect(amqp.ConnectionStartOk)
    assert (heard.mechanism, heard.response) == ("PLAIN", b"\0gate\0p:w")
    assert b"whatever" not in heard.encode()


def test_the_virtual_host_is_rewritten(make_stage: MakeStage) -> None:
    client, broker = make_stage(upstream="vhost: other").greeted()
    converse(client, broker, len(CONVERSATION) - 2)
    client.say(amqp.ConnectionOpen("mine"))
    assert broker.expect(amqp.ConnectionOpen).virtual_host == "other"


@pytest.mark.parametrize(("mechanism", "response"), [("PLAIN", b"no\0ts"), ("AMQPLAIN", b"\5LOGIN")])
def test_a_response_that_could_name_two_users_goes_nowhere(
    stage: Stage, mechanism: str, response: bytes
) -> None:
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, mechanism, response, "en_US"))
    for talker in (client, broker):
        with pytest.raises(Gone):
            talker.frame()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


# -- refusals and ends, at every step -----------------------------------------------------------------------


def turns(who: str) -> list[int]:
    """After how many steps of the conversation it is somebody's turn."""
    return [step for step, (speaker, _) in enumerate(CONVERSATION) if speaker == who]


@pytest.mark.parametrize("step", turns("broker"))
def test_a_refusal_reaches_the_client_word_by_word(stage: Stage, step: int) -> None:
    client, broker = stage.greeted()
    converse(client, broker, step)
    broker.say(REFUSAL)
    assert client.expect(amqp.ConnectionClose) == REFUSAL
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    client.close()
    broker.expect(amqp.ConnectionCloseOk)
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


def test_a_refusal_instead_of_start_reaches_the_client(stage: Stage) -> None:
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.exactly(8)
    broker.say(REFUSAL)
    assert client.expect(amqp.ConnectionClose) == REFUSAL


@pytest.mark.parametrize("step", turns("broker"))
def test_a_broker_that_hangs_up_is_not_covered_for(stage: Stage, step: int) -> None:
    """Brokers refuse a login by hanging up; after that, the client hears 320."""
    client, broker = stage.greeted()
    converse(client, broker, step)
    broker.close()
    if step < turns("broker")[-1]:
        client.expect_end()
        expected = {"refused": 1}
    else:
        close = client.expect(amqp.ConnectionClose)
        assert close.reply_code == 320
        assert close.reply_text.startswith("CONNECTION_FORCED - upstream 127.0.0.1:")
        client.say(amqp.ConnectionCloseOk())
        client.expect_end()
        client.close()
        expected = {"upstream_unavailable": 1}
    stage.running.wait_idle()
    assert stage.running.outcomes() == expected


def hear_320(client: Talker) -> str:
    """The conversation in which a client is told that there is no broker; the text."""
    start = client.expect(amqp.ConnectionStart)
    assert start.mechanisms == b"PLAIN AMQPLAIN EXTERNAL"
    told = start.server_properties.to_python()
    assert set(told) == {"product", "version", "platform", "copyright", "information"}
    assert told["product"] == "amqpgate"
    close = client.ask(START_OK, amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id) == (320, 0, 0)
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    client.close()
    return close.reply_text


def test_no_broker_there(stage: Stage) -> None:
    stage.door.close()
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    where = f"127.0.0.1:{stage.door.port}"
    assert hear_320(client).startswith(f"CONNECTION_FORCED - cannot connect to upstream {where}: ")
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"upstream_unavailable": 1}


@pytest.mark.parametrize("answer", [b"", b"AMQP\0\0\x09\x01", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_no_broker_but_somebody_else(stage: Stage, answer: bytes) -> None:
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.exactly(8)
    broker.raw(answer)
    broker.close()
    assert hear_320(client).startswith(f"CONNECTION_FORCED - upstream 127.0.0.1:{stage.door.port}: ")
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"upstream_unavailable": 1}


def test_a_broker_that_says_nothing(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="connectTimeout: 200ms")
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    text = f"CONNECTION_FORCED - upstream 127.0.0.1:{stage.door.port}: said nothing within 0.2 s"
    assert hear_320(client) == text
    broker.exactly(8)
    broker.expect_end()


@pytest.mark.parametrize("step", range(len(CONVERSATION) + 1))
@pytest.mark.parametrize("leave", [Talker.close, Talker.reset, Talker.bye])
def test_a_client_that_leaves_takes_its_broker_connection_with_it(
    stage: Stage, step: int, leave: Callable[[Talker], None]
) -> None:
    client, broker = stage.greeted()
    converse(client, broker, step)
    if step in turns("broker"):
        # The gateway listens to the broker now; it learns of the client when the broker has spoken.
        leave_quietly = Talker.close if leave is Talker.bye else leave
        leave_quietly(client)
        broker.say(CONVERSATION[step][1])
    elif leave is Talker.bye and step == len(CONVERSATION):
        client.close()
    else:
        leave(client)
    for frame in broker.all():
        if isinstance(decode_method(frame.payload), amqp.ConnectionClose):
            broker.say(amqp.ConnectionCloseOk())
    broker.close()
    stage.running.wait_idle()


# -- violations ---------------------------------------------------------------------------------------------

BAD = {
    "out of turn": method_frame(0, amqp.ChannelOpen()),
    "another channel": method_frame(1, amqp.ChannelOpen()),
    "heartbeat on a channel": encode_frame(8, 1, b""),
    "heartbeat with payload": encode_frame(8, 0, b"x"),
    "content header": encode_frame(2, 0, bytes(14)),
    "no such type": encode_frame(4, 0, b""),
    "end octet": encode_frame(1, 0, b"\0\x0a\0\x0b")[:-1] + b"\0",
    "too large": b"\1\0\0\0\0\x10\x01",
    "no such method": encode_frame(1, 0, b"\0\x0a\0\x63"),
    "cut short": encode_frame(1, 0, b"\0\x0a\0\x0b\0\0\0\5"),
    "no method": encode_frame(1, 0, b"\0"),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("step", [0, 2, 4])
def test_before_tune_ok_a_violation_is_answered_by_hanging_up(stage: Stage, step: int, data: bytes) -> None:
    client, broker = stage.greeted()
    converse(client, broker, step)
    client.raw(data)
    with pytest.raises(Gone):
        client.frame()
    with pytest.raises(Gone):
        broker.frame()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_after_tune_ok_a_violation_is_answered_in_words(stage: Stage, data: bytes) -> None:
    client, broker = stage.greeted()
    converse(client, broker, 5)
    client.raw(data)
    assert client.expect(amqp.ConnectionClose).reply_code in (501, 504, 505, 540)
    client.close()
    with pytest.raises(Gone):
        broker.frame()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"violation": 1}


@pytest.mark.parametrize("answer", [(2048, 131072, 0), (2047, 131073, 0), (2047, 4095, 0)])
def test_more_than_was_offered_is_answered_by_hanging_up(stage: Stage, answer: tuple[int, int, int]) -> None:
    client, broker = stage.greeted()
    converse(client, broker, 4)
    client.say(amqp.ConnectionTuneOk(*answer))
    with pytest.raises(Gone):
        client.frame()
    with pytest.raises(Gone):
        broker.frame()


@pytest.mark.parametrize(
    "header",
    [b"AMQP\0\0\x09\0", b"AMQP\1\1\0\x0b", b"AMQP\1\1\x08\1", b"AMQP\3\1\0\0", b"GET / HTTP/1.1\r\n"],
)
def test_another_protocol_is_told_ours(stage: Stage, header: bytes) -> None:
    client = stage.client()
    client.raw(header)
    assert client.exactly(8) == amqp.PROTOCOL_HEADER
    client.expect_end()
    client.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


def test_header_of_0_10_is_said_back_and_start_comes_as_a_control_of_it(stage: Stage) -> None:
    client = stage.client()
    client.raw(HEADER_0_10)
    assert client.exactly(8) == HEADER_0_10
    # All on one frame, of a control on channel 0: connection.start.
    frame = client.exactly(12 + 2)
    assert (frame[0], frame[1], frame[6:8], frame[12:]) == (0x0F, 0, b"\0\0", b"\1\1")
    client.close()


# -- splits and pace ----------------------------------------------------------------------------------------


def test_a_whole_conversation_byte_by_byte(stage: Stage) -> None:
    client = stage.client()
    words = [method_frame(0, method) for who, method in CONVERSATION if who == "client"]

    def dribble(data: bytes) -> None:
        for at in range(len(data)):
            client.raw(data[at : at + 1])

    dribble(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.greet()
    dribble(words[0])
    broker.expect(amqp.ConnectionStartOk)
    for octet in method_frame(0, amqp.ConnectionSecure(b"once more")):
        broker.raw(bytes([octet]))
    dribble(words[1])
    broker.expect(amqp.ConnectionSecureOk)
    for octet in method_frame(0, TUNE):
        broker.raw(bytes([octet]))
    dribble(words[2])
    broker.expect(amqp.ConnectionTuneOk)
    dribble(words[3])
    broker.expect(amqp.ConnectionOpen)
    for octet in method_frame(0, amqp.ConnectionOpenOk()):
        broker.raw(bytes([octet]))
    for kind in (amqp.ConnectionStart, amqp.ConnectionSecure, amqp.ConnectionTune, amqp.ConnectionOpenOk):
        client.expect(kind)
    dribble(method_frame(1, amqp.ChannelOpen()))
    broker.expect(amqp.ChannelOpen, 1)


def test_a_client_may_say_everything_at_once(stage: Stage) -> None:
    client = stage.client()
    words = [amqp.PROTOCOL_HEADER]
    words += [method_frame(0, method) for who, method in CONVERSATION if who == "client"]
    words += [method_frame(1, amqp.ChannelOpen()), method_frame(1, amqp.QueueDeclare(queue="q"))]
    client.raw(b"".join(words))
    broker = stage.broker()
    broker.greet()
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionSecure())
    broker.expect(amqp.ConnectionSecureOk)
    broker.say(TUNE)
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    # The broker goes on at once, too.
    broker.raw(method_frame(0, amqp.ConnectionOpenOk()) + method_frame(0, amqp.ConnectionBlocked("full")))
    broker.expect(amqp.ChannelOpen, 1)
    broker.expect(amqp.QueueDeclare, 1)
    for kind in (
        amqp.ConnectionStart,
        amqp.ConnectionSecure,
        amqp.ConnectionTune,
        amqp.ConnectionOpenOk,
        amqp.ConnectionBlocked,
    ):
        client.expect(kind)


def test_an_open_that_came_with_tune_ok_goes_with_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[bytes] = []
    send = MethodStream.send

    async def noted(self: MethodStream, data: bytes) -> None:
        said.append(data)
        await send(self, data)

    monkeypatch.setattr(MethodStream, "send", noted)
    client, broker = stage.greeted()
    converse(client, broker, 4)
    said.clear()
    both = method_frame(0, amqp.ConnectionTuneOk(2047, 131072, 60)) + method_frame(0, OPEN)
    client.raw(both)
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    assert said == [both]


def test_a_handshake_has_a_deadline_however_busy_it_looks(make_stage: MakeStage) -> None:
    stage = make_stage(limits="handshakeTimeout: 300ms")
    client, broker = stage.greeted()
    client.sock.settimeout(0.02)

    def beat() -> None:
        client.raw(HEARTBEAT)
        with contextlib.suppress(TimeoutError):
            client.frame()

    with pytest.raises((Gone, OSError)):  # noqa: PT012
        while True:
            beat()
    with pytest.raises(Gone):
        broker.frame()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"handshake_timeout": 1}


# -- a broker whose frames are smaller than the standard's least ---------------------------------------------


@pytest.mark.parametrize("frame_max", [256, 2048, 4095])
@pytest.mark.parametrize("upstream", ["", "connections: pooled", "user: app, password: secret"])
def test_a_broker_with_small_frames_is_kept_to_them(
    make_stage: Callable[..., Stage], upstream: str, frame_max: int
) -> None:
    """The client is offered the standard's least; what it sends is cut."""
    stage = make_stage(upstream=upstream)
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.greet()
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    if "pooled" in upstream:
        broker = stage.broker()
        broker.greet()
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, frame_max, 0))
    offered = client.expect(amqp.ConnectionTune)
    assert offered.frame_max >= 4096
    client.frame_max = offered.frame_max
    client.say(amqp.ConnectionTuneOk(offered.channel_max, offered.frame_max, 0))
    client.say(amqp.ConnectionOpen("/"))
    agreed = broker.expect(amqp.ConnectionTuneOk).frame_max
    assert agreed == frame_max
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(amqp.ChannelOpen(), 1)
    body = bytes(range(256)) * 40
    client.publish(body, "q")
    # A pool opens channels ahead.
    while isinstance(decode_method((frame := broker.frame()).payload), amqp.ChannelOpen):
        broker.say(amqp.ChannelOpenOk(), frame.channel)
    assert isinstance(decode_method(frame.payload), amqp.BasicPublish)
    assert broker.frame().type == 2
    pieces = []
    while len(b"".join(pieces)) < len(body):
        pieces.append(broker.frame().payload)
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) == frame_max - 8


@pytest.mark.parametrize("frame_max", [1, 8, 9, 255])
def test_a_broker_whose_frames_hold_nothing(make_stage: Callable[..., Stage], frame_max: int) -> None:
    stage = make_stage()
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, frame_max, 0))
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 320
    assert close.reply_text.endswith(f"it takes frames of {frame_max} bytes at most, 256 are needed")


def test_a_broker_without_a_limit_has_the_clients(stage: Stage) -> None:
    _, broker = stage.opened(tune=amqp.ConnectionTune(2047, 0, 0))
    assert broker.frame_max == 131072


# -- who has gone without a word ----------------------------------------------------------------------------


@pytest.mark.parametrize("is_tls", [False, True])
def test_the_kernel_asks_after_those_who_agree_to_no_heartbeat(
    make_stage: MakeStage, papers: Papers, is_tls: bool
) -> None:
    """A half-open connection would stay for ever."""
    stage = make_stage(listener=f"tls: {{{papers.make('gateway', 'localhost')}}}" if is_tls else "")
    client, broker = stage.greeted(**({"tls": papers.client_context()} if is_tls else {}))
    client.say(START_OK)
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    broker.expect(amqp.ConnectionTuneOk)
    client.say(OPEN)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    for peer in (client, broker):
        eventually(partial(is_asked_after, peer.sock))

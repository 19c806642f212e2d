"""A 0-10 client's connection, through its translator, with the embedded broker and with a gateway by hand."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.client import ClientTranslator
from amqpgate.bridge.v0_10.link import ClientOptions
from amqpgate.broker.greeting import Greeting
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Control
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.said_0_10 import Sent, Splitter
from tests.support.talk_0_10 import ALONE, command, control, frame
from tests.unit.bridge.v0_10.lab import START_OK, Lab


def whole_conversation(cut: int | None = None) -> Lab:
    """Declare, bind, transfer, query, subscribe, receive, accept, transaction, detach, close."""
    lab = Lab(cut=cut)
    lab.say(START_OK)
    lab.say(amqp10.ConnectionTuneOk(channel_max=64), amqp10.ConnectionOpen())
    lab.attach()
    lab.do(amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=True))
    lab.do(amqp10.ExchangeBind(queue=b"q", exchange=b"amq.direct", binding_key=b"k"))
    lab.transfer(b"hello", b"k", exchange=b"amq.direct", accept_mode=0)
    lab.query(amqp10.QueueQuery(queue=b"q"))
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageSetFlowMode(destination=b"d", flow_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=10))
    [given] = [one for one in lab.heard if one.body]
    assert given.body == b"hello"
    assert given.command.destination == b"d"
    lab.do(amqp10.MessageAccept(transfers=SequenceSet(((2, 2),))))
    lab.do(amqp10.MessageCancel(destination=b"d"))
    lab.do(amqp10.TxSelect())
    lab.transfer(b"in a transaction", b"q")
    lab.do(amqp10.TxCommit())
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 1
    assert lab.completed() == set(range(14))
    lab.say(amqp10.SessionDetach(name=b"session"))
    lab.say(amqp10.ConnectionClose(reply_code=200))
    return lab


def test_from_login_to_close() -> None:
    lab = whole_conversation()
    assert [type(one.control) for one in lab.heard[-2:]] == [
        amqp10.SessionDetached,
        amqp10.ConnectionCloseOk,
    ]
    assert lab.asked[-1] == (0, amqp.ConnectionClose(200, ""))
    assert "queue.delete" in lab.names()


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 11, 12, 13, 64])
def test_every_split_comes_to_the_same(cut: int) -> None:
    whole, split = whole_conversation(), whole_conversation(cut)
    assert split.asked == whole.asked
    assert [one for one in split.heard if not isinstance(one.control, amqp10.SessionCompleted)] == [
        one for one in whole.heard if not isinstance(one.control, amqp10.SessionCompleted)
    ]


class Gateway:
    """A translator, and a gateway that says what it is told to."""

    def __init__(self, options: ClientOptions | None = None) -> None:
        self.translator = ClientTranslator(options)
        self._splitter = Splitter()

    def tell(self, *methods: Method | bytes) -> list[Sent]:
        for one in methods:
            self.translator.from_gateway(one if isinstance(one, bytes) else method_frame(0, one))
        return self.said()

    def said(self) -> list[Sent]:
        """What the client is told."""
        return list(self._splitter.feed(self.translator.bytes_for_peer()))

    def hear(self, *controls: amqp10.Control) -> list[Method]:
        """What the gateway is told, of what the client says."""
        self.translator.from_peer(b"".join(control(one) for one in controls))
        heard = []
        while self.translator.has_frames:
            data = self.translator.frames_for_gateway(1 << 20)
            while data:
                size = int.from_bytes(data[3:7], "big")
                heard.append(decode_method(data[7 : 7 + size]))
                data = data[size + 8 :]
        return heard


START = amqp.ConnectionStart(
    0, 9, Table.of({"product": "RabbitMQ"}), b"PLAIN AMQPLAIN GSSAPI DIGEST-MD5 EXTERNAL", b"en_US"
)


def opened(tune: amqp.ConnectionTune | None = None, options: ClientOptions | None = None) -> Gateway:
    gateway = Gateway(options)
    gateway.tell(START)
    gateway.hear(START_OK)
    gateway.tell(tune or amqp.ConnectionTune(2047, 131072, 60))
    return gateway


def test_header_is_answered_and_mechanisms_are_those_that_can_be_read() -> None:
    gateway = Gateway()
    assert gateway.translator.bytes_for_peer() == b"AMQP\x01\x01\x00\x0a"
    gateway._splitter = Splitter(header=False)
    [start] = gateway.tell(START)
    assert start.control.mechanisms.items == (b"PLAIN", b"EXTERNAL")
    assert start.control.locales.items == (b"en_US",)
    assert start.control.server_properties.get(b"product").value == b"RabbitMQ"


def test_start_ok_gets_capabilities_and_loses_links() -> None:
    gateway = Gateway()
    gateway.tell(START)
    properties = Map(
        (
            (b"product", Value(0x95, b"P")),
            (b"qpid.fed_link", Value(0x21, 1)),
            (b"capabilities", Value(0x21, 1)),
        )
    )
    [start_ok] = gateway.hear(
        amqp10.ConnectionStartOk(client_properties=properties, mechanism=b"EXTERNAL", locale=b"en_US")
    )
    said = start_ok.client_properties.to_python()
    assert said["product"] == "P"
    assert said["capabilities"] == dict.fromkeys(
        ("authentication_failure_close", "basic.nack", "consumer_cancel_notify", "publisher_confirms"), True
    )
    assert "qpid.fed_link" not in said
    assert start_ok.response == b""
    [secure] = gateway.tell(amqp.ConnectionSecure(b"c"))
    assert secure.control == amqp10.ConnectionSecure(challenge=b"c")
    assert gateway.hear(amqp10.ConnectionSecureOk(response=b"r")) == [amqp.ConnectionSecureOk(b"r")]


@pytest.mark.parametrize(
    ("tune", "sessions", "heartbeat"),
    [
        (amqp.ConnectionTune(2047, 131072, 60), 256, 60),
        (amqp.ConnectionTune(30, 131072, 60), 10, 60),
        (amqp.ConnectionTune(0, 0, 0), 256, 0),
        (amqp.ConnectionTune(1, 4096, 7), 1, 7),
    ],
)
def test_tune(tune: amqp.ConnectionTune, sessions: int, heartbeat: int) -> None:
    gateway = Gateway()
    gateway.tell(START)
    gateway.hear(START_OK)
    [offer] = gateway.tell(tune)
    assert offer.control == amqp10.ConnectionTune(sessions, 65535, 0, heartbeat)
    [answer] = gateway.hear(amqp10.ConnectionTuneOk(channel_max=sessions, heartbeat=heartbeat or None))
    assert answer == amqp.ConnectionTuneOk(tune.channel_max or 65535, tune.frame_max or 131072, heartbeat)


def test_client_that_says_nothing_of_heartbeats_has_none() -> None:
    [answer] = opened().hear(amqp10.ConnectionTuneOk())
    assert answer.heartbeat == 0


@pytest.mark.parametrize(("vhost", "expected"), [(None, "here"), (b"", "here"), (b"/", "/"), (b"v", "v")])
def test_virtual_host(vhost: bytes | None, expected: str) -> None:
    gateway = opened(options=ClientOptions(default_vhost="here"))
    heard = gateway.hear(amqp10.ConnectionTuneOk(channel_max=1), amqp10.ConnectionOpen(virtual_host=vhost))
    assert heard[1] == amqp.ConnectionOpen(expected)


def test_heartbeats_go_to_the_client_once_it_is_tuned() -> None:
    gateway = opened()
    assert gateway.tell(HEARTBEAT) == []
    gateway.hear(amqp10.ConnectionTuneOk(channel_max=1, heartbeat=60))
    [beat] = gateway.tell(HEARTBEAT)
    assert beat.control == amqp10.ConnectionHeartbeat()
    assert gateway.hear(amqp10.ConnectionHeartbeat()) == []


@pytest.mark.parametrize(
    ("code", "expected", "text"),
    [(320, 320, b"why"), (403, 320, b"why"), (504, 501, b"why"), (541, 320, b"541 why")],
)
def test_close_of_the_gateway(code: int, expected: int, text: bytes) -> None:
    gateway = opened()
    [close] = gateway.tell(amqp.ConnectionClose(code, "why"))
    assert close.control == amqp10.ConnectionClose(expected, text)
    assert gateway.hear(amqp10.ConnectionCloseOk()) == [amqp.ConnectionCloseOk()]


@pytest.mark.parametrize(
    "data",
    [
        frame(ALONE, 9),
        frame(ALONE, 0, b"", size=11),
        control(amqp10.ConnectionOpenOk()),
        control(amqp10.ConnectionTuneOk(channel_max=4)),
        control(amqp10.SessionDetach(name=b"none"), 500),
        frame(0, 3, b"no command"),
    ],
)
def test_violations_are_told_and_raised(data: bytes) -> None:
    lab = Lab().open()
    with pytest.raises(ProtocolViolation) as raised:
        lab.give(data)
    lab.settle()
    assert raised.value.code == 501
    assert lab.heard[-1].control.reply_code == 501
    # The gateway goes on to close; nothing more is said to the client.
    lab.heard.clear()
    lab.tell(amqp.ConnectionClose(501, "gateway says so, too"))
    assert lab.heard == []


def test_vhost_that_is_not_text_is_a_violation() -> None:
    gateway = opened()
    with pytest.raises(ProtocolViolation) as raised:
        gateway.hear(amqp10.ConnectionTuneOk(channel_max=1), amqp10.ConnectionOpen(virtual_host=b"\xff"))
    assert raised.value.code == 542


def test_close_waits_for_what_was_asked_before() -> None:
    lab = Lab().open().attach()
    lab.is_live = False
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"m", b"q")
    lab.say(amqp10.ConnectionClose(reply_code=200))
    assert "connection.close" not in lab.names()
    assert lab.heard == []
    lab.is_live = True
    lab.settle()
    assert lab.names()[-1] == "connection.close"
    assert isinstance(lab.heard[-1].control, amqp10.ConnectionCloseOk)
    assert lab.names().index("queue.declare") < lab.names().index("basic.publish")


def test_more_sessions_than_channels_end_by_506() -> None:
    lab = Lab(greeting=Greeting(channel_max=1))
    lab.say(START_OK)
    lab.say(amqp10.ConnectionTuneOk(channel_max=1), amqp10.ConnectionOpen())
    lab.attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"m", b"q")
    [exception] = [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]
    assert exception.error_code == 506


def test_peer_that_has_ended_is_the_gateways_affair() -> None:
    lab = Lab().open().attach()
    lab.translator.peer_ended()
    lab.translator.gateway_ended()
    assert not lab.translator.has_frames
    assert lab.translator.bytes_for_peer() == b""


@pytest.mark.parametrize("extra", [(), (amqp10.ConnectionOpen(virtual_host=b"/"),)])
def test_what_is_wrong_ahead_of_an_answer_is_found_when_that_comes(extra: tuple[Control, ...]) -> None:
    """It is the client's fault still: who answers hears of a close, and nothing is raised to it."""
    lab = Lab()
    heard = lab.say(START_OK, amqp10.ConnectionTuneOk(channel_max=40_000), *extra)
    close = heard[-1].control
    assert isinstance(close, amqp10.ConnectionClose)
    assert (close.reply_code, b"channel-max = 40000" in close.reply_text) == (320, True)
    assert lab.names() == ["connection.start-ok", "connection.close"]
    assert lab.broker.is_over


@pytest.mark.parametrize("count", [1, 2])
def test_a_close_of_publishing_names_a_transfer_where_there_is_one(count: int) -> None:
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"confirmed", b"q")
    lab.is_live = False
    for _ in range(count):
        lab.transfer(b"m", b"q", sync=False)
    channel = next(number for number, method in lab.asked if isinstance(method, amqp.ConfirmSelect))
    lab.tell(amqp.ChannelClose(403, "no", 60, 40), channel)
    (exception,) = [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]
    assert exception.command_id == (2 if count == 1 else None)
    assert (exception.error_code, exception.class_code, exception.command_code) == (403, 4, 1)


@pytest.mark.parametrize("returned", [True, False])
def test_a_refused_message_ends_its_session_with_what_it_was_returned_for(returned: bool) -> None:
    """A return alone, of a message that no queue gets, is nothing to a client that has not asked for it."""
    lab = Lab().open().attach()
    lab.transfer(b"confirmed", b"q")
    lab.is_live = False
    for _ in range(2):
        lab.transfer(b"m", b"q", sync=False)
    channel = next(number for number, method in lab.asked if isinstance(method, amqp.ConfirmSelect))
    lab.content(amqp.BasicReturn(312, "NO_ROUTE", "", "q"), channel)
    assert not [one for one in lab.commands() if isinstance(one, amqp10.MessageReject)]
    if returned:
        lab.content(amqp.BasicReturn(403, "denied", "", "q"), channel)
    lab.tell(amqp.BasicNack(3), channel)
    (exception,) = [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]
    assert (exception.error_code, exception.command_id) == (403 if returned else 506, 2)


def test_what_a_broker_does_not_confirm_is_committed() -> None:
    """In transactions that no client knows of. RabbitMQ takes nothing else while it commits one."""
    lab = Lab()
    lab.translator, lab._splitter = ClientTranslator(), Splitter()
    start = amqp.ConnectionStart(0, 9, Table.of({"capabilities": {}}), b"PLAIN", b"en_US")
    lab.translator.from_gateway(method_frame(0, start))
    lab.open().attach()
    lab.asked.clear()
    transfer = command(
        amqp10.MessageTransfer(), [amqp10.DeliveryProperties(routing_key=b"q")], b"m", sync=True
    )
    lab.give(transfer * 3)
    assert lab.names() == ["channel.open", "tx.select", *["basic.publish"] * 3, "tx.commit"]
    assert lab.completed() == {0, 1, 2}
    lab.is_live = False
    lab.asked.clear()
    lab.give(transfer)
    lab.give(transfer * 2)
    assert lab.names() == ["basic.publish", "tx.commit"]
    assert lab.completed() == {0, 1, 2}
    (channel,) = {number for number, _ in lab.asked}
    lab.asked.clear()
    lab.tell(amqp.TxCommitOk(), channel)
    assert lab.names() == ["basic.publish", "basic.publish", "tx.commit"]
    assert lab.completed() == {0, 1, 2, 3}
    lab.asked.clear()
    # What waits for a commit when the session ends is published after it.
    lab.give(transfer + control(amqp10.SessionDetach(name=b"session")))
    assert lab.names() == []
    lab.tell(amqp.TxCommitOk(), channel)
    assert lab.names() == ["basic.publish", "tx.commit", "channel.close"]


@pytest.mark.parametrize("closes", [True, False])
def test_what_a_client_sends_last_waits_for_no_answer(closes: bool) -> None:
    """Its transfers are published before the broker has opened a channel; what waits for more is not."""
    lab = Lab().open().attach().attach(1, b"other")
    lab.is_live = False
    for body in (b"one", b"two"):
        lab.transfer(body, b"q")
    lab.do(amqp10.TxSelect(), 1)
    lab.transfer(b"three", b"q", channel=1)
    if closes:
        lab.say(amqp10.ConnectionClose(reply_code=200))
    lab.translator.peer_ended()
    lab.settle()
    opened = {channel for channel, method in lab.asked if isinstance(method, amqp.ChannelOpen)}
    published = [channel for channel, method in lab.asked if isinstance(method, amqp.BasicPublish)]
    assert len(published) == 2
    assert set(published) < opened
    assert (lab.names()[-1] == "connection.close") is closes

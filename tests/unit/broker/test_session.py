"""One connection without I/O: the handshake, its ends, limits. (What methods do: the differential suite.)"""

from __future__ import annotations

import pytest

from amqpgate.broker.greeting import CAPABILITIES, PRODUCT
from amqpgate.broker.outbox import HIGH_MARK, OVERLOAD_MARK
from amqpgate.broker.session import reply_text
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

from .client import EMPTY, Client, bodies, closing, new_state

_QUEUE = amqp.QueueDeclare(queue="q")
_CONSUME = amqp.BasicConsume(queue="q", consumer_tag="t")


def test_it_says_what_it_is() -> None:
    client = Client(new_state(), channels=0)
    ((_channel, start),) = client.feed(client.connection.send_header())
    assert isinstance(start, amqp.ConnectionStart)
    assert start.mechanisms == b"PLAIN AMQPLAIN"
    properties = start.server_properties.to_python()
    assert properties["product"] == PRODUCT
    assert "demonstrations and tests only" in str(properties["information"])
    assert properties["capabilities"] == dict.fromkeys(CAPABILITIES, True)


@pytest.mark.parametrize(("user", "password"), [("guest", "nope"), ("nobody", "guest"), ("nobody", "")])
def test_refused_login(user: str, password: str) -> None:
    client = Client(new_state(), channels=0)
    assert closing(client.open(user=user, password=password)) == (
        403,
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."
        " For details see the broker logfile.",
    )
    assert client.tell(amqp.ConnectionCloseOk(), 0) == []
    assert client.session.is_over


def test_refused_login_of_a_client_that_would_not_understand() -> None:
    client = Client(new_state(), channels=0)
    assert client.open(password="nope", capabilities={}) == []
    assert client.session.is_over


def test_users_and_vhosts() -> None:
    client = Client(new_state(), channels=0)
    assert client.open(user="other", password="secret", vhost="v") == [(0, amqp.ConnectionOpenOk())]
    client = Client(new_state(), channels=0)
    assert closing(client.open(vhost="w")) == (530, "NOT_ALLOWED - vhost w not found")


def test_vhosts_are_apart() -> None:
    state = new_state()
    one, other = Client(state), Client(state, channels=0)
    other.open(vhost="v")
    other.tell(amqp.ChannelOpen())
    one.tell(_QUEUE)
    passive = amqp.QueueDeclare(queue="q", passive=True)
    assert closing(other.tell(passive)) == (404, "NOT_FOUND - no queue 'q' in vhost 'v'")


def test_header_of_another_protocol() -> None:
    client = Client(new_state(), channels=0)
    for _ in client.session.receive(b"GET / HTTP/1.1\r\n"):
        pass
    assert client.session.outbox.take() == b"AMQP\x00\x00\x09\x01"
    assert client.session.is_over


def test_byte_by_byte() -> None:
    """However the bytes are cut, the answers are the same."""
    state = new_state()
    whole, bits = Client(state), Client(state)
    data = b"".join(
        method_frame(1, method)
        for method in (
            amqp.QueueDeclare(queue="q", exclusive=False),
            amqp.BasicQos(prefetch_count=1),
            amqp.BasicGet(queue="q"),
            amqp.QueueDeclare(queue="nope", passive=True),
        )
    )
    expected = whole.feed(data)
    assert len(expected) == 4
    assert [answer for n in range(len(data)) for answer in bits.feed(data[n : n + 1])] == expected


def test_it_is_over_when_both_have_said_so() -> None:
    client = Client(new_state())
    assert client.tell(amqp.ConnectionClose(200, "bye"), 0) == [(0, amqp.ConnectionCloseOk())]
    assert client.session.is_over
    client = Client(new_state())
    client.tell(amqp.ChannelFlow(active=False))
    assert not client.session.is_over
    client.tell(amqp.ConnectionCloseOk(), 0)
    assert client.session.is_over


def test_no_answer_is_awaited_where_none_could_be_understood() -> None:
    client = Client(new_state())
    code, text = closing(client.feed(b"\x01\x00\x01\x00\x00\x00\x00\x00"))
    assert (code, "invalid_frame_end_marker" in text) == (501, True)
    assert client.session.is_over


def test_long_reply_texts_are_cut() -> None:
    client = Client(new_state())
    code, text = closing(client.tell(amqp.QueueDeclare(queue="q" * 255, passive=True)))
    assert (code, len(text)) == (404, 255)
    assert text == "NOT_FOUND - no queue '" + "q" * 230 + "..."


def test_a_cut_in_the_middle_of_a_character() -> None:
    text = reply_text(ProtocolViolation(404, "ü" * 255))
    assert len(text.encode("utf-8", "surrogateescape")) == 255


def test_a_closed_connection_gives_everything_back() -> None:
    state = new_state()
    client, other = Client(state, channels=2), Client(state)
    client.tell(_QUEUE)
    client.tell(amqp.QueueDeclare(queue="mine", exclusive=True))
    client.publish("q", b"1")
    client.publish("mine", b"2")
    assert bodies(client.tell(_CONSUME, 2)) == [b"1"]
    client.tell(amqp.TxSelect())
    client.publish("q", b"3")
    client.session.close()
    client.session.close()
    assert other.tell(amqp.QueueDeclare(queue="q", passive=True)) == [(1, amqp.QueueDeclareOk("q", 1, 0))]
    assert state.memory.used == EMPTY + 1
    assert list(state.vhosts["/"].queues) == ["q"]


def test_reply_consumers_go_with_their_channel() -> None:
    state = new_state()
    client = Client(state, channels=2)
    for channel in (1, 2):
        client.tell(amqp.BasicConsume(queue="amq.rabbitmq.reply-to", no_ack=True), channel)
    assert len(state.replies._takers) == 2
    client.tell(amqp.ChannelClose(200, "done"), 1)
    assert len(state.replies._takers) == 1
    client.session.close()
    assert not state.replies._takers


def test_shut_down() -> None:
    client = Client(new_state())
    client.session.shut_down()
    assert closing(client.read()) == (
        320,
        "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
    )
    assert client.session.is_over


class TestMemory:
    def test_nack_in_confirm_mode(self) -> None:
        client = Client(new_state(2 * EMPTY + 10))
        client.tell(_QUEUE)
        client.tell(amqp.ConfirmSelect())
        assert client.publish("q", b"12345") == [(1, amqp.BasicAck(1))]
        assert client.publish("q", b"123456") == [(1, amqp.BasicNack(2))]
        assert client.publish("q", b"12345") == [(1, amqp.BasicAck(3))]
        assert client.publish("nowhere to go", b"123456") == [(1, amqp.BasicAck(4))]
        assert client.tell(amqp.QueuePurge(queue="q")) == [(1, amqp.QueuePurgeOk(2))]
        assert client.publish("q", b"123456") == [(1, amqp.BasicAck(5))]

    @pytest.mark.parametrize("select", [amqp.BasicQos(), amqp.TxSelect()])
    def test_channel_error_otherwise(self, select: amqp.BasicQos | amqp.TxSelect) -> None:
        state = new_state(EMPTY + 10)
        client = Client(state)
        client.tell(_QUEUE)
        client.tell(select)
        assert client.publish("q", b"1") == []
        code, text = closing(client.publish("q", b"2"))
        assert code == 406
        assert f"reached its limit of {EMPTY + 10} bytes" in text

    def test_what_goes_nowhere_counts_in_a_transaction(self) -> None:
        client = Client(new_state(EMPTY + 10))
        client.tell(amqp.TxSelect())
        assert client.publish("nowhere to go", b"1") == []
        code, _text = closing(client.publish("nowhere to go", b"2"))
        assert code == 406

    def test_unacked_messages_count(self) -> None:
        client = Client(new_state(EMPTY + 10))
        client.tell(_QUEUE)
        client.tell(amqp.ConfirmSelect())
        client.publish("q", b"1")
        client.tell(amqp.BasicGet(queue="q"))
        assert client.publish("q", b"2") == [(1, amqp.BasicNack(2))]
        client.tell(amqp.BasicAck(1))
        assert client.publish("q", b"2") == [(1, amqp.BasicAck(3))]

    def test_nothing_is_left_behind(self) -> None:
        state = new_state()
        client = Client(state)
        client.tell(_QUEUE)
        client.tell(amqp.QueueDeclare(queue="r"))
        for queue in ("q", "r"):
            client.tell(amqp.QueueBind(0, queue, "amq.fanout"))
        client.tell(amqp.TxSelect())
        for _ in range(3):
            client.publish("", b"x" * 100, exchange="amq.fanout")
        client.tell(amqp.TxCommit())
        assert state.memory.used == 3 * (EMPTY + 100)
        client.publish("q", b"rolled back")
        client.tell(amqp.TxRollback())
        client.tell(amqp.BasicGet(queue="q", no_ack=True))
        client.tell(amqp.BasicGet(queue="r"))
        client.tell(amqp.QueueDelete(queue="q"))
        client.tell(amqp.QueueDelete(queue="r"))
        assert state.memory.used == EMPTY + 100
        client.tell(amqp.BasicReject(2))
        client.tell(amqp.TxCommit())
        assert state.memory.used == 0


class TestCongestion:
    """A client that does not read gets no more, and takes nothing from the others."""

    BODY = b"x" * 100_000

    def _slow_reader(self) -> tuple[Client, Client]:
        state = new_state(100_000_000)
        slow, publisher = Client(state), Client(state)
        slow.tell(_QUEUE)
        slow.tell(_CONSUME)
        for _ in range(20):
            publisher.publish("q", self.BODY)
        return slow, publisher

    def test_deliveries_stop_and_go_on(self) -> None:
        slow, publisher = self._slow_reader()
        waiting = slow.session.outbox.size
        assert HIGH_MARK < waiting < HIGH_MARK + 2 * len(self.BODY)
        count = amqp.QueueDeclare(queue="q", passive=True)
        ((_channel, answer),) = publisher.tell(count)
        assert isinstance(answer, amqp.QueueDeclareOk)
        assert answer.message_count == 20 - waiting // len(self.BODY)
        got = 0
        while data := slow.session.outbox.take():
            got += len(bodies(slow.events(data)))
            if slow.session.outbox.sent(len(data)):
                slow.session.resume()
        assert got == 20
        assert not slow.session.outbox.is_congested

    def test_what_has_waited_is_not_looked_at_again(self) -> None:
        client = Client(new_state())
        client.tell(_QUEUE)
        client.tell(amqp.BasicQos(prefetch_count=1))
        client.tell(_CONSUME)
        client.publish("q", b"1")
        client.publish("q", b"2")
        consuming = client.session._channels[1].consuming
        assert len(consuming._held_back_in) == 1
        assert bodies(client.tell(amqp.BasicAck(1))) == [b"2"]
        assert len(consuming._held_back_in) == 0

    def test_others_get_what_it_does_not_take(self) -> None:
        slow, publisher = self._slow_reader()
        left = 20 - slow.session.outbox.size // len(self.BODY)
        got = bodies(publisher.tell(_CONSUME))
        while more := publisher.read():
            got += bodies(more)
        assert len(got) == left > 0

    def test_direct_replies_are_dropped_in_the_end(self) -> None:
        state = new_state()
        asker, other = Client(state), Client(state)
        asker.tell(amqp.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="t", no_ack=True))
        reply_consumer = asker.session._channels[1].consuming.reply_consumer
        assert reply_consumer is not None
        for _ in range(1 + OVERLOAD_MARK // len(self.BODY)):
            other.publish(reply_consumer.name, self.BODY)
        full = asker.session.outbox.size
        other.publish(reply_consumer.name, self.BODY)
        assert OVERLOAD_MARK < full == asker.session.outbox.size


def test_a_message_whose_headers_do_not_fit_into_a_frame() -> None:
    """RabbitMQ sends them all the same. Here the client is told, and somebody else gets the message."""
    state = new_state()
    small, other = Client(state, frame_max=4096), Client(state)
    small.tell(_QUEUE)
    small.tell(_CONSUME)
    other.tell(_CONSUME)
    properties = amqp.BasicProperties(headers=Table.of({"long": "x" * 5000}))
    assert other.publish("q", b"1", properties=properties) == []
    assert small.read() == []
    small.session.give_up()
    code, text = closing(small.read())
    assert code == 501
    assert "basic.deliver" in text
    assert bodies(other.read()) == [b"1"]


def test_generated_names_are_long_and_differ() -> None:
    client = Client(new_state())
    names = set()
    for _ in range(3):
        ((_channel, answer),) = client.tell(amqp.QueueDeclare())
        assert isinstance(answer, amqp.QueueDeclareOk)
        names.add(answer.queue)
    assert len(names) == 3
    assert {len(name) for name in names} == {len("amq.gen-") + 22}


def test_arguments_without_effect_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = Client(new_state())
    client.tell(amqp.QueueDeclare(queue="q", arguments=Table.of({"x-message-ttl": 5, "mine": 1})))
    assert caplog.messages == [
        "queue 'q' in vhost '/': the embedded broker takes note of x-message-ttl and does nothing about it"
    ]


def test_a_method_that_only_rabbitmq_has() -> None:
    client = Client(new_state())
    code, text = closing(client.tell(amqp.BasicCredit("t", 1)))
    assert (code, text) == (540, "NOT_IMPLEMENTED - basic.credit is not known to the embedded broker")

"""What the broker is asked of a queue, and when it has nothing more to say."""

from __future__ import annotations

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.queue_question import QueueQuestion
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@attrs.define
class Pump:
    retried: int = 0

    def retry(self, relay: object) -> None:
        self.retried += 1


@attrs.define
class Relay:
    active: bool = True
    sent: bytes = b""
    pump: Pump = attrs.field(factory=Pump)

    def send(self, side: Side, data: bytes) -> None:
        assert side is Side.UPSTREAM
        self.sent += data


def asked() -> tuple[QueueQuestion, Relay]:
    relay = Relay()
    question = QueueQuestion(1, "q", relay)  # type: ignore[arg-type]
    question.ask_on(9)
    return question, relay


def frames(*methods: Method) -> bytes:
    return b"".join(method_frame(9, method) for method in methods)


def test_it_is_one_write_and_over_when_its_channel_is_closed() -> None:
    question, relay = asked()
    close = amqp.ChannelClose(200, "asked", 0, 0)
    assert relay.sent == frames(amqp.ChannelOpen(), amqp.QueueDeclare(queue="q", passive=True), close)
    told = amqp.QueueDeclareOk("q", 1, 2)
    for method in (amqp.ChannelOpenOk(), told):
        assert question.hears(9, method)
        assert (question.is_over, relay.pump.retried) == (False, 0)
    assert question.hears(9, amqp.ChannelCloseOk())
    assert (question.is_over, question.answer, relay.pump.retried) == (True, told, 1)


def test_a_close_of_the_brokers_is_answered_and_its_own_answer_waited_for() -> None:
    question, relay = asked()
    relay.sent = b""
    close = amqp.ChannelClose(404, "NOT_FOUND", 50, 10)
    assert question.hears(9, close)
    assert (relay.sent, question.is_over) == (frames(amqp.ChannelCloseOk()), False)
    assert question.hears(9, amqp.ChannelCloseOk())
    assert (question.is_over, question.answer) == (True, close)


def test_only_the_first_answer_counts() -> None:
    question, _ = asked()
    first = amqp.QueueDeclareOk("q", 0, 0)
    question.hears(9, first)
    question.hears(9, amqp.ChannelClose(541, "", 0, 0))
    question.told(None)
    assert question.answer == first


def test_what_is_said_elsewhere_is_not_about_it() -> None:
    question, _ = asked()
    assert not question.hears(8, amqp.QueueDeclareOk("q", 0, 0))
    question.hears(9, amqp.ChannelCloseOk())
    assert not question.hears(9, amqp.ChannelCloseOk())


def test_a_session_that_is_over_is_not_looked_at_again() -> None:
    question, relay = asked()
    relay.active = False
    question.hears(9, amqp.ChannelCloseOk())
    assert relay.pump.retried == 0

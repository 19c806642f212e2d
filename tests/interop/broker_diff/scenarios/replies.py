"""Direct reply-to."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp

from ..steps import a, a2, b, scenario

_REPLY_TO = "amq.rabbitmq.reply-to"
_ASKS = amqp.BasicProperties(reply_to=_REPLY_TO, correlation_id="1")
_LISTEN = a.consume(_REPLY_TO, "replies", no_ack=True)

SCENARIOS = (
    scenario(
        "question and answer",
        _LISTEN,
        b.queue("q"),
        b.consume("q", "questions", no_ack=True),
        a.publish("q", b"question?", properties=_ASKS),
        b.receive(1, keep=("reply_to", "asker")),
        b.send(lambda kept: amqp.QueueDeclare(queue=kept["asker"], passive=True)),
        b.send(lambda kept: amqp.QueueDeclare(queue=kept["asker"])),
        b.publish(lambda kept: kept["asker"], b"answer", properties=amqp.BasicProperties(correlation_id="1")),
        a.receive(1),
        b.publish(lambda kept: kept["asker"], b"another answer", mandatory=True),
        a.receive(1),
        b.receive(1),
        a.send(amqp.BasicCancel("replies")),
        b.publish(lambda kept: kept["asker"], b"too late"),
        b.send(lambda kept: amqp.QueueDeclare(queue=kept["asker"], passive=True)),
    ),
    scenario(
        "question to oneself, with a tag of the broker's",
        a.queue("q"),
        a.send(amqp.BasicConsume(queue=_REPLY_TO, no_ack=True)),
        a.consume("q", "questions"),
        a.publish("q", b"question?", properties=_ASKS),
        a.receive(1, keep=("reply_to", "asker")),
        a.publish(lambda kept: kept["asker"], b"answer"),
        a.receive(1),
        a.send(amqp.QueueDeclare(queue=_REPLY_TO, passive=True)),
    ),
    scenario("reply consumer with acks", a.consume(_REPLY_TO, "t")),
    scenario("reply consumer twice", _LISTEN, a.consume(_REPLY_TO, "t", no_ack=True)),
    scenario("question without a reply consumer", a.queue("q"), a.publish("q", properties=_ASKS, answers=1)),
    scenario(
        "question on another channel", a.queue("q"), _LISTEN, a2.publish("q", properties=_ASKS, answers=1)
    ),
    scenario("get from the reply queue", a.get(_REPLY_TO)),
)

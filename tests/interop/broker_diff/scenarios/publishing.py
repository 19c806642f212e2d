"""Publishing: content, returns, confirms."""

from __future__ import annotations

from decimal import Decimal

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table
from tests.support.frames import content_frames

from ..steps import Connect, On, Send, Step, a, a2, b, scenario

_PROPERTIES = amqp.BasicProperties(
    content_type="text/plain",
    content_encoding="utf-8",
    headers=Table.of(
        {
            "text": "grün",
            "octets": b"\x00\xff",
            "numbers": [1, -2, 3.5, 5_000_000_000, Decimal("1.25")],
            "small": Field("b", -3),
            "table": {"none": None, "yes": True},
        }
    ),
    delivery_mode=2,
    priority=5,
    correlation_id="c",
    reply_to="r",
    expiration="60000",
    message_id="m",
    timestamp=1_700_000_000,
    type="t",
    user_id="guest",
    app_id="a",
)
_SELECT = a.send(amqp.ConfirmSelect())
_BIG = bytes(range(256)) * 1000
_AGAIN = (a.agreed(), a.send(amqp.ChannelOpen()))


def _refused(**properties: object) -> tuple[Step, ...]:
    made = amqp.BasicProperties(**properties)  # type: ignore[arg-type]
    return a.publish("q", b"", properties=made, answers=1), *_AGAIN


def _counted(queue: str) -> tuple[Step, Send]:
    return a.quiet(queue), a.count(queue)


SCENARIOS = (
    scenario(
        "content arrives as it was sent",
        a.queue("q"),
        a.publish("q", b"all properties", properties=_PROPERTIES),
        a.publish("q", b""),
        a.publish("q", b"", properties=amqp.BasicProperties(headers=Table())),
        a.publish("q", _BIG),
        a.consume("q", "t"),
        a.receive(4),
    ),
    scenario(
        "bodies are cut to the receiver's frame-max",
        Connect("C", frame_max=4096),
        On("C", 1).queue("q"),
        a.publish("q", _BIG),
        a.quiet("q"),
        On("C", 1).raw(
            content_frames(1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), _BIG[:9000], 4096)
        ),
        On("C", 1).consume("q", "t"),
        On("C", 1).receive(2),
    ),
    scenario("publish to no exchange", a.publish("", b"x", exchange="nope", answers=1)),
    scenario("publish, immediate", a.publish("q", b"x", immediate=True, answers=1)),
    scenario(
        "publish, user_id of somebody else",
        a.queue("q"),
        *_refused(user_id="root"),
        a.publish("q", b"1", properties=amqp.BasicProperties(user_id="guest")),
        *_counted("q"),
    ),
    scenario(
        "publish, properties that are none",
        *(
            step
            for text in ("soon", "", "10s", "-1", "1.5", "315360000001", "+ 5")
            for step in _refused(expiration=text)
        ),
        *_refused(delivery_mode=0),
        *_refused(delivery_mode=3),
        a.queue("q"),
        a.publish("q", b"1", properties=amqp.BasicProperties(expiration="+60000", priority=255)),
        *_counted("q"),
    ),
    scenario(
        "mandatory",
        a.publish("nope", b"back again", properties=_PROPERTIES, mandatory=True),
        a.receive(1),
        a.publish("nope", b"gone"),
        a.publish("nope", _BIG, exchange="amq.topic", mandatory=True),
        a.receive(1),
        a.queue("q"),
        a.publish("q", b"kept", mandatory=True),
        *_counted("q"),
    ),
    scenario(
        "confirms",
        a.queue("q"),
        a.queue("r", durable=True),
        a.bind("q", "amq.fanout"),
        a.bind("r", "amq.fanout"),
        _SELECT,
        *(a.publish("q", b"%d" % number) for number in range(10)),
        a.publish("", b"both", exchange="amq.fanout"),
        a.publish("r", b"kept", properties=amqp.BasicProperties(delivery_mode=2)),
        a.publish("nope", b"dropped"),
        a.confirmed(13),
        a.count("q"),
        a.count("r"),
    ),
    scenario(
        "confirms count from the select on",
        a.queue("q"),
        a.publish("q", b"not counted"),
        _SELECT,
        a.publish("q", b"counted"),
        a.confirmed(1),
        _SELECT,
        a.publish("q", b"still counted"),
        a.confirmed(2),
        a2.publish("q", b"other channel"),
        a.send(amqp.ConfirmSelect(no_wait=True)),
    ),
    scenario(
        "a return comes before its confirm",
        _SELECT,
        a.publish("nope", b"1", mandatory=True),
        a.receive(1),
        a.confirmed(1),
        a.publish("nope", b"2", mandatory=True),
        a.receive(1),
        a.confirmed(2),
        confirms_in_place=True,
    ),
    scenario(
        "confirms of messages that are consumed at once",
        a.queue("q"),
        a.consume("q", "t", no_ack=True),
        b.send(amqp.ConfirmSelect()),
        *(b.publish("q", b"%d" % number) for number in range(5)),
        a.receive(5),
        b.confirmed(5),
    ),
    scenario(
        "a publish that fails is not counted",
        a.queue("q"),
        _SELECT,
        a.publish("q", b"1"),
        a.confirmed(1),
        a.publish("", b"2", exchange="nope", answers=1),
        a.publish("q", b"3"),
        *_AGAIN,
        a.count("q"),
        _SELECT,
    ),
)

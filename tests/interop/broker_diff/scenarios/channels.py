"""Channels: opening, closing, errors of the framing."""

from __future__ import annotations

from amqpgate.protocol.frames import body_frames, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from ..steps import Connect, On, a, a2, b, scenario

_OPEN = amqp.ChannelOpen()
_CLOSE = amqp.ChannelClose(200, "done")
_PUBLISH = method_frame(1, amqp.BasicPublish(routing_key="q"))


def _header(size: int, class_id: int = 60) -> bytes:
    data = encode_header(ContentHeader(60, size, amqp.BasicProperties()))
    return encode_frame(2, 1, class_id.to_bytes(2, "big") + data[2:])


SCENARIOS = (
    scenario("open, close, open again", a.send(_CLOSE), a.send(_OPEN), a.count("nope"), a.agreed()),
    scenario("open twice", a.send(_OPEN)),
    scenario("use before open", Connect("C"), On("C", 0).raw(method_frame(5, amqp.BasicQos()), answers=1)),
    scenario(
        "more channels than agreed",
        Connect("C", channel_max=2),
        *(On("C", number).send(_OPEN) for number in (1, 2, 3)),
    ),
    scenario("flow on", a.send(amqp.ChannelFlow(active=True))),
    scenario("flow off", a.send(amqp.ChannelFlow(active=False))),
    scenario("access.request", a.send(amqp.AccessRequest("/data", False, True, True, True, True))),
    scenario(
        "after an error methods are dropped until close-ok",
        a.queue("q"),
        a.send(amqp.QueueDeclare(queue="nope", passive=True)),
        a.publish("q", b"dropped"),
        a.send(amqp.BasicGet(queue="q"), answers=0),
        a.agreed(),
        a.send(_OPEN),
        a.get("q"),
    ),
    scenario(
        "an error on one channel leaves the other alone",
        a.queue("q"),
        a2.send(amqp.QueueDeclare(queue="nope", passive=True)),
        a.publish("q", b"1"),
        a.quiet("q"),
        a.get("q"),
        a2.agreed(),
        a2.send(_OPEN),
        a2.get("q"),
    ),
    scenario(
        "close by both at once",
        a.raw(
            method_frame(1, amqp.QueueDeclare(queue="nope", passive=True)) + method_frame(1, _CLOSE),
            answers=2,
        ),
        a.agreed(),
        a.send(_OPEN),
    ),
    scenario("header that nothing announced", a.raw(_header(0), answers=1)),
    scenario("body that nothing announced", a.raw(encode_frame(3, 1, b"x"), answers=1)),
    scenario("method where the header is due", a.raw(_PUBLISH + method_frame(1, amqp.BasicQos()), answers=1)),
    scenario("header of another class", a.raw(_PUBLISH + _header(0, 50), answers=1)),
    scenario("header where a body is due", a.raw(_PUBLISH + _header(3) + _header(3), answers=1)),
    scenario("heartbeat on a channel", a.raw(encode_frame(8, 1, b""), answers=1)),
    scenario("method of the broker", a.send(amqp.BasicGetEmpty(), answers=1)),
    scenario(
        "method with too few arguments",
        a.raw(encode_frame(1, 1, b"\x00\x32\x00\x0a\x00"), answers=1),
    ),
    scenario(
        "content of two channels interleaved",
        a.queue("q"),
        a2.send(amqp.BasicQos()),
        a.raw(_PUBLISH + _header(6) + body_frames(1, b"one")[0]),
        a2.raw(content_frames(2, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), b"two")),
        a2.quiet("q"),
        b.get("q"),
        a.raw(body_frames(1, b"...")[0]),
        a.quiet("q"),
        b.get("q"),
    ),
)

"""From the protocol header to the end of a connection."""

from __future__ import annotations

from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp

from ..steps import Close, Connect, Dial, Ended, HangUp, On, a, b, scenario

_TELLS = {"authentication_failure_close": True}
_c, _d, _e = (On(client, 0) for client in "CDE")


def _start_ok(mechanism: str, response: bytes) -> bytes:
    return method_frame(0, amqp.ConnectionStartOk(mechanism=mechanism, response=response, locale="en_US"))


SCENARIOS = (
    scenario("connect with PLAIN", Connect("C"), Close("C")),
    scenario("connect with AMQPLAIN", Connect("C", mechanism="AMQPLAIN"), Close("C")),
    scenario("wrong password", Connect("C", password="nope", capabilities=_TELLS)),
    scenario(
        "wrong password, AMQPLAIN", Connect("C", password="x", mechanism="AMQPLAIN", capabilities=_TELLS)
    ),
    scenario("unknown user", Connect("C", user="nobody", capabilities=_TELLS)),
    scenario("unknown vhost", Connect("C", vhost="no such vhost")),
    scenario(
        "logins that are hung up on without a word",
        *(Dial(client) for client in "CDE"),
        *(client.raw(amqp.PROTOCOL_HEADER, answers=1) for client in (_c, _d, _e)),
        _c.raw(_start_ok("NO-SUCH-MECHANISM", b"")),
        _d.raw(_start_ok("PLAIN", plain_response("guest", "nope"))),
        _e.raw(_start_ok("PLAIN", b"garbage")),
        *(Ended(client) for client in "CDE"),
    ),
    scenario("header of 0-9", Dial("C"), _c.raw(b"AMQP\x01\x01\x00\x09", answers=1)),
    scenario("header of nothing", Dial("C"), _c.raw(b"AMQP\x01\x01\x00\x0a"), Ended("C")),
    scenario("header of another protocol", Dial("C"), _c.raw(b"GET / HT"), Ended("C")),
    scenario(
        "update-secret",
        Connect("C"),
        _c.send(amqp.ConnectionUpdateSecret(b"new", "expired")),
    ),
    scenario(
        "methods that channel 0 does not take any more",
        Connect("C"),
        _c.send(amqp.ConnectionTuneOk(10, 4096, 0), answers=1),
        Connect("D"),
        _d.send(amqp.ConnectionOpen("/"), answers=1),
        Connect("E"),
        _e.send(amqp.BasicQos(), answers=1),
    ),
    scenario(
        "close with consumers and unacknowledged messages",
        a.queue("q"),
        a.publish("q", b"1"),
        a.consume("q", "t"),
        a.receive(1),
        Close("A"),
        b.counts("q", 1),
        b.get("q"),
    ),
    scenario(
        "what comes after connection.close is dropped",
        Connect("C"),
        _c.raw(
            method_frame(0, amqp.ConnectionClose(200, "bye"))
            + method_frame(1, amqp.ChannelOpen())
            + encode_frame(7, 0, b""),
            answers=1,
        ),
        # RabbitMQ would answer a second close, this broker has hung up by then.
        HangUp("C"),
    ),
    scenario("frame of an unknown type", Connect("C"), _c.raw(encode_frame(7, 0, b"abc"), answers=1)),
    scenario("frame without its end", Connect("C"), _c.raw(b"\x01\x00\x00\x00\x00\x00\x00\x00", answers=1)),
    scenario(
        "frame above frame-max",
        Connect("C", frame_max=4096),
        _c.raw(encode_frame(3, 1, b"x" * 5000), answers=1),
    ),
    scenario("method frame without a method", Connect("C"), _c.raw(encode_frame(1, 0, b"ab"), answers=1)),
)

"""basic.get, ack, nack, reject, recover."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp

from ..steps import On, Step, a, a2, b, scenario


def _filled(*bodies: bytes) -> tuple[Step, ...]:
    return a.queue("q"), *(a.publish("q", body) for body in bodies), a.quiet("q")


def _take(on: On, count: int) -> tuple[Step, ...]:
    return (on.get("q", no_ack=False),) * count


_FIVE = _filled(b"1", b"2", b"3", b"4", b"5")
_LEFT = (a.quiet("q"), *(a.get("q"),) * 6)

SCENARIOS = (
    scenario("get", *_filled(b"1", b"", b"3"), a.get("q"), *_take(a, 3), a.ack(2), a.ack(3), a.count("q")),
    scenario("get from no queue", a.get("nope")),
    scenario("ack", *_FIVE, *_take(a, 4), a.ack(2), a.ack(4), *_take(a, 2), a.count("q")),
    scenario("ack, multiple", *_FIVE, *_take(a, 4), a.ack(3, multiple=True), a.ack(4), a.ack(4, answers=1)),
    scenario(
        "ack, all", *_FIVE, *_take(a, 4), a.ack(0, multiple=True), a.ack(0, multiple=True), a.count("q")
    ),
    scenario("ack of nothing", a.ack(1, answers=1)),
    scenario("ack of tag 0", *_FIVE, *_take(a, 1), a.ack(0, answers=1)),
    scenario("ack twice", *_FIVE, *_take(a, 1), a.ack(1), a.ack(1, answers=1)),
    scenario("ack, multiple, of a tag to come", *_FIVE, *_take(a, 2), a.ack(9, multiple=True, answers=1)),
    scenario("ack, multiple, of an old tag", *_FIVE, *_take(a, 2), a.ack(1), a.ack(1, True, answers=1)),
    scenario("ack of another channel's tag", *_FIVE, *_take(a, 1), a2.ack(1, answers=1)),
    scenario("nack of nothing", a.nack(5, answers=1)),
    scenario("reject of nothing", a.send(amqp.BasicReject(5), answers=1)),
    scenario("nack, requeue", *_FIVE, *_take(a, 3), a.nack(2), a.nack(1), *_LEFT),
    scenario("nack, requeue, multiple", *_FIVE, *_take(a, 4), a.nack(3, multiple=True), *_LEFT),
    scenario("nack, requeue, all", *_FIVE, *_take(a, 5), a.nack(0, multiple=True), *_LEFT),
    scenario("nack, drop", *_FIVE, *_take(a, 3), a.nack(2, multiple=True, requeue=False), *_LEFT),
    scenario(
        "reject",
        *_FIVE,
        *_take(a, 3),
        a.send(amqp.BasicReject(1, True)),
        a.send(amqp.BasicReject(2, False)),
        *_LEFT,
        a.send(amqp.BasicReject(1, True), answers=1),
    ),
    scenario("recover", *_FIVE, *_take(a, 3), a.send(amqp.BasicRecover(True)), *_LEFT),
    scenario("recover-async", *_FIVE, *_take(a, 3), a.send(amqp.BasicRecoverAsync(True)), *_LEFT),
    scenario("recover of nothing", a.send(amqp.BasicRecover(True))),
    scenario("recover without requeue", a.send(amqp.BasicRecover(False))),
    scenario("recover-async without requeue", a.send(amqp.BasicRecoverAsync(False), answers=1)),
    scenario(
        "recover to a consumer",
        *_filled(b"1", b"2"),
        a.consume("q", "t"),
        a.receive(2),
        a.send(amqp.BasicRecover(True)),
        a.receive(2),
        a.ack(4),
        a.ack(1, answers=1),
    ),
    scenario(
        "requeued to the end of the line of consumers",
        *_filled(),
        a.consume("q", "s"),
        b.consume("q", "t"),
        a2.publish("q", b"1"),
        a.receive(1),
        a.nack(1),
        b.receive(1),
        b.nack(1),
        a.receive(1),
        a.ack(2),
    ),
)

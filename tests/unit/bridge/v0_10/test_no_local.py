"""Queues that do not get what their own connection publishes."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10 import no_local as rules
from amqpgate.bridge.v0_10.no_local import PUBLISHER_HEADER, NoLocal
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.types import Map, Value
from tests.unit.bridge.v0_10.lab import Lab, broker_state

NO_LOCAL = Map(((b"no-local", Value(0x95, b"true")),))
TWO = 2


def declare(*, exclusive: bool) -> amqp10.QueueDeclare:
    return amqp10.QueueDeclare(queue=b"q", exclusive=exclusive, auto_delete=True, arguments=NO_LOCAL)


def subscribe(lab: Lab, *, exclusive: bool = False, accept_mode: int = 0) -> None:
    lab.do(
        amqp10.MessageSubscribe(
            queue=b"q", destination=b"d", accept_mode=accept_mode, acquire_mode=0, exclusive=exclusive
        )
    )
    lab.do(amqp10.MessageSetFlowMode(destination=b"d", flow_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))


def bodies(lab: Lab) -> list[bytes]:
    return [one.body for one in lab.heard if isinstance(one.command, amqp10.MessageTransfer)]


@pytest.mark.parametrize("flushes", [True, False])
def test_only_what_others_publish_is_delivered(flushes: bool) -> None:
    state = broker_state()
    lab, other = Lab(state).open().attach(), Lab(state).open().attach(0, b"foreign")
    lab.do(declare(exclusive=True))
    lab.do(amqp10.ExchangeBind(queue=b"q", exchange=b"amq.fanout"))
    lab.attach(1, b"second session")
    for number, who in enumerate((lab, other, lab, other)):
        who.transfer(b"%d" % number, exchange=b"amq.fanout")
    lab.transfer(b"4", b"q", channel=1)
    subscribe(lab)
    # What is not for it costs no credit.
    flow = amqp10.MessageFlow(destination=b"d", unit=0, value=3)
    if flushes:
        lab.say(flow, amqp10.MessageFlush(destination=b"d"))
    else:
        lab.do(flow)
    assert bodies(lab) == [b"1", b"3"]
    # Nothing of it is left.
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 0


def test_an_exclusive_subscription_has_it_too() -> None:
    state = broker_state()
    lab, other = Lab(state).open().attach(), Lab(state).open().attach(0, b"foreign")
    lab.do(declare(exclusive=False))
    subscribe(lab, exclusive=True)
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=3))
    lab.transfer(b"mine", b"q")
    other.transfer(b"theirs", b"q")
    lab.settle()
    assert bodies(lab) == [b"theirs"]


def test_a_queue_that_others_may_have_gets_all() -> None:
    lab = Lab().open().attach()
    lab.do(declare(exclusive=False))
    subscribe(lab)
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=3))
    lab.transfer(b"mine", b"q")
    assert bodies(lab) == [b"mine"]


def test_nobody_who_speaks_0_10_sees_the_mark() -> None:
    state = broker_state()
    lab, other = Lab(state).open().attach(), Lab(state).open().attach(0, b"foreign")
    lab.do(declare(exclusive=True))
    other.do(amqp10.QueueDeclare(queue=b"q2"))
    lab.transfer(b"1", b"q2")
    other.do(amqp10.MessageSubscribe(queue=b"q2", destination=b"d", accept_mode=0, acquire_mode=0))
    other.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    other.do(amqp10.MessageFlow(destination=b"d", unit=0, value=1))
    [transfer] = [one for one in other.heard if one.body]
    assert [type(struct) for struct in transfer.structs] == [amqp10.DeliveryProperties]


def test_nothing_is_marked_before_it_is_of_use() -> None:
    local = NoLocal("me")
    plain = BasicProperties(headers=Table.of({"a": 1}))
    assert local.marked(plain) is plain
    local.declared("q", is_exclusive=True)
    assert local.marked(plain).headers == Table.of({"a": 1, PUBLISHER_HEADER: "me"})
    assert local.marked(BasicProperties()).headers == Table.of({PUBLISHER_HEADER: "me"})


def test_marks_are_ones_own() -> None:
    mine, other = NoLocal(), NoLocal()
    for local in (mine, other):
        local.declared("q", is_exclusive=True)
    message = encode_header(ContentHeader(60, 0, mine.marked(BasicProperties())))
    assert mine.excludes("q", message, is_exclusive=False)
    assert not mine.excludes("other", message, is_exclusive=False)
    assert not other.excludes("q", message, is_exclusive=False)
    mine.deleted("q")
    assert not mine.excludes("q", message, is_exclusive=False)


def test_queues_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_QUEUES", TWO)
    local = NoLocal()
    for name in ("a", "b", "a"):
        local.declared(name, is_exclusive=True)
    with pytest.raises(ProtocolViolation) as caught:
        local.declared("c", is_exclusive=True)
    assert caught.value.code == 506

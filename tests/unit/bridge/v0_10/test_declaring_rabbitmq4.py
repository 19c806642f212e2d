"""Declarations, answered as RabbitMQ 4 does and the embedded broker does not: one answer after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from amqpgate.bridge.v0_10.channels import BridgedChannel
from amqpgate.bridge.v0_10.declaring import Declares
from amqpgate.bridge.v0_10.link import BrokerLink, ClientOptions
from amqpgate.bridge.v0_10.steps import Answer, Call, Steps
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.bridge.v0_10.topology import KnownQueue, KnownTopology
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.types import Map, Value

QUORUM = Map(((b"x-queue-type", Value(0x95, b"quorum")),))
THERE = amqp.QueueDeclareOk("q", 0, 0)
GONE = amqp.ChannelClose(404, "NOT_FOUND - no queue 'q' in vhost '/'", 50, 10)
PROBE = amqp.QueueDeclare(queue="q", durable=True, arguments=Table.of({"x-queue-type": "classic"}))


def inequivalent(what: str) -> amqp.ChannelClose:
    return amqp.ChannelClose(406, f"PRECONDITION_FAILED - inequivalent arg '{what}' for queue 'q'", 50, 10)


@pytest.fixture
def declares() -> Declares:
    link = BrokerLink(ClientOptions(), KnownTopology())
    session = cast("AttachedSession", None)
    return Declares(link, object(), Subscriptions(session, cast("BridgedChannel", None), link))


def asked(steps: Steps, answers: Sequence[Method]) -> list[Method]:
    """What is asked, where these are the answers."""
    said: list[Method] = []
    call = next(steps)
    for answer in answers:
        assert isinstance(call, Call)
        said.append(call.method)
        try:
            call = steps.send(Answer(answer))
        except StopIteration:
            assert answer is answers[-1]
            return said
    raise AssertionError(f"one more was asked: {call}")


def test_a_queue_that_goes_meanwhile_is_declared_again(declares: Declares) -> None:
    """An exclusive one of a session that has just ended: the broker deletes it while this one begins."""
    steps = declares.queue_declare(amqp10.QueueDeclare(queue=b"q", exclusive=True))
    declare, passive, again = asked(steps, [inequivalent("exclusive"), GONE, THERE])
    assert isinstance(passive, amqp.QueueDeclare)
    assert passive.passive
    assert again == declare
    assert declares.topology.is_owner("q", declares.owner)


@pytest.mark.parametrize("condition", ["if_unused", "if_empty"])
def test_conditions_are_not_asked_of_a_queue_that_is_not_classic(declares: Declares, condition: str) -> None:
    """RabbitMQ would end the connection."""
    delete = amqp10.QueueDelete(queue=b"q", **{condition: True})
    with pytest.raises(ProtocolViolation, match="NOT_IMPLEMENTED"):
        asked(declares.queue_delete(delete), [THERE, inequivalent("x-queue-type")])
    # What passed here is known: nothing more is asked.
    known = KnownQueue(True, False, False, None, QUORUM)
    declares.topology.put_queue("q", known)
    with pytest.raises(ProtocolViolation, match="NOT_IMPLEMENTED"):
        asked(declares.queue_delete(delete), [THERE])


@pytest.mark.parametrize("answer", [THERE, inequivalent("durable"), amqp.ChannelClose(403, "no", 50, 10)])
def test_conditions_are_asked_of_others(declares: Declares, answer: Method) -> None:
    delete = amqp10.QueueDelete(queue=b"q", if_empty=True)
    said = asked(declares.queue_delete(delete), [THERE, answer, amqp.QueueDeleteOk(0)])
    assert said[1:] == [PROBE, amqp.QueueDelete(queue="q", if_empty=True)]


def test_a_type_that_the_broker_does_not_know_is_404(declares: Declares) -> None:
    declare = amqp10.ExchangeDeclare(exchange=b"e", type=b"x-nonsense")
    close = amqp.ChannelClose(406, "PRECONDITION_FAILED - unknown exchange type 'x-nonsense'", 40, 10)
    with pytest.raises(ProtocolViolation, match="NOT_FOUND"):
        asked(declares.exchange_declare(declare), [close])

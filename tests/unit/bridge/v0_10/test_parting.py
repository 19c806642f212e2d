"""What a queue loses with a subscription or a session, with the embedded broker."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from tests.support.talk_0_10 import command
from tests.unit.bridge.v0_10.lab import Lab, broker_state

MINE, OTHER = 0, 1


@pytest.fixture
def lab() -> Lab:
    """Two sessions, and an auto-delete queue with three messages."""
    lab = Lab().open().attach().attach(OTHER, b"other")
    lab.do(amqp10.QueueDeclare(queue=b"q", auto_delete=True, alternate_exchange=b"amq.fanout"))
    for body in (b"1", b"2", b"3"):
        lab.transfer(body, b"q")
    return lab


def subscribe(lab: Lab, channel: int, name: bytes = b"d") -> None:
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=name, accept_mode=0, acquire_mode=0), channel)


def flow(lab: Lab, channel: int, messages: int, name: bytes = b"d") -> list[bytes]:
    before = len(lab.heard)
    lab.do(amqp10.MessageSetFlowMode(destination=name, flow_mode=0), channel)
    lab.do(amqp10.MessageFlow(destination=name, unit=1, value=0xFFFFFFFF), channel)
    lab.do(amqp10.MessageFlow(destination=name, unit=0, value=messages), channel)
    return [one.body for one in lab.heard[before:] if isinstance(one.command, amqp10.MessageTransfer)]


def detach(lab: Lab, channel: int, name: bytes) -> None:
    lab.asked.clear()
    lab.say(amqp10.SessionDetach(name=name), channel=channel)


def is_there(lab: Lab, channel: int = OTHER) -> bool:
    result = lab.query(amqp10.QueueQuery(queue=b"q"), channel)
    assert isinstance(result, amqp10.QueueQueryResult)
    return result.queue is not None


@pytest.mark.parametrize("detaches", [True, False])
def test_a_subscription_without_credit_keeps_the_queue(lab: Lab, detaches: bool) -> None:
    subscribe(lab, OTHER)
    subscribe(lab, MINE)
    assert flow(lab, MINE, 1) == [b"1"]
    if detaches:
        detach(lab, MINE, b"session")
    else:
        lab.asked.clear()
        lab.do(amqp10.MessageCancel(destination=b"d"))
    names = lab.names()
    assert names.index("basic.consume") < names.index("channel.close" if detaches else "basic.cancel")
    assert is_there(lab)
    # It has got nothing before it had credit, and misses nothing.
    assert flow(lab, OTHER, 3) == ([b"1", b"2", b"3"] if detaches else [b"2", b"3"])


def test_a_subscription_of_the_same_session_keeps_it_too(lab: Lab) -> None:
    subscribe(lab, MINE)
    subscribe(lab, MINE, b"e")
    flow(lab, MINE, 1)
    lab.do(amqp10.MessageCancel(destination=b"d"))
    assert is_there(lab)
    assert flow(lab, MINE, 2, b"e") == [b"2", b"3"]


def test_nobody_gets_a_consumer_where_there_is_another(lab: Lab) -> None:
    lab.attach(2, b"third")
    for channel in (MINE, OTHER, 2):
        subscribe(lab, channel)
    flow(lab, MINE, 1)
    flow(lab, 2, 1)
    detach(lab, MINE, b"session")
    assert "basic.consume" not in lab.names()
    assert is_there(lab)


def test_a_session_that_is_ended_leaves_as_well(lab: Lab) -> None:
    subscribe(lab, OTHER)
    subscribe(lab, MINE)
    flow(lab, MINE, 1)
    lab.do(amqp10.MessageCancel(destination=b"nope"))
    assert is_there(lab)
    assert flow(lab, OTHER, 3) == [b"1", b"2", b"3"]


def test_what_the_broker_has_ended_is_asked_for_nothing(lab: Lab) -> None:
    subscribe(lab, OTHER)
    subscribe(lab, MINE)
    flow(lab, MINE, 1)
    [main] = [channel for channel, method in lab.asked if isinstance(method, amqp.BasicConsume)]
    lab.asked.clear()
    lab.tell(amqp.ChannelClose(541, "its own fault"), main)
    assert not any(name.startswith("basic.") for name in lab.names())


def test_sessions_that_end_together_wait_for_nobody(lab: Lab) -> None:
    subscribe(lab, OTHER)
    subscribe(lab, MINE)
    flow(lab, MINE, 1)
    lab.say(amqp10.ConnectionClose(reply_code=200))
    assert lab.names()[-1] == "connection.close"
    assert isinstance(lab.heard[-1].control, amqp10.ConnectionCloseOk)


def test_two_that_wait_for_each_other_do_not_for_ever(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"p", auto_delete=True))
    p = amqp10.MessageSubscribe(queue=b"p", destination=b"p", accept_mode=0, acquire_mode=0)
    subscribe(lab, MINE)
    subscribe(lab, OTHER, b"e")
    lab.do(p, MINE)
    lab.do(p, OTHER)
    flow(lab, MINE, 1)
    flow(lab, OTHER, 1, b"p")
    before = len(lab.heard)
    # In one read: neither session does anything else first.
    lab.give(
        command(amqp10.MessageCancel(destination=b"d"), sync=True, channel=MINE)
        + command(amqp10.MessageCancel(destination=b"p"), sync=True, channel=OTHER)
    )
    completed = {
        one.channel for one in lab.heard[before:] if isinstance(one.control, amqp10.SessionCompleted)
    }
    assert completed == {MINE, OTHER}


def rejected(lab: Lab) -> int:
    return sum(isinstance(method, amqp.BasicReject) and not method.requeue for _, method in lab.asked)


def test_what_is_left_goes_to_the_alternate_exchange_before_the_last_one_ends(lab: Lab) -> None:
    subscribe(lab, MINE)
    flow(lab, MINE, 1)
    detach(lab, MINE, b"session")
    assert rejected(lab) == 3
    assert not is_there(lab)


def test_what_has_another_consumer_is_not_emptied() -> None:
    state = broker_state()
    lab, foreign = Lab(state).open().attach(), Lab(state).open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q", auto_delete=True, alternate_exchange=b"amq.fanout"))
    for one in (lab, foreign):
        subscribe(one, MINE)
        flow(one, MINE, 1)
    lab.transfer(b"1", b"q")
    detach(lab, MINE, b"session")
    assert rejected(lab) == 0
    assert is_there(foreign, MINE)


@pytest.mark.parametrize("consumes", [True, False])
def test_a_queue_of_the_session_is_emptied_before_it_goes(consumes: bool) -> None:
    lab = Lab().open().attach()
    lab.do(
        amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=True, alternate_exchange=b"amq.fanout")
    )
    lab.transfer(b"1", b"q")
    lab.transfer(b"2", b"q")
    if consumes:
        subscribe(lab, MINE)
        flow(lab, MINE, 1)
    detach(lab, MINE, b"session")
    assert rejected(lab) == 2
    assert lab.names().count("queue.delete") == 1

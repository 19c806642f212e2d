"""What RabbitMQ says of declarations that it refuses, in the words of 3.10 and 4.3, and what that means."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.gets import takes_gets
from amqpgate.bridge.v0_10.steps import Answer, Call
from amqpgate.bridge.v0_10.topology import KnownQueue, KnownTopology
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.types import Map, Value

_OF = "PRECONDITION_FAILED - inequivalent arg '%s' for queue 'q' in vhost '/': %s"
SINGLE = "x-single-active-consumer"
NONE = _OF % (SINGLE, "received the value 'asks' of type 'longstr' but current is none")
ACTIVE = _OF % (SINGLE, "received 'asks' but current is 'true'")
EXCHANGE = _OF % (
    "x-dead-letter-exchange",
    "received none but current is the value 'a 'b' of type 'longstr'",
)
LENGTH = _OF % ("x-max-length", "received none but current is the value '10' of type 'signedint'")


def outcome(*replies: Method | tuple[int, str]) -> tuple[bool | None, list[dict[str, object]]]:
    """What comes of these replies; the arguments of each question."""
    steps = takes_gets("q", KnownTopology())
    asked = []
    call = next(steps)
    for reply in replies:
        assert isinstance(call, Call)
        assert isinstance(call.method, amqp.QueueDeclare)
        assert call.method.durable
        assert not call.method.passive
        asked.append({name: call.method.arguments.get(name) for name in dict(call.method.arguments)})
        if isinstance(reply, tuple):
            reply = amqp.ChannelClose(*reply, 50, 10)
        try:
            call = steps.send(Answer(reply))
        except StopIteration as stop:
            assert len(asked) == len(replies)
            return stop.value, asked
    raise AssertionError("it asks more")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ((406, NONE), True),
        ((406, ACTIVE), False),
        ((406, _OF % (SINGLE, "received 'asks' but current is 'false'")), True),
        ((406, _OF % ("durable", "received 'true' but current is 'false'")), True),
        ((406, _OF % ("auto_delete", "received 'false' but current is 'true'")), True),
        ((404, "NOT_FOUND - no queue 'q' in vhost '/'"), True),
        ((405, "RESOURCE_LOCKED"), True),
        (amqp.QueueDeclareOk("q", 0, 0), True),
        ((403, "ACCESS_REFUSED"), None),
        ((406, "PRECONDITION_FAILED - a limit"), None),
        ((406, NONE[:150]), None),
        ((406, _OF % ("x-other", "received none but current is the value '1.5' of type 'double'")), None),
    ],
)
def test_one_answer(reply: Method | tuple[int, str], expected: bool | None) -> None:
    assert outcome(reply)[0] is expected


def test_arguments_that_come_first_are_learned() -> None:
    found, asked = outcome((406, EXCHANGE), (406, LENGTH), (406, ACTIVE))
    assert found is False
    assert [list(one)[1:] for one in asked] == [
        [],
        ["x-dead-letter-exchange"],
        ["x-dead-letter-exchange", "x-max-length"],
    ]
    assert asked[-1]["x-dead-letter-exchange"] == "a 'b"
    assert asked[-1]["x-max-length"] == 10


def test_a_broker_that_does_not_take_what_it_said_is_asked_no_more() -> None:
    assert outcome((406, LENGTH), (406, LENGTH))[0] is None


def test_it_ends() -> None:
    """Whatever a broker says."""
    replies = [(406, LENGTH.replace("x-max-length", f"x-{number}")) for number in range(12)]
    found, asked = outcome(*replies)
    assert found is None
    assert len(asked) == 12


@pytest.mark.parametrize("value", [None, False, True])
def test_what_was_declared_here_is_known(value: bool | None) -> None:
    topology = KnownTopology()
    entries = () if value is None else ((SINGLE.encode(), Value(TypeCode.BOOLEAN, value)),)
    topology.put_queue("q", KnownQueue(True, False, False, None, Map(entries)))
    with pytest.raises(StopIteration) as done:
        next(takes_gets("q", topology))
    assert done.value.value is (value is not True)


def test_it_is_asked_once_until_it_may_be_another_queue() -> None:
    topology = KnownTopology()
    steps = takes_gets("q", topology)
    next(steps)
    with pytest.raises(StopIteration):
        steps.send(Answer(amqp.ChannelClose(406, ACTIVE, 50, 10)))
    with pytest.raises(StopIteration) as done:
        next(takes_gets("q", topology))
    assert done.value.value is False
    topology.drop_queue("q")
    assert isinstance(next(takes_gets("q", topology)), Call)

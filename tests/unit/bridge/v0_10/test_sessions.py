"""How sessions begin and end, and what becomes of their channels."""

from __future__ import annotations

import pytest
from attrs import evolve

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.talk_0_10 import B, b, command, e, frame
from tests.unit.bridge.v0_10.lab import NAME, START_OK, Lab, broker_state
from tests.unit.gateway.memory import in_memory, uncollected

__all__ = ["uncollected"]

DETACH = amqp10.SessionDetach(name=NAME)


@pytest.fixture
def lab() -> Lab:
    return Lab().open().attach()


def test_session_that_does_nothing_has_no_channels(lab: Lab) -> None:
    lab.do(amqp10.ExecutionSync())
    lab.say(DETACH)
    assert lab.asked == []


def test_channels_are_opened_when_they_are_needed_and_closed_with_the_session(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    assert lab.names() == ["channel.open", "queue.declare"]
    lab.transfer(b"m", b"q")
    assert lab.names()[2:] == ["channel.open", "confirm.select", "basic.publish"]
    lab.do(amqp10.TxSelect())
    assert lab.names()[5:] == ["channel.open", "tx.select"]
    lab.say(DETACH)
    assert lab.names()[7:] == ["channel.close"] * 3
    # Their numbers are free again.
    lab.attach()
    lab.transfer(b"m", b"q")
    assert {channel for channel, _ in lab.asked} == {1, 2, 3}


def test_what_was_asked_before_the_end_is_still_done(lab: Lab) -> None:
    lab.is_live = False
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"m", b"q")
    heard = lab.say(DETACH)
    assert [type(one.control) for one in heard] == [amqp10.SessionDetached]
    lab.is_live = True
    lab.settle()
    assert lab.names()[-1] == "channel.close"
    assert "basic.publish" in lab.names()
    lab.attach()
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 1


def test_two_sessions_have_channels_of_their_own(lab: Lab) -> None:
    lab.attach(1, b"other")
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.do(amqp10.QueueDeclare(queue=b"r"), channel=1)
    lab.say(amqp10.ExchangeDelete(exchange=b"nope"), channel=1)
    assert {channel for channel, _ in lab.asked} == {1, 2}
    lab.do(amqp10.QueueDeclare(queue=b"s"))
    assert lab.completed() == {0, 1}


def test_commands_behind_a_refused_one_are_not_done(lab: Lab) -> None:
    lab.give(
        command(amqp10.QueueDelete(queue=b"nope"))
        + command(amqp10.QueueDeclare(queue=b"q"))
        + command(amqp10.QueueDeclare(queue=b"r"))
    )
    assert [type(one.command or one.control) for one in lab.heard] == [
        amqp10.ExecutionException,
        amqp10.SessionDetach,
    ]
    lab.say(amqp10.SessionDetached(name=NAME))
    lab.attach()
    assert lab.query(amqp10.QueueQuery(queue=b"q")).queue is None


def test_command_id_of_an_exception_is_that_of_the_command(lab: Lab) -> None:
    for _ in range(3):
        lab.say(amqp10.ExecutionSync())
    lab.do(amqp10.QueueDelete(queue=b"nope"))
    [exception] = [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]
    assert exception.command_id == 3
    assert b"nope" in exception.description


def test_broker_that_closes_the_main_channel_ends_the_session(lab: Lab) -> None:
    lab.do(amqp10.TxSelect())
    lab.tell(amqp.ChannelClose(406, "why not", 60, 80), 1)
    [exception] = lab.commands()
    assert exception == amqp10.ExecutionException(error_code=406, description=b"why not")
    assert lab.names()[-1] == "channel.close-ok"


def test_broker_that_closes_an_idle_channel_for_questions_is_asked_again(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.is_live = False
    lab.tell(amqp.ChannelClose(403, "gateway"), 1)
    assert lab.commands() == []
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    assert lab.names()[-2:] == ["channel.close-ok", "channel.open"]


@pytest.mark.parametrize(("code", "expected"), [(311, 506), (403, 403), (405, 405), (406, 406), (999, 541)])
def test_codes_of_refusals(lab: Lab, code: int, expected: int) -> None:
    lab.is_live = False
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.tell(amqp.ChannelOpenOk(), 1)
    lab.tell(amqp.ChannelClose(code, "no"), 1)
    [exception] = lab.commands()
    assert exception.error_code == expected


def test_a_queue_that_is_deleted_before_a_subscription_consumes_from_it(lab: Lab) -> None:
    """As one that is deleted later: the session ends by resource-deleted, not by not-found."""
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d"))
    lab.is_live = False
    for unit in amqp10.CreditUnit:
        lab.do(amqp10.MessageFlow(destination=b"d", unit=unit, value=10))
    for answer in (amqp.ChannelOpenOk(), amqp.BasicQosOk()):
        lab.tell(answer, 2)
    assert lab.names()[-1] == "basic.consume"
    lab.tell(amqp.ChannelClose(404, "NOT_FOUND - no queue 'q'", 60, 20), 2)
    [exception] = lab.commands()
    assert exception.error_code == 408


def test_both_close_at_once(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.is_live = False
    lab.say(DETACH)
    lab.tell(amqp.ChannelClose(404, "too late"), 1)
    assert lab.names()[-2:] == ["channel.close", "channel.close-ok"]
    # The number is the broker's until it answers.
    lab.attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    assert lab.asked[-1] == (2, amqp.ChannelOpen())
    lab.tell(amqp.ChannelCloseOk(), 1)
    lab.attach(1, b"other")
    lab.do(amqp10.QueueDeclare(queue=b"q"), channel=1)
    assert lab.asked[-1] == (1, amqp.ChannelOpen())


def test_answer_that_comes_after_the_end_is_nobodys(lab: Lab) -> None:
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.is_live = False
    lab.do(amqp10.QueueDeclare(queue=b"r"))
    lab.say(amqp10.SessionCompleted(commands=SequenceSet(((5, 9),))))
    assert lab.names()[-1] == "channel.close"
    lab.heard.clear()
    lab.tell(amqp.QueueDeclareOk("r"), 1)
    lab.tell(amqp.ChannelFlow(False), 1)
    assert lab.names()[-1] == "channel.close"
    assert lab.heard == []


def test_frames_for_channels_that_nobody_has_are_dropped(lab: Lab) -> None:
    lab.tell(amqp.BasicAck(1), 77)
    lab.tell(amqp.QueueDeclareOk("q"), 77)
    assert lab.heard == []


def test_violation_of_a_session_ends_it_alone(lab: Lab) -> None:
    lab.attach(1, b"other")
    lab.do(amqp10.QueueDeclare(queue=b"q", exclusive=True, auto_delete=True))
    lab.say(amqp10.SessionCompleted(commands=SequenceSet(((5, 9),))))
    assert [type(one.command or one.control) for one in lab.heard[-2:]] == [
        amqp10.ExecutionException,
        amqp10.SessionDetach,
    ]
    assert lab.names()[-2:] == ["queue.delete", "channel.close"]
    lab.do(amqp10.QueueDeclare(queue=b"r"), channel=1)
    assert lab.completed(1) == {0}


@pytest.mark.parametrize(
    "data",
    [
        frame(B | 4 | b | e, 1, b"\x08\x63\x01\x00\x00\x00"),
        frame(B | 4 | b | e, 1, b"\x08\x01\x01\x00\x01\x00\x05ab"),
        command(amqp10.QueueDeclare(queue=b"q"), [], b"body"),
        frame(B | b | e, 1, command(amqp10.MessageTransfer())[12:]) + frame(4 | b | e, 2, b"\0\0\0\1x"),
    ],
)
def test_malformed_commands_end_their_session(lab: Lab, data: bytes) -> None:
    lab.give(data)
    [exception] = lab.commands()
    assert exception.error_code == 503
    assert "queue.declare" not in lab.names()
    assert "basic.publish" not in lab.names()


def test_session_taken_by_force_is_over() -> None:
    lab = Lab(broker_state()).open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    heard = lab.say(amqp10.SessionAttach(name=NAME, force=True), channel=1)
    assert [(one.channel, type(one.control)) for one in heard][:2] == [
        (0, amqp10.SessionDetached),
        (1, amqp10.SessionAttached),
    ]
    assert lab.names()[-1] == "channel.close"


@pytest.mark.parametrize(
    ("process", "seconds"), [(b"Apache Qpid JMS Client for AMQP 0-9-1/0-10", False), (b"app", True)]
)
def test_jms_clients_get_milliseconds_and_properties_always(process: bytes, seconds: bool) -> None:
    lab = Lab()
    lab.say(
        evolve(START_OK, client_properties=Map(((b"qpid.client_process", Value(TypeCode.STR16, process)),)))
    )
    lab.say(amqp10.ConnectionTuneOk(channel_max=64), amqp10.ConnectionOpen())
    lab.attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"1", structs=[amqp10.DeliveryProperties(routing_key=b"q", timestamp=1_700_000_000)])
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=1))
    [transfer] = [one for one in lab.heard if one.body]
    delivery, *others = transfer.structs
    assert isinstance(delivery, amqp10.DeliveryProperties)
    assert delivery.timestamp == 1_700_000_000 * (1 if seconds else 1000)
    assert others == ([] if seconds else [amqp10.MessageProperties(content_length=1)])


@pytest.mark.parametrize(
    "said",
    [
        amqp10.MessageProperties(message_id=bytes(16)),
        amqp10.MessageProperties(correlation_id=b"c"),
        amqp10.MessageProperties(reply_to=amqp10.ReplyTo(routing_key=b"r")),
        amqp10.MessageProperties(content_type=b"t"),
        amqp10.MessageProperties(content_encoding=b"e"),
        amqp10.MessageProperties(user_id=b"guest"),
        amqp10.MessageProperties(app_id=b"a"),
        amqp10.MessageProperties(application_headers=Map(((b"a", Value(TypeCode.STR16, b"b")),))),
    ],
)
def test_each_property_is_told(said: amqp10.MessageProperties) -> None:
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"1", structs=[amqp10.DeliveryProperties(routing_key=b"q"), said])
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=1))
    [transfer] = [one for one in lab.heard if one.body]
    assert transfer.structs[1] == evolve(said, content_length=1)


#: What a connection and its sessions are made of.
KINDS = ("ClientTranslator", "ClientSession", "BridgedChannel", "Attachments", "ChannelHolders")


def works(lab: Lab) -> None:
    """Subscriptions with and without a consumer, and messages for them."""
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    for name in (b"a", b"b"):
        lab.do(amqp10.MessageSubscribe(queue=b"q", destination=name, accept_mode=0, acquire_mode=0))
        lab.transfer(b"m", b"q")
    lab.do(amqp10.MessageFlow(destination=b"b", unit=0, value=1))


@pytest.mark.usefixtures("uncollected")
def test_a_session_that_is_over_is_no_cycle(lab: Lab) -> None:
    """Its connection goes on. Python may not look for cycles for hours, and memory rises meanwhile."""
    before = in_memory()
    for _ in range(3):
        works(lab)
        lab.say(DETACH)
        lab.attach()
    for _ in range(3):
        works(lab)
        lab.do(amqp10.QueueDelete(queue=b"none"))
        lab.attach()
    assert {kind: in_memory()[kind] - before[kind] for kind in KINDS} == dict.fromkeys(KINDS, 0)


@pytest.mark.usefixtures("uncollected")
def test_a_connection_that_is_over_is_no_cycle() -> None:
    """Whatever its sessions were at."""
    before = in_memory()
    for is_detached in (False, True):
        lab = Lab().open().attach()
        works(lab)
        lab.is_live = False
        lab.do(amqp10.QueueDeclare(queue=b"r"))
        if is_detached:
            lab.say(DETACH)
        lab.translator.peer_ended()
        lab.translator.gateway_ended()
        del lab
    assert {kind: in_memory()[kind] - before[kind] for kind in KINDS} == dict.fromkeys(KINDS, 0)

"""Transfers: published, confirmed, complete; and in what order all of it is done."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10 import client, link
from amqpgate.bridge.v0_10.link import ClientOptions
from amqpgate.broker.greeting import Greeting
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Struct
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.talk_0_10 import B, E, b, command, e, frame
from tests.unit.bridge.v0_10.lab import Lab

TRANSFER = amqp10.MessageTransfer(destination=b"")
KEY = [amqp10.DeliveryProperties(routing_key=b"q")]


def waiting(options: ClientOptions | None = None, queue: bytes = b"q") -> Lab:
    """A queue is there, and a channel to publish on, and the broker is silent from now on."""
    lab = Lab(options=options).open().attach()
    lab.do(amqp10.QueueDeclare(queue=queue))
    lab.transfer(b"first", b"q")
    assert lab.completed() == {0, 1}
    lab.is_live = False
    lab.heard.clear()
    lab.asked.clear()
    return lab


PUB = 2


def exception(lab: Lab) -> amqp10.ExecutionException:
    [found] = [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]
    assert isinstance(lab.heard[-1].control, amqp10.SessionDetach)
    return found


def test_transfer_is_published_whole() -> None:
    lab = waiting()
    lab.give(command(TRANSFER, [amqp10.DeliveryProperties(routing_key=b"q")]))
    assert lab.asked == [(PUB, amqp.BasicPublish(exchange="", routing_key="q"))]


@pytest.mark.parametrize("size", [0, 1, 65523, 65524, 131064, 131065, 400_000])
def test_bodies_arrive_as_they_were(size: int) -> None:
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    body = bytes(at % 251 for at in range(size))
    alone, header = command(TRANSFER), command(TRANSFER, KEY)
    frames = frame(B | b | e, 1, alone[12:]) + frame(b | e | (0 if body else E), 2, header[len(alone) + 12 :])
    for at in range(0, size, 65523):
        flags = E | (b if at == 0 else 0) | (e if at + 65523 >= size else 0)
        frames += frame(flags, 3, body[at : at + 65523])
    lab.give(frames)
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=1))
    [given] = [one for one in lab.heard if isinstance(one.command, amqp10.MessageTransfer)]
    assert given.body == body


def test_transfer_without_a_header_or_a_body() -> None:
    lab = waiting(queue=b"q")
    lab.say(TRANSFER)
    assert lab.asked == [(PUB, amqp.BasicPublish())]
    lab.give(command(TRANSFER, [amqp10.MessageProperties()]))
    assert len(lab.asked) == 2


def test_transfers_are_complete_when_they_are_confirmed_and_in_their_order() -> None:
    lab = waiting()
    for _ in range(4):
        lab.transfer(b"m", b"q")
    assert lab.names() == ["basic.publish"] * 4
    assert lab.completed() == set()
    lab.tell(amqp.BasicAck(3), PUB)
    assert lab.completed() == set()
    lab.tell(amqp.BasicAck(2), PUB)
    assert lab.completed() == {0, 1, 2, 3}
    lab.tell(amqp.BasicAck(5, multiple=True), PUB)
    assert lab.completed() == {0, 1, 2, 3, 4, 5}


def test_only_who_says_that_it_is_explicit_hears_of_acceptance() -> None:
    lab = waiting()
    for mode in (None, 1, 0, 0):
        lab.transfer(b"m", b"q", accept_mode=mode)
    lab.tell(amqp.BasicAck(5, multiple=True), PUB)
    assert lab.commands() == [amqp10.MessageAccept(transfers=SequenceSet(((4, 5),)))]
    assert [type(one.control or one.command) for one in lab.heard][-1] is amqp10.SessionCompleted


def test_what_the_broker_cannot_take_ends_the_session() -> None:
    lab = waiting()
    for _ in range(3):
        lab.transfer(b"m", b"q")
    lab.tell(amqp.BasicNack(3, multiple=True), PUB)
    found = exception(lab)
    assert (found.error_code, found.command_id) == (506, 2)
    assert (found.class_code, found.command_code) == (4, 1)


def test_exchange_that_is_not_there_ends_the_session_at_the_oldest_transfer() -> None:
    lab = waiting()
    lab.transfer(b"m", b"k", exchange=b"nope")
    lab.is_live = True
    lab.settle()
    found = exception(lab)
    assert (found.error_code, found.command_id) == (404, 2)
    assert lab.names().count("channel.close-ok") == 1
    assert lab.names().count("channel.close") == 1


def test_questions_wait_for_confirms_and_transfers_for_answers() -> None:
    lab = waiting()
    lab.transfer(b"m", b"q")
    lab.do(amqp10.QueueDeclare(queue=b"r"))
    lab.transfer(b"m", b"r")
    assert lab.names() == ["basic.publish"]
    lab.tell(amqp.BasicAck(2), PUB)
    assert lab.names() == ["basic.publish", "queue.declare"]
    lab.tell(amqp.QueueDeclareOk("r"), 1)
    assert lab.names() == ["basic.publish", "queue.declare", "basic.publish"]
    assert lab.completed() == {0, 1, 2, 3}


def test_sync_is_a_barrier() -> None:
    lab = waiting()
    lab.transfer(b"m", b"q", sync=False)
    lab.do(amqp10.ExecutionSync())
    assert lab.completed() == set()
    lab.tell(amqp.BasicAck(2), PUB)
    assert lab.completed() == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("structs", "code"),
    [
        ([amqp10.DeliveryProperties(immediate=True)], 540),
        ([amqp10.FragmentProperties(first=True)], 540),
        ([amqp10.FragmentProperties(last=True)], 540),
        ([amqp10.DeliveryProperties(routing_key=b"\xff")], 542),
    ],
)
def test_refusals(structs: list[Struct], code: int) -> None:
    lab = waiting()
    lab.transfer(b"m", structs=structs)
    assert exception(lab).error_code == code
    assert "basic.publish" not in lab.names()


def test_unroutable_is_dropped_unless_an_operator_wants_it_otherwise() -> None:
    lab = waiting()
    lab.transfer(b"m", b"nowhere", accept_mode=0)
    assert not lab.asked[-1][1].mandatory


def test_unroutable_is_rejected_if_an_operator_wants_it() -> None:
    lab = waiting(ClientOptions(reject_unroutable=True))
    lab.is_live = True
    lab.transfer(b"m", b"nowhere", accept_mode=0)
    assert lab.commands() == [
        amqp10.MessageReject(transfers=SequenceSet(((2, 2),)), code=1, text=b"unroutable")
    ]
    assert lab.completed() == {0, 1, 2}
    lab.heard.clear()
    lab.transfer(b"m", b"q", accept_mode=0)
    assert lab.commands() == [amqp10.MessageAccept(transfers=SequenceSet(((3, 3),)))]
    lab.transfer(b"m", b"nowhere", accept_mode=0, structs=[amqp10.DeliveryProperties(True, routing_key=b"n")])
    lab.transfer(b"m", b"nowhere")
    assert not any(method.mandatory for _, method in lab.asked[-2:])


def test_broker_that_stops_is_not_published_to() -> None:
    lab = waiting()
    lab.tell(amqp.ChannelFlow(False), PUB)
    lab.transfer(b"m", b"q")
    assert lab.names() == ["channel.flow-ok"]
    lab.tell(amqp.ChannelFlow(True), PUB)
    assert lab.names() == ["channel.flow-ok", "channel.flow-ok", "basic.publish"]


def test_client_is_not_read_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_QUEUED", 1900)
    lab = waiting()
    lab.do(amqp10.QueueDeclare(queue=b"r"))
    for _ in range(2):
        lab.transfer(b"m", b"q")
        assert lab.translator.wants_bytes
    lab.transfer(b"m", b"q")
    assert not lab.translator.wants_bytes
    lab.is_live = True
    lab.settle()
    assert lab.translator.wants_bytes
    assert lab.completed() == set(range(6))


def test_bytes_that_wait_are_bounded_too() -> None:
    lab = waiting()
    lab.do(amqp10.QueueDeclare(queue=b"r"))
    body = bytes(60_000)
    for _ in range(link.MOST_QUEUED // len(body)):
        lab.transfer(body, b"q")
        assert lab.translator.wants_bytes
    lab.transfer(body, b"q")
    assert not lab.translator.wants_bytes


def test_unfinished_messages_are_bounded_over_all_sessions() -> None:
    lab = Lab(options=ClientOptions(most_body=100_000)).open().attach().attach(1, b"other")
    begun = frame(B | b | e, 1, command(TRANSFER)[12:])
    lab.give(begun + frame(E | b, 3, bytes(60_000)))
    lab.give(command(TRANSFER, [], bytes(60_000), channel=1))
    [found] = [one for one in lab.heard if isinstance(one.command, amqp10.ExecutionException)]
    assert (found.channel, found.command.error_code) == (1, 506)
    # What the other one had is free again.
    lab.say(amqp10.SessionDetach(name=b"session"))
    lab.attach(2, b"third")
    lab.transfer(bytes(60_000), b"q", channel=2)
    assert "basic.publish" in lab.names()


def test_what_is_published_is_kept_no_more() -> None:
    lab = Lab(options=ClientOptions(most_body=100_000)).open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    for _ in range(3):
        lab.transfer(bytes(60_000), b"q")
    assert lab.completed() == set(range(4))


def test_header_that_is_too_large_for_the_broker_ends_the_session() -> None:
    lab = Lab(greeting=Greeting(frame_max=4096)).open().attach()
    headers = Map(((b"h", Value(0x95, b"x" * 5000)),))
    lab.transfer(b"m", structs=[amqp10.MessageProperties(application_headers=headers)])
    assert exception(lab).error_code == 506
    assert "basic.publish" not in lab.names()

"""Clients that say what they like: whatever it is, it is told, or raised as a violation, and nothing else."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from amqpgate.bridge.v0_10 import link
from amqpgate.bridge.v0_10.channels import BridgedChannel, ChannelUse
from amqpgate.bridge.v0_10.frames import CanonicalWriter
from amqpgate.bridge.v0_10.subscriptions import MOST_UNSETTLED
from amqpgate.broker.greeting import Greeting
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.codec import encode_command, encode_header
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.said_0_10 import SHORT, Sent, conversations, sent_by
from tests.support.talk_0_10 import POINT, B, E, b, command, control, e, frame
from tests.unit.bridge.v0_10.lab import START_OK, Lab, broker_state

_FRAME_HEADER = 12


def _bytes_of(sent: Sent) -> bytes:
    if sent.command is None:
        assert sent.control is not None
        return control(sent.control, sent.channel)
    return command(sent.command, sent.structs, sent.body, sync=sent.sync, channel=sent.channel)


@cache
def spoken() -> tuple[tuple[bytes, ...], ...]:
    """What recorded clients said in their sessions, one piece for each control and command."""
    return tuple(
        tuple(
            _bytes_of(sent)
            for sent in sent_by(Role.CLIENT, conversation)
            if sent.command is not None or sent.control.CLASS_CODE != amqp10.ConnectionStart.CLASS_CODE
        )
        for name in (*SHORT, "conformance-tx-dtx")
        for conversation in conversations(name)
    )


def spoilt(piece: bytes, random: Random) -> bytes:
    """A piece with some bytes of another value, most of them behind the frame's header."""
    data = bytearray(piece)
    for _ in range(random.randint(1, 3)):
        first = 0 if random.random() < 0.1 else min(_FRAME_HEADER, len(data) - 1)
        data[random.randrange(first, len(data))] = random.choice((0, 1, 255, random.randrange(256)))
    return bytes(data)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_but_violations_comes_of_it(seed: int) -> None:
    random = Random(seed)
    lab = Lab(broker_state()).open()
    try:
        for conversation in random.sample(spoken(), 3):
            for piece in conversation:
                chance = random.random()
                if chance < 0.1:
                    lab.give(spoilt(piece, random))
                elif chance < 0.13:
                    lab.give(piece + random.choice(conversation))
                elif chance > 0.03:
                    lab.give(piece)
                lab.is_live = random.random() < 0.9
        lab.is_live = True
        lab.say(amqp10.ConnectionClose(reply_code=200))
    except ProtocolViolation:
        lab.settle()
    # The broker, which stands for the gateway, has found nothing to complain of.
    assert not [one for one in lab.asked if one[1].NAME == "connection.close-ok"]


@pytest.mark.parametrize(
    "ids",
    [((0, 0x7FFFFFFF),), tuple((at, at) for at in range(0, 16000, 2)), ((0xFFFFFFF0, 0xFFFFFFFF),)],
)
@pytest.mark.parametrize(
    "kind", [amqp10.MessageAccept, amqp10.MessageRelease, amqp10.MessageReject, amqp10.MessageAcquire]
)
def test_ids_that_nobody_sent_are_nobodys(
    kind: type[amqp10.MessageAccept], ids: tuple[tuple[int, int]]
) -> None:
    lab = Lab().open().attach()
    lab.do(kind(transfers=SequenceSet(ids)))
    assert lab.completed() == {0}


def test_flood_of_questions_waits_in_a_bounded_queue() -> None:
    lab = Lab().open().attach()
    lab.is_live = False
    piece = command(amqp10.QueueQuery(queue=b"q")) * 16
    given = 0
    while lab.translator.wants_bytes:
        lab.give(piece)
        given += 16
        assert given < 10_000
    # One of them is asked at a time.
    assert lab.names() == ["channel.open"]
    lab.is_live = True
    lab.settle()
    assert lab.translator.wants_bytes
    assert sum(isinstance(one, amqp10.ExecutionResult) for one in lab.commands()) == given


def fits_no_answer(lab: Lab) -> Lab:
    """A client that takes the smallest frames that there are."""
    lab.say(START_OK)
    lab.say(amqp10.ConnectionTuneOk(channel_max=64, max_frame_size=4096), amqp10.ConnectionOpen())
    lab.heard.clear()
    return lab.attach()


def exceptions(lab: Lab) -> list[amqp10.ExecutionException]:
    return [one for one in lab.commands() if isinstance(one, amqp10.ExecutionException)]


@pytest.mark.parametrize("ahead", [control(START_OK), b"\xff" * 200])
def test_what_is_sent_ahead_is_judged_when_it_is_looked_at(ahead: bytes) -> None:
    """The gateway gives tune, and what came long before it is wrong then."""
    lab = Lab()
    lab.is_live = False
    lab.give(control(START_OK) + ahead)
    lab.is_live = True
    lab.settle()
    last = lab.heard[-1].control
    assert isinstance(last, amqp10.ConnectionClose)
    assert last.reply_code == 501
    assert lab.names() == ["connection.start-ok", "connection.close"]


def test_virtual_host_that_is_no_text_is_told_though_it_was_sent_ahead() -> None:
    lab = Lab()
    lab.is_live = False
    lab.say(START_OK)
    lab.say(amqp10.ConnectionTuneOk(channel_max=64), amqp10.ConnectionOpen(virtual_host=b"\xff"))
    lab.is_live = True
    lab.settle()
    last = lab.heard[-1].control
    assert isinstance(last, amqp10.ConnectionClose)
    assert b"is not UTF-8" in last.reply_text


def test_body_of_many_pieces_takes_its_own_bytes_alone() -> None:
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.give(frame(B | b | e, 1, encode_command(amqp10.MessageTransfer())))
    lab.give(frame(b | e, 2, encode_header([amqp10.DeliveryProperties(routing_key=b"q")])))
    before = memory()
    lab.give(frame(E | b, 3, b"") + frame(E, 3, b"") * 50_000)
    lab.give(b"".join(frame(E, 3, bytes((at & 255,))) for at in range(20_000)))
    assert memory() - before < 300_000
    lab.give(frame(E | e, 3, b""))
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 1
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0))
    lab.say(amqp10.MessageFlow(destination=b"d", unit=1, value=1 << 30))
    lab.say(amqp10.MessageFlow(destination=b"d", unit=0, value=1))
    assert lab.heard[-1].body == bytes(at & 255 for at in range(20_000))


def memory() -> int:
    gc.collect()
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


@pytest.fixture(autouse=True)
def no_tracing() -> Iterator[None]:
    yield
    tracemalloc.stop()


def test_acceptances_in_many_ranges_fit_into_the_clients_frames() -> None:
    lab = fits_no_answer(Lab())
    lab.transfer(b"first")
    lab.is_live = False
    for number in range(2400):
        lab.transfer(b"m", accept_mode=number % 2, sync=False)
    lab.tell(amqp.BasicAck(2400, multiple=True), 1)
    accepted = [one.transfers for one in lab.commands() if isinstance(one, amqp10.MessageAccept)]
    assert [lower for ids in accepted for lower, _ in ids.ranges] == list(range(1, 2400, 2))
    assert exceptions(lab) == []


def test_result_that_is_larger_than_the_clients_frames_ends_its_session() -> None:
    lab = fits_no_answer(Lab())
    arguments = Map(((b"k", Value(0x95, b"x" * 5000)),))
    lab.do(amqp10.ExchangeDeclare(exchange=b"x", type=b"direct", arguments=arguments))
    lab.do(amqp10.ExchangeQuery(name=b"x"))
    [told] = exceptions(lab)
    assert (told.error_code, told.command_id) == (506, 1)


@pytest.mark.parametrize("of", ["commands", "arguments"])
def test_commands_that_wait_are_bounded_by_what_they_take(of: str) -> None:
    """Arguments, not bodies, and spread over sessions."""
    lab = Lab().open()
    for channel in range(16):
        lab.attach(channel, b"%d" % channel)
    lab.is_live = False
    arguments = None
    if of == "arguments":
        arguments = Map(tuple((b"%d" % number, Value(0xF0, None)) for number in range(8000)))
    piece = command(amqp10.ExchangeDeclare(exchange=b"x", type=b"topic", arguments=arguments))
    before = memory()
    for number in range(100_000):
        if not lab.translator.wants_bytes:
            break
        lab.give(piece[:6] + (number % 16).to_bytes(2) + piece[8:])
    assert not lab.translator.wants_bytes
    assert memory() - before < 6 << 20
    lab.is_live = True
    lab.settle()
    assert lab.translator.wants_bytes


def test_header_is_of_one_command_whatever_the_tracks() -> None:
    lab = Lab().open().attach()
    begun = encode_command(amqp10.MessageTransfer())
    lab.give(frame(B | b | e, 1, begun, track=1))
    with pytest.raises(ProtocolViolation) as caught:
        lab.give(frame(B | b | e, 1, begun, track=0))
    assert caught.value.code == 501


def test_sessions_that_come_and_go_wait_for_channels() -> None:
    """More than the broker grants, if all were had at once; nobody is refused, and own queues go."""
    lab = Lab(greeting=Greeting(channel_max=9)).open(sessions=3).attach()
    lab.do(amqp10.QueueDeclare(queue=b"own", exclusive=True, auto_delete=True))
    lab.do(amqp10.QueueQuery(queue=b"none"))
    lab.is_live = False
    gone = 0
    while lab.translator.wants_bytes:
        name = b"%d" % gone
        lab.say(amqp10.SessionAttach(name=name), POINT, channel=1)
        lab.give(command(amqp10.QueueQuery(queue=b"own"), channel=1))
        lab.transfer(b"m", channel=1)
        lab.say(amqp10.SessionDetach(name=name), channel=1)
        gone += 1
        assert gone < 1000
    lab.say(amqp10.SessionDetach(name=b"session"))
    lab.is_live = True
    lab.settle()
    assert exceptions(lab) == []
    assert lab.names().count("basic.publish") == gone
    assert lab.names().count("queue.delete") == 1
    assert lab.translator.wants_bytes
    lab.attach(2, b"last")
    assert lab.query(amqp10.QueueQuery(queue=b"own"), 2) == amqp10.QueueQueryResult()


def test_queue_of_a_session_that_failed_goes_once_there_is_a_channel() -> None:
    lab = Lab(greeting=Greeting(channel_max=3)).open(sessions=1).attach()
    lab.do(amqp10.QueueDeclare(queue=b"own", exclusive=True, auto_delete=True))
    lab.do(amqp10.QueueQuery(queue=b"none"))
    numbers = lab.translator._link.numbers
    other = BridgedChannel(
        ChannelUse.ASK, numbers, CanonicalWriter(), lambda *_: None, lambda *_: False, object()
    )
    other.open()
    lab.do(amqp10.MessageCancel(destination=b"none"))
    assert [one.error_code for one in exceptions(lab)] == [404]
    assert "queue.delete" not in lab.names()
    other.receive(amqp.ChannelClose(404, "gone", 0, 0))
    lab.say(amqp10.SessionDetached(name=b"session", code=0))
    assert lab.names().count("queue.delete") == 1


def test_acknowledgements_that_wait_for_a_commit_are_bounded() -> None:
    """Nothing is accepted, and all of the queue is had by message.flush."""
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    for _ in range(MOST_UNSETTLED + 50):
        lab.transfer(b"m", b"q", sync=False)
    lab.do(amqp10.TxSelect())
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=1))
    for unit in (0, 1):
        lab.do(amqp10.MessageFlow(destination=b"d", unit=unit, value=0xFFFF_FFFF))
    lab.do(amqp10.MessageFlush(destination=b"d"))
    assert transfers(lab) == MOST_UNSETTLED
    lab.do(amqp10.TxCommit())
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFF_FFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=0xFFFF_FFFF))
    assert transfers(lab) == MOST_UNSETTLED + 50
    assert exceptions(lab) == []


def transfers(lab: Lab) -> int:
    return sum(isinstance(one, amqp10.MessageTransfer) for one in lab.commands())


def test_messages_that_wait_for_credit_are_bounded_over_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session has one that is larger than its credit; all of them come once there is more."""
    monkeypatch.setattr(link, "MOST_HELD", 200_000)
    lab = Lab().open()
    for channel in range(6):
        lab.attach(channel, b"%d" % channel)
        queue = b"q%d" % channel
        lab.do(amqp10.QueueDeclare(queue=queue), channel)
        lab.transfer(bytes([channel]) * 60_000, queue, channel=channel)
        lab.do(amqp10.MessageSubscribe(queue=queue, destination=b"d", accept_mode=0), channel)
        lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=1), channel)
        lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=1), channel)
    assert transfers(lab) == 0
    kept = lab.translator._link
    assert 120_000 < kept._held <= 200_000
    for channel in range(6):
        lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=100_000), channel)
        assert [one.body for one in lab.heard if one.body][-1] == bytes([channel]) * 60_000
    assert kept._held == 0


def test_what_a_session_had_held_is_forgotten_with_it() -> None:
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"m" * 1000, b"q")
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=1))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=1))
    assert lab.translator._link._held > 1000
    lab.say(amqp10.SessionDetach(name=b"session"))
    assert lab.translator._link._held == 0

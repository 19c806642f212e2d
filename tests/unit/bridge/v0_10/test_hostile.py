"""Clients that say what they like: whatever it is, it is told, or raised as a violation, and nothing else."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.support.said_0_10 import SHORT, Sent, conversations, sent_by
from tests.support.talk_0_10 import command, control
from tests.unit.bridge.v0_10.lab import Lab, broker_state

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

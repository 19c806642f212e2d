"""Which deliveries want acks: what consumers of a channel say, and when nobody can know."""

from __future__ import annotations

from collections import deque

import pytest

from amqpgate.datapath.scanner import Channels, Lane, scan
from amqpgate.datapath.tables import Side
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.channel_consumers import REPLIES, ChannelConsumers, SessionConsumer
from amqpgate.policy import Operation, Principal
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

NOBODY = Principal("nobody", "/")


class Scene:
    """One channel, whose consumers are asked for as `gateway.consumers` does it."""

    def __init__(self) -> None:
        self.table, self.state = Channels(), ChannelConsumers()
        self.table.open(1)
        self.down = Lane(Side.UPSTREAM, 4096, 4096, self.table)
        self.last = 0

    def asks(self, tag: str, *, no_ack: bool = False, no_wait: bool = False, queue: str = "q") -> None:
        method = amqp.BasicConsume(queue=queue, consumer_tag=tag, no_ack=no_ack, no_wait=no_wait)
        settlement.consumes(self.table, 1, self.state, method)
        consumer = SessionConsumer((Operation(NOBODY, "basic.consume", queue=queue),), 1, no_ack)
        if tag:
            self.state.tags[tag] = consumer
        else:
            (self.state.nameless if no_wait else self.state.asked).append(consumer)

    def told(self, tag: str) -> None:
        self.state.name(tag)
        settlement.named(self.table, 1, self.state, tag)

    def consumes(self, tag: str, *, no_ack: bool = False) -> None:
        self.asks(tag, no_ack=no_ack)
        self.told(tag)

    def cancels(self, tag: str) -> None:
        self.state.gone(tag)
        self.state.cancels.setdefault(tag, deque()).append(None)

    def cancelled(self, tag: str) -> None:
        del self.state.cancels[tag]
        settlement.gone(self.table, 1, self.state, tag)

    def counts(self, tag: str) -> bool | None:
        """Whether a delivery to that consumer does; None: nobody knows the number."""
        before = self.table.unacked(1)
        self.last += 1
        method = amqp.BasicDeliver(tag, self.last, False, "", "q")
        data = bytearray(content_frames(1, method, amqp.BasicProperties(), b"", 4096))
        scan(self.down, data, 0, len(data), 1.0, [])
        after = self.table.unacked(1)
        return None if before is None or after is None else after > before


def test_all_of_one_kind() -> None:
    scene = Scene()
    scene.asks("", no_wait=True)
    assert scene.counts("a") is True
    scene = Scene()
    scene.asks("", no_ack=True, no_wait=True)
    assert scene.counts("a") is False


@pytest.mark.parametrize("first", [False, True], ids=["with acks first", "without acks first"])
def test_both_kinds(first: bool) -> None:
    scene = Scene()
    scene.consumes("one", no_ack=first)
    assert scene.counts("one") is not first
    scene.asks("two", no_ack=not first)
    # Nothing comes for it before the broker's answer.
    assert scene.counts("one") is not first
    scene.told("two")
    assert (scene.counts("one"), scene.counts("two")) == (not first, first)
    scene.asks("", no_ack=True)
    scene.told("named")
    assert scene.counts("named") is False


def test_a_consumer_that_ends_is_known_until_the_broker_says_so() -> None:
    scene = Scene()
    scene.consumes("quiet", no_ack=True)
    scene.asks("loud")
    scene.cancels("quiet")
    scene.told("loud")
    assert (scene.counts("quiet"), scene.counts("loud")) == (False, True)
    scene.cancelled("quiet")
    scene.consumes("quiet")
    assert scene.counts("quiet") is True


def test_a_tag_in_use_again_before_its_cancel_is_answered() -> None:
    scene = Scene()
    scene.consumes("loud")
    scene.consumes("tag", no_ack=True)
    scene.cancels("tag")
    scene.asks("tag")
    assert scene.counts("tag") is None


@pytest.mark.parametrize("first", [False, True])
def test_one_of_another_kind_that_is_not_answered(first: bool) -> None:
    scene = Scene()
    scene.consumes("one", no_ack=first)
    scene.asks("two", no_ack=not first, no_wait=True)
    assert scene.counts("two") is None


def test_one_that_acks_beside_others_without_names() -> None:
    scene = Scene()
    scene.asks("", no_ack=True, no_wait=True)
    scene.asks("loud")
    assert scene.counts("loud") is None


def test_one_that_is_cancelled_before_it_is_there() -> None:
    scene = Scene()
    scene.consumes("quiet", no_ack=True)
    scene.asks("loud")
    scene.cancels("loud")
    scene.told("loud")
    assert scene.counts("loud") is None


def test_direct_replies_that_are_asked_for_with_others() -> None:
    scene = Scene()
    scene.asks("", no_ack=True, queue=REPLIES)
    scene.asks("")
    scene.told("amq.ctag-1")
    assert scene.counts("amq.ctag-1") is None


def test_more_than_are_remembered() -> None:
    scene = Scene()
    scene.consumes("loud")
    scene.state.has_more = True
    scene.asks("quiet", no_ack=True)
    assert scene.counts("quiet") is None


def test_one_that_acks_beside_others_whose_cancels_are_not_remembered() -> None:
    scene = Scene()
    scene.consumes("quiet", no_ack=True)
    scene.asks("loud")
    # The client cancels it, and the broker still delivers: nobody knows here that it does not ack.
    scene.state.gone("quiet")
    scene.state.too_many()
    scene.told("loud")
    assert scene.counts("quiet") is None

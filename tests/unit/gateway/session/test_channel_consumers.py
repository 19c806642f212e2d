"""What is remembered of the consumers of a channel: which is which, and of which cancel the client hears."""

from __future__ import annotations

from collections import deque

import pytest

from amqpgate.gateway.session.channel_consumers import EACH, REPLIES, ChannelConsumers, SessionConsumer
from amqpgate.policy import Operation, Principal

BOB = Principal("bob", "/")


def consumer(queue: str = "q", *, size: int = 100, no_ack: bool = False) -> SessionConsumer:
    return SessionConsumer((Operation(BOB, "basic.consume", queue=queue),), size, no_ack)


def queues(of: SessionConsumer) -> list[str | None]:
    return [operation.queue for operation in of.operations]


def test_answers_name_consumers_in_the_order_asked() -> None:
    state = ChannelConsumers()
    one, other, own, silent = consumer("a"), consumer("b"), consumer("c"), consumer("d")
    state.add(one, "", is_answered=True)
    state.add(own, "own", is_answered=True)
    state.add(other, "", is_answered=True)
    state.add(silent, "", is_answered=False)
    for tag in ("own", "amq.1", "amq.2", "more than were asked for"):
        state.name(tag)
    assert state.tags == {"own": own, "amq.1": one, "amq.2": other}
    assert (state.asked, state.nameless, state.count) == ([], [silent], 4)


def test_where_direct_replies_are_asked_for_at_once_each_may_be_either() -> None:
    """They are answered at once, whatever was asked for before."""
    state = ChannelConsumers()
    state.add(consumer("a"), "", is_answered=True)
    state.add(consumer(REPLIES, no_ack=True), "", is_answered=True)
    state.name("amq.1")
    state.name("amq.2")
    for found in state.tags.values():
        assert queues(found) == ["a", REPLIES]
        assert found.no_ack
        assert not found.has_plain_tag


@pytest.mark.parametrize(
    ("queue", "is_plain"), [("q", True), ("", True), (REPLIES, False), (f"{REPLIES}.g1", False)]
)
def test_a_consumer_of_direct_replies_does_not_end_by_its_tag(queue: str, is_plain: bool) -> None:
    assert consumer(queue).has_plain_tag is is_plain


def test_what_is_held_is_what_was_asked_with_and_each_cancel() -> None:
    state = ChannelConsumers()
    state.add(consumer(size=10), "tag", is_answered=True)
    state.add(consumer(size=20), "", is_answered=True)
    state.add(consumer(size=30), "", is_answered=False)
    state.cancels = {"a": deque([None, None]), "b": deque([True])}
    assert state.byte_count == 60 + 2 * EACH
    assert state.cancels_due == 3
    state.gone("tag")
    assert state.byte_count == 50 + 2 * EACH


def test_who_knows_that_a_consumer_is_gone_is_not_told_of_the_gateways_cancel() -> None:
    state = ChannelConsumers()
    state.add(consumer(), "tag", is_answered=True)
    state.cancels = {"tag": deque([True, None]), "other": deque([True])}
    state.gone("tag")
    # Its own answer is still the client's, in its place.
    assert state.cancels == {"tag": deque([False, None]), "other": deque([True])}
    assert list(state) == []

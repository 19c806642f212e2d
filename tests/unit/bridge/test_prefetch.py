"""Limits of old clients, as a RabbitMQ is told of them."""

from __future__ import annotations

import pytest

from amqpgate.bridge.prefetch import Prefetch
from amqpgate.wire.generated import v0_9_1 as amqp

CONSUME = amqp.BasicConsume(queue="q")
SILENT = amqp.BasicConsume(queue="q", no_ack=True)


def each(count: int) -> amqp.BasicQos:
    """A limit of consumers to come."""
    return amqp.BasicQos(prefetch_count=count)


def every(count: int) -> amqp.BasicQos:
    """A limit of the channel's."""
    return amqp.BasicQos(prefetch_count=count, global_=True)


@pytest.fixture
def prefetch() -> Prefetch:
    return Prefetch()


def test_one_consumers_limit_is_the_channels(prefetch: Prefetch) -> None:
    """The broker keeps to it, and the gateway need not."""
    assert prefetch.qos(1, each(3)) == (each(3),)
    assert prefetch.consume(1, CONSUME) == (CONSUME,)
    assert not prefetch.is_kept_here(1)
    assert prefetch.answered(1)


def test_without_a_limit_there_is_nothing_to_keep(prefetch: Prefetch) -> None:
    for _ in range(2):
        assert prefetch.consume(1, CONSUME) == (CONSUME,)
    assert not prefetch.is_kept_here(1)
    prefetch.qos(1, each(0))
    assert not prefetch.is_kept_here(1)


def test_two_consumers_share_a_limit(prefetch: Prefetch) -> None:
    prefetch.qos(1, each(3))
    prefetch.consume(1, SILENT)
    prefetch.consume(1, CONSUME)
    assert not prefetch.is_kept_here(1)
    assert prefetch.consume(1, CONSUME) == (CONSUME,)
    assert prefetch.is_kept_here(1)
    assert prefetch.limit(1) == 3
    assert prefetch.qos(1, each(0)) == (each(0),)
    assert not prefetch.is_kept_here(1)


def test_consumers_that_are_there_already_get_the_channels_limit(prefetch: Prefetch) -> None:
    prefetch.consume(1, CONSUME)
    assert prefetch.qos(1, each(3)) == (each(3), every(3))
    assert prefetch.is_kept_here(1)
    assert [prefetch.answered(1), prefetch.answered(1)] == [True, False]
    assert prefetch.qos(1, each(5)) == (each(5), every(5))
    assert prefetch.qos(1, each(0)) == (each(0),)
    assert not prefetch.is_kept_here(1)


def test_the_channels_limit_does_not_hold_while_there_is_another_consume(prefetch: Prefetch) -> None:
    """Of a quorum queue it would be refused."""
    prefetch.consume(1, CONSUME)
    prefetch.qos(1, each(3))
    assert prefetch.consume(1, CONSUME) == (each(3), CONSUME, every(3))
    assert [prefetch.answered(1) for _ in range(4)] == [True, False, False, False]


def test_a_consumer_that_does_not_acknowledge_is_not_limited(prefetch: Prefetch) -> None:
    prefetch.consume(1, CONSUME)
    prefetch.qos(1, each(3))
    assert prefetch.consume(1, SILENT) == (each(3), SILENT)
    assert prefetch.qos(1, each(2)) == (each(2),)
    assert prefetch.is_kept_here(1)


def test_a_consumer_keeps_the_limit_that_it_began_with(prefetch: Prefetch) -> None:
    """The broker keeps to the narrower one by itself, and a wider one is for others."""
    prefetch.qos(1, each(5))
    prefetch.consume(1, CONSUME)
    assert prefetch.qos(1, each(9)) == (each(9),)
    assert not prefetch.is_kept_here(1)
    assert prefetch.qos(1, each(2)) == (each(2), every(2))
    assert prefetch.is_kept_here(1)


def test_a_size_is_a_count_of_one(prefetch: Prefetch) -> None:
    assert prefetch.qos(1, amqp.BasicQos(4096, 10)) == (each(1),)
    prefetch.consume(1, CONSUME)
    prefetch.consume(1, CONSUME)
    assert prefetch.limit(1) == 1


def test_a_limit_of_the_connection(prefetch: Prefetch) -> None:
    prefetch.consume(1, CONSUME)
    assert prefetch.qos(2, every(3)) == (each(3),)
    assert prefetch.is_kept_here(1)
    assert prefetch.consume(2, CONSUME) == (CONSUME,)
    assert prefetch.is_kept_here(2)
    assert prefetch.all == 3
    assert prefetch.consume(3, CONSUME) == (each(3), CONSUME)
    assert [prefetch.answered(3), prefetch.answered(3)] == [False, True]
    assert prefetch.qos(1, each(5)) == (each(3), every(5))
    prefetch.qos(2, every(0))
    assert not prefetch.is_kept_here(2)
    assert prefetch.is_kept_here(1)


def test_a_channel_that_is_opened_again_has_none(prefetch: Prefetch) -> None:
    prefetch.consume(1, CONSUME)
    prefetch.qos(1, each(3))
    prefetch.opened(1)
    assert not prefetch.is_kept_here(1)
    assert prefetch.consume(1, CONSUME) == (CONSUME,)

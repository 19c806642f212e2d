"""Audit records of several workers in one folder: together they are what passed, also when one is killed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from tests.interop.test_gateway_workers import CONFIG, connect, sample, workers
from tests.support.audit import records, setting, sums
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

CONNECTIONS = 12
MESSAGES = 10


@pytest.fixture
def gateway(rabbitmq: RabbitMQ, tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(config=CONFIG.format(address=rabbitmq.address) + setting(tmp_path / "audit", 1))
    gateway.start()
    eventually(lambda: sample(gateway, "amqpgate_ready") == 2)
    yield gateway
    if gateway._child is not None:
        gateway.stop()


def publish(connection: pika.BlockingConnection, key: str) -> int:
    """How many were published; none where the connection is gone."""
    with contextlib.suppress(pika.exceptions.AMQPError):
        channel = connection.channel()
        channel.confirm_delivery()
        for _ in range(MESSAGES):
            channel.basic_publish("amq.topic", key, b"12")
        return MESSAGES
    return 0


def test_sums_are_what_passed_over_a_worker_that_is_killed(gateway: Gateway, tmp_path: Path) -> None:
    def written(key: str) -> int:
        usage = records(tmp_path / "audit", "usage")
        published = [one for one in usage if one["operation"] == "basic.publish"]
        messages, byte_count = sums(published, "routing_key").get((key,), (0, 0))
        assert byte_count == 2 * messages
        return messages

    connections = [connect(gateway) for _ in range(CONNECTIONS)]
    assert sum(publish(one, "before") for one in connections) == CONNECTIONS * MESSAGES
    eventually(lambda: written("before") == CONNECTIONS * MESSAGES)

    victim = min(workers(gateway))
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: victim not in workers(gateway) and sample(gateway, "amqpgate_ready") == 2)
    survived = sum(publish(one, "after") for one in connections)
    assert 0 < survived < CONNECTIONS * MESSAGES
    later = [connect(gateway) for _ in range(CONNECTIONS)]
    assert sum(publish(one, "later") for one in later) == CONNECTIONS * MESSAGES
    for one in connections + later:
        with contextlib.suppress(pika.exceptions.AMQPError):
            one.close()
    assert gateway.stop().code == 0

    assert {key: written(key) for key in ("before", "after", "later")} == {
        "before": CONNECTIONS * MESSAGES,
        "after": survived,
        "later": CONNECTIONS * MESSAGES,
    }
    every = [one for sort in ("events", "usage") for one in records(tmp_path / "audit", sort)]
    ids = [str(one["record_id"]) for one in every]
    assert len(set(ids)) == len(ids)
    # The killed one, the other, and who took the place of the first: each has ids of its own.
    assert len({name.rpartition("-")[0] for name in ids}) == 3

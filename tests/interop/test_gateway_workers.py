"""Several workers behind one port, as their operator sees them."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

CONFIG = """
workers: 2
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 2s}}
"""


@pytest.fixture
def pair(rabbitmq: RabbitMQ) -> Iterator[Gateway]:
    gateway = Gateway(config=CONFIG.format(address=rabbitmq.address))
    gateway.start()
    yield gateway
    if gateway._child is not None:
        assert gateway.stop().code == 0


def connect(gateway: Gateway) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(gateway.url))


def sample(gateway: Gateway, name: str, **labels: str) -> float:
    for family in text_string_to_metric_families(gateway.get("/metrics")[1]):
        for one in family.samples:
            if one.name == name and labels.items() <= one.labels.items():
                return one.value
    raise LookupError(name)


def workers(gateway: Gateway) -> set[int]:
    lists = Path(f"/proc/{gateway.child.pid}/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text().split()}


def test_connections_spread_and_the_metrics_are_the_sum(pair: Gateway) -> None:
    eventually(lambda: sample(pair, "amqpgate_ready") == 2)
    connections = [connect(pair) for _ in range(16)]
    for connection in connections:
        channel = connection.channel()
        channel.basic_publish("", "nowhere", b"12345")
        channel.queue_declare("", exclusive=True)
    assert sample(pair, "amqpgate_sessions") == 16
    assert sample(pair, "amqpgate_messages_total", direction="publish") == 16
    assert sample(pair, "amqpgate_message_bytes_total", direction="publish") == 80
    assert len(workers(pair)) == 2
    for connection in connections:
        connection.close()
    eventually(lambda: sample(pair, "amqpgate_connections_total", outcome="closed") == 16)


def test_a_worker_that_dies_is_replaced_and_the_other_serves_on(pair: Gateway) -> None:
    eventually(lambda: sample(pair, "amqpgate_ready") == 2)
    for _ in range(8):
        connect(pair).close()
    eventually(lambda: sample(pair, "amqpgate_connections_total", outcome="closed") == 8)
    before = workers(pair)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(workers(pair)) == 2 and victim not in workers(pair))
    # A counter that fell would be read as one that began anew.
    assert sample(pair, "amqpgate_connections_total", outcome="closed") == 8
    eventually(lambda: sample(pair, "amqpgate_ready") == 2)
    assert pair.get("/readyz")[0] == 200
    for _ in range(8):
        connect(pair).close()


def test_a_signal_drains_every_worker(pair: Gateway) -> None:
    eventually(lambda: sample(pair, "amqpgate_ready") == 2)
    connections = [connect(pair) for _ in range(6)]
    ended = pair.stop()
    assert ended.code == 0
    for connection in connections:
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=5)
        assert closed.value.reply_code == 320
    assert sum("draining:" in str(record.get("message")) for record in ended.records()) == 2


def test_workers_drain_when_their_supervisor_is_gone(pair: Gateway) -> None:
    eventually(lambda: sample(pair, "amqpgate_ready") == 2)
    orphans = workers(pair)
    pair.kill()
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}/cmdline") for pid in orphans))


def test_listening_is_told_when_the_port_accepts(rabbitmq: RabbitMQ) -> None:
    gateway = Gateway(config=CONFIG.format(address=rabbitmq.address))
    gateway.start_child()
    try:
        eventually(lambda: "listening on" in gateway.child.output(), every=0.001)
        socket.create_connection((gateway.host, gateway.port)).close()
        eventually(gateway.ready)
        assert gateway.child.output().count("listening on") == 1
        # A worker that comes later is no other start.
        os.kill(min(workers(gateway)), signal.SIGKILL)
        eventually(lambda: sample(gateway, "amqpgate_ready") == 2)
        assert gateway.child.output().count("listening on") == 1
    finally:
        assert gateway.stop().code == 0

"""Limits of one gateway with three workers: what passes is counted once, not three times."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from tests.interop.brokers import running, value
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

CONFIG = """
workers: 3
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
"""
#: A token in two minutes: what there is at the start is all that there is, but for one or two.
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: together}
spec:
  subjects: [{user: guest}]
  limits: [{id: all, per: [user], action: reject, LIMIT}]
"""
MESSAGES = "messages: 30/h, burst: 1h"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    return tmp_path / "policies"


@contextlib.contextmanager
def gateway(rabbitmq: RabbitMQ, folder: Path, limit: str) -> Iterator[Gateway]:
    (folder / "p.yaml").write_text(POLICY.replace("LIMIT", limit))
    with running(CONFIG.format(address=rabbitmq.address, policies=folder)) as found:
        eventually(lambda: value(found, "amqpgate_ready") == 3)
        yield found


def connect(gateway: Gateway) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(gateway.url))


def workers(gateway: Gateway) -> Counter[int]:
    """How many sessions each has."""
    rows = json.loads(gateway.get("/sessions")[1])["sessions"]
    return Counter(row["worker"] for row in rows)


def spread(gateway: Gateway, open_: contextlib.ExitStack) -> list[pika.BlockingConnection]:
    """Connections to all three of them."""
    found: list[pika.BlockingConnection] = []
    while len(workers(gateway)) < 3:
        found.append(open_.enter_context(contextlib.closing(connect(gateway))))
    return found


def accepted(connections: list[pika.BlockingConnection], each: int) -> int:
    """Messages that pass, of so many of each, one after the other."""
    channels = [connection.channel() for connection in connections]
    for channel in channels:
        channel.confirm_delivery()
    count = 0
    for _ in range(each):
        for channel in channels:
            with contextlib.suppress(pika.exceptions.NackError):
                channel.basic_publish("amq.topic", "k", b"x")
                count += 1
    return count


def test_messages(rabbitmq: RabbitMQ, folder: Path) -> None:
    with gateway(rabbitmq, folder, MESSAGES) as found, contextlib.ExitStack() as open_:
        connections = spread(found, open_)
        assert accepted(connections, 1 + 90 // len(connections)) in range(30, 33)
        # Another limit, by a reload, is another bucket: one for all of them, too.
        (folder / "p.yaml").write_text(POLICY.replace("LIMIT", MESSAGES.replace("30", "20")))
        found.child.signal(signal.SIGHUP)
        eventually(lambda: value(found, "amqpgate_policy_reloads_total", outcome="done") == 3)
        assert accepted(connections, 1 + 60 // len(connections)) in range(20, 23)


def test_a_killed_worker_takes_no_tokens_along_and_leaves_no_connection(
    rabbitmq: RabbitMQ, folder: Path
) -> None:
    with (
        gateway(rabbitmq, folder, f"concurrent: 40, {MESSAGES}") as found,
        contextlib.ExitStack() as open_,
    ):
        connections = spread(found, open_)
        while len(connections) < 40:
            connections.append(open_.enter_context(contextlib.closing(connect(found))))
        with pytest.raises(pika.exceptions.AMQPConnectionError, match=r"connection limit \(40\)"):
            connect(found)
        assert accepted(connections[:10], 1) == 10
        before = workers(found)
        lists = Path(f"/proc/{found.child.pid}/task").glob("*/children")
        os.kill(min(int(pid) for one in lists for pid in one.read_text().split()), signal.SIGKILL)
        eventually(lambda: "another one starts" in found.child.output())
        eventually(lambda: value(found, "amqpgate_ready") == 3)
        lost = 40 - sum(workers(found).values())
        assert lost in before.values()
        again = [open_.enter_context(contextlib.closing(connect(found))) for _ in range(lost)]
        with pytest.raises(pika.exceptions.AMQPConnectionError, match=r"connection limit \(40\)"):
            connect(found)
        assert accepted(again, 1 + 40 // lost) in range(20, 23)
        # The ends of the lost ones do not concern the test.
        open_.pop_all()
        for connection in connections + again:
            with contextlib.suppress(pika.exceptions.AMQPError):
                connection.close()

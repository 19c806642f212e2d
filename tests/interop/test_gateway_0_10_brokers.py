"""Clients of AMQP 0-9-1, 0-9 and 0-8 on a broker of AMQP 0-10: a second gateway in front of RabbitMQ, which
is one for who says the header of 0-10."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator

import pika
import pika.exceptions
import pytest

from tests.interop.brokers import running
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ

FAR = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbitmq, url: "amqp://{rabbitmq}"}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
"""
NEAR = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, version: 0-10}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
"""


@pytest.fixture(scope="module")
def broker(rabbitmq: RabbitMQ) -> Iterator[Gateway]:
    """A broker of AMQP 0-10."""
    with running(FAR.format(rabbitmq=rabbitmq.address)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def near(broker: Gateway) -> Iterator[Gateway]:
    """The gateway in front of it."""
    with running(NEAR.format(port=broker.port)) as gateway:
        yield gateway


@contextlib.contextmanager
def connected(gateway: Gateway, **options: object) -> Iterator[pika.BlockingConnection]:
    parameters = pika.ConnectionParameters(
        "127.0.0.1", gateway.port, blocked_connection_timeout=20, **options
    )
    with contextlib.closing(pika.BlockingConnection(parameters)) as connection:
        yield connection


def rows(gateway: Gateway, path: str) -> dict[str, list[dict[str, object]]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.admin_port}{path}") as answer:
        return json.loads(answer.read())


def test_round_trips(near: Gateway, broker: Gateway) -> None:
    with connected(near) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=False, auto_delete=False).method.queue
        channel.confirm_delivery()
        for number in range(20):
            properties = pika.BasicProperties(headers={"n": number}, delivery_mode=2)
            channel.basic_publish("", queue, b"%d" % number, properties)
        channel.basic_qos(prefetch_count=3)
        got = []
        for method, properties, body in channel.consume(queue, inactivity_timeout=20):
            got.append((properties.headers["n"], body))
            channel.basic_ack(method.delivery_tag)
            if len(got) == 20:
                break
        channel.cancel()
        assert got == [(number, b"%d" % number) for number in range(20)]
        (session,) = rows(near, "/sessions")["sessions"]
        assert (session["version"], session["upstream_version"]) == ("0-9-1", "0-10")
        (session,) = rows(broker, "/sessions")["sessions"]
        assert (session["version"], session["upstream_version"]) == ("0-10", "0-9-1")
        (upstream,) = rows(near, "/upstreams")["upstreams"]
        assert [one["speaks"] for one in upstream["endpoints"]] == ["0-10"]
        channel.queue_delete(queue)

"""Several brokers behind one upstream: failover, health checks, ejection and return, on real nodes."""

from __future__ import annotations

import pika
import pika.exceptions
import pytest

from tests.interop.brokers import dials, name_of, node_of, running, value
from tests.support.inprocess import Doorway, eventually
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams:
- {{name: pair, endpoints: [{{address: "{first}"}}, {{address: "{second}"}}], connectTimeout: 2s{more}}}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
"""


def pair(first: str, second: str, more: str) -> str:
    return CONFIG.format(first=first, second=second, more=more)


def test_killed_checked_and_back(rabbitmq: RabbitMQ, own_rabbitmq: RabbitMQ) -> None:
    """The first of two dies: connections go to the second, and to the first when its check says so."""
    health = ", health: {check: amqp, interval: 100ms, timeout: 2s, failures: 2}"
    with running(pair(own_rabbitmq.address, rabbitmq.address, health)) as gateway:
        assert node_of(gateway) == name_of(own_rabbitmq)
        staying = pika.BlockingConnection(pika.URLParameters(gateway.url))
        own_rabbitmq.kill()
        # What was open ends with 320: its broker is gone.
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as gone:
            staying.process_data_events(time_limit=20)
        assert gone.value.reply_code == 320
        # New ones go on, from the first moment.
        assert [node_of(gateway) for _ in range(5)] == [name_of(rabbitmq)] * 5
        eventually(lambda: value(gateway, "amqpgate_upstream_up", endpoint=own_rabbitmq.address) == 0)
        before = dials(gateway, own_rabbitmq.address, "failed")
        assert node_of(gateway) == name_of(rabbitmq)
        assert dials(gateway, own_rabbitmq.address, "failed") == before, "it is not even tried"

        own_rabbitmq.start()
        eventually(lambda: value(gateway, "amqpgate_upstream_up", endpoint=own_rabbitmq.address) == 1)
        assert node_of(gateway) == name_of(own_rabbitmq)


def test_an_outlier_is_ejected_and_returns(rabbitmq: RabbitMQ) -> None:
    """Without checks. The first endpoint accepts connections and hangs up, three times; then nobody comes."""
    door = Doorway()
    address = f"127.0.0.1:{door.port}"
    door.close()  # nobody listens: refused at once
    outliers = ", outliers: {failures: 3, baseEjection: 1s}"
    with running(pair(address, rabbitmq.address, outliers)) as gateway:
        for _ in range(6):
            assert node_of(gateway) == name_of(rabbitmq)
        assert dials(gateway, address, "failed") == 3
        assert value(gateway, "amqpgate_upstream_ejections_total", endpoint=address) == 1
        # Back on probation, and once more out.
        eventually(lambda: bool(node_of(gateway)) and dials(gateway, address, "failed") == 4)
        assert value(gateway, "amqpgate_upstream_ejections_total", endpoint=address) == 2


def test_a_broker_that_says_nothing_is_passed_over(rabbitmq: RabbitMQ) -> None:
    """It accepts connections, as one does whose node hangs; TCP alone does not show it."""
    door = Doorway()
    try:
        address = f"127.0.0.1:{door.port}"
        with running(pair(address, rabbitmq.address, ", handshakeTimeout: 200ms")) as gateway:
            assert node_of(gateway) == name_of(rabbitmq)
            assert dials(gateway, address, "failed") == 1
    finally:
        door.close()


def test_an_empty_budget_shows_the_first_failure(rabbitmq: RabbitMQ) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with running(pair(nobody, rabbitmq.address, ", retries: {burst: 2, ratio: 0}")) as gateway:
        assert [node_of(gateway) for _ in range(2)] == [name_of(rabbitmq)] * 2
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            node_of(gateway)
        assert value(gateway, "amqpgate_upstream_retries_refused_total") == 1

"""SIGHUP: policies are read again, by every worker, for open sessions too; what is wrong changes nothing."""

from __future__ import annotations

import signal
from pathlib import Path

import pika
import pika.exceptions
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

CONFIG = """
workers: {workers}
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 2s}}
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: reloaded}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], routingKey: {literal: %s}}
"""


def reloads(gateway: Gateway) -> dict[str, float]:
    return {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(gateway.get("/metrics")[1])
        for sample in family.samples
        if sample.name == "amqpgate_policy_reloads_total"
    }


def publishes(connection: pika.BlockingConnection, key: str) -> bool:
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        channel.basic_publish("", key, b"x")
    except pika.exceptions.ChannelClosedByBroker:
        return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_policies_are_read_again(rabbitmq: RabbitMQ, tmp_path: Path, workers: int) -> None:
    file = tmp_path / "policies" / "policy.yaml"
    file.parent.mkdir()
    file.write_text(POLICY % "one")
    gateway = Gateway(config=CONFIG.format(workers=workers, address=rabbitmq.address, policies=file.parent))
    gateway.start()
    try:
        eventually(lambda: reloads(gateway) == {"done": 0, "refused": 0})
        # Enough that each worker has some.
        connections = [pika.BlockingConnection(pika.URLParameters(gateway.url)) for _ in range(4 * workers)]
        assert all(publishes(one, "one") and not publishes(one, "two") for one in connections)

        file.write_text(POLICY % "two")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: reloads(gateway) == {"done": workers, "refused": 0})
        assert all(publishes(one, "two") and not publishes(one, "one") for one in connections)

        file.write_text(POLICY.replace("literal", "litteral") % "three")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: reloads(gateway) == {"done": workers, "refused": workers})
        assert all(publishes(one, "two") for one in connections)
        assert gateway.get("/readyz")[0] == 200
        for one in connections:
            one.close()
    finally:
        ended = gateway.stop()
    assert ended.code == 0
    assert ended.log.count("policies not reloaded, those from before stay in force") == workers
    assert "did you mean 'literal'?" in ended.log

"""Which of several brokers answers, and what a gateway counts of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pika
from prometheus_client.parser import text_string_to_metric_families

from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ


@contextlib.contextmanager
def running(config: str) -> Iterator[Gateway]:
    """A gateway with this configuration, in a process of its own."""
    gateway = Gateway(config=config)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def value(gateway: Gateway, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(gateway.get("/metrics")[1])
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def dials(gateway: Gateway, address: str, outcome: str) -> float:
    return value(gateway, "amqpgate_upstream_dials_total", endpoint=address, outcome=outcome)


def node_of(gateway: Gateway) -> str:
    """The broker that a new connection reaches, as `name_of` has it; the connection is closed again."""
    connection = pika.BlockingConnection(pika.URLParameters(gateway.url))
    properties = connection._impl.server_properties
    connection.close()
    return str(properties["cluster_name"]).partition("@")[0]


def name_of(node: RabbitMQ) -> str:
    """What is the same in a node's name and in the cluster's name that it tells."""
    return node.node.partition("@")[0]

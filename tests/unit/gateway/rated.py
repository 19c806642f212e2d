"""Sessions under a rate policy, and what is counted of its limits."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage

RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: few}
spec:
  %s
  subjects: [{user: guest}]
  limits: [{id: few, per: [user], %s, burst: %s}]
"""


#: Of one a minute: two, counted; on the data path, three.
TWO = "120s"
#: Of one a minute on the data path: two, the second of which takes the bucket below zero.
ONE_AND_A_HALF = "90s"


def rates(limit: str, mode: str = "mode: enforce", burst: str = TWO) -> str:
    return RATES % (mode, limit, burst)


def counted(stage: Stage, metric: str = "amqpgate_rate_limited") -> dict[tuple[str, ...], int]:
    """By the labels' values."""
    return {
        tuple(sample.labels.values()): int(sample.value)
        for found in stage.running.gateway.metrics.registry.collect()
        if found.name == metric
        for sample in found.samples
        if sample.name == f"{metric}_total"
    }


def deliver(broker: Talker, count: int, size: int = 1) -> None:
    for tag in range(1, count + 1):
        broker.content(amqp.BasicDeliver("c", tag, routing_key=f"key.{tag}"), b"x" * size)


def received(client: Talker, count: int) -> None:
    for tag in range(1, count + 1):
        assert client.expect_content(amqp.BasicDeliver).method == amqp.BasicDeliver(
            "c", tag, routing_key=f"key.{tag}"
        )


def arrives(broker: Talker, bodies: list[bytes]) -> None:
    for body in bodies:
        assert broker.expect_content(amqp.BasicPublish).body == body

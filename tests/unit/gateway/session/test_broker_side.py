"""What operators are told that the broker would get."""

from __future__ import annotations

from amqpgate.gateway.session.broker_side import BrokerSide, broker_side
from amqpgate.policy import Operation, Principal
from amqpgate.policy.engine.operations import MessageContent
from tests.unit.policy.kinds.test_compatibility import document, policies

NAMES = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: names}
spec: {subjects: [{}], names: {both: {prefix: a.}}}
"""
THREE = document("three", "quorumQueues: [{queue: {prefix: a.q}}]")
BOB = Principal("bob", "prod")


def side(operation: Operation, *flags: str, documents: tuple[str, ...] = (THREE, NAMES)) -> BrokerSide | None:
    return broker_side(policies(*documents), operation, flags)


def test_a_declare_with_the_brokers_name_and_type() -> None:
    declare = Operation(BOB, "queue.declare", queue="q", arguments={"x-max-length": 3})
    assert side(declare, "durable") == BrokerSide(
        "queue.declare queue 'a.q' arguments x-max-length=3, x-queue-type=quorum, x-delivery-limit=-1, "
        "durable",
        "three",
        ("quorum-queue", "delivery-limit"),
    )


def test_what_stays_classic_says_why() -> None:
    found = side(Operation(BOB, "queue.declare", queue="q"), "durable", "exclusive")
    assert found is not None
    assert (found.request, found.items, found.left) == (
        "queue.declare queue 'a.q', durable, exclusive",
        ("left-classic",),
        "exclusive",
    )


def test_a_publish_with_its_headers() -> None:
    content = MessageContent(0, {"content_type": "text/plain"}, {"x-death": [{"count": 2}]})
    found = side(Operation(BOB, "basic.publish", exchange="", routing_key="q", content=content))
    assert found is not None
    assert (found.policy, found.items) == ("three", ("x-death",))
    assert "routing key 'a.q'" in found.request
    assert "x-amqpgate-death" in found.request
    plain = side(Operation(BOB, "basic.publish", exchange="", routing_key="q"))
    assert plain == BrokerSide("basic.publish exchange '' routing key 'a.q'")


def test_where_nothing_passes_it_says_so() -> None:
    quorum = Operation(BOB, "queue.declare", queue="x", arguments={"x-queue-type": "quorum"})
    found = side(quorum)
    assert found is not None
    assert found.refused == "invalid property 'non-durable' for queue 'a.x' in vhost 'prod'"


def test_of_all_else_nothing_is_said() -> None:
    assert side(Operation(BOB, "basic.get", queue="q")) is None


def test_without_policies_it_is_the_request() -> None:
    declare = Operation(BOB, "exchange.declare", exchange="e")
    assert side(declare, documents=()) == BrokerSide("exchange.declare exchange 'e'")

"""What is shipped: schemas, example policies, and what the documents say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.policy import Operation, PolicySet, Principal, Source, build, load_folder

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def examples() -> PolicySet:
    return build([Source("orders.yaml", (ROOT / "policies/orders.yaml").read_bytes())])


@pytest.mark.parametrize(
    ("user", "operation", "attributes", "rule"),
    [
        (
            "orders-eu",
            "basic.publish",
            {"exchange": "orders", "routing_key": "order.7.created"},
            "publish-created",
        ),
        ("orders-eu", "basic.publish", {"exchange": "orders", "routing_key": "order.7.deleted"}, None),
        ("orders-eu", "basic.publish", {"exchange": "", "routing_key": "orders.in"}, "send-to-own-queues"),
        ("orders-eu", "basic.publish", {"exchange": "", "routing_key": "payroll"}, None),
        ("orders-eu", "queue.declare", {"queue": ""}, "reply-queues"),
        ("orders-eu", "basic.consume", {"queue": "amq.rabbitmq.reply-to"}, "direct-replies"),
        (
            "orders-eu",
            "queue.bind",
            {"queue": "orders.in", "exchange": "orders", "routing_key": "order.*.created"},
            "bind-own-queues",
        ),
        (
            "orders-eu",
            "queue.bind",
            {"queue": "orders.in", "exchange": "orders", "routing_key": "order.#"},
            None,
        ),
        ("orders-eu", "queue.delete", {"queue": "orders.in"}, "own-queues"),
        ("orders-eu", "queue.purge", {"queue": "orders.in"}, None),
        ("alice", "basic.get", {"queue": "orders.in"}, None),
    ],
)
def test_the_examples_do_what_their_comments_say(
    examples: PolicySet, user: str, operation: str, attributes: dict[str, str], rule: str | None
) -> None:
    verdict = examples.decide(Operation(Principal(user, "prod"), operation, **attributes))
    assert verdict.allowed is (rule is not None)
    if rule is not None:
        assert verdict.rule == rule


def test_the_folder_can_be_used_as_it_is() -> None:
    assert {policy.metadata.name for policy in load_folder(ROOT / "policies").access} > {
        "demo",
        "keep-prod",
    }


def test_the_demonstration_enforces_what_the_examples_show() -> None:
    shipped = ROOT / "src/amqpgate/cli/policies/demo.yaml"
    assert shipped.read_bytes() == (ROOT / "policies/demo.yaml").read_bytes()


def test_the_examples_select_nobody_elsewhere(examples: PolicySet) -> None:
    assert examples.for_principal(Principal("alice", "/")).unrestricted
    assert not examples.for_principal(Principal("orders-eu", "test-1")).unrestricted


def test_the_tenants_example_does_what_it_says() -> None:
    tenants = build([Source("tenants.yaml", (ROOT / "policies/tenants.yaml").read_bytes())])
    principal = Principal("tenant-a", "shared")
    transform = tenants.transform_for(principal)
    assert transform is not None
    assert transform.naming is not None
    assert transform.naming.queue_up("orders") == "tenant-a:orders"
    assert tenants.transform_for(Principal("tenant-a", "other")) is None

    def allowed(name: str, **attributes: str) -> bool:
        return tenants.decide(Operation(principal, name, **attributes)).allowed

    assert allowed("queue.declare", queue="orders")
    assert allowed("queue.declare", queue="")
    assert allowed("queue.bind", queue="orders", exchange="orders", routing_key="#")
    assert not allowed("queue.bind", queue="orders", exchange="amq.topic", routing_key="#")
    assert allowed("basic.publish", exchange="", routing_key="orders")
    assert not allowed("basic.publish", exchange="amq.fanout", routing_key="")
    assert not allowed("exchange.bind", exchange="orders", destination="amq.topic", routing_key="#")
    assert allowed("basic.consume", queue="amq.gen-1")

"""What fails on RabbitMQ 4, by version."""

from __future__ import annotations

import pytest

from amqpgate.policy.tools.preflight import FAILS, BrokerRequest, Kind, Target, troubles

QUORUM = {"x-queue-type": "quorum"}


def request(kind: Kind = "queue.declare", **said: object) -> BrokerRequest:
    return BrokerRequest(kind=kind, vhost="/", name="q", **said)  # type: ignore[arg-type]


def found(one: BrokerRequest, target: Target = "4.3") -> list[tuple[str, str]]:
    return [(trouble.item, trouble.outcome) for trouble in troubles(one, target)]


@pytest.mark.parametrize(
    ("one", "on_4_0", "on_4_3"),
    [
        (request("connection.open", amqp_version="0-8"), ["lost"], ["lost"]),
        (request("connection.open", amqp_version="0-9"), [], []),
        (request("connection.open", frame_max=4096), [], ["lost"]),
        (request("connection.open", frame_max=8192), [], []),
        (request(durable=False), ["may-be-lost"], ["may-be-lost"]),
        (request(durable=False, exclusive=True), [], []),
        (request(arguments={"x-queue-master-locator": "random"}), [], ["lost"]),
        (
            request(arguments={"x-queue-master-locator": "random", **QUORUM}),
            ["differs"],
            ["may-differ", "differs"],
        ),
        (request(arguments={"x-queue-version": 1}), [], ["closed"]),
        (request(arguments={"x-queue-version": 2}), [], []),
        (request(arguments=QUORUM), ["differs"], ["may-differ", "differs"]),
        (request(arguments={"x-delivery-limit": 5, **QUORUM}), [], ["differs", "may-differ"]),
        (request("basic.publish", largest_body=(16 << 20) + 1), ["closed"], ["closed"]),
        (request("basic.publish", largest_body=16 << 20), [], []),
        (
            request(arguments={"x-message-ttl": 5, "x-dead-letter-exchange": ""}),
            ["may-differ"],
            ["may-differ"],
        ),
        (request(arguments={"x-message-ttl": 5}), [], []),
        (request("queue.delete", is_conditional=True), [], []),
        (request("queue.delete", is_conditional=True, becomes_quorum=True), ["lost"], ["lost"]),
        (request("queue.delete", becomes_quorum=True), [], []),
        (request("exchange.declare", type="x-delayed-message"), [], ["closed"]),
        (request("exchange.declare", type="topic"), [], []),
        (request("basic.qos", is_global=True), ["may-differ"], ["differs"]),
        (request("basic.qos"), [], []),
        (request("policy", arguments={"ha-mode": "all"}), ["refused"], ["refused"]),
        (request("policy", arguments={"queue-master-locator": "random"}), [], ["refused"]),
        (request("policy", arguments={"max-length": 5}), [], []),
    ],
)
def test_what_comes_of_a_request(one: BrokerRequest, on_4_0: list[str], on_4_3: list[str]) -> None:
    assert [outcome for _, outcome in found(one, "4.0")] == on_4_0
    assert [outcome for _, outcome in found(one, "4.3")] == on_4_3


def test_small_frames_are_said_of_4_1() -> None:
    assert found(request("connection.open", frame_max=4096), "4.1") == [("small-frames", "lost")]


def test_what_4_3_began_with_is_not_said_of_4_2() -> None:
    one = request(durable=False, arguments={"x-queue-version": 1})
    assert found(one, "4.2") == [("transient-queue", "may-be-lost")]
    assert found(one) == [("transient-queue", "may-be-lost"), ("queue-version", "closed")]


@pytest.mark.parametrize(
    ("said", "items"),
    [
        ({}, ["quorum-type"]),
        ({"exclusive": True}, ["quorum-exclusive", "quorum-type"]),
        ({"auto_delete": True}, ["quorum-auto-delete", "quorum-type"]),
        ({"arguments": {"x-max-priority": 5}}, ["quorum-argument", "quorum-type"]),
        ({"arguments": {"x-delivery-limit": 5, **QUORUM}}, ["nack-requeue", "delivery-count"]),
    ],
)
def test_what_a_quorum_queue_refuses(said: dict[str, object], items: list[str]) -> None:
    """Only of those that are to be one."""
    assert [item for item, _ in found(request(becomes_quorum=True, **said))] == items


def test_each_says_what_mends_it() -> None:
    (trouble,) = troubles(request(durable=False), "4.3")
    assert trouble.mended_by == "CompatibilityPolicy transientQueues"
    assert trouble.outcome in FAILS
    (trouble,) = troubles(request("basic.qos", is_global=True), "4.3")
    assert trouble.mended_by == "CompatibilityPolicy globalPrefetch"
    (delayed,) = troubles(request("exchange.declare", type="x-delayed-message"), "4.3")
    assert delayed.mended_by == "CompatibilityPolicy delayedExchanges"

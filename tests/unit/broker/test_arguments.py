"""Arguments of declarations, in RabbitMQ's words. (The differential suite has more of them.)"""

from __future__ import annotations

import pytest

from amqpgate.broker.arguments import (
    check_consumer_arguments,
    check_queue_arguments,
    compare_flag,
    compare_queue_arguments,
    priority_of,
)
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.tables import Field, Table

from .client import refusal


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"x-expires": 0}, "invalid arg 'x-expires' for Q: {value_zero,0}"),
        ({"x-message-ttl": "1"}, "invalid arg 'x-message-ttl' for Q: \"expected integer, got longstr\""),
        (
            {"x-message-ttl": Field("l", 315_360_000_001)},
            "invalid arg 'x-message-ttl' for Q: {value_too_large,315360000001}",
        ),
        ({"x-max-priority": 256}, "invalid arg 'x-max-priority' for Q: {max_value_exceeded,256}"),
        ({"x-overflow": "x"}, "invalid arg 'x-overflow' for Q: invalid_overflow"),
        ({"x-queue-type": "quorum"}, "invalid arg 'x-queue-type' for Q: \"unsupported queue type 'quorum'\""),
        ({"x-queue-type": "stream"}, "invalid arg 'x-queue-type' for Q: \"unsupported queue type 'stream'\""),
        ({"x-max-age": "1D"}, "invalid arg 'x-max-age' for Q of queue type rabbit_classic_queue"),
        ({"x-dead-letter-exchange": 1}, "invalid type 'signedint' for arg 'x-dead-letter-exchange' in Q"),
    ],
)
def test_refused(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(ProtocolViolation) as refused:
        check_queue_arguments(Table.of(arguments), "Q")
    assert refusal(refused.value) == (406, text)


def test_fine() -> None:
    check_queue_arguments(
        Table.of(
            {
                "x-expires": 1,
                "x-message-ttl": Field("l", 315_360_000_000),
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": "k",
                "x-max-length": 0,
                "x-max-priority": 255,
                "x-overflow": "drop-head",
                "x-queue-mode": "lazy",
                "x-queue-version": 2,
                "x-single-active-consumer": True,
                "x-queue-type": "classic",
                "mine": {"any": "thing"},
            }
        ),
        "Q",
    )
    check_consumer_arguments(Table.of({"x-priority": -1, "mine": 1}), "Q")


@pytest.mark.parametrize(
    ("received", "current", "how"),
    [
        ({}, {"x-max-length": 5}, "received none but current is the value '5' of type 'signedint'"),
        ({"x-max-length": Field("l", 5)}, {}, "received the value '5' of type 'long' but current is none"),
        ({"x-max-length": 5}, {"x-max-length": 6}, "received '5' but current is '6'"),
        ({"x-max-length": 5}, {"x-max-length": "5"}, "received '5' but current is '5'"),
    ],
)
def test_inequivalent(received: dict[str, object], current: dict[str, object], how: str) -> None:
    with pytest.raises(ProtocolViolation) as refused:
        compare_queue_arguments(Table.of(received), Table.of(current), "Q")
    assert refusal(refused.value) == (406, f"inequivalent arg 'x-max-length' for Q: {how}")


def test_equivalent() -> None:
    compare_queue_arguments(Table.of({"x-expires": 5}), Table.of({"x-expires": Field("b", 5)}), "Q")
    compare_queue_arguments(Table.of({"x-queue-type": "classic"}), Table.of({}), "Q")
    compare_queue_arguments(Table.of({"mine": 1}), Table.of({"mine": 2}), "Q")
    compare_flag("durable", True, True, "Q")


def test_inequivalent_flag() -> None:
    with pytest.raises(ProtocolViolation) as refused:
        compare_flag("durable", True, False, "Q")
    assert refusal(refused.value) == (
        406,
        "inequivalent arg 'durable' for Q: received 'true' but current is 'false'",
    )


def test_priority() -> None:
    assert priority_of(Table.of({"x-priority": -7})) == -7
    assert priority_of(Table()) == 0

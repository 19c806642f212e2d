"""The eight bytes with which a client opens."""

from __future__ import annotations

import pytest

from amqpgate.protocol.header import RABBITMQ_HEADERS, REFUSAL
from amqpgate.wire.dialects import RABBITMQ_0_8, RABBITMQ_0_9_1, Dialect


@pytest.mark.parametrize(
    ("data", "dialect"),
    [
        (b"AMQP\x00\x00\x09\x01", RABBITMQ_0_9_1),
        (b"AMQP\x01\x01\x00\x09", RABBITMQ_0_9_1),
        (b"AMQP\x01\x01\x08\x00", RABBITMQ_0_8),
        (b"AMQP\x01\x01\x09\x01", RABBITMQ_0_8),
        (b"AMQP\x01\x01\x00\x0a", None),
        (b"AMQP\x00\x01\x00\x00", None),
        (b"AMQP\x03\x01\x00\x00", None),
        (b"AMQP\x00\x00\x09\x02", None),
        (b"amqp\x00\x00\x09\x01", None),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", None),  # a TLS client hello
    ],
)
def test_what_rabbitmq_speaks_after_each_header(data: bytes, dialect: Dialect | None) -> None:
    assert RABBITMQ_HEADERS.get(data) is dialect


def test_the_refusal_is_a_header_that_is_accepted() -> None:
    assert RABBITMQ_HEADERS[REFUSAL] is RABBITMQ_0_9_1

"""The eight bytes with which a client opens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.protocol import header
from amqpgate.protocol.header import (
    HeaderRecogniser,
    ProtocolHeader,
    recognise,
)
from amqpgate.wire.dialects import RABBITMQ_0_8, RABBITMQ_0_9_1, Dialect


@pytest.mark.parametrize(
    ("octets", "dialect"),
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
def test_what_rabbitmq_speaks_after_each_header(octets: bytes, dialect: Dialect | None) -> None:
    assert recognise(octets) == ProtocolHeader(octets, dialect)
    recogniser = HeaderRecogniser()
    for at in range(7):
        assert recogniser.feed(octets[at : at + 1]) == (None, b"")
    assert recogniser.feed(octets[7:] + b"rest") == (ProtocolHeader(octets, dialect), b"rest")


@given(st.binary(min_size=8, max_size=20), st.integers(0, 8))
def test_any_split(octets: bytes, cut: int) -> None:
    recogniser = HeaderRecogniser()
    found, rest = recogniser.feed(octets[:cut])
    if cut < 8:
        assert (found, rest) == (None, b"")
        found, rest = recogniser.feed(octets[cut:])
        assert rest == octets[8:]
    assert found == recognise(octets[:8])


def test_a_listener_may_accept_fewer() -> None:
    accepted = {header.HEADER_0_9_1: RABBITMQ_0_9_1}
    assert recognise(header.HEADER_0_8, accepted).dialect is None
    assert HeaderRecogniser(accepted).feed(header.HEADER_0_8)[0] == ProtocolHeader(header.HEADER_0_8, None)


def test_the_refusal_is_a_header_that_is_accepted() -> None:
    assert recognise(header.REFUSAL).dialect is RABBITMQ_0_9_1

"""Which interpreter a peer gets."""

from __future__ import annotations

import pytest

from amqpgate.bridge import VERSIONS, Interpreter, Version, for_broker, for_product
from amqpgate.bridge.undecided import UndecidedInterpreter
from amqpgate.protocol.header import HEADER_0_8, HEADER_0_9, HEADER_0_9_1, HEADER_1_0
from amqpgate.protocol.methods import Role
from amqpgate.wire import dialects
from amqpgate.wire.dialects import Dialect, VersionNumbers
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table


def for_client(header: bytes) -> Interpreter | None:
    """The interpreter for a client that has sent this protocol header."""
    version = VERSIONS.of_client(header)
    return version.client() if isinstance(version, Version) else None


@pytest.mark.parametrize(
    ("header", "dialect"),
    [
        (b"AMQP\x00\x00\x09\x01", dialects.RABBITMQ_0_9_1),
        (b"AMQP\x01\x01\x08\x00", dialects.LEGACY_CLIENT),
        (b"AMQP\x01\x01\x09\x01", dialects.LEGACY_CLIENT),
        (b"AMQP\x01\x01\x00\x09", dialects.LEGACY_CLIENT_0_9),
    ],
)
def test_clients_by_their_header(header: bytes, dialect: Dialect) -> None:
    interpreter = for_client(header)
    assert interpreter is not None
    assert interpreter.dialect is dialect
    assert interpreter.is_native is (dialect is dialects.RABBITMQ_0_9_1)
    assert (interpreter is not for_client(header)) is not interpreter.is_native


def test_the_ambiguous_header_is_not_decided() -> None:
    interpreter = for_client(b"AMQP\x01\x01\x00\x09")
    assert isinstance(interpreter, UndecidedInterpreter)
    assert interpreter.decided is None


@pytest.mark.parametrize("header", [HEADER_1_0, b"GET / HT"])
def test_other_headers_have_none(header: bytes) -> None:
    assert VERSIONS.of_client(header) is None


@pytest.mark.parametrize(
    ("version", "product", "dialect"),
    [
        ((0, 8, 0), "RabbitMQ", dialects.RABBITMQ_0_8),
        ((0, 8, 0), "Apache Qpid Broker-J", dialects.QPID_0_8),
        ((0, 8, 0), "OpenAMQ Server", dialects.LEGACY_BROKER),
        ((0, 9, 0), "RabbitMQ", dialects.RABBITMQ_0_9_1),
        ((0, 9, 0), "qpid", dialects.QPID_0_9),
        ((0, 9, 0), "", dialects.LEGACY_BROKER_0_9),
        ((0, 9, 1), "qpid", dialects.QPID_0_9_1),
        ((0, 9, 1), "", dialects.RABBITMQ_0_9_1),
    ],
)
def test_brokers_by_their_start(version: VersionNumbers, product: str, dialect: Dialect) -> None:
    start = amqp.ConnectionStart(0, 9, Table.of({"product": product} if product else {}))
    assert for_broker(VERSIONS.numbered(version), start).dialect is dialect


@pytest.mark.parametrize(
    ("header", "product", "dialect"),
    [
        (HEADER_0_8, "qpid", dialects.QPID_0_8),
        (HEADER_0_9_1, "qpid", dialects.QPID_0_9_1),
        (HEADER_0_8, "qpid python client", dialects.QPID_PYTHON_0_8),
        (HEADER_0_9, "qpid python client", dialects.QPID_PYTHON_0_9),
        (HEADER_0_9, "QPID", dialects.QPID_0_9),
        (HEADER_0_8, "py-amqplib", dialects.LEGACY_CLIENT),
        (HEADER_0_9, "", dialects.LEGACY_CLIENT_0_9),
        (HEADER_0_9_1, b"\xff", dialects.RABBITMQ_0_9_1),
    ],
)
def test_clients_by_their_product(header: bytes, product: str | bytes, dialect: Dialect) -> None:
    met = for_client(header)
    assert met is not None
    properties = Table.of({"product": product} if product else {})
    assert for_product(met, properties).dialect is dialect


def test_qpids_client_behind_the_ambiguous_header_is_not_decided_by_what_both_have() -> None:
    met = for_client(HEADER_0_9)
    assert met is not None
    interpreter = for_product(met, Table.of({"product": "qpid python client"}))
    assert isinstance(interpreter, UndecidedInterpreter)
    bound = amqp.ExchangeBound("e", "k", "q")
    assert interpreter.to_canonical(bound.encode(), Role.CLIENT) == bound
    assert interpreter.decided is None
    interpreter.to_canonical(amqp.ConfirmSelect().encode(), Role.CLIENT)
    assert interpreter.dialect is dialects.QPID_PYTHON_0_9_1
    assert not interpreter.is_native

"""``amqpgate conformance`` in AMQP 0-10: on qpidd, and on gateways before it and before RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conformance import CONFIG, deviations, played
from tests.support import qpidd
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

#: Where a gateway before RabbitMQ does otherwise than the standard and qpidd: docs/amqp-0-10.md has each.
OWN = {
    # Names of sessions are a connection's.
    "session.attach.one-transport-per-session",
    # 0-9-1 has no question for bindings: one that nobody knows counts as there.
    "exchange.bound.key-not-matched",
    # What others have without credit is not known.
    "message.subscribe.exclusive.in-use",
    "message.subscribe.exclusive.late",
    # 0-9-1 does not browse.
    "message.subscribe.acquire-mode.not-acquired",
    # To RabbitMQ what comes back is redelivered always, and a ttl is what was said.
    "message.release.set-redelivered.not-set",
    "message.delivery-properties.ttl.ttl-decrement",
    # What RabbitMQ says of itself.
    "connection.start.server-properties.required-fields",
    # Types that 0-9-1 does not have.
    *(f"types.{kind}" for kind in ("bin8", "char", "char-utf32", "uint64", "uuid", "vbin8", "vbin16")),
    *(f"types.{kind}" for kind in ("str8-latin", "str8", "array", "dec64")),
}


def in_0_10(port: int, tmp_path: Path, *options: str) -> tuple[int, dict[str, str]]:
    """The exit code, and by id what is neither obeyed nor as qpidd does it."""
    code, found = played(port, tmp_path, "--versions", "0-10", *options)
    return code, {
        path: said for (_, path), said in deviations(found).items() if not said.startswith("untestable")
    }


@pytest.fixture(scope="module")
def broker() -> Iterator[qpidd.Qpidd]:
    with qpidd.running(users={"guest": "guest"}) as broker:
        yield broker


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_qpidd_obeys_or_is_known_not_to(broker: qpidd.Qpidd, tmp_path: Path) -> None:
    assert in_0_10(broker.port, tmp_path) == (0, {})


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_a_gateway_obeys_what_qpidd_does(broker: qpidd.Qpidd, tmp_path: Path) -> None:
    gateway = Gateway(config=(CONFIG % (broker.port, "own, version: 0-10")))
    with gateway.serving():
        assert in_0_10(gateway.port, tmp_path) == (0, {})


@pytest.mark.timeout(300)
@pytest.mark.parametrize("connections", ["own", pytest.param("pooled", marks=pytest.mark.slow)])
def test_a_gateway_before_rabbitmq(rabbitmq: RabbitMQ, tmp_path: Path, connections: str) -> None:
    gateway = Gateway(config=CONFIG % (rabbitmq.port, connections))
    with gateway.serving():
        _, found = in_0_10(gateway.port, tmp_path)
    assert found.keys() == OWN


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_gateway_before_rabbitmq_4(tmp_path: Path) -> None:
    node = RabbitMQ(root=root_of_4())
    try:
        node.start()
        gateway = Gateway(config=CONFIG % (node.port, "own"))
        with gateway.serving():
            _, found = in_0_10(gateway.port, tmp_path)
    finally:
        node.destroy()
    assert found.keys() == OWN

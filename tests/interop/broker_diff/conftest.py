"""Both brokers, each with an empty virtual host of the same name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.embedded import embedded_broker
from tests.support.rabbitmq import RabbitMQ

VHOST = "broker-diff"


@pytest.fixture(scope="session")
def real(rabbitmq: RabbitMQ) -> tuple[str, int]:
    """The address of RabbitMQ."""
    rabbitmq.fresh_vhost(VHOST)
    return rabbitmq.host, rabbitmq.port


@pytest.fixture(scope="session")
def embedded() -> Iterator[tuple[str, int]]:
    """The address of the embedded broker."""
    with embedded_broker("/", VHOST, versions=["0-9-1"]) as address:
        yield address

"""A pytest plugin for aiormq's tests: the fixtures that its repository has outside of the sdist."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from yarl import URL


@pytest.fixture(scope="session")
def rabbitmq_container() -> SimpleNamespace:
    """A "container" that runs already."""
    ports = {
        "5672/tcp": int(os.environ["RABBITMQ_5672_TCP"]),
        "5671/tcp": int(os.environ["RABBITMQ_5671_TCP"]),
    }
    return SimpleNamespace(host="127.0.0.1", ports=ports)


@pytest.fixture(scope="session")
def amqp_direct_url(rabbitmq_container: SimpleNamespace) -> URL:
    """guest on the default vhost."""
    host, port = rabbitmq_container.host, rabbitmq_container.ports["5672/tcp"]
    return URL.build(scheme="amqp", user="guest", password="guest", host=host, port=port, path="//")

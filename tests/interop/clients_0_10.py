"""Gateways before a RabbitMQ, and clients of AMQP 0-10, which it does not speak."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.client_0_10 import Client010, ClientSession
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0{listener}}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}{upstream}}}]
limits: {{drainTimeout: 3s, closeTimeout: 1s{limits}}}
policies: policies
watchPolicies: false
{more}
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: %s
metadata: {name: p}
spec:
  subjects: [{user: guest}]
"""
ACCESS, RATE, TRANSFORM = (POLICY % kind for kind in ("AccessPolicy", "RatePolicy", "TransformPolicy"))

Make: TypeAlias = Callable[..., InProcess]


def write(folder: Path, policies: str) -> None:
    """These are the policies below this folder."""
    folder = folder / "policies"
    folder.mkdir(exist_ok=True)
    (folder / "policy.yaml").write_text(policies)


@contextlib.contextmanager
def making(rabbitmq: RabbitMQ, folder: Path) -> Iterator[Make]:
    """Gateways with policies and settings of one's own."""
    with contextlib.ExitStack() as stack:

        def made(
            policies: str = "", *, listener: str = "", upstream: str = "", limits: str = "", more: str = ""
        ) -> InProcess:
            write(folder, policies)
            text = SETTINGS.format(
                port=rabbitmq.port, listener=listener, upstream=upstream, limits=limits, more=more
            )
            return stack.enter_context(serving(text, folder=folder))

        yield made


@pytest.fixture
def make(rabbitmq: RabbitMQ, tmp_path: Path) -> Iterator[Make]:
    with making(rabbitmq, tmp_path) as make:
        yield make


@pytest.fixture
def queue() -> str:
    """A name that nobody else has."""
    return f"q-{secrets.token_hex(4)}"


@contextlib.contextmanager
def opened(running: InProcess, **options: object) -> Iterator[tuple[Client010, ClientSession]]:
    """A client that is logged in, and its first session."""
    with Client010.opened(running.port(), **options) as client:
        yield client, client.session()

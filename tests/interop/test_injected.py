"""A pod as the injector leaves it: its sidecar starts as the pod says, and its application gets through."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest

from amqpgate.inject import Injector, inject
from amqpgate.inject.urls import REFERENCE
from amqpgate.yamldoc.schema import Json
from tests.support.ports import free_port
from tests.support.processes import Child
from tests.support.rabbitmq import RabbitMQ
from tests.unit.inject.pods import container, env, pod

USER, PASSWORD = "orders", "s3cret/@"


@contextmanager
def started(spec: dict[str, Json], secrets: dict[str, str], folder: Path) -> Iterator[str]:
    """What a kubelet does with a pod of one container, as far as the network goes: the application's URL."""
    sidecar = spec["initContainers"][0]
    given: dict[str, str] = {}
    for entry in sidecar["env"]:
        source = entry.get("valueFrom")
        text = secrets[source["secretKeyRef"]["name"]] if source else entry["value"]
        given[entry["name"]] = REFERENCE.sub(lambda match: given[match[1]], text)
    # All pods have these ports, each for itself.
    words = [str(word) for word in sidecar["args"]]
    words[words.index("--admin") + 1] = f"127.0.0.1:{free_port()}"
    probes = words[words.index("--probes") + 1] = f"127.0.0.1:{free_port()}"
    child = Child(
        [sys.executable, "-m", "amqpgate", *words],
        log=folder / "log",
        env={**os.environ, **given},
        cwd=folder,
    )

    def is_up() -> bool:
        try:
            path = sidecar["startupProbe"]["httpGet"]["path"]
            with urllib.request.urlopen(f"http://{probes}{path}", timeout=5) as answer:
                return answer.status == 200
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    try:
        child.wait_until(is_up, timeout=60, what="the sidecar")
        yield spec["containers"][0]["env"][-1]["value"]
    finally:
        child.stop()


@pytest.fixture(scope="module")
def user(rabbitmq: RabbitMQ) -> str:
    """The login of the application, as it stands in a URL."""
    rabbitmq.fresh_vhost("shop")
    rabbitmq.add_user(USER, PASSWORD, vhost="shop")
    return f"{USER}:s3cret%2F%40"


@pytest.mark.parametrize("hidden", [False, True], ids=["plain", "secret"])
def test_the_application_gets_through_as_its_own_user(
    rabbitmq: RabbitMQ, user: str, tmp_path: Path, hidden: bool
) -> None:
    url = f"amqp://{user}@{rabbitmq.address}/shop"
    if hidden:
        entries = [env("AMQP_URL", {"secretKeyRef": {"name": "rabbit", "key": "url"}})]
    else:
        # By reference, since a broker on loopback would be one in the pod.
        entries = [env("HOST", "127.0.0.1"), env("AMQP_URL", f"amqp://{user}@$(HOST):{rabbitmq.port}/shop")]
    before = pod(container(*entries), annotations={"port": str(free_port())})
    injection = inject(before, Injector())
    assert injection is not None
    with started(injection.pod["spec"], {"rabbit": url}, tmp_path) as local:
        assert rabbitmq.address not in local
        assert (user in local) is not hidden
        connection = pika.BlockingConnection(pika.URLParameters(local))
        (row,) = [row for row in rabbitmq.connections() if row["user"] == USER]
        assert row["vhost"] == "shop"
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("injected", exclusive=True)
        channel.basic_publish("", "injected", b"through")
        assert channel.basic_get("injected", auto_ack=True)[2] == b"through"
        connection.close()

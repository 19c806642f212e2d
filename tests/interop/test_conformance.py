"""``amqpgate conformance`` on real RabbitMQ and on gateways before it, and on peers that break rules."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.interop.conformance import CONFIG, deviations, played
from tests.support.gateway import Gateway
from tests.support.meddler import Meddler
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

#: Where a gateway does otherwise than RabbitMQ and the standard, with why.
OWN = {
    # docs/old-versions.md: the channel is closed in the place of the connection.
    ("0-8", "basic.publish.immediate"),
}


def leftovers(rabbitmq: RabbitMQ) -> list[str]:
    rows = rabbitmq.rows("list_queues", "name") + rabbitmq.rows("list_exchanges", "name")
    return [str(row["name"]) for row in rows if "conformance" in str(row["name"])]


@pytest.mark.timeout(300)
def test_rabbitmq_obeys_or_is_known_not_to(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    code, found = played(rabbitmq.port, tmp_path, "--versions", "0-9-1")
    assert (code, deviations(found)) == (0, {})
    assert leftovers(rabbitmq) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("connections", [pytest.param("own", marks=pytest.mark.slow), "pooled"])
def test_a_gateway_obeys_what_its_broker_does(rabbitmq: RabbitMQ, tmp_path: Path, connections: str) -> None:
    gateway = Gateway(config=CONFIG % (rabbitmq.port, connections))
    with gateway.serving():
        _, found = played(gateway.port, tmp_path, "--versions", "0-9-1")
    assert deviations(found) == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("connections", ["own", "pooled"])
@pytest.mark.parametrize("version", ["3", "4"])
def test_all_versions_through_a_gateway(tmp_path: Path, version: str, connections: str) -> None:
    node = RabbitMQ(root=root_of_4() if version == "4" else None)
    try:
        node.start()
        gateway = Gateway(config=CONFIG % (node.port, connections))
        with gateway.serving():
            _, found = played(gateway.port, tmp_path, "--versions", "0-9-1,0-9,0-8")
    finally:
        node.destroy()
    assert deviations(found).keys() == OWN


# -- peers that break rules ----------------------------------------------------------------------------------


def closes_with(code: int, other: int) -> Callable[[bytes], bytes]:
    """channel.close with another code."""
    before, after = (b"\0\x14\0\x28" + one.to_bytes(2, "big") for one in (code, other))
    return lambda data: data.replace(before, after)


PLANTED: dict[str, tuple[Callable[[bytes], bytes], Sequence[str], set[str]]] = {
    "404 becomes 403": (
        closes_with(404, 403),
        ["queue.declare.passive", "basic.get.queue.exists"],
        {"queue.declare.passive.not-found", "basic.get.queue.exists"},
    ),
    "a delivery says that it is new": (
        # The bit behind the delivery tag of basic.deliver is `redelivered`.
        lambda data: data.replace(b"\0\0\0\0\0\0\0\x02\x01", b"\0\0\0\0\0\0\0\x02\0"),
        ["basic.reject.requeue"],
        {"basic.reject.requeue"},
    ),
    "bodies are in capitals": (
        lambda data: data.replace(b"body", b"BODY"),
        ["framing.heartbeat.any-time"],
        {"framing.heartbeat.any-time"},
    ),
}


@pytest.fixture(params=PLANTED)
def planted(
    request: pytest.FixtureRequest, rabbitmq: RabbitMQ
) -> Iterator[tuple[int, Sequence[str], set[str]]]:
    change, sections, breaks = PLANTED[request.param]
    meddler = Meddler(rabbitmq.port, change)
    yield meddler.port, sections, breaks
    meddler.close()


@pytest.mark.timeout(300)
def test_a_planted_fault_is_found(planted: tuple[int, Sequence[str], set[str]], tmp_path: Path) -> None:
    port, sections, breaks = planted
    code, found = played(port, tmp_path, *(word for one in sections for word in ("--section", one)))
    assert (code, {path for _, path in found}) == (1, breaks)


def test_nobody_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, "-m", "amqpgate", "conformance", f"127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr

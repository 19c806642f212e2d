"""A gateway that has no more memory goes on: sessions end, the process does not."""

from __future__ import annotations

import contextlib
import resource
import secrets
import socket
import threading
import time
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.pooling.ways import gateway
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker, Unexpected

MIB = 1 << 20
CLIENTS = 60
MESSAGES = 12
#: Seconds until there is too little memory: some tenths where nothing else runs.
PATIENCE = 60


def address_space(pid: int) -> int:
    """Bytes of address space of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def ticks(pid: int) -> int:
    """Clock ticks of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def flood(port: int, start: threading.Barrier, over: threading.Event, clients: list[Talker]) -> None:
    """Publish what comes back, read nothing, and stay: who leaves gives back what others are to lack."""
    with contextlib.suppress(Gone, OSError), Talker.dial(port, timeout=10, read_buffer=64 * 1024) as client:
        client.open()
        # A gateway that is slow takes long to read what there is too much of.
        client.sock.settimeout(2 * PATIENCE)
        clients.append(client)
        start.wait(30)
        # Here the gateway's address space is bounded.
        start.wait(30)
        for _ in range(MESSAGES):
            client.publish(bytes(MIB), "nobody-listens", mandatory=True)
        over.wait(2 * PATIENCE)


def use_memory_up(gateway: Gateway) -> None:
    """Ask for more than there is, until it is lacking, and leave."""
    pid = gateway.child.pid
    start, over = threading.Barrier(CLIENTS + 1), threading.Event()
    clients: list[Talker] = []
    threads = [
        threading.Thread(target=flood, args=(gateway.port, start, over, clients)) for _ in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    start.wait(30)
    resource.prlimit(pid, resource.RLIMIT_AS, (address_space(pid) + 24 * MIB, resource.RLIM_INFINITY))
    start.wait(30)
    end = time.monotonic() + PATIENCE
    while "MemoryError" not in gateway.child.output() and time.monotonic() < end:
        time.sleep(0.1)
    # The others go on for a while.
    time.sleep(1)
    over.set()
    for client in clients:
        # Who is still sending hears it so.
        with contextlib.suppress(OSError):
            client.sock.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    assert "MemoryError" in gateway.child.output(), "there was enough"


@pytest.mark.parametrize("way", ["own", "pooled"])
def test_more_is_asked_for_than_there_is(rabbitmq: RabbitMQ, way: str) -> None:
    with gateway(way, rabbitmq.address, maxWaiting="8Mi") as it:
        with Talker.dial(it.port) as before:
            before.open()
        pid = it.child.pid
        use_memory_up(it)
        assert_serves(it)
        # It does nothing now, and says so by using nothing. A loop without end would have a whole core.
        used = ticks(pid)
        time.sleep(2)
        assert ticks(pid) - used < 100, "it spins"


def assert_serves(gateway: Gateway) -> None:
    """Somebody new publishes and gets, and operators are answered."""
    queue = f"memory-{secrets.token_hex(4)}"
    for _ in range(5):
        # What was freed may have to be found again: the first one may be turned away.
        with contextlib.suppress(Gone, Unexpected, OSError), Talker.dial(gateway.port) as client:
            client.open()
            client.ask(amqp.QueueDeclare(queue=queue, exclusive=True), amqp.QueueDeclareOk, 1)
            client.publish(b"x" * 1000, queue)
            client.ask(amqp.QueueDeclare(queue=queue, passive=True), amqp.QueueDeclareOk, 1)
            client.say(amqp.BasicGet(queue=queue, no_ack=True), 1)
            assert client.expect_content(amqp.BasicGetOk).body == b"x" * 1000
            assert gateway.get("/livez")[0] == 200
            return
        time.sleep(1)
    raise AssertionError("nobody is served")

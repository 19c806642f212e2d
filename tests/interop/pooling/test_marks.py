"""The marks of `python -m tests.interop.pooling`, and that the relay they rest on delays."""

from __future__ import annotations

import contextlib
import hashlib
import random
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.interop.pooling import marks
from tests.support.delay import Relay, RelayProcess
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

WAYS = ["direct", "pooled"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_clients_that_connect_for_one_message(own_rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    assert marks.errands(own_rabbitmq, tmp_path, WAYS, pika=50) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_idle_clients(own_rabbitmq: RabbitMQ) -> None:
    assert marks.idle(own_rabbitmq, ["pooled"]) == []


# -- the relay -----------------------------------------------------------------------------------------------


def echo(server: socket.socket) -> None:
    """Everything back to whoever says it, until the end."""

    def serve(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            while data := sock.recv(65536):
                sock.sendall(data)

    with contextlib.suppress(OSError):
        while True:
            sock, _ = server.accept()
            threading.Thread(target=serve, args=(sock,), daemon=True).start()


@pytest.fixture
def echoing() -> int:
    server = socket.create_server(("127.0.0.1", 0), backlog=1024)
    threading.Thread(target=echo, args=(server,), daemon=True).start()
    port: int = server.getsockname()[1]
    return port


def test_the_relay_delays_each_question(echoing: int) -> None:
    """Never less than it should; how much more is the machine's."""
    with Relay(echoing, 0.04) as relay, socket.create_connection(("127.0.0.1", relay.port), 10) as sock:
        for _ in range(5):
            started = time.monotonic()
            sock.sendall(b"question")
            assert sock.recv(100) == b"question"
            assert time.monotonic() - started >= 0.04


def test_the_relay_keeps_order_and_ends(echoing: int) -> None:
    """More than it lets be under way, on many connections at once, each to its end."""
    bodies = [random.Random(number).randbytes(2 << 20) for number in range(8)]
    got: list[str] = [""] * len(bodies)

    def talk(number: int, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), 20) as sock:
            sender = threading.Thread(target=send, args=(sock, bodies[number]))
            sender.start()
            digest = hashlib.sha256()
            while data := sock.recv(65536):
                digest.update(data)
            got[number] = digest.hexdigest()
            sender.join()

    def send(sock: socket.socket, body: bytes) -> None:
        sock.sendall(body)
        sock.shutdown(socket.SHUT_WR)

    with Relay(echoing, 0.02) as relay:
        threads = [threading.Thread(target=talk, args=(number, relay.port)) for number in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert got == [hashlib.sha256(body).hexdigest() for body in bodies]
        eventually(lambda: not relay._ends)


def test_a_thousand_connections_in_a_row(echoing: int, tmp_path: Path) -> None:
    relay = RelayProcess(echoing, 0.0, tmp_path)
    try:
        for number in range(1000):
            with socket.create_connection(("127.0.0.1", relay.port), 10) as sock:
                sock.sendall(b"%d" % number)
                assert sock.recv(100) == b"%d" % number
    finally:
        relay.close()

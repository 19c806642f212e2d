"""What every connection is set to."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpgate.gateway.transport.connecting import KEEP_ALIVE, prepare, prepare_listening

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def congestion(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


@contextlib.contextmanager
def connection(family: int, address: str) -> Iterator[socket.socket]:
    with socket.socket(family) as door, socket.socket(family) as caller:
        door.bind((address, 0))
        door.listen()
        caller.connect(door.getsockname())
        guest, _ = door.accept()
        with guest:
            yield guest


@pytest.mark.parametrize(
    ("family", "address"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.9"), (socket.AF_INET6, "::1")],
)
@pytest.mark.parametrize(("before", "after"), [("bbr", "reno"), ("cubic", "cubic")])
def test_a_connection_within_the_machine_is_not_paced(
    family: int, address: str, before: str, after: str
) -> None:
    if before not in AVAILABLE:
        pytest.skip(f"this kernel has no {before}, only {', '.join(AVAILABLE)}")
    if family == socket.AF_INET6 and not Path("/proc/net/if_inet6").read_text():
        pytest.skip("this machine has no IPv6")
    with connection(family, address) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, before.encode())
        except PermissionError:
            pytest.skip(f"this user may not choose {before}")
        prepare(sock)
        assert congestion(sock) == after


def test_nagle_is_off_and_calls_do_not_block() -> None:
    with connection(socket.AF_INET, "127.0.0.1") as sock:
        prepare(sock)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not sock.getblocking()


def test_a_connection_that_ended_meanwhile_is_left_to_who_reads_it() -> None:
    with connection(socket.AF_INET, "127.0.0.1") as sock:
        sock.shutdown(socket.SHUT_RDWR)
        prepare(sock)


def test_who_is_accepted_is_asked_after_without_a_call_of_its_own() -> None:
    """What is set where it listens holds for those that it accepts."""
    with socket.socket() as door, socket.socket() as caller:
        door.bind(("127.0.0.1", 0))
        prepare_listening(door)
        door.listen()
        caller.connect(door.getsockname())
        door.setblocking(True)
        guest, _ = door.accept()
        with guest:
            said = [guest.getsockopt(level, option) for level, option, _ in KEEP_ALIVE]
    assert said == [1, 60, 10, 6]

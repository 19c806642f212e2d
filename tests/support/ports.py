"""TCP ports on loopback: free ones, and those that nobody listens on any more."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

#: Below Linux's ephemeral range (32768 and up). A port from inside that range may be handed to some client's
#: outgoing connection while the server that owns it is down, and a client that retries on it can even connect
#: to itself; either would spoil tests that restart servers.
_LOWEST, _HIGHEST = 20_000, 32_000

#: All test runs of a user share it: who has handed out a port has locked the byte of that number. A gateway
#: that starts is bound and does not listen yet, which no probe sees. Two of one user may then listen on one
#: port (SO_REUSEPORT), and one's first client is reset when the other ends.
_LOCKS = Path(tempfile.gettempdir()) / f"amqpgate-test-ports-{os.getuid()}"

_taken: set[int] = set()
# Never closed: that would free all locks.
_locks: list[int] = []


def _is_others(port: int) -> bool:
    """Whether another process has handed it out and still runs; otherwise it is this one's from now on."""
    if not _locks:
        _locks.append(os.open(_LOCKS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        fcntl.lockf(_locks[0], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except (BlockingIOError, PermissionError):
        return True
    return False


def free_port() -> int:
    """A loopback TCP port that nobody listens on now, and that neither this process has handed out before nor
    another one that still runs."""
    for _ in range(1000):
        port = random.randint(_LOWEST, _HIGHEST)
        if port in _taken or _is_others(port):
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _taken.add(port)
        return port
    raise RuntimeError(f"no free TCP port between {_LOWEST} and {_HIGHEST}")


def refuses(port: int) -> bool:
    """Whether nobody listens there. Who comes in the moment of a listener's end is reset: ask again."""
    try:
        with socket.create_connection(("127.0.0.1", port)):
            return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        return False


def is_asked_after(sock: socket.socket) -> bool:
    """Whether the kernel asks, for who is at the other end of a loopback connection, if this one is there
    (a keepalive timer, `proc_net_tcp` of the kernel's documents)."""
    theirs, ours = sock.getpeername()[1], sock.getsockname()[1]
    for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, _, timer, *_ = line.split()
        if tuple(int(end.rpartition(":")[2], 16) for end in (local, remote)) == (theirs, ours):
            return timer.startswith("02:")
    raise LookupError("no such connection")

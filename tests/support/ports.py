"""TCP ports on loopback: free ones, and those that nobody listens on any more."""

from __future__ import annotations

import random
import socket

#: Below Linux's ephemeral range (32768 and up). A port from inside that range may be handed to some client's
#: outgoing connection while the server that owns it is down, and a client that retries on it can even connect
#: to itself; either would spoil tests that restart servers.
_LOWEST, _HIGHEST = 20_000, 32_000

_taken: set[int] = set()


def free_port() -> int:
    """A loopback TCP port that nobody listens on now and that this process has not handed out before."""
    for _ in range(1000):
        port = random.randint(_LOWEST, _HIGHEST)
        if port in _taken:
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

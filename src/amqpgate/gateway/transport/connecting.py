"""TCP connections to others: to an address at once, to a name as RFC 8305 has it."""

from __future__ import annotations

import contextlib
import os
import socket
from functools import lru_cache

import trio

from amqpgate.gateway.transport.waiting import in_trio, wait_writable


async def connect(host: str, port: int) -> socket.socket:
    """A connected socket that does not block. A name with several addresses is tried as RFC 8305 has it.

    Raises ``OSError``; deadlines are the caller's.
    """
    family = _family_of(host)
    if family is None:
        return await in_trio(_connect_by_name, host, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    with contextlib.ExitStack() as unfinished:
        unfinished.enter_context(sock)
        sock.setblocking(False)
        try:
            sock.connect((host, port))
        except BlockingIOError:
            await wait_writable(sock)
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error)) from None
        unfinished.pop_all()
    return sock


async def _connect_by_name(host: str, port: int) -> socket.socket:
    stream = await trio.open_tcp_stream(host, port)
    sock = socket.socket(fileno=stream.socket.detach())
    sock.setblocking(False)
    return sock


@lru_cache(maxsize=256)
def _family_of(host: str) -> socket.AddressFamily | None:
    """Of an address; None: it is a name, or has a scope."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return family
    return None

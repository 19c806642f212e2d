"""An admin interface that is served, and requests to it as bytes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

import attrs
import trio
import trustme

T = TypeVar("T")


@attrs.define
class Interface:
    """One that is served."""

    port: int
    loaded: list[str]
    over: trio.Event
    ended: trio.Event
    authority: trustme.CA | None = None

    @contextmanager
    def dial(self, *protocols: str) -> Iterator[socket.socket]:
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        if self.authority is not None:
            context = ssl.create_default_context()
            self.authority.configure_trust(context)
            context.set_alpn_protocols(protocols)
            sock = context.wrap_socket(sock, server_hostname="localhost")
        with closing(sock):
            yield sock


def get(path: str, *more: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *more, "", ""]).encode()


def answer(sock: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the next answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(1)
        assert piece, data
        data += piece
    first, *lines = data.decode().strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = b""
    while len(body) < int(headers["content-length"]):
        body += sock.recv(int(headers["content-length"]) - len(body))
    return int(first.split()[1]), headers, body


async def aside(do: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(do)

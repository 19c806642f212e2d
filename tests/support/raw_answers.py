"""Peers that say what a test has them say, byte by byte: what no server would say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def saying(*parts: bytes, again: bool = False, hangs_up: bool = False) -> Iterator[str]:
    """The address of somebody who says these to each who comes, the last of them again and again if asked,
    and then waits until he goes, or says that it was all."""

    def speak(peer: socket.socket) -> None:
        for part in parts:
            peer.sendall(part)
        while again:
            peer.sendall(parts[-1])
        if hangs_up:
            peer.shutdown(socket.SHUT_WR)

    with _peer(speak) as address:
        yield address


def http(body: bytes, *, status: bytes = b"200 OK", headers: bytes = b"") -> bytes:
    """An answer of HTTP, with its length."""
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n%s\r\n%s" % (status, len(body), headers, body)


@contextmanager
def _peer(speak: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, speak))
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            # Who waits in accept is woken.
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, speak: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer, suppress(OSError):
            speak(peer)
            # What it asks is of no interest; that it has gone is.
            while peer.recv(65536):
                pass

"""A proxy that changes what passes from the broker: a peer that breaks rules."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable


class Meddler:
    """A proxy that changes what passes from the broker."""

    def __init__(self, port: int, change: Callable[[bytes], bytes]) -> None:
        self._port, self._change = port, change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for sock in self._open:
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._port))
            self._open += [client, broker]
            for source, target, change in ((client, broker, bytes), (broker, client, self._change)):
                threading.Thread(target=self._relay, args=(source, target, change), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes]) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(change(data))
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

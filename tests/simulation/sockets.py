"""Sockets of the gateway's: real descriptors whose other end is the simulated network's.

They are AF_UNIX streams that say that they are TCP. The name that the network's end is bound to is what the
gateway takes for its peer's address.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any

Address = tuple[str, int]


def name_of(address: Address, unique: int = 0) -> str:
    """Of an address, in the abstract name space; names of other processes differ."""
    return f"\0amqpgate-simulation-{os.getpid()}/{unique}/{address[0]}:{address[1]}"


def _address_of(name: object) -> Address:
    text = name.decode() if isinstance(name, bytes) else str(name)
    host, _, port = text.rpartition("/")[2].rpartition(":")
    return host, int(port or 0)


class _Posing(socket.socket):
    """One connection's end in the gateway."""

    peer: Address = ("", 0)
    own: Address = ("", 0)
    #: Why it does not stand: an ``errno``; 0: it does.
    error = 0

    def getpeername(self) -> Any:
        super().getpeername()  # it raises once it is closed
        return self.peer

    def getsockname(self) -> Any:
        return self.own

    def setsockopt(self, level: int, option: int, *value: Any) -> None:  # type: ignore[override]
        if level == socket.SOL_SOCKET:
            super().setsockopt(level, option, *value)

    def getsockopt(self, level: int, option: int, *size: Any) -> Any:  # type: ignore[override]
        if level != socket.SOL_SOCKET:
            raise OSError(95, "not TCP")
        if option == socket.SO_ERROR and self.error:
            return self.error
        return super().getsockopt(level, option, *size)


class GatewaySocket(_Posing):
    """As it is made."""

    #: What it has become, once there is TLS.
    secured: SecuredSocket | None = None

    @property
    def descriptor(self) -> int:
        """-1: it is closed."""
        return self.fileno() if self.secured is None else self.secured.fileno()


class SecuredSocket(_Posing, ssl.SSLSocket):
    """With TLS."""

    @classmethod
    def _create(cls, sock: GatewaySocket, *what: Any, **more: Any) -> SecuredSocket:
        made: SecuredSocket = super()._create(sock, *what, **more)  # type: ignore[misc]
        made.peer, made.own, sock.secured = sock.peer, sock.own, made
        return made


class Listening(socket.socket):
    """A listening socket of the gateway's."""

    def __init__(self, address: Address, network: Any) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self.setblocking(False)
        self.address, self.network = address, network

    def getsockname(self) -> Any:
        return self.address

    def setsockopt(self, *_: Any) -> None:  # type: ignore[override]
        """It has none of TCP's."""

    def getsockopt(self, level: int, option: int, *_: Any) -> Any:  # type: ignore[override]
        raise OSError(95, "not TCP")

    def listen(self, backlog: int = 128) -> None:
        self.bind(name_of(self.address))
        super().listen(backlog)

    def accept(self) -> Any:
        fd, name = self._accept()  # type: ignore[attr-defined]
        sock = GatewaySocket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=fd)
        sock.own, sock.peer = self.address, _address_of(name)
        self.network.accepted(sock, str(name if isinstance(name, str) else name.decode()))
        return sock, sock.peer

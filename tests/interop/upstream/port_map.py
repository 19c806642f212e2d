"""Loaded into other projects' test runs: connect to other ports than the tests think.

pika's acceptance tests know one address, 127.0.0.1:5672. With `AMQP_PORT_MAP=5672=23456` in the environment
every connection to that port on loopback goes to 23456; their code stays as it is, and needs no root.
"""

from __future__ import annotations

import os
import socket

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PAIRS = [pair.partition("=") for pair in os.environ.get("AMQP_PORT_MAP", "").split(",") if pair]
_MAP = {int(known): int(real) for known, _, real in _PAIRS}


def _mapped(address: object) -> object:
    if isinstance(address, tuple) and address[0] in _LOOPBACK and address[1] in _MAP:
        return (address[0], _MAP[address[1]], *address[2:])
    return address


_connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex


def connect(self: socket.socket, address: object) -> None:
    """`socket.connect` with the port looked up in the map."""
    _connect(self, _mapped(address))


def connect_ex(self: socket.socket, address: object) -> int:
    """`socket.connect_ex` with the port looked up in the map."""
    return _connect_ex(self, _mapped(address))


if _MAP:
    socket.socket.connect = connect  # type: ignore[method-assign,assignment]
    socket.socket.connect_ex = connect_ex  # type: ignore[method-assign,assignment]

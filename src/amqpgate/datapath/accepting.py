"""Connections of a listening socket, in plain Python."""

from __future__ import annotations

import socket


def accept(listening: socket.socket) -> tuple[socket.socket, tuple[str, int]] | None:
    """The next connection of a TCP socket, which does not block, and its peer's host and port; None: there is
    none now.

    Raises ``OSError``. Where memory fails, the compiled one closes the connection. Python's own forgets it,
    so that its client waits for nothing for as long as the process runs.
    """
    try:
        connection, address = listening.accept()
    except BlockingIOError:
        return None
    connection.setblocking(False)
    return connection, (address[0], address[1])

"""Which socket of several that listen on a port gets a connection."""

from __future__ import annotations

import socket

from amqpgate.gateway.transport.reuseport import choose_all, choose_among
from tests.unit.gateway.handshake.test_listeners import listening, taken


def test_the_kernel_chooses_whom_it_is_told_to() -> None:
    with listening() as old, listening(old.getsockname()[1]) as one, listening(old.getsockname()[1]) as two:
        sockets = (old, one, two)

        def spread() -> list[int]:
            """How many of 60 connections come to each."""
            for _ in range(60):
                socket.create_connection(old.getsockname()).close()
            return [taken(sock) for sock in sockets]

        choose_among(old, 1, 1)
        assert spread() == [0, 60, 0]
        choose_among(old, 1, 2)
        before, first, second = spread()
        assert (before, first + second) == (0, 60)
        assert first
        assert second
        choose_all(old)
        assert all(spread())

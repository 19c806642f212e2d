"""The embedded broker in a thread, for clients on blocking sockets and in other processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import trio

from amqpgate.broker import VERSIONS, EmbeddedBroker
from amqpgate.broker.server import DEFAULT_USERS


@contextmanager
def embedded_broker(
    *vhosts: str, versions: Sequence[str] = VERSIONS, users: Mapping[str, str] = DEFAULT_USERS
) -> Iterator[tuple[str, int]]:
    """Its address, while inside; without ``vhosts`` it has "/" alone."""
    broker = EmbeddedBroker(users, vhosts or ("/",), versions=versions)
    started = threading.Event()
    port = 0
    token: trio.lowlevel.TrioToken | None = None
    stop = trio.CancelScope()

    async def serve() -> None:
        nonlocal port, token
        token = trio.lowlevel.current_trio_token()
        with stop:
            async with trio.open_nursery() as nursery:
                port = await nursery.start(broker.serve)
                started.set()

    thread = threading.Thread(target=trio.run, args=(serve,), name="embedded broker")
    thread.start()
    try:
        assert started.wait(10)
        yield "127.0.0.1", port
    finally:
        assert token is not None
        token.run_sync_soon(stop.cancel)
        thread.join()

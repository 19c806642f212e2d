"""A gateway in a thread of the test, so that a test can look into it and play client and broker itself."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import attrs
import trio

from amqpgate.app import wiring
from amqpgate.config import Settings, parse
from amqpgate.gateway.server.gateway import Gateway

from .talker import Talker

T = TypeVar("T")

#: How long anything in here may take, in seconds, before it counts as stuck.
PATIENCE = 20.0


@attrs.define(eq=False)
class InProcess:
    """A running gateway. Its own data is looked at with `call`, on its own thread."""

    settings: Settings
    gateway: Gateway = attrs.field(init=False)
    _token: trio.lowlevel.TrioToken = attrs.field(init=False)
    _stop: trio.CancelScope = attrs.field(init=False)
    _thread: threading.Thread = attrs.field(init=False)
    _started: queue.SimpleQueue[BaseException | None] = attrs.field(factory=queue.SimpleQueue, init=False)
    _failure: BaseException | None = attrs.field(default=None, init=False)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)
        self._thread.start()
        failure = self._started.get(timeout=PATIENCE)
        if failure is not None:
            raise failure

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            self._failure = error
            self._started.put(error)

    async def _main(self) -> None:
        self.gateway = wiring.build(self.settings)
        self._token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self._stop:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.gateway.run)
                self._started.put(None)

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the gateway's thread."""
        return trio.from_thread.run_sync(function, trio_token=self._token)

    def ask(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run an async function as a task of the gateway's."""
        return trio.from_thread.run(function, trio_token=self._token)

    def port(self, listener: str = "main") -> int:
        """Where a listener is bound."""
        return self.gateway.addresses[listener][1]

    def dial(self, listener: str = "main", **options: object) -> Talker:
        """A client, connected but silent."""
        return Talker.dial(self.port(listener), **options)  # type: ignore[arg-type]

    def forget(self) -> None:
        """It does not know what its brokers say in their start: the next client makes it dial."""
        clusters = self.gateway.router.clusters.values()
        self.call(lambda: [end.starts.clear() for cluster in clusters for end in cluster.endpoints])

    def tasks(self) -> int:
        """Living trio tasks."""
        return self.call(lambda: trio.lowlevel.current_statistics().tasks_living)

    def outcomes(self) -> dict[str, int]:
        """How many connections ended in which way; ways that did not occur are left out."""
        registry = self.gateway.metrics.registry
        samples = [
            sample
            for metric in registry.collect()
            if metric.name == "amqpgate_connections"
            for sample in metric.samples
            if sample.name == "amqpgate_connections_total" and sample.value
        ]
        return {sample.labels["outcome"]: int(sample.value) for sample in samples}

    def idle(self) -> bool:
        """Whether there is no connection."""
        return self.call(
            lambda: (
                not self.gateway.sessions
                and self.gateway.pump.counters.relays == 0
                and self.gateway.acceptor.connections.count == 0
            )
        )

    def wait_idle(self) -> None:
        """Wait until every connection is over."""
        eventually(self.idle)

    def join(self) -> None:
        """Wait for its end, which something else has brought about; raise what it raised."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the gateway does not end"
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Cancel it, as a second signal does."""
        with contextlib.suppress(trio.RunFinishedError):
            self.call(self._stop.cancel)
        self.join()


@contextlib.contextmanager
def serving(text: str, *, folder: Path | None = None) -> Iterator[InProcess]:
    """A gateway with the settings in `text` (YAML); relative paths start at `folder`."""
    name = "amqpgate.yaml" if folder is None else str(folder / "amqpgate.yaml")
    running = InProcess(parse(text, os.environ, file=name))
    running.start()
    try:
        yield running
    finally:
        running.stop()


class Doorway:
    """A listening socket of 127.0.0.1 behind which the test itself is the broker."""

    def __init__(self) -> None:
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.sock.settimeout(PATIENCE)
        self.port: int = self.sock.getsockname()[1]

    def accept(self) -> Talker:
        """The gateway's next connection."""
        sock, _ = self.sock.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Talker(sock)

    def close(self) -> None:
        self.sock.close()


def eventually(done: Callable[[], bool], *, timeout: float = PATIENCE, every: float = 0.01) -> None:
    """Wait until `done`, or fail."""
    deadline = time.monotonic() + timeout
    while not done():
        assert time.monotonic() < deadline, f"not after {timeout} s: {done}"
        time.sleep(every)

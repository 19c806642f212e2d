"""Several worker processes behind the same ports, looked after by one that relays nothing.

Each worker is a whole gateway that listens with SO_REUSEPORT, so the kernel spreads new connections
over them and no connection passes through two processes. The supervisor has the admin interface,
sums the workers' metrics, passes signals on, and starts a worker again that has died. It imports
nothing of what relays, decides or knows AMQP (`tests/unit/app/test_weight.py`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial, reduce
from itertools import count
from operator import or_
from typing import cast

import attrs
import trio

from amqpgate.admin.http import LAST_WORDS, serve_admin
from amqpgate.app.waiting import any_of
from amqpgate.app.worker_process import PATIENCE, Worker, WorkerProcesses, call_of
from amqpgate.app.worker_rpc import MessageKind
from amqpgate.config import Settings
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.server.standing import Impairment, Phase
from amqpgate.gateway.transport.binding import bind_all
from amqpgate.operator.names import CALLS, STREAMS
from amqpgate.telemetry.answers import JSON, NOTHING, Answers, Args, IncompleteError
from amqpgate.telemetry.events import EventSubscriber, Item, Said
from amqpgate.telemetry.history import History
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)


@frozen
class _Stream:
    """A stream that somebody listens to."""

    listen: bytes
    subscriber: EventSubscriber


@define(eq=False)
class Supervisor:
    """Looks after ``settings.workers`` processes, each started with ``command``.

    An `admin.subject.AdminSubject`, and a `worker_process.WorkerOwner`.
    """

    settings: Settings
    command: list[str]
    #: Called once, when the first worker accepts connections: then the ports do. Where another process is
    #: taken over from, when the admin address is this one's, too.
    on_started: Callable[[Supervisor], None]
    #: Called in a thread once they serve, to have another process give up the admin address.
    take_over: Callable[[], None] | None = None
    #: Listener name -> (host, port) as bound.
    addresses: dict[str, tuple[str, int]] = attrs.field(factory=dict, init=False)
    #: None: they have not been started yet.
    _processes: WorkerProcesses | None = attrs.field(default=None, init=False)
    #: By the number of the ``listen``.
    _streams: dict[int, _Stream] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: count(1), init=False)
    #: Whether a worker has ever served.
    started: bool = attrs.field(default=False, init=False)
    is_paused: bool = attrs.field(default=False, init=False)
    _stop: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: The admin address is another process's.
    _handed_over: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def workers(self) -> Mapping[int, Worker]:
        """The workers that are alive, by number."""
        return {} if self._processes is None else self._processes.live

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""
        return self.phase == "ready" and all(worker.ready for worker in self.workers.values())

    @property
    def impairments(self) -> Impairment:
        """Those of all workers."""
        return reduce(or_, (worker.impairments for worker in self.workers.values()), Impairment(0))

    @property
    def phase(self) -> Phase:
        """How it stands with new connections."""
        if self._stop.is_set():
            return "draining"
        if self.is_paused:
            return "paused"
        return "ready" if any(worker.started for worker in self.workers.values()) else "starting"

    @property
    def history(self) -> History:
        """What the workers have written, those that are gone as well. None of them is asked."""
        return History(()) if self._processes is None else self._processes.history

    async def metrics_text(self, *, is_open: bool = False) -> bytes:
        """The sum of the workers' metrics."""
        return b"" if self._processes is None else await self._processes.metrics_text(is_open=is_open)

    # -- what operators ask ------------------------------------------------------------------

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """What every worker answers to one of ``queries.CALLS``, each within ``patience`` seconds.

        Raises ``KeyError`` where there is no such call.
        """
        if name not in CALLS:
            raise KeyError(name)
        answers: dict[int, JSON] = {}
        silent = []

        async def ask(worker: Worker) -> None:
            try:
                answers[worker.number] = await worker.call(name, args, patience=patience)
            except IncompleteError:
                silent.append(worker.number)

        async with trio.open_nursery() as nursery:
            for worker in list(self.workers.values()):
                nursery.start_soon(ask, worker)
        return Answers(answers, tuple(silent))

    async def order(self, verb: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """As ``call``: pause, resume or drain. Workers that are started later do as they were told."""
        if verb == "drain":
            self._stop.set()
        else:
            self.is_paused = verb == "pause"
        return await self.call(verb, args, patience=patience)

    def hand_over(self) -> None:
        """Another process has the ports, and is to have the admin address."""
        self._handed_over.set()

    @asynccontextmanager
    async def stream(self, name: str, args: Args = NOTHING) -> AsyncIterator[AsyncIterator[Item]]:
        """What one of ``queries.STREAMS`` gives, of all workers, those to come included."""
        if name not in STREAMS:
            raise KeyError(name)
        number = next(self._numbers)
        text = json.dumps({"stream": name, "args": dict(args)}).encode()
        stream = self._streams[number] = _Stream(text, EventSubscriber())
        try:
            for worker in list(self.workers.values()):
                await worker.tell(MessageKind.LISTEN, text, number)
            yield aiter(stream.subscriber)
        finally:
            del self._streams[number]
            with trio.move_on_after(PATIENCE, shield=True):
                for worker in list(self.workers.values()):
                    await worker.tell(MessageKind.UNLISTEN, number=number)

    # -- what workers tell --------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """Whether no worker is to be started again."""
        return self._stop.is_set()

    async def stopping(self) -> None:
        """Wait until no worker is to be started again."""
        await self._stop.wait()

    def event(self, number: int, worker: int, item: Said) -> None:
        """A worker tells whoever listens by this number."""
        if number in self._streams:
            self._streams[number].subscriber.put(item, worker)

    def _worker_is(self, state: str, worker: Worker) -> None:
        """Whoever listens is told."""
        for stream in self._streams.values():
            stream.subscriber.put({"event": "worker", "at": time.time(), "state": state}, worker.number)

    def has_ended(self, worker: Worker) -> None:
        """A worker is gone."""
        self._worker_is("gone", worker)

    async def has_started(self, newcomer: Worker) -> None:
        """A new worker serves: it does as the others do, and tells what the others tell."""
        if not self.started:
            self.started = True
            if self.take_over is None:
                self.on_started(self)
        if self._stop.is_set():
            await newcomer.tell(MessageKind.CALL, call_of("drain", NOTHING))
        self._worker_is("started", newcomer)
        for number, stream in list(self._streams.items()):
            await newcomer.tell(MessageKind.LISTEN, stream.listen, number)
        for other in list(self.workers.values()):
            if other.started:
                with contextlib.suppress(IncompleteError):
                    for state in cast("list[dict[str, JSON]]", await other.call("routes", NOTHING)):
                        order = {"name": state["id"], "paused": state["paused"]}
                        await newcomer.tell(MessageKind.CALL, call_of("routes", order))
                return

    async def run(self) -> int:
        """Serve until a signal; the exit code is the workers' worst. Raises ``OSError`` for a taken port."""
        shared_memory = SharedMemory.make(self.settings.workers)
        with (
            contextlib.ExitStack() as reserved,
            trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals,
        ):
            for listener in self.settings.listeners:
                # Bound, and not listening: it holds the ports for the workers, and gets no connection.
                sockets = await bind_all(listener.bind, f"listener {listener.name}")
                for sock in sockets:
                    reserved.enter_context(sock)
                self.addresses[listener.name] = (listener.bind.host, sockets[0].getsockname()[1])
            processes = self._processes = WorkerProcesses(
                self.settings, self.command, self, self.addresses, shared_memory
            )
            async with trio.open_nursery() as root:
                over, admin_over = trio.Event(), trio.Event()
                if self.settings.admin is None:
                    admin_over.set()
                elif self.take_over is None:
                    await root.start(self._admin, over, admin_over)
                root.start_soon(self._pass_signals_on, signals)
                async with trio.open_nursery() as keepers:
                    for number in range(self.settings.workers):
                        await keepers.start(processes.keep, number)
                    if self.take_over is not None:
                        await self._take_over(self.take_over, processes)
                        await root.start(self._admin, over, admin_over)
                        self.on_started(self)
                over.set()
                with trio.move_on_after(LAST_WORDS):
                    await admin_over.wait()
                root.cancel_scope.cancel()
        return processes.worst

    async def _admin(
        self,
        over: trio.Event,
        ended: trio.Event,
        task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        assert self.settings.admin is not None
        end = partial(any_of, over, self._handed_over)
        try:
            await serve_admin(self.settings.admin, self, shutdown=end, task_status=task_status)
        finally:
            ended.set()

    async def _take_over(self, take_over: Callable[[], None], processes: WorkerProcesses) -> None:
        """Once every worker serves."""
        await any_of(processes.serving, self._stop)
        if not self._stop.is_set():
            await trio.to_thread.run_sync(take_over)

    async def _pass_signals_on(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            log.info("%s: passed on to %d workers", signal.Signals(number).name, len(self.workers))
            reload = number == signal.SIGHUP
            if not reload:
                self._stop.set()
            for worker in self.workers.values():
                # One that has only just been started would die of SIGHUP, and reads the policies anyway.
                if worker.started or not reload:
                    with contextlib.suppress(ProcessLookupError):
                        worker.process.send_signal(signal.SIGHUP if reload else signal.SIGTERM)


def own_command() -> list[str]:
    """The command line that makes this program again, with the same arguments."""
    return [sys.executable, "-m", "amqpgate", *sys.argv[1:]]

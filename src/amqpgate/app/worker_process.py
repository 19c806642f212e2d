"""The worker processes of a supervisor: started, started again when they die, and asked."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import count
from typing import Protocol

import attrs
import trio

from amqpgate.app.worker_rpc import VARIABLE, ControlClosedError, MessageKind, WorkerConfig, WorkerControl
from amqpgate.config import Settings
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.server.standing import Impairment
from amqpgate.telemetry.answers import JSON, Args, IncompleteError
from amqpgate.telemetry.events import EventText, Said
from amqpgate.telemetry.history import History
from amqpgate.telemetry.merge import Workers
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Pause before a dead worker is started again, in seconds: doubled each time, up to the last.
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 30.0
#: A worker that lived this long was healthy: the pauses begin anew.
_HEALTHY = 60.0
#: How long a question waits for one worker, unless it says otherwise.
PATIENCE = 2.0


@define(eq=False)
class Worker:
    """One worker process, as long as it lives."""

    number: int
    process: trio.Process
    control: WorkerControl
    #: Called when it has started to serve.
    on_started: Callable[[Worker], Awaitable[None]]
    #: Told of events: the number of the ``listen``, and the worker's own.
    on_event: Callable[[int, int, Said], None]
    #: Called when it serves, and others have been told.
    on_serving: Callable[[], None]
    started: bool = False
    #: Whether it takes connections, once it has started.
    ready: bool = True
    #: Why not, though it serves.
    impairments: Impairment = attrs.field(default=Impairment(0))
    #: Who waits, by the number of the question.
    _asked: dict[int, trio.MemorySendChannel[bytes]] = attrs.field(factory=dict)
    _questions: Iterator[int] = attrs.field(factory=lambda: count(1))

    async def listen(self) -> None:
        """Deal with what it says, until it is gone."""
        with contextlib.suppress(ControlClosedError):
            while True:
                kind, number, text = await self.control.receive()
                if kind is MessageKind.STARTED:
                    await self.on_started(self)
                    self.started = True
                    self.on_serving()
                elif kind is MessageKind.READY:
                    self.ready, self.impairments = bool(number & 1), Impairment(number >> 1)
                elif kind is MessageKind.EVENT:
                    self.on_event(number, self.number, json.loads(text))
                elif kind is MessageKind.EVENT_TEXT:
                    self.on_event(number, self.number, EventText.unpacked(text))
                elif number in self._asked:
                    self._asked[number].send_nowait(text)
        # Nobody need wait any longer.
        for asked in self._asked.values():
            asked.close()

    async def ask(
        self, kind: MessageKind, text: bytes = b"", *, patience: float | None = None
    ) -> bytes | None:
        """Its answer, or None where it does not answer in ``patience`` seconds, `PATIENCE` unless given."""
        number = next(self._questions)
        send, receive = trio.open_memory_channel[bytes](1)
        self._asked[number] = send
        try:
            with (
                trio.move_on_after(PATIENCE if patience is None else patience),
                contextlib.suppress(trio.EndOfChannel),
            ):
                if await self.tell(kind, text, number):
                    return await receive.receive()
            return None
        finally:
            del self._asked[number]

    async def tell(self, kind: MessageKind, text: bytes = b"", number: int = 0) -> bool:
        """Whether it could be said. No answer is waited for."""
        try:
            await self.control.send(kind, text, number)
        except ControlClosedError:
            return False
        return True

    async def call(self, name: str, args: Args, *, patience: float | None = None) -> JSON:
        """Its answer to one of ``queries.CALLS``. Raises ``IncompleteError``."""
        text = await self.ask(MessageKind.CALL, call_of(name, args), patience=patience)
        if not text:
            raise IncompleteError(f"worker {self.number} has not answered '{name}'")
        answer: JSON = json.loads(text)
        return answer


def call_of(name: str, args: Args) -> bytes:
    return json.dumps({"call": name, "args": dict(args)}).encode()


class WorkerOwner(Protocol):
    """Who has the workers started."""

    @property
    def is_stopping(self) -> bool:
        """Whether no worker is to be started again."""

    @property
    def is_paused(self) -> bool:
        """Whether a new worker takes no connections until it is told to."""

    async def stopping(self) -> None:
        """Wait until no worker is to be started again."""

    async def has_started(self, worker: Worker) -> None:
        """A worker serves."""

    def has_ended(self, worker: Worker) -> None:
        """A worker is gone."""

    def event(self, number: int, worker: int, item: Said) -> None:
        """A worker tells whoever listens by this number."""


@define(eq=False)
class WorkerProcesses:
    """``settings.workers`` processes, each started with ``command``."""

    settings: Settings
    command: list[str]
    owner: WorkerOwner
    #: Where each listener is bound, by name.
    addresses: Mapping[str, tuple[str, int]]
    #: What limits are counted in, together.
    shared_memory: SharedMemory
    #: Those that live, by number.
    live: dict[int, Worker] = attrs.field(factory=dict, init=False)
    #: Set when all of them serve for the first time.
    serving: trio.Event = attrs.field(factory=trio.Event, init=False)
    metrics: Workers = attrs.field(factory=Workers, init=False)
    #: What they have written, those that are gone as well.
    history: History = attrs.field(
        default=attrs.Factory(lambda self: History.of(self.shared_memory.history), takes_self=True),
        init=False,
    )
    #: The exit code.
    worst: int = attrs.field(default=0, init=False)

    def _serves(self) -> None:
        if sum(worker.started for worker in self.live.values()) == self.settings.workers:
            self.serving.set()

    async def keep(self, number: int, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have worker ``number`` running until the supervisor stops."""
        pause = _FIRST_PAUSE
        worker = await self._start(number)
        task_status.started()
        while True:
            since = trio.current_time()
            code = await self._attend(worker)
            if self.owner.is_stopping:
                # One that has only just been started dies of the signal itself.
                self.worst = max(self.worst, 0 if code == -signal.SIGTERM else abs(code))
                return
            if trio.current_time() - since >= _HEALTHY:
                pause = _FIRST_PAUSE
            log.error("worker %d ended with code %d; another one starts in %g s", number, code, pause)
            with trio.move_on_after(pause):
                await self.owner.stopping()
                return
            pause = min(2 * pause, _LAST_PAUSE)
            worker = await self._start(number)

    async def _attend(self, worker: Worker) -> int:
        """The exit code of a worker, once it has ended. Cancelled, it takes the worker along."""
        try:
            await worker.listen()
            # It has ended, or cannot be understood: then it hears that, drains, and another one is started.
            await worker.control.stream.aclose()
            return await worker.process.wait()
        finally:
            del self.live[worker.number]
            self.metrics.gone(worker.number)
            if worker.process.returncode is None:
                worker.process.kill()
            self.shared_memory.forget(worker.number)
            self.owner.has_ended(worker)
            with trio.CancelScope(shield=True):
                await worker.control.stream.aclose()

    async def _start(self, number: int) -> Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            shared = self.shared_memory.fd
            config = WorkerConfig(
                theirs.fileno(), number, self.addresses, self.owner.is_paused, shared, self.settings.workers
            )
            process = await trio.lowlevel.open_process(
                self.command,
                pass_fds=(theirs.fileno(), shared),
                # A Ctrl-C on the terminal is for the supervisor, who passes it on once.
                start_new_session=True,
                env={**os.environ, VARIABLE: config.as_variable()},
            )
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        control = WorkerControl(stream)
        worker = Worker(number, process, control, self.owner.has_started, self.owner.event, self._serves)
        self.live[number] = worker
        return worker

    async def metrics_text(self, *, is_open: bool = False) -> bytes:
        """The sum of the workers' metrics; ``is_open``: as OpenMetrics, with exemplars."""
        asked = self.live.copy()
        answers: dict[int, bytes | None] = {}

        async def ask(worker: Worker) -> None:
            answers[worker.number] = await worker.ask(MessageKind.METRICS) or None

        async with trio.open_nursery() as nursery:
            for worker in asked.values():
                nursery.start_soon(ask, worker)
        for number, text in answers.items():
            if text is None:
                log.warning("worker %d does not answer; its metrics are as they were", number)
        # Of one that has ended since, what it had counted is kept already.
        still = {number for number, worker in asked.items() if self.live.get(number) is worker}
        texts = [(number, text) for number, text in answers.items() if number in still]
        return self.metrics.merge(texts, is_open=is_open)

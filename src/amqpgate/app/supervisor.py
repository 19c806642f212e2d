"""Several worker processes behind the same ports, looked after by one that relays nothing.

Each worker is a whole gateway that listens with SO_REUSEPORT, so the kernel spreads new connections
over them and no connection passes through two processes. The supervisor has the admin interface,
sums the workers' metrics, passes signals on, and starts a worker again that has died.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import cast

import attrs
import trio

from amqpgate.admin.http import LAST_WORDS, serve_admin
from amqpgate.admin.routes import State
from amqpgate.app.worker_rpc import VARIABLE, Birth, Control, ControlClosedError, MessageKind
from amqpgate.config import Settings
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.server.lifecycle import Phase, any_of
from amqpgate.gateway.transport.listener import bind_all
from amqpgate.operator.queries import CALLS, STREAMS
from amqpgate.telemetry.answers import JSON, NOTHING, Answers, Args, IncompleteError
from amqpgate.telemetry.events import EventSubscriber, Item
from amqpgate.telemetry.merge import Workers

log = logging.getLogger(__name__)

#: Pause before a dead worker is started again, in seconds: doubled each time, up to the last.
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 30.0
#: A worker that lived this long was healthy: the pauses begin anew.
_HEALTHY = 60.0
#: How long a question waits for one worker, unless it says otherwise.
_PATIENCE = 2.0
#: Pause between two looks at whether all workers serve, in seconds.
_LOOK = 0.05


@attrs.define(eq=False)
class Worker:
    """One worker process, as long as it lives."""

    number: int
    process: trio.Process
    control: Control
    #: Called when it serves.
    on_started: Callable[[Worker], Awaitable[None]]
    #: Told of news: the number of the ``listen``, and the worker's own.
    on_news: Callable[[int, int, JSON], None]
    started: bool = False
    #: Not, though it serves: its audit records are not written.
    ready: bool = True
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
                elif kind is MessageKind.READY:
                    self.ready = bool(number)
                elif kind is MessageKind.NEWS:
                    self.on_news(number, self.number, json.loads(text))
                elif number in self._asked:
                    self._asked[number].send_nowait(text)
        # Nobody need wait any longer.
        for asked in self._asked.values():
            asked.close()

    async def ask(
        self, kind: MessageKind, text: bytes = b"", *, patience: float | None = None
    ) -> bytes | None:
        """Its answer, or None where it does not answer in ``patience`` seconds, `_PATIENCE` unless given."""
        number = next(self._questions)
        send, receive = trio.open_memory_channel[bytes](1)
        self._asked[number] = send
        try:
            with (
                trio.move_on_after(_PATIENCE if patience is None else patience),
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
        """Its answer to one of ``calls.CALLS``. Raises ``IncompleteError``."""
        text = await self.ask(MessageKind.CALL, _call(name, args), patience=patience)
        if not text:
            raise IncompleteError(f"worker {self.number} has not answered '{name}'")
        answer: JSON = json.loads(text)
        return answer


def _call(name: str, args: Args) -> bytes:
    return json.dumps({"call": name, "args": dict(args)}).encode()


@attrs.frozen
class _Heard:
    """A stream that somebody listens to."""

    listen: bytes
    subscriber: EventSubscriber


@attrs.define(eq=False)
class Supervisor:
    """Looks after ``settings.workers`` processes, each started with ``command``."""

    settings: Settings
    command: list[str]
    #: Called once, when the first worker accepts connections: then the ports do.
    on_started: Callable[[Supervisor], None]
    #: Called in a thread once they serve, to have another process give up the admin address.
    take_over: Callable[[], None] | None = None
    workers: dict[int, Worker] = attrs.field(factory=dict, init=False)
    #: Subscriber name -> (host, port) as bound.
    addresses: dict[str, tuple[str, int]] = attrs.field(factory=dict, init=False)
    #: By the number of the ``listen``.
    _heard: dict[int, _Heard] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: count(1), init=False)
    _metrics: Workers = attrs.field(factory=Workers, init=False)
    _has_started: bool = attrs.field(default=False, init=False)
    _stop: trio.Event = attrs.field(factory=trio.Event, init=False)
    _paused: bool = attrs.field(default=False, init=False)
    #: The admin address is another process's.
    _handed_over: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: What limits are counted on, together; None: by each worker.
    _board: SharedMemory | None = attrs.field(default=None, init=False)
    _worst: int = attrs.field(default=0, init=False)

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""
        return self.phase == "ready" and all(worker.ready for worker in self.workers.values())

    @property
    def phase(self) -> Phase:
        """How it stands with new connections."""
        if self._stop.is_set():
            return "draining"
        if self._paused:
            return "paused"
        return "ready" if any(worker.started for worker in self.workers.values()) else "starting"

    @property
    def started(self) -> bool:
        """Whether they were ever accepted."""
        return self._has_started

    async def metrics_text(self) -> bytes:
        """The sum of the workers' metrics."""
        asked = self.workers.copy()
        answers: dict[int, bytes | None] = {}

        async def ask(worker: Worker) -> None:
            answers[worker.number] = await worker.ask(MessageKind.METRICS)

        async with trio.open_nursery() as nursery:
            for worker in asked.values():
                nursery.start_soon(ask, worker)
        for number, text in answers.items():
            if text is None:
                log.warning("worker %d does not answer; its metrics are as they were", number)
        # Of one that has ended since, what it had counted is kept already.
        still = {number for number, worker in asked.items() if self.workers.get(number) is worker}
        return self._metrics.merge((number, text) for number, text in answers.items() if number in still)

    # -- what operators ask ------------------------------------------------------------------

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """What every worker answers to one of ``calls.CALLS``, each within ``patience`` seconds.

        Raises ``KeyError`` where there is no such call.
        """
        if name not in CALLS:
            raise KeyError(name)
        answers = Answers()
        silent = []

        async def ask(worker: Worker) -> None:
            try:
                answers[worker.number] = await worker.call(name, args, patience=patience)
            except IncompleteError:
                silent.append(worker.number)

        async with trio.open_nursery() as nursery:
            for worker in list(self.workers.values()):
                nursery.start_soon(ask, worker)
        answers.silent = tuple(silent)
        return answers

    async def order(self, verb: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """As ``call``: pause, resume or drain. Workers that are born later do as they were told."""
        if verb == "drain":
            self._stop.set()
        else:
            self._paused = verb == "pause"
        return await self.call(verb, args, patience=patience)

    def hand_over(self) -> None:
        """Another process has the ports, and is to have the admin address."""
        self._handed_over.set()

    @asynccontextmanager
    async def stream(self, name: str, args: Args = NOTHING) -> AsyncIterator[AsyncIterator[Item]]:
        """What one of ``calls.STREAMS`` gives, of all workers, those to come included."""
        if name not in STREAMS:
            raise KeyError(name)
        number = next(self._numbers)
        text = json.dumps({"stream": name, "args": dict(args)}).encode()
        heard = self._heard[number] = _Heard(text, EventSubscriber())
        try:
            for worker in list(self.workers.values()):
                await worker.tell(MessageKind.LISTEN, text, number)
            yield aiter(heard.subscriber)
        finally:
            del self._heard[number]
            with trio.move_on_after(_PATIENCE, shield=True):
                for worker in list(self.workers.values()):
                    await worker.tell(MessageKind.UNLISTEN, number=number)

    def _news(self, number: int, worker: int, item: JSON) -> None:
        if number in self._heard:
            self._heard[number].subscriber.put(item, worker)

    def _worker_is(self, state: str, worker: Worker) -> None:
        """Whoever listens is told."""
        for heard in self._heard.values():
            heard.subscriber.put({"event": "worker", "at": time.time(), "state": state}, worker.number)

    async def _pass_orders_on(self, newcomer: Worker) -> None:
        """A worker that has just been born does as the others do, and says what the others say."""
        if not self._has_started:
            self._has_started = True
            self.on_started(self)
        if self._stop.is_set():
            await newcomer.tell(MessageKind.CALL, _call("drain", NOTHING))
        self._worker_is("started", newcomer)
        for number, heard in list(self._heard.items()):
            await newcomer.tell(MessageKind.LISTEN, heard.listen, number)
        for other in list(self.workers.values()):
            if other.started:
                with contextlib.suppress(IncompleteError):
                    for state in cast("list[State]", await other.call("routes", NOTHING)):
                        order = {"name": state["id"], "paused": state["paused"]}
                        await newcomer.tell(MessageKind.CALL, _call("routes", order))
                return

    async def run(self) -> int:
        """Serve until a signal; the exit code is the workers' worst. Raises ``OSError`` for a taken port."""
        self._board = SharedMemory.make(self.settings.workers)
        with (
            contextlib.ExitStack() as reserved,
            trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals,
        ):
            for listener in self.settings.listeners:
                # Bound, and not listening: it holds the ports for the workers, and gets no connection.
                sockets = await bind_all(listener.bind)
                for sock in sockets:
                    reserved.enter_context(sock)
                self.addresses[listener.name] = (listener.bind.host, sockets[0].getsockname()[1])
            async with trio.open_nursery() as root:
                over, admin_over = trio.Event(), trio.Event()
                if self.settings.admin is None:
                    admin_over.set()
                elif self.take_over is None:
                    await root.start(self._admin, over, admin_over)
                root.start_soon(self._pass_signals_on, signals)
                async with trio.open_nursery() as keepers:
                    for number in range(self.settings.workers):
                        await keepers.start(self._keep, number)
                    if self.take_over is not None:
                        await self._take_over(self.take_over)
                        await root.start(self._admin, over, admin_over)
                over.set()
                with trio.move_on_after(LAST_WORDS):
                    await admin_over.wait()
                root.cancel_scope.cancel()
        return self._worst

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

    async def _take_over(self, take_over: Callable[[], None]) -> None:
        """Once every worker serves."""
        while sum(worker.started for worker in self.workers.values()) < self.settings.workers:
            if self._stop.is_set():
                return
            await trio.sleep(_LOOK)
        await trio.to_thread.run_sync(take_over)

    async def _pass_signals_on(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            log.info("%s: passed on to %d workers", signal.Signals(number).name, len(self.workers))
            reload = number == signal.SIGHUP
            if not reload:
                self._stop.set()
            for worker in self.workers.values():
                # One that is only just being born would die of SIGHUP, and reads the policies anyway.
                if worker.started or not reload:
                    with contextlib.suppress(ProcessLookupError):
                        worker.process.send_signal(signal.SIGHUP if reload else signal.SIGTERM)

    async def _keep(self, number: int, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have worker ``number`` running until the supervisor stops."""
        pause = _FIRST_PAUSE
        worker = await self._start(number)
        task_status.started()
        while True:
            born = trio.current_time()
            code = await self._attend(worker)
            if self._stop.is_set():
                # One that was only just being born dies of the signal itself.
                self._worst = max(self._worst, 0 if code == -signal.SIGTERM else abs(code))
                return
            if trio.current_time() - born >= _HEALTHY:
                pause = _FIRST_PAUSE
            log.error("worker %d ended with code %d; another one starts in %g s", number, code, pause)
            with trio.move_on_after(pause):
                await self._stop.wait()
                return
            pause = min(2 * pause, _LAST_PAUSE)
            worker = await self._start(number)

    async def _attend(self, worker: Worker) -> int:
        """The exit code of a worker, once it has ended. Cancelled, it takes the worker along."""
        try:
            await worker.listen()
            return await worker.process.wait()
        finally:
            del self.workers[worker.number]
            self._metrics.gone(worker.number)
            if worker.process.returncode is None:
                worker.process.kill()
            if self._board is not None:
                self._board.forget(worker.number)
            self._worker_is("gone", worker)
            with trio.CancelScope(shield=True):
                await worker.control.stream.aclose()

    async def _start(self, number: int) -> Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            board = self._board
            limits = None if board is None else board.fd
            birth = Birth(
                theirs.fileno(), number, self.addresses, self._paused, limits, self.settings.workers
            )
            process = await trio.lowlevel.open_process(
                self.command,
                pass_fds=(theirs.fileno(), *(() if board is None else (board.fd,))),
                # A Ctrl-C on the terminal is for the supervisor, who passes it on once.
                start_new_session=True,
                env={**os.environ, VARIABLE: birth.as_variable()},
            )
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        worker = self.workers[number] = Worker(
            number, process, Control(stream), self._pass_orders_on, self._news
        )
        return worker


def own_command() -> list[str]:
    """The command line that makes this program again, with the same arguments."""
    return [sys.executable, "-m", "amqpgate", *sys.argv[1:]]

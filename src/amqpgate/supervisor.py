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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import attrs
import trio

from amqpgate.admin.http import serve_admin
from amqpgate.admin.routes import IncompleteError, State
from amqpgate.config import Settings
from amqpgate.gateway.listener import bind_all
from amqpgate.gateway.pool_states import State as PoolState
from amqpgate.gateway.reloading import PolicyState, combine
from amqpgate.telemetry.merge import Workers
from amqpgate.worker import VARIABLE, Birth, Control, ControlClosedError, Kind

log = logging.getLogger(__name__)

#: Pause before a dead worker is started again, in seconds: doubled each time, up to the last.
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 30.0
#: A worker that lived this long was healthy: the pauses begin anew.
_HEALTHY = 60.0
#: How long a scrape waits for one worker; what does not answer is left out and logged.
_PATIENCE = 2.0
#: How long the workers may take to read the policies again, and to say which ones hold.
_RELOAD_PATIENCE, _STATE_PATIENCE = 30.0, 0.5


@attrs.define(eq=False)
class Worker:
    """One worker process, as long as it lives."""

    number: int
    process: trio.Process
    control: Control
    #: Called when it serves.
    on_started: Callable[[Worker], Awaitable[None]]
    started: bool = False
    _answers: list[trio.MemorySendChannel[bytes]] = attrs.field(factory=list)
    #: Held while a question is sent, so that answers come in the order of the questions.
    _asking: trio.Lock = attrs.field(factory=trio.Lock)

    async def listen(self) -> None:
        """Deal with what it says, until it is gone."""
        with contextlib.suppress(ControlClosedError):
            while True:
                kind, text = await self.control.receive()
                if kind is Kind.STARTED:
                    await self.on_started(self)
                    self.started = True
                elif self._answers:
                    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        self._answers.pop(0).send_nowait(text)

    async def ask(self, kind: Kind, text: bytes = b"", *, patience: float | None = None) -> bytes | None:
        """Its answer, or None where it does not answer in ``patience`` seconds, `_PATIENCE` unless given."""
        with (
            trio.move_on_after(_PATIENCE if patience is None else patience),
            contextlib.suppress(ControlClosedError),
        ):
            answer = await self.tell(kind, text)
            with answer:
                return await answer.receive()
        return None

    async def tell(self, kind: Kind, text: bytes) -> trio.MemoryReceiveChannel[bytes]:
        """Its answer comes by what is returned, if somebody waits for it."""
        send, receive = trio.open_memory_channel[bytes](1)
        async with self._asking:
            self._answers.append(send)
            await self.control.send(kind, text)
        return receive


def _find(states: Sequence[State], like: State) -> State:
    return next((state for state in states if state["id"] == like["id"]), {})


def _order(name: str | None, paused: bool) -> bytes:
    return json.dumps({"name": name, "paused": paused}).encode()


@attrs.define(eq=False)
class Supervisor:
    """Looks after ``settings.workers`` processes, each started with ``command``."""

    settings: Settings
    command: list[str]
    #: Called once, when all workers have been started.
    on_started: Callable[[Supervisor], None]
    workers: dict[int, Worker] = attrs.field(factory=dict, init=False)
    #: Listener name -> (host, port) as bound.
    addresses: dict[str, tuple[str, int]] = attrs.field(factory=dict, init=False)
    _metrics: Workers = attrs.field(factory=Workers, init=False)
    _stop: trio.Event = attrs.field(factory=trio.Event, init=False)
    _worst: int = attrs.field(default=0, init=False)

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""
        return not self._stop.is_set() and any(worker.started for worker in self.workers.values())

    async def metrics_text(self) -> bytes:
        """The sum of the workers' metrics."""
        asked = self.workers.copy()
        answers = await self._ask_all(Kind.METRICS)
        for number, text in answers.items():
            if text is None:
                log.warning("worker %d does not answer; its metrics are as they were", number)
        # Of one that has ended since, what it had counted is kept already.
        still = {number for number, worker in asked.items() if self.workers.get(number) is worker}
        return self._metrics.merge((number, text) for number, text in answers.items() if number in still)

    async def steer_routes(self, name: str | None = None, paused: bool = False) -> list[State]:
        """Pause or resume a route in every worker, also in those to come; then, all routes."""
        answers = (await self._ask_all(Kind.ROUTES, _order(name, paused))).values()
        told: list[list[State] | None] = [json.loads(text) for text in answers if text is not None]
        if len(told) < len(answers):
            raise IncompleteError("not every worker has answered in time; ask again")
        known = [states for states in told if states is not None]
        if not known:
            raise KeyError(name)
        # While policies are read again, one may know what another does not.
        return [
            {
                **state,
                "paused": any(_find(states, state).get("paused") for states in known),
                "waiting": sum(int(str(_find(states, state).get("waiting", 0))) for states in known),
            }
            for state in known[0]
        ]

    async def pool_states(self) -> list[PoolState]:
        """The pools of every worker, each with the number of its worker."""
        answers = await self._ask_all(Kind.POOLS)
        if None in answers.values():
            raise IncompleteError("not every worker has answered in time; ask again")
        return [
            {"worker": number, **state}
            for number, text in answers.items()
            for state in json.loads(text or b"[]")
        ]

    async def _pass_orders_on(self, newcomer: Worker) -> None:
        """A worker that has just been born does as the others do."""
        for other in list(self.workers.values()):
            if other.started:
                text = await other.ask(Kind.ROUTES, _order(None, False))
                for state in json.loads(text or b"[]"):
                    await newcomer.tell(Kind.ROUTES, _order(state["id"], state["paused"]))
                return

    async def _ask_all(self, kind: Kind, text: bytes = b"") -> dict[int, bytes | None]:
        """The answer of every worker, by its number."""
        answers: dict[int, bytes | None] = {}

        async def ask(worker: Worker) -> None:
            answers[worker.number] = await worker.ask(kind, text)

        async with trio.open_nursery() as nursery:
            for worker in list(self.workers.values()):
                nursery.start_soon(ask, worker)
        return answers

    async def reload_policies(self) -> PolicyState:
        """Every worker reads the policies again."""
        return await self._policies(Kind.RELOAD, _RELOAD_PATIENCE)

    async def policy_state(self) -> PolicyState:
        """Which policies the workers have."""
        return await self._policies(Kind.POLICIES, _STATE_PATIENCE)

    async def _policies(self, kind: Kind, patience: float) -> PolicyState:
        states: list[PolicyState | None] = []

        async def ask(worker: Worker) -> None:
            text = await worker.ask(kind, patience=patience)
            states.append(PolicyState.from_json(text) if text is not None else None)

        async with trio.open_nursery() as nursery:
            for worker in list(self.workers.values()):
                nursery.start_soon(ask, worker)
        return combine(states)

    async def run(self) -> int:
        """Serve until a signal; the exit code is the workers' worst. Raises ``OSError`` for a taken port."""
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
                over = trio.Event()
                if self.settings.admin is not None:
                    await root.start(self._admin, over)
                root.start_soon(self._pass_signals_on, signals)
                async with trio.open_nursery() as keepers:
                    for number in range(self.settings.workers):
                        await keepers.start(self._keep, number)
                    self.on_started(self)
                over.set()
                root.cancel_scope.cancel()
        return self._worst

    async def _admin(
        self, over: trio.Event, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        assert self.settings.admin is not None
        await serve_admin(self.settings.admin, self, shutdown=over.wait, task_status=task_status)

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
            with trio.CancelScope(shield=True):
                await worker.control.stream.aclose()

    async def _start(self, number: int) -> Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            birth = Birth(theirs.fileno(), number, self.addresses)
            process = await trio.lowlevel.open_process(
                self.command,
                pass_fds=(theirs.fileno(),),
                # A Ctrl-C on the terminal is for the supervisor, who passes it on once.
                start_new_session=True,
                env={**os.environ, VARIABLE: birth.as_variable()},
            )
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        worker = self.workers[number] = Worker(number, process, Control(stream), self._pass_orders_on)
        return worker


def own_command() -> list[str]:
    """The command line that makes this program again, with the same arguments."""
    return [sys.executable, "-m", "amqpgate", *sys.argv[1:]]

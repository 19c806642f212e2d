"""What a worker tells of itself, and what its supervisor makes of it."""

from __future__ import annotations

import sys
from typing import cast

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry, Gauge

from amqpgate.app import worker_rpc
from amqpgate.app.worker_process import Worker, WorkerOwner, WorkerProcesses
from amqpgate.app.worker_queries import _WorkerQueries
from amqpgate.app.worker_rpc import VARIABLE, MessageKind, WorkerControl
from amqpgate.config import Settings, parse
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.server.readiness import Readiness
from amqpgate.gateway.server.standing import Impairment
from amqpgate.telemetry.metrics import Metrics


class Ready:
    """As much of a gateway as is asked."""

    def __init__(self) -> None:
        self.lifecycle = self
        self.readiness = Readiness(Gauge("ready", "Ready.", registry=CollectorRegistry()))
        self.readiness.become(True)


async def test_a_worker_whose_audit_is_down_is_not_ready(nursery: trio.Nursery) -> None:
    far, near = trio.testing.memory_stream_pair()
    gateway = Ready()

    async def started(_worker: Worker) -> None:
        """Nothing to do."""

    worker = Worker(
        0,
        cast(trio.Process, None),
        WorkerControl(near),
        on_started=started,
        on_event=lambda *_: None,
        on_serving=lambda: None,
    )
    nursery.start_soon(worker.listen)
    nursery.start_soon(_WorkerQueries(cast(Gateway, gateway), WorkerControl(far), nursery)._tell_ready)
    await trio.testing.wait_all_tasks_blocked()
    assert worker.ready
    for ready in (False, True, False):
        gateway.readiness.become(ready)
        await trio.testing.wait_all_tasks_blocked()
        assert (worker.ready, worker.impairments) == (ready, 0)
    for impairment in (Impairment.AUDIT, Impairment.MEMORY, Impairment.AUDIT | Impairment.MEMORY):
        gateway.readiness.become(True, impairment)
        await trio.testing.wait_all_tasks_blocked()
        assert (worker.ready, worker.impairments) == (False, impairment)
    nursery.cancel_scope.cancel()


async def test_what_cannot_be_answered_ends_nothing_else(nursery: trio.Nursery) -> None:
    """There may be no memory for an answer: who asked goes on without, and asks again."""
    far, near = trio.testing.memory_stream_pair()
    answers: list[bytes | None] = [None, b"metrics"]

    class Poor(Ready):
        metrics = Metrics(lambda: None)

        async def metrics_text(self) -> bytes:
            answer = answers.pop(0)
            if answer is None:
                raise MemoryError
            return answer

    nursery.start_soon(_WorkerQueries(cast(Gateway, Poor()), WorkerControl(far), nursery).run)
    supervisor = WorkerControl(near)
    assert (await supervisor.receive())[0] is MessageKind.STARTED
    with trio.fail_after(5):
        for number in (1, 2):
            await supervisor.send(MessageKind.METRICS, number=number)
        assert await supervisor.receive() == (MessageKind.METRICS, 2, b"metrics")
    nursery.cancel_scope.cancel()


async def test_an_answer_that_is_too_long_is_none_and_others_are_understood(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients choose names that are in it."""
    monkeypatch.setattr(worker_rpc, "LONGEST", 100)
    far, near = trio.testing.memory_stream_pair()
    worker, supervisor = WorkerControl(far), WorkerControl(near)
    with trio.fail_after(5):
        for length in (100, 101):
            await worker.send(MessageKind.CALL, b"x" * length, 1)
            await worker.send(MessageKind.METRICS, b"x" * length, 2)
            await worker.send(MessageKind.EVENT, b"x" * length, 3)
        await worker.send(MessageKind.STARTED)
        heard = []
        while (message := await supervisor.receive())[0] is not MessageKind.STARTED:
            heard.append((message[1], len(message[2])))
    assert heard == [(1, 100), (2, 100), (3, 100), (1, 0), (2, 0)]


#: A worker that says what nobody understands, and ends when it hears that nobody listens.
SENSELESS = f"""
import json, os, socket, sys
control = socket.socket(fileno=json.loads(os.environ[{VARIABLE!r}])["control"])
control.sendall(b"\\xff" * 9)
control.settimeout(60)
sys.exit(7 if control.recv(1) == b"" else 8)
"""


class Nobody:
    """Who has workers started, and does not mind."""

    is_paused = False

    async def has_started(self, worker: Worker) -> None:
        """It never does."""

    def event(self, number: int, worker: int, item: object) -> None:
        """There are none."""

    def has_ended(self, worker: Worker) -> None:
        """Nothing to do."""


async def test_a_worker_that_cannot_be_understood_hears_so_and_ends() -> None:
    settings: Settings = parse(
        """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
""",
        {},
        file="amqpgate.yaml",
    )
    memory = SharedMemory.make(1)
    workers = WorkerProcesses(
        settings, [sys.executable, "-c", SENSELESS], cast(WorkerOwner, Nobody()), {}, memory
    )
    with trio.fail_after(60):
        assert await workers._attend(await workers._start(0)) == 7

"""What a worker tells of itself, and what its supervisor makes of it."""

from __future__ import annotations

from typing import cast

import trio
import trio.testing
from prometheus_client import CollectorRegistry, Gauge

from amqpgate.app.worker_process import Worker
from amqpgate.app.worker_queries import _WorkerQueries
from amqpgate.app.worker_rpc import MessageKind, WorkerControl
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.server.readiness import Readiness
from amqpgate.gateway.server.standing import Impairment


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

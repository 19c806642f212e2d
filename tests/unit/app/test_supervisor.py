"""What a worker tells of itself, and what its supervisor makes of it."""

from __future__ import annotations

from typing import cast

import attrs
import trio
import trio.testing

from amqpgate.app.supervisor import Worker
from amqpgate.app.worker_queries import _Answering
from amqpgate.app.worker_rpc import Control
from amqpgate.gateway.server.gateway import Gateway


@attrs.define
class Ready:
    """As much of a gateway as is asked."""

    ready: bool = True
    ready_changes: trio.Event = attrs.field(factory=trio.Event)

    def become(self, ready: bool) -> None:
        self.ready = ready
        self.ready_changes.set()
        self.ready_changes = trio.Event()


async def test_a_worker_whose_audit_is_down_is_not_ready(nursery: trio.Nursery) -> None:
    far, near = trio.testing.memory_stream_pair()
    gateway = Ready()

    async def started(_worker: Worker) -> None:
        """Nothing to do."""

    worker = Worker(0, cast(trio.Process, None), Control(near), on_started=started, on_news=lambda *_: None)
    nursery.start_soon(worker.listen)
    nursery.start_soon(_Answering(cast(Gateway, gateway), Control(far), nursery)._tell_ready)
    await trio.testing.wait_all_tasks_blocked()
    assert worker.ready
    for ready in (False, True, False):
        gateway.become(ready)
        await trio.testing.wait_all_tasks_blocked()
        assert worker.ready is ready
    nursery.cancel_scope.cancel()

"""When a mirror is dialled, and what becomes of messages while it is away. The clock is a mock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock, wait_all_tasks_blocked

from amqpgate.errors import AmqpgateError
from amqpgate.gateway.observers.mirror.dial import Dialled
from amqpgate.gateway.observers.mirror.mirror import FIRST_BACK_OFF, LAST_BACK_OFF, MirrorWorker
from amqpgate.gateway.observers.mirror.queue import MirroredMessage
from amqpgate.telemetry.mirrors import MirrorMetrics
from tests.support.metrics import sample_value


class Away:
    """A mirror whose brokers are not there, and when it was dialled."""

    def __init__(self, nursery: trio.Nursery, error: Exception | None = None) -> None:
        self.registry = CollectorRegistry()
        self.nursery = nursery
        self.error = error or AmqpgateError("nobody is there")
        self.dials: list[float] = []
        #: Set: a dial takes until then.
        self.answers: trio.Event | None = None
        account = MirrorMetrics(self.registry).account("m")
        self.worker = MirrorWorker("m", self.dial, account, 1 << 20, self.start)

    def start(self, job: Callable[[], Awaitable[None]]) -> None:
        self.nursery.start_soon(job)

    async def dial(self) -> Dialled:
        self.dials.append(trio.current_time())
        if self.answers is not None:
            await self.answers.wait()
        raise self.error

    def publish(self) -> None:
        message = MirroredMessage("e", "k", b"header", 0, None)
        if self.worker.queue.reserve(message):
            self.worker.queue.put(message)

    def dropped(self, reason: str) -> int:
        labels = {"upstream": "m", "reason": reason}
        return int(sample_value(self.registry, "amqpgate_mirror_dropped_messages_total", labels) or 0)

    @property
    def held(self) -> int:
        """Bytes that are held."""
        return self.worker.queue.held


async def test_it_is_dialled_for_a_message_and_left_alone_longer_each_time(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        mirror = Away(nursery)
        assert mirror.dials == []
        for number in range(1, 12):
            mirror.publish()
            await trio.sleep(0.001)
            # What comes while it is away is dropped at once, and dials nobody.
            mirror.publish()
            assert len(mirror.dials) == number
            assert mirror.worker.idle is not None
            await mirror.worker.idle.wait()
        pauses = [after - before for before, after in zip(mirror.dials, mirror.dials[1:], strict=False)]
        expected = [min(FIRST_BACK_OFF * 2**number, LAST_BACK_OFF) for number in range(10)]
        assert [round(pause, 3) for pause in pauses] == expected
        assert (mirror.dropped("unavailable"), mirror.held) == (22, 0)


async def test_a_fault_of_the_gateways_own_is_no_end_of_it(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        mirror = Away(nursery, ZeroDivisionError("a fault"))
        for number in range(1, 3):
            mirror.publish()
            await wait_all_tasks_blocked()
            assert (len(mirror.dials), mirror.dropped("unavailable")) == (number, number)
            await trio.sleep(LAST_BACK_OFF)
            assert mirror.worker.idle is None


async def test_at_the_end_it_does_not_wait_to_dial_again(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        mirror = Away(nursery)
        mirror.publish()
        await trio.sleep(0.001)
        began = trio.current_time()
        await mirror.worker.finish()
        assert (trio.current_time(), mirror.worker.idle) == (began, None)
        await mirror.worker.finish()


async def test_what_it_is_not_given_the_time_for_is_counted_as_stopped(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        mirror = Away(nursery)
        mirror.answers = trio.Event()
        for _ in range(3):
            mirror.publish()
        await wait_all_tasks_blocked()
        assert len(mirror.dials) == 1
        with trio.move_on_after(1) as patience:
            await mirror.worker.finish()
        assert patience.cancelled_caught
        nursery.cancel_scope.cancel()
    assert (mirror.dropped("stopped"), mirror.held, mirror.worker.idle) == (3, 0, None)

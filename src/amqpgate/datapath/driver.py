"""Who waits on the pump.

``drive``       a trio task: works under any ``trio.run``, in tests too
``run_hosted``  the pump's own loop, with trio as its guest: what ``amqpgate run`` uses

As a guest, trio does its waiting in a thread of its own and runs its tasks between the pump's
steps. An event of an established session then costs one ``epoll_wait`` and no trick of trio's
scheduler: with one message in flight the relay costs 0.9 of HAProxy instead of 2.2 (the study behind
the design; ``make bench`` repeats it). Whatever waits in trio costs a thread's turn more,
which is why set-ups do not (`gateway.transport.fibers`).
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import outcome
import trio

from amqpgate.datapath.engine import Pump
from amqpgate.datapath.guest import be_modest, tick_without_thread
from amqpgate.logs import RECURRING

log = logging.getLogger(__name__)

#: Seconds until trio is given another try to wait.
_BREATH = 0.05

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def drive(pump: Pump) -> None:
    """Run the pump until cancelled. One task for all sessions."""
    while True:
        await trio.lowlevel.wait_readable(pump.fileno())
        pump.step()


def run_hosted(pump: Pump, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """As ``trio.run(async_fn, *args)``, while the calling thread drives the pump.

    Nobody else may drive it meanwhile. Returns or raises what ``async_fn`` does.
    """
    callbacks: deque[Callable[[], object]] = deque()
    ended: list[outcome.Outcome[T]] = []

    def soon(callback: Callable[[], object]) -> None:
        callbacks.append(callback)
        pump.interrupt()

    trio.lowlevel.start_guest_run(
        async_fn,
        *args,
        run_sync_soon_threadsafe=soon,
        # Called by what is in ``callbacks``: the pump does not wait then.
        run_sync_soon_not_threadsafe=callbacks.append,
        done_callback=ended.append,
        host_uses_signal_set_wakeup_fd=False,
        restrict_keyboard_interrupt_to_checkpoints=True,
    )
    be_modest(callbacks[0])
    while not ended:
        if callbacks:
            pump.step()
        else:
            pump.run()
        # Those that are added meanwhile wait for the next round, so that sockets get their turn.
        for _ in range(len(callbacks)):
            callback = callbacks.popleft()
            try:
                callback()
            except (RuntimeError, MemoryError) as error:
                tick = tick_without_thread(callback)
                if tick is None:
                    raise
                # Nothing had come for trio, and it has no thread to wait in: it looks again a moment later.
                with contextlib.suppress(MemoryError):
                    log.error("no thread to wait in: %s", error, extra=RECURRING)
                callbacks.append(tick)
                pump.step(_BREATH)
    return ended[0].unwrap()

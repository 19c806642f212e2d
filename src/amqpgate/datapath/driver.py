"""Who waits on the pump.

``drive``       a trio task: works under any ``trio.run``, in tests too
``run_hosted``  the pump's own loop, with trio as its guest: what ``amqpgate run`` uses

As a guest, trio runs its tasks between the pump's steps, and the pump waits for both (`datapath.guest`). An
event of an established session then costs one ``epoll_wait`` and no trick of trio's scheduler: with one
message in flight the relay costs 0.9 of HAProxy instead of 2.2 (the study behind the design; ``make bench``
repeats it).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple, cast

import outcome
import trio

from amqpgate.datapath.engine import Pump
from amqpgate.datapath.guest import Guest, host

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
    guest = host(callbacks[0], pump)
    if guest is not None:
        return cast(T, _until_over(pump, guest).unwrap())
    while not ended:
        if callbacks:
            pump.step()
        else:
            pump.run()
        # Those that are added meanwhile wait for the next round, so that sockets get their turn.
        for _ in range(len(callbacks)):
            callbacks.popleft()()
    return ended[0].unwrap()


def _until_over(pump: Pump, guest: Guest) -> outcome.Outcome[object]:
    try:
        while (end := guest.tick()) is None:
            if guest.is_due:
                pump.step(guest.pause)
            else:
                pump.run()
        return end
    finally:
        guest.close()

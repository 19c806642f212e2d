"""One life of a gateway process: from its start to its end, or to the moment that it is killed."""

from __future__ import annotations

import math
import select
from collections import deque
from collections.abc import Callable
from typing import Any

import outcome
import trio

from amqpgate import __version__
from amqpgate.config import Settings
from amqpgate.datapath.guest import host
from amqpgate.gateway.server import assembly
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.policy import PolicySet
from tests.simulation.clock import Clock


class Life:
    """A gateway that runs as ``amqpgate run`` does: the pump drives, and trio is its guest."""

    def __init__(self, settings: Settings, policies: PolicySet, clock: Clock) -> None:
        self.gateway: Gateway = assembly.build(settings, policies, __version__)
        self._step = self.gateway.pump.step
        #: The pump that has no timer.
        self._compiled: Any = self.gateway.pump if hasattr(self.gateway.pump, "due") else None
        self.end: outcome.Outcome[object] | None = None
        self.is_serving = False
        self._scope = trio.CancelScope()
        self._callbacks: deque[Callable[[], object]] = deque()
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._soon,
            run_sync_soon_not_threadsafe=self._callbacks.append,
            done_callback=lambda _: None,
            host_uses_signal_set_wakeup_fd=True,
            restrict_keyboard_interrupt_to_checkpoints=True,
            clock=clock,
        )
        guest = host(self._callbacks[0], self.gateway.pump)
        assert guest is not None, "this trio cannot be the pump's guest"
        self._guest: Any = guest
        self._epoll = select.epoll()
        self._epoll.register(self.gateway.pump.fileno(), select.EPOLLIN)

    def _soon(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)
        self.gateway.pump.interrupt()

    async def _main(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._serve)
                self.is_serving = True

    async def _serve(self, task_status: trio.TaskStatus[None]) -> None:
        await self.gateway.run(hosted=True, task_status=task_status)

    @property
    def due(self) -> float:
        """When it next has something to do that no descriptor tells of; infinity: never."""
        return self._compiled.due if self._compiled is not None else math.inf

    def turn(self, now: float, *, may_have_heard: bool) -> bool:
        """Let it do what it has to do now; whether there was anything.

        Its descriptors are only looked at where they may tell of something.
        """
        if self.end is not None:
            return False
        if self._guest.is_due:
            self.end = self._guest.tick()
            if self.end is not None:
                self._close()
                return True
            self._step(0)
            return True
        if self.due <= now or (may_have_heard and self._epoll.poll(0)):
            self._step(0)
            return True
        return False

    def kill(self) -> None:
        """It gets no more turns that anybody could notice: what it holds is let go of."""
        self._scope.cancel()
        self._guest._wake()

    def _close(self) -> None:
        self.is_serving = False
        self._guest.close()
        self.gateway.pump.close()
        self._epoll.close()

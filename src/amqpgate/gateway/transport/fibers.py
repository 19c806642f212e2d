"""Fibers: coroutines that the pump drives while they only wait for sockets, without a task of trio's.

The set-up and the farewell of a connection are such coroutines. What they wait for in the common case is a
socket: then the pump resumes them as it serves any other event. For what trio is needed (names, threads,
nurseries, events) they have it run a function (`waiting.in_trio`), and wait for that.

::

    start_soon ──▶ queued ──▶ running ──┬──▶ waits for a socket      ──▶ queued
                                        ├──▶ waits for trio          ──▶ queued
                                        ├──▶ lets others have a turn ──▶ queued
                                        └──▶ over

A login waits some eight times: without trio's ways for each of them one costs about half
(spec/decisions/0041).
"""

from __future__ import annotations

import logging
import math
import os
import select
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, TypeVarTuple

import outcome
import trio

from amqpgate.datapath.engine import Pump
from amqpgate.datapath.timer import Timer
from amqpgate.datapath.wheel import Wheel
from amqpgate.gateway.transport.fiber import Fiber, Interrupted, Scheduled, Work, until_resumed
from amqpgate.logs import log_failure

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: Seconds after which sessions have their turn before more fibers are resumed: one or two steps of a login,
#: so that those who stay hardly feel a storm of those who come.
TURN: Final = 2e-4
#: Events that are taken in at once.
_EVENTS: Final = 256
#: Seconds by which a deadline may be late; those of one such time are one slot of the wheel.
_GRAIN: Final = 0.05


class Fibers:
    """All fibers of one gateway. ``run`` is what trio does for them; ``attend`` is called by the pump."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._timer = Timer()
        self._timer_at = math.inf
        self.epoll.register(self._event, select.EPOLLIN)
        self.epoll.register(self._timer.fileno(), select.EPOLLIN)
        #: By the descriptor that they wait for.
        self.waiting: dict[int, Scheduled] = {}
        self._all: dict[Scheduled, None] = {}
        self._soon: deque[Scheduled] = deque()
        self._wheel: Wheel[Scheduled] = Wheel()
        self._is_attending = False
        #: Somebody may have been forgotten that is to be resumed.
        self._is_shaken = False
        self._tasks: trio.Nursery | None = None
        self._pump: Pump | None = None
        #: No fiber is started any more.
        self.is_closed = False

    def __len__(self) -> int:
        return len(self._all)

    def fileno(self) -> int:
        """Readable when ``attend`` has something to do."""
        return self.epoll.fileno()

    def start_soon(self, work: Work) -> Fiber:
        """Run it, beginning at the next turn; not once ``is_closed``. Where it raises it will not begin."""
        fiber = Fiber(self, work)
        self.begin(fiber)
        return fiber

    def begin(self, one: Scheduled) -> None:
        """As ``start_soon``, of what is no fiber, too."""
        self._all[one] = None
        try:
            self.resume_soon(one)
        except MemoryError:
            del self._all[one]
            raise

    def resume_soon(self, fiber: Scheduled) -> None:
        """It waits no more."""
        try:
            if fiber.queue():
                if not self._soon and not self._is_attending:
                    os.eventfd_write(self._event, 1)
                self._soon.append(fiber)
        except MemoryError:
            self._is_shaken = True
            raise

    def watch(self, fd: int, one: Scheduled, events: int) -> None:
        """Resume it whenever its socket is ready for ``events``, until `unwatch`.

        The pump reports itself what can be received, and has the socket already where a session begins on it:
        one ``epoll_wait`` for each time instead of two, and none of its own to begin and to end with.
        """
        pump = self._pump
        if pump is not None and events == select.EPOLLIN:
            pump.lend(fd, one)
        else:
            self.epoll.register(fd, events)
            self.waiting[fd] = one

    def unwatch(self, fd: int) -> None:
        """What comes there waits. Raises ``OSError`` where it has been closed."""
        if self.waiting.pop(fd, None) is not None:
            self.epoll.unregister(fd)
        elif self._pump is not None:
            self._pump.lend(fd, None)

    def come(self, guests: list[object]) -> None:
        """Resume those whose sockets have something, which the pump has noticed."""
        soon, waiting = self._soon, self.waiting
        if len(guests) == 1 and not soon and not self._is_shaken:
            # As mostly: it has the turn.
            only: Scheduled = guests[0]  # type: ignore[assignment] # who was lent
            if not (only.is_over or (waiting and waiting.get(only.fd) is only)):
                self._take_turn(looks=False, first=only)
            return
        # Where others are left of an earlier turn, they have theirs in a step of the pump: one turn in each.
        has_turn = not soon
        one: Scheduled
        try:
            for one in guests:  # type: ignore[assignment] # who was lent
                # Since the pump noticed, a turn in the same step may have ended it, or had it wait to send.
                if not (one.is_over or one.is_queued or (waiting and waiting.get(one.fd) is one)):
                    one.queue()
                    soon.append(one)
        except MemoryError:
            self._is_shaken = True
            os.eventfd_write(self._event, 1)
            raise
        if has_turn:
            self._take_turn(looks=False)

    def attend(self) -> None:
        """Resume those that are due, as many as fit into a turn."""
        self._take_turn(looks=True)

    def _take_turn(self, *, looks: bool, first: Scheduled | None = None) -> None:
        self._is_attending = True
        try:
            if self._is_shaken:
                self._recover()
            until = time.monotonic() + TURN
            if looks:
                self._take_in()
            soon = self._soon
            one = first or (soon.popleft() if soon else None)
            while one is not None:
                if one.proceed():
                    self._end(one)
                one = soon.popleft() if soon and time.monotonic() < until else None
        finally:
            self._is_attending = False
            if self._soon or self._is_shaken:
                os.eventfd_write(self._event, 1)

    def _take_in(self) -> None:
        """Note who is to be resumed by what has come."""
        try:
            for fd, _ in self.epoll.poll(0, _EVENTS):
                fiber = self.waiting.get(fd)
                if fiber is not None:
                    if fiber.queue():
                        self._soon.append(fiber)
                elif fd == self._event:
                    os.eventfd_read(fd)
                elif fd == self._timer.fileno():
                    self._timer.drain()
                    self.look()
        except MemoryError:
            self._is_shaken = True
            raise

    def _recover(self) -> None:
        """Memory ran out while it was noted who is to be resumed: all that wait for sockets look again, and
        all look at their deadlines."""
        known = set(self._soon)
        for fiber in list(self._all):
            if (fiber.fd >= 0 and fiber.queue()) or (fiber.is_queued and fiber not in known):
                self._soon.append(fiber)
                known.add(fiber)
        now = trio.current_time()
        for fiber in list(self._all):
            fiber.look(now)
        self._set_timer()
        self._is_shaken = False

    def _end(self, fiber: Scheduled) -> None:
        # First what cannot fail: who is over is not waited for.
        del self._all[fiber]
        self._wheel.discard(fiber)
        fiber.finish()

    # -- deadlines -----------------------------------------------------------------------------

    def look_at(self, fiber: Scheduled, deadline: float) -> None:
        """Have it look at its deadlines when that time has come."""
        when = math.ceil(deadline / _GRAIN) * _GRAIN
        self._wheel.set(fiber, when)
        # All of one grain are due together, a slot of the wheel after its end.
        if when < self._timer_at - _GRAIN / 2:
            self._set_timer()

    def _set_timer(self) -> None:
        self._timer_at = self._wheel.deadline()
        # The kernel's clock began at another time than trio's.
        self._timer.set(self._timer_at - trio.current_time() + time.monotonic())

    def look(self) -> None:
        """End what should have ended by now."""
        now = trio.current_time()
        for fiber in self._wheel.due(now):
            fiber.look(now)
        self._set_timer()

    # -- trio ----------------------------------------------------------------------------------

    async def run(self, pump: Pump, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled: then all end where they wait."""
        pump.attend(self.fileno(), self.attend)
        pump.serve_guests(self.come)
        self._pump = pump
        try:
            async with trio.open_nursery() as self._tasks:
                task_status.started()
                await trio.sleep_forever()
        finally:
            pump.attend(self.fileno(), None)
            self.is_closed, self._tasks = True, None
            self._cancel_all()
            while self._soon:
                fiber = self._soon.popleft()
                if fiber.proceed():
                    self._end(fiber)
            self.close()

    def close(self) -> None:
        """Give its descriptors back. ``run`` does so; this is for who never ran it."""
        self.epoll.close()
        self._timer.close()
        os.close(self._event)

    def _cancel_all(self) -> None:
        for fiber in list(self._all):
            fiber.cancel()

    async def finish(self, deadline: float) -> None:
        """Wait until all are over. ``deadline``, on trio's clock, ends those that are left."""
        with trio.move_on_at(deadline):
            await self._until_idle()
        self._cancel_all()
        await self._until_idle()

    async def _until_idle(self) -> None:
        while self._all:
            await next(iter(self._all)).over()

    async def do(self, fiber: Fiber, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """What a task of trio's makes of it, which ends with the scopes of the fiber."""
        if self._tasks is None:
            raise Interrupted(None)
        done: list[outcome.Outcome[T]] = []
        fiber.begin_task()
        try:
            self._tasks.start_soon(self._do, fiber, done, async_fn, *args)
        except BaseException:
            fiber.drop_task()
            raise
        try:
            await until_resumed()
        except Interrupted as why:
            if not done:
                raise
            # What it has made is not lost. The scope ends at the next wait.
            fiber.interrupt(why)
        return done[0].unwrap()

    async def _do(
        self,
        fiber: Fiber,
        done: list[outcome.Outcome[T]],
        async_fn: Callable[[*Ts], Awaitable[T]],
        *args: *Ts,
    ) -> None:
        # What leaves this task ends all of them: for want of memory neither its end nor its fault may.
        try:
            try:
                with fiber.task_scope:
                    try:
                        done.append(outcome.Value(await async_fn(*args)))
                    except Exception as error:
                        done.append(outcome.Error(error))
            finally:
                fiber.end_task(has_ended=bool(done))
        except Exception:
            log_failure(log, "what trio did for a fiber failed")

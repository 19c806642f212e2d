"""Waiting in what may run as a fiber or as a task of trio's: for sockets, for a while, for trio.

The names are trio's. Of a task's they are trio's own; a fiber has them from the pump (`fibers`).
"""

from __future__ import annotations

import contextlib
import math
import select
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from types import TracebackType, coroutine
from typing import Protocol, TypeVar, TypeVarTuple

import trio

from amqpgate.gateway.transport.fiber import (
    RUNNING,
    Fiber,
    HasFileno,
    Interrupted,
    until_resumed,
)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def wait_readable(sock: HasFileno) -> Awaitable[None]:
    """Wait until something can be read from a socket, or it is broken."""
    return _wait(sock, select.EPOLLIN, trio.lowlevel.wait_readable)


def wait_writable(sock: HasFileno) -> Awaitable[None]:
    """Wait until something can be sent to a socket, or it is broken."""
    return _wait(sock, select.EPOLLOUT, trio.lowlevel.wait_writable)


@coroutine
def _wait(
    sock: HasFileno, events: int, in_task: Callable[[HasFileno], Coroutine[object, object, None]]
) -> Generator[object, object, None]:
    fiber = RUNNING.fiber
    if fiber is None:
        yield from in_task(sock)  # as `await` does
    else:
        fiber.wait_for(sock, events)
        yield None


async def checkpoint() -> None:
    """Let others have their turn."""
    fiber = RUNNING.fiber
    if fiber is None:
        await trio.lowlevel.checkpoint()
    else:
        fiber.scheduler.resume_soon(fiber)
        await until_resumed()


async def sleep(seconds: float) -> None:
    """Wait so long."""
    if RUNNING.fiber is None:
        await trio.sleep(seconds)
    else:
        with move_on_after(seconds):
            await until_resumed()


async def in_trio(async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """What it returns or raises, run by trio: whatever else than this module makes it wait."""
    fiber = RUNNING.fiber
    if fiber is None:
        return await async_fn(*args)
    return await fiber.scheduler.do(fiber, async_fn, *args)


class Interruptible(Protocol):
    """Who is told that something is to end."""

    def interrupt(self, why: Interrupted) -> None:
        """It is to end."""


class CancelScope:
    """What ``trio.CancelScope`` is for tasks: it may be cancelled, and has a deadline ``seconds`` after it is
    entered. It can be entered once."""

    __slots__ = (
        "_fails",
        "_fiber",
        "_scope",
        "_seconds",
        "cancel_called",
        "cancelled_caught",
        "deadline",
    )

    def __init__(self, seconds: float = math.inf, *, fails: bool = False) -> None:
        self._seconds = seconds
        #: ``trio.TooSlowError`` is raised where it was left because it has ended.
        self._fails = fails
        self._fiber: Fiber | None = None
        self._scope: trio.CancelScope | None = None
        #: On trio's clock, in a fiber.
        self.deadline = math.inf
        self.cancel_called = False
        #: Whether it was left because it has ended.
        self.cancelled_caught = False

    def __enter__(self) -> CancelScope:
        fiber = self._fiber = RUNNING.fiber
        if fiber is None:
            self._scope = trio.CancelScope(deadline=trio.current_time() + self._seconds)
            self._scope.__enter__()
            if self.cancel_called:
                self._scope.cancel()
            return self
        fiber.scopes.append(self)
        if self.cancel_called:
            fiber.interrupt(Interrupted(self))
        if self._seconds != math.inf:
            self.deadline = trio.current_time() + self._seconds
            if self.deadline < fiber.armed:
                fiber.arm(self.deadline)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._scope is not None:
            is_caught = bool(self._scope.__exit__(kind, error, trace))
            self.cancel_called = self._scope.cancel_called
            self.cancelled_caught = self._scope.cancelled_caught
        else:
            if self._fiber is not None:
                self._fiber.leave(self)
                self._fiber = None
            is_caught = self.cancelled_caught = isinstance(error, Interrupted) and error.scope is self
        if self._fails and self.cancelled_caught:
            raise trio.TooSlowError
        return is_caught

    def cancel(self) -> None:
        """End what is in it where it waits."""
        self.cancel_called = True
        if self._scope is not None:
            self._scope.cancel()
        elif self._fiber is not None:
            self._fiber.interrupt(Interrupted(self))

    def expire(self) -> None:
        """Its deadline has passed: `fibers.Ending`."""
        # In this order, so that it passes once more where there is no memory for that.
        self.cancel()
        self.deadline = math.inf

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """What waits in here has deadlines of its own."""
        if self._scope is not None:
            left = self._scope.deadline - trio.current_time()
            self._scope.deadline = math.inf
            try:
                yield None
            finally:
                self._scope.deadline = trio.current_time() + left
        else:
            left = self.deadline - trio.current_time()
            self.deadline = math.inf
            try:
                yield None
            finally:
                self.deadline = trio.current_time() + left
                if self._fiber is not None:
                    self._fiber.arm(self.deadline)


def move_on_after(seconds: float) -> CancelScope:
    """What is in it ends after so long."""
    return CancelScope(seconds)


def fail_after(seconds: float) -> CancelScope:
    """As ``move_on_after``; raises ``trio.TooSlowError`` where it ended so."""
    return CancelScope(seconds, fails=True)

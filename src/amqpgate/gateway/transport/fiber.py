"""One fiber: a coroutine that the pump resumes when what it waits for has come (`fibers`)."""

from __future__ import annotations

import contextlib
import logging
import math
import select
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import coroutine
from typing import Final, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast

import attrs
import trio

from amqpgate.logs import log_failure
from amqpgate.values import define

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: What a fiber runs.
Work: TypeAlias = Coroutine[object, None, object]


class HasFileno(Protocol):
    """A socket, or whatever else epoll takes."""

    def fileno(self) -> int: ...


class Ending(Protocol):
    """What may end a part of a fiber early: a scope (`waiting.CancelScope`)."""

    @property
    def deadline(self) -> float:
        """On trio's clock."""

    def expire(self) -> None:
        """The deadline has passed; there is none any more."""


class Interrupted(BaseException):
    """Raised where a fiber waits in a scope that ends; None: all of the fiber ends."""

    def __init__(self, scope: object | None) -> None:
        super().__init__()
        self.scope = scope


class _OfThread(threading.local):
    """Of each thread."""

    #: None: what runs is no fiber, but a task of trio's, for instance.
    fiber: Fiber | None = None


#: The fiber that runs.
RUNNING: Final = _OfThread()


class Scheduler(Protocol):
    """What a fiber asks of `fibers.Fibers`."""

    @property
    def epoll(self) -> select.epoll:
        """Where sockets are watched."""

    @property
    def waiting(self) -> dict[int, Scheduled]:
        """Who waits for a socket, by its descriptor."""

    def watch(self, fd: int, one: Scheduled, events: int) -> None:
        """Resume it whenever its socket is ready for these."""

    def unwatch(self, fd: int) -> None:
        """What comes there waits. Raises ``OSError`` where it has been closed."""

    def resume_soon(self, one: Scheduled) -> None:
        """It waits no more."""

    def look_at(self, one: Scheduled, deadline: float) -> None:
        """Have it look at its deadlines then."""

    def do(self, fiber: Fiber, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> Awaitable[T]:
        """What a task of trio's makes of it."""


@define(eq=False)
class Scheduled:
    """What waits for sockets and deadlines, and is resumed: a fiber, or a `stepper.Stepper`, which has no
    coroutine."""

    scheduler: Scheduler
    #: The descriptor that it waits for; below zero: none.
    fd: int = attrs.field(default=-1, init=False)
    #: It is resumed soon.
    is_queued: bool = attrs.field(default=False, init=False)
    #: The sockets that epoll knows by it, by their descriptors.
    _watched: dict[int, HasFileno] = attrs.field(factory=dict, init=False)
    _over: trio.Event | None = attrs.field(default=None, init=False)
    is_over: bool = attrs.field(default=False, init=False)

    def queue(self) -> bool:
        """It is to be resumed; whether it was not before."""
        raise NotImplementedError

    def proceed(self) -> bool:
        """Run it until it waits; whether it is over."""
        raise NotImplementedError

    def cancel(self) -> None:
        """End it where it waits."""
        raise NotImplementedError

    def look(self, now: float) -> None:
        """A deadline may have passed."""
        raise NotImplementedError

    def finish(self) -> None:
        """It is over: what was kept for it is let go."""
        self.is_over = True
        epoll = self.scheduler.epoll
        try:
            for fd, sock in self._watched.items():
                # Somebody else's goes on, and is watched there. What is closed is not there any more.
                with contextlib.suppress(OSError, ValueError):
                    if sock.fileno() == fd:
                        epoll.unregister(fd)
        finally:
            self._watched.clear()
            if self._over is not None:
                self._over.set()

    async def over(self) -> None:
        """Wait in trio until it is over."""
        if not self.is_over:
            if self._over is None:
                self._over = trio.Event()
            await self._over.wait()


@define(eq=False)
class Fiber(Scheduled):
    """One coroutine."""

    _work: Work
    #: The scopes that it is in; the outermost first.
    scopes: list[Ending] = attrs.field(factory=list, init=False)
    #: When it looks at its scopes.
    armed: float = attrs.field(default=math.inf, init=False)
    #: What is raised in it when it is resumed.
    _why: Interrupted | None = attrs.field(default=None, init=False)
    _has_begun: bool = attrs.field(default=False, init=False)
    #: Of what trio does for it now.
    _task: trio.CancelScope | None = attrs.field(default=None, init=False)

    # -- resumed and ended, by its scheduler ---------------------------------------------------

    def queue(self) -> bool:
        """It is to be resumed; whether it was not before. It waits for no socket any more."""
        if self.is_queued:
            return False
        if self.fd >= 0:
            self.scheduler.waiting.pop(self.fd, None)
            self.fd = -1
        self.is_queued = True
        return True

    def proceed(self) -> bool:
        """Run it until it waits; whether it is over."""
        self.is_queued = False
        why = None if self._why is None else self._take_why()
        before, RUNNING.fiber = RUNNING.fiber, self
        self._has_begun = True
        try:
            trap: object = self._work.send(None) if why is None else self._work.throw(why)
            if trap is not None:
                # Nobody would resume it.
                self._work.throw(RuntimeError("a fiber waits for trio without `in_trio`"))
        except (StopIteration, Interrupted):
            return True
        except Exception:
            log_failure(log, "a connection's set-up or end failed")
            return True
        finally:
            RUNNING.fiber = before
        if self._why is not None:
            self._be_told()
        return False

    def _take_why(self) -> Interrupted | None:
        if not self._has_begun:
            # It has not taken on yet what it is to let go of: it goes up to where it waits first.
            return None
        why, self._why = self._why, None
        return why

    # -- what it waits for ---------------------------------------------------------------------

    def wait_for(self, sock: HasFileno, events: int) -> None:
        """Resume it when the socket is ready for ``select.EPOLLIN`` or ``EPOLLOUT``, or broken."""
        fd, scheduler = sock.fileno(), self.scheduler
        wanted = events | select.EPOLLONESHOT
        if self._watched.get(fd) is sock:
            scheduler.epoll.modify(fd, wanted)
        else:
            # The number may have been another socket's, which epoll does not know; or TLS has it now.
            try:
                scheduler.epoll.register(fd, wanted)
            except FileExistsError:
                scheduler.epoll.modify(fd, wanted)
            self._watched[fd] = sock
        self.fd = fd
        scheduler.waiting[fd] = self

    def begin_task(self) -> None:
        """It waits for a task of trio's from now on."""
        self._task = trio.CancelScope()

    @property
    def task_scope(self) -> trio.CancelScope:
        """For that task, which ends when the fiber is interrupted."""
        assert self._task is not None, "it waits for one"
        return self._task

    def drop_task(self) -> None:
        """There is no such task."""
        self._task = None

    def end_task(self, *, has_ended: bool) -> None:
        """The task is over; where it has not come to its end, no more does this one."""
        self._task = None
        try:
            if not has_ended and self._why is None:
                self._why = Interrupted(None)
        finally:
            self.scheduler.resume_soon(self)

    # -- interrupted -----------------------------------------------------------------------------

    def cancel(self) -> None:
        """End it where it waits."""
        self.interrupt(Interrupted(None))

    def interrupt(self, why: Interrupted) -> None:
        """Raise this where it waits, or will wait next. Of several the outermost's counts."""
        if self.is_over or (self._why is not None and self._rank(self._why) <= self._rank(why)):
            return
        self._why = why
        if self is not RUNNING.fiber:
            self._be_told()

    def _rank(self, why: Interrupted) -> int:
        return -1 if why.scope is None else self.scopes.index(cast(Ending, why.scope))

    def _be_told(self) -> None:
        """It waits, and is to be interrupted."""
        if self._task is not None:
            self._task.cancel()
        else:
            self.scheduler.resume_soon(self)

    def leave(self, scope: Ending) -> None:
        """It has left the scope, which does not interrupt it any more."""
        if self._why is not None and self._why.scope is scope:
            self._why = None
        self.scopes.remove(scope)

    def arm(self, deadline: float) -> None:
        """Look at its scopes then, at the latest."""
        if deadline < self.armed:
            self.armed = deadline
            self.scheduler.look_at(self, deadline)

    def look(self, now: float) -> None:
        """End the outermost of its scopes whose deadline has passed."""
        self.armed = math.inf
        for scope in self.scopes:
            if scope.deadline <= now:
                scope.expire()
                break
        self.arm(min((scope.deadline for scope in self.scopes), default=math.inf))


@coroutine
def until_resumed() -> Generator[None, None, None]:
    """Wait until somebody resumes it."""
    yield

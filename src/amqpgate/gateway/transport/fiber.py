"""One fiber: a coroutine that the pump resumes when what it waits for has come (`fibers`)."""

from __future__ import annotations

import inspect
import logging
import math
import select
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import coroutine
from typing import Final, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast

import attrs
import trio

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
        """On ``time.monotonic``'s clock."""

    def expire(self) -> None:
        """The deadline has passed; there is none any more."""


class Interrupted(BaseException):
    """Raised where a fiber waits in a scope that ends; None: all of the fiber ends."""

    def __init__(self, scope: object | None) -> None:
        super().__init__()
        self.scope = scope


class _Local(threading.local):
    #: The fiber that runs in this thread.
    fiber: Fiber | None = None

    def run(self, fiber: Fiber | None) -> Fiber | None:
        """This one runs now; the one that did before."""
        before, self.fiber = self.fiber, fiber
        return before


_LOCAL: Final = _Local()


def current() -> Fiber | None:
    """The fiber that runs; None: what runs is none, but a task of trio's, for instance."""
    return _LOCAL.fiber


class Scheduler(Protocol):
    """What a fiber asks of `fibers.Fibers`."""

    @property
    def epoll(self) -> select.epoll:
        """Where sockets are watched."""

    @property
    def waiting(self) -> dict[int, Fiber]:
        """Who waits for a socket, by its descriptor."""

    def resume_soon(self, fiber: Fiber) -> None:
        """It waits no more."""

    def arm(self, fiber: Fiber, deadline: float) -> None:
        """Look at its scopes then."""

    def do(self, fiber: Fiber, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> Awaitable[T]:
        """What a task of trio's makes of it."""


@attrs.define(eq=False)
class Fiber:
    """One coroutine."""

    scheduler: Scheduler
    _work: Work
    #: The scopes that it is in; the outermost first.
    scopes: list[Ending] = attrs.field(factory=list, init=False)
    #: The descriptor that it waits for, below zero: none; and for what.
    fd: int = attrs.field(default=-1, init=False)
    events: int = attrs.field(default=0, init=False)
    #: It is resumed soon.
    is_queued: bool = attrs.field(default=False, init=False)
    #: When the wheel looks at its scopes.
    armed: float = attrs.field(default=math.inf, init=False)
    #: What is raised in it when it is resumed.
    _why: Interrupted | None = attrs.field(default=None, init=False)
    #: Of what trio does for it now.
    _task: trio.CancelScope | None = attrs.field(default=None, init=False)
    #: Descriptors that epoll watches for it: the socket, and for what.
    _watched: dict[int, tuple[HasFileno, int]] = attrs.field(factory=dict, init=False)
    _over: trio.Event | None = attrs.field(default=None, init=False)
    is_over: bool = attrs.field(default=False, init=False)

    def cancel(self) -> None:
        """End it where it waits."""
        self.interrupt(Interrupted(None))

    def interrupt(self, why: Interrupted) -> None:
        """Raise this where it waits, or will wait next. Of several the outermost's counts."""
        if self.is_over or (self._why is not None and self._rank(self._why) <= self._rank(why)):
            return
        self._why = why
        if self is not _LOCAL.fiber:
            self._be_told()

    def _rank(self, why: Interrupted) -> int:
        return -1 if why.scope is None else self.scopes.index(cast(Ending, why.scope))

    def _be_told(self) -> None:
        """It waits, and is to be interrupted."""
        if self._task is not None:
            self._task.cancel()
        else:
            self.scheduler.resume_soon(self)

    def begin_task(self) -> None:
        """It waits for a task of trio's from now on."""
        self._task = trio.CancelScope()

    @property
    def task_scope(self) -> trio.CancelScope:
        """For that task, which ends when the fiber is interrupted."""
        assert self._task is not None, "it waits for one"
        return self._task

    def end_task(self, *, has_ended: bool) -> None:
        """The task is over; where it has not come to its end, no more does this one."""
        self._task = None
        if not has_ended and self._why is None:
            self._why = Interrupted(None)
        self.scheduler.resume_soon(self)

    def enter(self, scope: Ending) -> None:
        """It is in this scope, too, from now on."""
        self.scopes.append(scope)

    def leave(self, scope: Ending) -> None:
        """It has left the scope, which does not interrupt it any more."""
        if self._why is not None and self._why.scope is scope:
            self._why = None
        self.scopes.remove(scope)

    async def over(self) -> None:
        """Wait in trio until it is over."""
        if not self.is_over:
            if self._over is None:
                self._over = trio.Event()
            await self._over.wait()

    def proceed(self) -> bool:
        """Run it until it waits; whether it is over."""
        self.is_queued = False
        before = _LOCAL.run(self)
        # Who has not begun yet has not taken on what it is to let go of: it goes up to where it waits first.
        why = None if self._why is None else self._take_why()
        try:
            if why is None:
                self._work.send(None)
            else:
                self._work.throw(why)
        except (StopIteration, Interrupted):
            return True
        except Exception:
            log.exception("a connection's set-up or end failed")
            return True
        finally:
            _LOCAL.run(before)
        if self._why is not None:
            self._be_told()
        return False

    def _take_why(self) -> Interrupted | None:
        if inspect.getcoroutinestate(self._work) == inspect.CORO_CREATED:
            return None
        why, self._why = self._why, None
        return why

    def queue(self) -> bool:
        """It is to be resumed; whether it was not before."""
        if self.is_queued:
            return False
        self.waits_no_more()
        self.is_queued = True
        return True

    def finish(self) -> None:
        """It is over: what was kept for it is let go."""
        self.is_over = True
        epoll = self.scheduler.epoll
        for fd, (sock, _) in self._watched.items():
            # Somebody else's goes on, and is watched there; who has closed it has ended this.
            if sock.fileno() == fd:
                epoll.unregister(fd)
        self._watched.clear()
        if self._over is not None:
            self._over.set()

    def watch(self, sock: HasFileno, events: int) -> None:
        """Resume it when the socket is ready, or broken. It has found that it is not."""
        fd = sock.fileno()
        known = self._watched.get(fd)
        if known is None or known[0] is not sock or not known[1] & events:
            # By now the descriptor may be another socket's, of which epoll knows nothing; or TLS has it.
            wanted = events if known is None or known[0] is not sock else known[1] | events
            epoll = self.scheduler.epoll
            try:
                if wanted == events:
                    epoll.register(fd, wanted | select.EPOLLET)
                else:
                    epoll.modify(fd, wanted | select.EPOLLET)
            except FileExistsError:
                epoll.modify(fd, wanted | select.EPOLLET)
            self._watched[fd] = sock, wanted
        self.fd, self.events = fd, events | select.EPOLLHUP | select.EPOLLERR
        self.scheduler.waiting[fd] = self

    def waits_no_more(self) -> None:
        """For no socket."""
        if self.fd >= 0:
            if self.scheduler.waiting.get(self.fd) is self:
                del self.scheduler.waiting[self.fd]
            self.fd = -1

    def arm(self, deadline: float) -> None:
        """Look at its scopes then, at the latest."""
        if deadline < self.armed:
            self.armed = deadline
            self.scheduler.arm(self, deadline)

    def look(self, now: float) -> None:
        """End the outermost of its scopes whose deadline has passed."""
        self.armed = math.inf
        for scope in self.scopes:
            if scope.deadline <= now:
                scope.expire()
                break
        self.arm(min((scope.deadline for scope in self.scopes), default=math.inf))


@coroutine
def until_ready(fiber: Fiber, sock: HasFileno, events: int) -> Generator[None, None, None]:
    """Wait until a socket is ready for ``select.EPOLLIN`` or ``EPOLLOUT``; it was not just now."""
    fiber.watch(sock, events)
    yield


@coroutine
def until_resumed() -> Generator[None, None, None]:
    """Wait until somebody resumes it."""
    yield

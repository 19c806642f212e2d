"""trio as the guest of a pump, without a thread of its own that waits: what is known here of trio's inside.

As a guest, trio hands each wait to a thread (``GuestState.guest_tick``). Here the pump waits for it: for
trio's own epoll descriptor, which is readable when there is something for trio, and for its next deadline.

::

    at rest ──┬── the descriptor is readable ──▶ due ── a tick ──┬── nothing to do for now ──▶ at rest
              ├── the deadline has come ───────▶                 ├── more to do ─────────────▶ due
              └── a callback of the pump has ──▶                 └── the main task is over ──▶ ended
                  woken a task

trio does not reckon with memory that runs out. A tick that raises for want of it ends all of the process, so
none begins while there is not even a little (spec/decisions/0045). All names of trio's that are not public
are in this module; where one is not there any more, trio is left as it is.
"""

from __future__ import annotations

import contextlib
import math
import operator
import select
import socket
import time
from collections.abc import Callable
from types import GeneratorType
from typing import Final, Protocol, cast

import outcome
import sniffio

from amqpgate.datapath.timer import Timer

#: Bytes that are free, in one piece, when a tick begins: many times what trio's scheduler asks for in one.
ROOM: Final = 32 * 1024
#: Seconds for which a tick is put off where there is less. Then it begins all the same: signals are heard by
#: tasks, and a process that could not be ended would be worse than one that ends.
PATIENCE: Final = 5.0
#: Seconds until it is looked again.
BREATH: Final = 0.05

#: Bytes of wake-ups that are taken at once: some six fit into the socket.
_FEW: Final = 256

_Events = list[tuple[int, int]]


class _Host(Protocol):
    """What is asked of the pump."""

    def attend(self, fd: int, callback: Callable[[], None] | None) -> None: ...
    def interrupt(self) -> None: ...


class _Wakeup(Protocol):
    wakeup_sock: socket.socket

    def close(self) -> None: ...


class _Waiters(Protocol):
    current_flags: int


class _IoManager(Protocol):
    """trio's epoll, and who waits for it, by descriptor. What it reports once is not reported again until it
    is asked for again (``EPOLLONESHOT``)."""

    _epoll: select.epoll
    _registered: dict[int, _Waiters]
    _force_wakeup: object
    _force_wakeup_fd: int | None

    def get_events(self, timeout: float, /) -> _Events: ...
    def _update_registrations(self, fd: int, /) -> None: ...


class _EntryQueue(Protocol):
    wakeup: _Wakeup


class _Runner(Protocol):
    io_manager: _IoManager
    entry_queue: _EntryQueue
    guest_tick_scheduled: bool
    main_task_outcome: outcome.Outcome[object] | None


class _GuestState(Protocol):
    runner: _Runner
    unrolled_run_gen: GeneratorType[float, _Events, None]


#: Of a ``GuestState``: what is used here, and of which type it is.
_NAMES: Final[tuple[tuple[str, type], ...]] = (
    ("unrolled_run_gen", GeneratorType),
    ("runner.guest_tick_scheduled", bool),
    ("runner.main_task_outcome", object),
    ("runner.io_manager._epoll", select.epoll),
    ("runner.io_manager._registered", dict),
    ("runner.io_manager._update_registrations", object),
    ("runner.io_manager.get_events", object),
    ("runner.io_manager._force_wakeup.wakeup_thread_and_signal_safe", object),
    ("runner.io_manager._force_wakeup.wakeup_sock", socket.socket),
    ("runner.io_manager._force_wakeup_fd", int),
    ("runner.entry_queue.wakeup.wakeup_sock", socket.socket),
)


def host(tick: Callable[[], object], pump: _Host) -> Guest | None:
    """The guest run whose first ``tick`` this is, hosted by the pump; None: this trio is another one."""
    state = getattr(tick, "__self__", None)
    try:
        is_known = all(isinstance(operator.attrgetter(name)(state), kind) for name, kind in _NAMES)
    except AttributeError:
        return None
    return Guest(cast(_GuestState, state), pump) if is_known else None


class Guest:
    """A guest run of trio's. It is due at first. Its owner has it ``tick`` until that says how it has ended,
    and drives the pump in between; then closes it."""

    def __init__(self, state: _GuestState, pump: _Host) -> None:
        self._run = state.unrolled_run_gen
        self._runner = state.runner
        self._io = state.runner.io_manager
        self._pump = pump
        self._timer = Timer()
        self._timer_at = math.inf
        #: There is something to do for trio: the pump does not wait.
        self.is_due = True
        #: Seconds that the pump may wait though it is due: not 0 where memory is short.
        self.pause = 0.0
        #: Since when that is; infinity: there was enough.
        self._short_since = math.inf
        #: What was reported may have been lost.
        self._is_shaken = False
        self._epoll_fd = self._io._epoll.fileno()
        pump.attend(self._epoll_fd, self._wake)
        pump.attend(self._timer.fileno(), self._wake_at_time)
        _exchange_wakeups(state.runner, self._wake)

    def _wake(self) -> None:
        """Called on the pump's thread only: by the pump, and by trio where a callback of the pump's has woken
        a task."""
        self.is_due = self._runner.guest_tick_scheduled = True
        self._pump.interrupt()

    def _wake_at_time(self) -> None:
        self._timer_at = math.inf
        self._wake()
        self._timer.drain()

    def tick(self) -> outcome.Outcome[object] | None:
        """Let trio run its tasks, if it is due: how its main task has ended, or None. Raises what trio has
        ended of: then nothing of it is left that could go on."""
        if not self.is_due or not self._has_room():
            return None
        try:
            if self._is_shaken:
                self._ask_again()
            timeout = self._send(self._take_in())
            if timeout > 0 and not self._is_shaken:
                self._look_at(time.monotonic() + timeout)
                self.is_due = self._runner.guest_tick_scheduled = False
        except StopIteration:
            return self._runner.main_task_outcome
        except MemoryError:
            if self._run.gi_frame is None:
                raise
            # It was on the way to trio, or from it: it is due still.
            self._is_shaken = True
        return None

    def _has_room(self) -> bool:
        """There is some memory, or it is time to do without."""
        self.pause = 0
        try:
            bytearray(ROOM)
        except MemoryError:
            now = time.monotonic()
            self._short_since = min(self._short_since, now)
            if now >= self._short_since + PATIENCE:
                return True
            self.pause = BREATH
            return False
        self._short_since = math.inf
        return True

    def _take_in(self) -> _Events:
        try:
            return self._io.get_events(0)
        except MemoryError:
            self._is_shaken = True
            return []

    def _send(self, events: _Events) -> float:
        name, sniffio.thread_local.name = sniffio.thread_local.name, "trio"
        try:
            return self._run.send(events)
        finally:
            sniffio.thread_local.name = name

    def _ask_again(self) -> None:
        """Events were reported that nobody has heard of: have all reported again that are so still."""
        for fd, waiters in list(self._io._registered.items()):
            waiters.current_flags = 0
            self._io._update_registrations(fd)
        self._is_shaken = False

    def _look_at(self, when: float) -> None:
        # One that is too early is let be: mostly trio's next deadline comes and goes, and none is waited for.
        if when < self._timer_at:
            self._timer.set(when)
            self._timer_at = when

    def close(self) -> None:
        """The pump waits for it no more."""
        with contextlib.suppress(OSError):
            # trio may have closed it by now, and then it is not in there any more.
            self._pump.attend(self._epoll_fd, None)
        self._pump.attend(self._timer.fileno(), None)
        self._timer.close()


def _exchange_wakeups(runner: _Runner, wake: Callable[[], None]) -> None:
    """Have trio woken without asking for memory: its own ways are sockets, read in pieces of 64 KiB."""
    io = runner.io_manager
    forced = cast(_Wakeup, io._force_wakeup)
    io._epoll.unregister(forced.wakeup_sock)
    forced.close()
    io._force_wakeup, io._force_wakeup_fd = _HostWakeup(wake), None
    sock = runner.entry_queue.wakeup.wakeup_sock
    # The descriptor stays: it is watched already.
    runner.entry_queue.wakeup.wakeup_sock = _WakeupSocket(sock.family, sock.type, sock.proto, sock.detach())


class _HostWakeup:
    """How trio says that a task was woken while it was at rest: by the pump's thread, for nobody else may."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wakeup_thread_and_signal_safe = wake

    def drain(self) -> None:
        """There is nothing in it."""

    def close(self) -> None:
        """It has no descriptors."""


class _WakeupSocket(socket.socket):
    """Where trio takes in that a thread or a signal has woken it."""

    def __init__(self, family: int, kind: int, proto: int, fd: int) -> None:
        super().__init__(family, kind, proto, fd)
        self.setblocking(False)
        self._taken = bytearray(_FEW)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Some byte, whatever has come: trio looks for the end only."""
        return b"\0" if self.recv_into(self._taken, min(size, _FEW), flags) else b""

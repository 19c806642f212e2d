"""trio as the guest of a pump: who wakes it, without a thread, and what it does where memory is short."""

from __future__ import annotations

import builtins
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import trio

from amqpgate.datapath import driver, guest
from amqpgate.datapath.driver import run_hosted
from amqpgate.datapath.engine import Pump

from .rig import ENGINES


@pytest.fixture(params=ENGINES)
def pump(request: pytest.FixtureRequest) -> Iterator[Pump]:
    def fail(error: Exception) -> None:
        raise error

    pump = ENGINES[request.param].pump(high=65536, low=1024, largest_frame=131072, on_failure=fail)
    yield pump
    pump.close()


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread waits for trio."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a thread")

    monkeypatch.setattr(trio._core._run, "start_thread_soon", refuse)


@pytest.fixture
def no_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket makes a piece of memory for what it receives."""

    def refuse(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(socket.socket, "recv", refuse)


class _Tight:
    """Memory that is not there for a tick, so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0

    def __call__(self, *args: object) -> bytearray:
        if args == (guest.ROOM,):
            self.asked += 1
            if self.left > 0:
                self.left -= 1
                raise MemoryError
        return builtins.bytearray(*args)


def make_tight(monkeypatch: pytest.MonkeyPatch, times: int) -> _Tight:
    tight = _Tight(times)
    monkeypatch.setattr(guest, "bytearray", tight, raising=False)
    return tight


# -- who wakes it ------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_thread", "no_piece")
def test_threads_are_heard_of(pump: Pump) -> None:
    async def work() -> int:
        return sum([await trio.to_thread.run_sync(int, "7") for _ in range(3)])

    assert run_hosted(pump, work) == 21


@pytest.mark.usefixtures("no_thread", "no_piece")
def test_signals_are_heard_of(pump: Pump) -> None:
    async def work() -> int:
        with trio.open_signal_receiver(signal.SIGUSR1) as signals:
            await trio.to_thread.run_sync(signal.pthread_kill, threading.main_thread().ident, signal.SIGUSR1)
            async for number in signals:
                return number
        raise AssertionError("unreachable")

    assert run_hosted(pump, work) == signal.SIGUSR1


@pytest.mark.usefixtures("no_thread")
def test_sockets_are_heard_of_and_times(pump: Pump) -> None:
    ours, theirs = trio.socket.socketpair()

    async def work() -> bytes:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0.002)
            with trio.move_on_after(0.005) as scope:
                await ours.recv(1)
            assert scope.cancelled_caught
            await theirs.send(b"xyz")
            return await ours.recv(10)

    with ours, theirs:
        assert run_hosted(pump, work) == b"xyz"


@pytest.mark.usefixtures("no_thread", "no_piece")
def test_who_is_woken_by_the_host_is_heard_of(pump: Pump) -> None:
    """As a task that waits for the end of a session is."""
    ours, theirs = socket.socketpair()
    woken: list[int] = []

    async def work() -> None:
        events = [trio.Event() for _ in range(3)]

        def wake() -> None:
            ours.recv_into(bytearray(1))
            events[len(woken)].set()
            woken.append(1)

        pump.attend(ours.fileno(), wake)
        for event in events:
            await trio.sleep(0.001)
            theirs.send(b"x")
            await event.wait()
        pump.attend(ours.fileno(), None)

    with ours, theirs:
        run_hosted(pump, work)
    assert len(woken) == 3


@pytest.mark.usefixtures("no_thread")
def test_a_pump_has_guests_one_after_the_other(pump: Pump) -> None:
    for _ in range(3):
        run_hosted(pump, trio.sleep, 0.001)


@pytest.mark.usefixtures("no_thread")
def test_sockets_have_their_turn_beside_a_task_that_does_not_rest(pump: Pump) -> None:
    ours, theirs = socket.socketpair()

    async def work() -> None:
        heard: list[int] = []
        pump.attend(ours.fileno(), lambda: heard.append(ours.recv_into(bytearray(1))))
        theirs.send(b"x")
        with trio.fail_after(30):
            while not heard:
                await trio.lowlevel.checkpoint()
        pump.attend(ours.fileno(), None)

    with ours, theirs:
        run_hosted(pump, work)


# -- where it is not the trio that is known ----------------------------------------------------


@pytest.mark.parametrize("tick", [print, lambda: None, object().__repr__])
def test_what_is_no_guest_is_left_alone(pump: Pump, tick: Callable[[], object]) -> None:
    assert guest.host(tick, pump) is None


class _Without:
    """All that an object has, but for one name."""

    def __init__(self, whole: object, missing: str) -> None:
        self._whole, self._missing = whole, missing

    def __getattr__(self, name: str) -> object:
        first, _, rest = self._missing.partition(".")
        if name == first:
            if not rest:
                raise AttributeError(name)
            return _Without(getattr(self._whole, name), rest)
        return getattr(self._whole, name)


def test_each_name_is_there_and_one_that_is_not_leaves_trio_as_it_is(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[guest.Guest | None] = []
    host = guest.host

    def look(tick: Callable[[], object], pump: Pump) -> guest.Guest | None:
        for missing, _ in guest._NAMES:
            state = _Without(tick.__self__, missing)
            assert host(SimpleNamespace(__self__=state), pump) is None, missing
        seen.append(host(tick, pump))
        return seen[0]

    monkeypatch.setattr(driver, "host", look)
    run_hosted(pump, trio.sleep, 0.001)
    assert seen != [None], "this trio is not the one that is known"


# -- where memory is short ---------------------------------------------------------------------


def test_no_tick_begins_while_there_is_no_memory(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins when there is some, and the pump goes on meanwhile."""
    monkeypatch.setattr(guest, "BREATH", 0.001)
    tight = make_tight(monkeypatch, 0)
    ours, theirs = socket.socketpair()
    served: list[int] = []

    async def work() -> None:
        def hear() -> None:
            served.append(ours.recv_into(bytearray(1)))
            if tight.left > 1:
                theirs.send(b"x")

        pump.attend(ours.fileno(), hear)
        theirs.send(b"x")
        tight.left = 5
        await trio.lowlevel.checkpoint()
        assert tight.left == 0
        pump.attend(ours.fileno(), None)

    with ours, theirs:
        run_hosted(pump, work)
    assert len(served) > 2


@pytest.mark.usefixtures("no_thread")
def test_what_there_is_never_enough_for_begins_in_the_end(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that hears no signal could not be ended."""
    now = iter(range(1000000))
    monkeypatch.setattr(guest, "BREATH", 0)
    monkeypatch.setattr(guest, "time", SimpleNamespace(monotonic=lambda: float(next(now))))
    tight = make_tight(monkeypatch, 10**9)

    async def work() -> str:
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        return "over"

    assert run_hosted(pump, work) == "over"
    # It waited once, not before each of them.
    assert 100 <= tight.asked <= 100 + 3 * guest.PATIENCE


def test_what_was_reported_and_lost_is_reported_again(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Python's ``epoll.poll``, which makes a list after the kernel has forgotten."""
    manager = trio._core._run.TheIOManager
    get, lost = manager.get_events, []

    def lose(self: object, timeout: float) -> object:
        events = get(self, timeout)
        if events and len(lost) < 3:
            lost.append(events)
            raise MemoryError
        return events

    monkeypatch.setattr(manager, "get_events", lose)
    ours, theirs = trio.socket.socketpair()

    async def work() -> bytes:
        await theirs.send(b"xyz")
        await trio.to_thread.run_sync(int, "7")
        return await ours.recv(10)

    with ours, theirs:
        assert run_hosted(pump, work) == b"xyz"
    assert len(lost) == 3


def test_a_process_whose_trio_fails_ends() -> None:
    """With what it was doing, and at once: somebody starts it again."""
    program = """
import threading, trio
from amqpgate.datapath.build import Pump
from amqpgate.datapath.driver import run_hosted

def fail(*_):
    raise MemoryError

async def work():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        await trio.to_thread.run_sync(int, "7")
        trio._core._run.Deadlines.expire = fail
        await trio.sleep(0.001)

pump = Pump(high=65536, low=1024, largest_frame=131072, on_failure=print)
try:
    run_hosted(pump, work)
finally:
    pump.close()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert run.returncode == 1
    assert b"TrioInternalError" in run.stderr

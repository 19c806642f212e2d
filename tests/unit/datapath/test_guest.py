"""What trio does as the guest of a pump where there is little memory."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
import trio

from amqpgate.datapath import driver, guest
from amqpgate.datapath.driver import run_hosted

from .rig import ENGINES

_receive = socket.socket.recv


@pytest.fixture(params=ENGINES)
def pump(request: pytest.FixtureRequest) -> Iterator[object]:
    def fail(error: Exception) -> None:
        raise error

    pump = ENGINES[request.param].pump(high=65536, low=1024, largest_frame=131072, on_failure=fail)
    yield pump
    pump.close()


@pytest.fixture
def no_large_piece(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Nobody receives more than 512 bytes at once, since there is no memory for that; what was asked for."""
    asked: list[int] = []

    def receive(sock: socket.socket, size: int, flags: int = 0) -> bytes:
        asked.append(size)
        if size > 512:
            raise MemoryError
        return _receive(sock, size, flags)

    monkeypatch.setattr(socket.socket, "recv", receive)
    return asked


def test_threads_are_heard_of(pump: object, no_large_piece: list[int]) -> None:
    """By the way on which signals come, too."""

    async def work() -> int:
        return sum([await trio.to_thread.run_sync(int, "7") for _ in range(3)])

    assert run_hosted(pump, work) == 21
    assert no_large_piece


def test_who_is_woken_by_the_host_is_heard_of(pump: object, no_large_piece: list[int]) -> None:
    """As a task that waits for the end of a session is."""
    ours, theirs = socket.socketpair()

    async def work() -> None:
        woken = trio.Event()

        def wake() -> None:
            ours.recv(1)
            woken.set()

        pump.attend(ours.fileno(), wake)
        await trio.sleep(0.01)
        no_large_piece.clear()
        theirs.send(b"x")
        await woken.wait()
        pump.attend(-1, None)

    with ours, theirs:
        run_hosted(pump, work)
    assert len(no_large_piece) > 1, "trio was not woken by a byte"


def test_that_there_is_no_thread_need_not_be_said(pump: object, monkeypatch: pytest.MonkeyPatch) -> None:
    start = trio._core._run.start_thread_soon
    refused: list[object] = []

    def refuse(*args: object, **kwargs: object) -> None:
        if len(refused) < 3:
            refused.append(args)
            raise MemoryError
        start(*args, **kwargs)

    def say(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(trio._core._run, "start_thread_soon", refuse)
    monkeypatch.setattr(driver.log, "error", say)
    run_hosted(pump, trio.sleep, 0.3)
    assert refused


@pytest.mark.parametrize("tick", [print, lambda: None, object().__repr__])
def test_what_is_no_guest_is_left_alone(tick: Callable[[], object]) -> None:
    guest.be_modest(tick)
    assert guest.tick_without_thread(tick) is None

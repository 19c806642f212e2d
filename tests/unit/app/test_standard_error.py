"""A log whose reader stands still: nobody waits, lines stay whole and in order, what is lost is told."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amqpgate.app import standard_error as module
from amqpgate.app.standard_error import NonBlockingStream, standard_error
from tests.support.embedded import embedded_broker
from tests.support.inprocess import eventually
from tests.support.ports import free_port
from tests.support.talker import Talker

#: More than a pipe, a socket or a terminal holds.
LINES = [f"line {number} {'x' * 500}\n" for number in range(1500)]

Ends = tuple[int, int]


def pipe_of_mine() -> Ends:
    return os.pipe()


def socket_of_journald() -> Ends:
    left, right = socket.socketpair()
    return left.detach(), right.detach()


def terminal() -> Ends:
    return pty.openpty()


@contextlib.contextmanager
def ends(make: Callable[[], Ends]) -> Iterator[tuple[int, NonBlockingStream]]:
    """Where one reads, and the stream."""
    reader, writer = make()
    with open(reader, "rb", buffering=0), open(writer, "w", encoding="utf-8") as file:
        yield reader, NonBlockingStream(file)


def read(fd: int, enough: Callable[[bytes], bool]) -> str:
    found = b""
    while not enough(found):
        found += os.read(fd, 65536)
    return found.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("make", [pipe_of_mine, socket_of_journald, terminal])
def test_nobody_waits_and_all_comes_once_there_is_a_reader(make: Callable[[], Ends]) -> None:
    with ends(make) as (reader, stream):
        for line in LINES:
            stream.write(line)
        assert read(reader, lambda found: found.count(b"\n") >= len(LINES)) == "".join(LINES)
        # Afterwards nothing is between writer and reader again.
        eventually(lambda: stream._thread is None)
        stream.write("one more\n")
        assert stream._thread is None
        assert read(reader, lambda found: b"\n" in found) == "one more\n"


@pytest.mark.parametrize("make", [pipe_of_mine, socket_of_journald])
def test_a_pipe_that_may_not_be_opened_anew_is_written_where_it_has_room(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Ends]
) -> None:
    """That of a container's log belongs to another user."""

    def refused(path: str, flags: int) -> int:
        raise PermissionError(path)

    with monkeypatch.context() as patched:
        patched.setattr(module.os, "open", refused)
        context = ends(make)
        reader, stream = context.__enter__()
    try:
        for line in LINES:
            stream.write(line)
        assert read(reader, lambda found: found.count(b"\n") >= len(LINES)) == "".join(LINES)
    finally:
        context.__exit__(None, None, None)


def test_what_is_too_much_is_lost_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0), open(writer, "w", encoding="utf-8") as file:
        stream = NonBlockingStream(file, most=5_200)
        for line in LINES:
            stream.write(line)
        assert stream._size <= 5_200
        with caplog.at_level(logging.WARNING):
            found = read(reader, lambda found: stream._thread is None)
            eventually(lambda: bool(caplog.messages))
        os.set_blocking(reader, False)
        with contextlib.suppress(BlockingIOError):
            found += os.read(reader, 65536).decode()
    # Whole lines, in order, without a hole: those that were lost came last.
    assert "".join(LINES).startswith(found)
    kept = found.count("\n")
    assert found.endswith("\n")
    assert caplog.messages == [
        f"{len(LINES) - kept} lines of this log are lost: whoever reads it stood still, or is too slow"
    ]


def test_lines_of_several_threads_stay_whole() -> None:
    with ends(pipe_of_mine) as (reader, stream):

        def write(name: str) -> None:
            for number in range(300):
                stream.write(f"{name} {number} {name * 500}\n")

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        found = read(reader, lambda found: found.count(b"\n") >= 1200)
    for name in "abcd":
        own = [line for line in found.splitlines() if line.startswith(name)]
        assert own == [f"{name} {number} {name * 500}" for number in range(300)]


def test_a_reader_that_is_gone_costs_nothing() -> None:
    reader, writer = os.pipe()
    with open(writer, "w", encoding="utf-8") as file:
        stream = NonBlockingStream(file)
        for line in LINES:
            stream.write(line)
        os.close(reader)
        eventually(lambda: stream._thread is None)
        assert not stream._waiting


def test_a_system_without_threads_loses_lines_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with ends(pipe_of_mine) as (_, stream):
        for line in LINES:
            stream.write(line)
        assert (stream._size, stream._thread) == (0, None)


def test_a_file_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    with path.open("a", encoding="utf-8") as file:
        NonBlockingStream(file).write("é\ud800\n")
    assert path.read_text(encoding="utf-8") == "before\né\\ud800\n"


def test_where_standard_error_is_no_file_it_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for caught in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", caught)
        with standard_error() as stream:
            assert stream is caught


def test_clients_are_served_while_nobody_reads_the_log() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    port = free_port()
    with embedded_broker() as (host, broker):
        process = subprocess.Popen(
            [sys.executable, "-m", "amqpgate", "run", "--listen", f"127.0.0.1:{port}"]
            + ["--upstream", f"amqp://{host}:{broker}"],
            stderr=writer,
        )
        os.close(writer)
        try:
            eventually(lambda: _listens(port))
            talker = Talker.dial(port)
            talker.open()
            talker.bye()
            process.terminate()
            found = read(reader, lambda found: b"over: closed" in found)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
            os.close(reader)
    assert f"listening on amqp://127.0.0.1:{port}" in found


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False

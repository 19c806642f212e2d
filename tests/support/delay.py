"""A TCP relay that brings everything late, as a long way between two machines does.

    python -m tests.support.delay --listen PORT --to PORT --round-trip MILLISECONDS

Each direction of each connection is delayed by half the round trip; order and half-closes are kept.
Connecting is not delayed (a real network would add a round trip), so that what is measured is never too much.
The delay is the same for all: one thread, one epoll set and one queue do.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import select
import socket
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from .ports import free_port
from .processes import Child

_READ = 64 * 1024
#: Bytes under way in one direction above which its source is not read: bounded memory.
_HIGH = 8 << 20


@attrs.define(eq=False)
class _End:
    """One socket: where to its bytes go is `peer`."""

    sock: socket.socket
    peer: _End = attrs.field(init=False)
    #: Arrived here, and not written yet: `None` is the end of the stream.
    due: collections.deque[bytes | None] = attrs.field(factory=collections.deque)
    #: Bytes that were read from `peer` and are not written here yet.
    under_way: int = 0
    finished_reading: bool = False
    finished_writing: bool = False
    interest: int = 0


class Relay:
    """From `port` to `target` on 127.0.0.1. Use as a context manager, or call `run`."""

    def __init__(self, target: int, round_trip: float, *, port: int = 0) -> None:
        """`round_trip` is what is added, in seconds."""
        self._listener = socket.create_server(("127.0.0.1", port), backlog=4096)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._target = target
        self._one_way = round_trip / 2
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._ends: dict[int, _End] = {}
        self._under_way: collections.deque[tuple[float, _End, bytes | None]] = collections.deque()
        self._over = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.run, name="delay", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over = True
        assert self._thread is not None
        # Something to wake up for.
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            pass
        self._thread.join(10)

    def run(self) -> None:
        """Until the context is left."""
        try:
            while not self._over:
                self._step()
        finally:
            for end in self._ends.values():
                end.sock.close()
            self._listener.close()
            self._epoll.close()

    def _step(self) -> None:
        timeout = None
        if self._under_way:
            timeout = max(self._under_way[0][0] - time.monotonic(), 0)
        # epoll's own timeout is in whole milliseconds, rounded up.
        select.select([self._epoll], [], [], timeout)
        for number, events in self._epoll.poll(0):
            if number == self._listener.fileno():
                self._accept()
                continue
            end = self._ends.get(number)
            if end is not None and events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._read(end)
            end = self._ends.get(number)
            if end is not None and events & select.EPOLLOUT:
                self._write(end)
        now = time.monotonic()
        while self._under_way and self._under_way[0][0] <= now:
            _, end, data = self._under_way.popleft()
            if end.sock.fileno() >= 0:
                end.due.append(data)
                self._write(end)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                near, _ = self._listener.accept()
                try:
                    # On loopback it is at once.
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                ends = _End(near), _End(far)
                ends[0].peer, ends[1].peer = ends[1], ends[0]
                for end in ends:
                    end.sock.setblocking(False)
                    end.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._ends[end.sock.fileno()] = end
                    end.interest = select.EPOLLIN
                    self._epoll.register(end.sock, end.interest)

    def _read(self, end: _End) -> None:
        if end.finished_reading:
            # A reset after the end.
            self._drop(end)
            return
        data: bytes | None
        try:
            data = end.sock.recv(_READ) or None
        except BlockingIOError:
            return
        except OSError:
            data = None
        if data is None:
            end.finished_reading = True
        else:
            end.peer.under_way += len(data)
        self._under_way.append((time.monotonic() + self._one_way, end.peer, data))
        self._watch(end)

    def _write(self, end: _End) -> None:
        try:
            while end.due:
                data = end.due[0]
                if data is None:
                    end.sock.shutdown(socket.SHUT_WR)
                    end.finished_writing = True
                    end.due.popleft()
                    if end.finished_reading:
                        self._drop(end)
                        return
                    break
                sent = end.sock.send(data)
                end.under_way -= sent
                if sent < len(data):
                    end.due[0] = data[sent:]
                    break
                end.due.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self._drop(end)
            return
        self._watch(end)
        self._watch(end.peer)

    def _watch(self, end: _End) -> None:
        if end.sock.fileno() < 0:
            return
        reading = not end.finished_reading and end.peer.under_way < _HIGH
        interest = (select.EPOLLIN if reading else 0) | (select.EPOLLOUT if end.due else 0)
        if interest != end.interest:
            end.interest = interest
            self._epoll.modify(end.sock, interest)

    def _drop(self, end: _End) -> None:
        """Both sockets of the connection; what is under way to the other one still gets there first."""
        if end.sock.fileno() >= 0:
            del self._ends[end.sock.fileno()]
            end.sock.close()
            if not end.finished_reading:
                end.finished_reading = True
                self._under_way.append((time.monotonic() + self._one_way, end.peer, None))


class RelayProcess:
    """The same in a process of its own, so that it takes nothing from the one that measures."""

    def __init__(self, target: int, round_trip: float, folder: Path) -> None:
        self.port = free_port()
        self._child = Child(
            [
                sys.executable,
                "-m",
                "tests.support.delay",
                f"--listen={self.port}",
                f"--to={target}",
                f"--round-trip={round_trip * 1000}",
            ],
            log=folder / f"delay-{self.port}.log",
            cwd=Path(__file__).parents[2],
        )
        self._child.wait_until(self._listens, timeout=10, what="the relay")

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        self._child.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--listen", type=int, required=True)
    parser.add_argument("--to", type=int, required=True)
    parser.add_argument("--round-trip", type=float, default=50, help="milliseconds")
    options = parser.parse_args()
    Relay(options.to, options.round_trip / 1000, port=options.listen).run()


if __name__ == "__main__":
    main()

"""Relays between a client and a gateway, and between a gateway and its brokers, which can be made to fail.

One thread, one epoll set, all relays. Whoever runs a fault tells the thread what to do, and it does so before
it looks at its sockets again.
"""

from __future__ import annotations

import contextlib
import queue
import random
import select
import socket
import struct
import threading
from collections.abc import Callable

import attrs

_READ = 1 << 16
_HIGH = 1 << 20
_RESET = struct.pack("ii", 1, 0)


@attrs.define(eq=False)
class _End:
    """One socket of a pair: what is to be written to it, and whether it is read."""

    sock: socket.socket
    wire: Wire
    peer: _End = attrs.field(init=False)
    due: bytearray = attrs.field(factory=bytearray)
    interest: int = 0
    is_closing: bool = False


@attrs.define(eq=False)
class Wire:
    """From `port` to `target`, both on 127.0.0.1."""

    name: str
    target: int
    listener: socket.socket
    #: Whether nothing passes, with all sockets open; whether each byte is a segment.
    is_black: bool = False
    is_slow: bool = False

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port


class Wires:
    """All relays of a set-up. `close` ends them."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ends: dict[int, _End] = {}
        self._listeners: dict[int, Wire] = {}
        #: Sockets whose other end has gone without a word.
        self._orphans: list[socket.socket] = []
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._waker, self._wakes = socket.socketpair()
        self._epoll.register(self._wakes, select.EPOLLIN)
        self._over = False
        self._thread = threading.Thread(target=self._run, name="wires", daemon=True)
        self._thread.start()

    # -- for others --------------------------------------------------------------------------------

    def lead(self, name: str, target: int) -> Wire:
        """A relay of its own port."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        listener.setblocking(False)
        wire = Wire(name, target, listener)

        def begin() -> None:
            self._listeners[listener.fileno()] = wire
            self._epoll.register(listener, select.EPOLLIN)

        self._do(begin)
        return wire

    def reset(self, wires: list[Wire], share: float, dice: random.Random) -> int:
        """Reset so many of their connections, at both ends; how many."""
        return self._each(wires, share, dice, self._reset)

    def halve(self, wires: list[Wire], share: float, dice: random.Random) -> int:
        """One end of so many connections is reset, and the other one hears nothing of it, ever."""

        def halve(end: _End) -> None:
            gone = end if dice.random() < 0.5 else end.peer
            stays = gone.peer
            self._forget(gone)
            self._forget(stays)
            _end_with_reset(gone.sock)
            self._orphans.append(stays.sock)

        return self._each(wires, share, dice, halve)

    def set(self, wires: list[Wire], *, black: bool | None = None, slow: bool | None = None) -> None:
        """Nothing passes, or each byte by itself."""

        def change() -> None:
            for wire in wires:
                wire.is_black = wire.is_black if black is None else black
                wire.is_slow = wire.is_slow if slow is None else slow
            for end in list(self._ends.values()):
                if end.wire in wires:
                    self._watch(end)

        self._do(change)

    def close(self) -> None:
        self._over = True
        self._waker.send(b"x")
        self._thread.join(10)

    # -- the thread --------------------------------------------------------------------------------

    def _do(self, task: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            try:
                task()
            finally:
                done.set()

        self._tasks.put(run)
        self._waker.send(b"x")
        assert done.wait(30), "the wires do not answer"

    def _each(self, wires: list[Wire], share: float, dice: random.Random, act: Callable[[_End], None]) -> int:
        count = 0

        def run() -> None:
            nonlocal count
            # Each pair once: by the end that was accepted.
            for end in [one for one in self._ends.values() if one.wire in wires and one.sock.fileno() >= 0]:
                accepted = end.sock.fileno() < end.peer.sock.fileno()
                if end.sock.fileno() in self._ends and accepted and dice.random() < share:
                    act(end)
                    count += 1

        self._do(run)
        return count

    def _run(self) -> None:
        try:
            while not self._over:
                for number, events in self._epoll.poll(1):
                    if number == self._wakes.fileno():
                        self._wakes.recv(64)
                    elif number in self._listeners:
                        self._accept(self._listeners[number])
                    elif number in self._ends:
                        self._serve(self._ends[number], events)
                with contextlib.suppress(queue.Empty):
                    while True:
                        self._tasks.get_nowait()()
        finally:
            for sock in (
                *(end.sock for end in self._ends.values()),
                *(wire.listener for wire in self._listeners.values()),
                *self._orphans,
                self._waker,
                self._wakes,
            ):
                sock.close()
            self._epoll.close()

    def _accept(self, wire: Wire) -> None:
        with contextlib.suppress(BlockingIOError):
            near, _ = wire.listener.accept()
            try:
                # On loopback it is at once, or not at all.
                far = socket.create_connection(("127.0.0.1", wire.target), timeout=2)
            except OSError:
                _end_with_reset(near)
                return
            ends = _End(near, wire), _End(far, wire)
            ends[0].peer, ends[1].peer = ends[1], ends[0]
            for end in ends:
                end.sock.setblocking(False)
                end.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._ends[end.sock.fileno()] = end
                self._epoll.register(end.sock, 0)
            for end in ends:
                self._watch(end)

    def _serve(self, end: _End, events: int) -> None:
        if end.wire.is_black:
            # Even an end is not told; there is nothing to look for any more.
            self._watch(end, deaf=bool(events & (select.EPOLLHUP | select.EPOLLERR)))
            return
        if events & select.EPOLLOUT:
            self._write(end)
        if end.sock.fileno() in self._ends and events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            self._read(end)

    def _read(self, end: _End) -> None:
        try:
            data = end.sock.recv(512 if end.wire.is_slow else _READ)
        except BlockingIOError:
            return
        except OSError:
            self._reset(end)
            return
        if not data:
            # What is under way still arrives; both ends are over then.
            end.peer.is_closing = True
        end.peer.due += data
        self._write(end.peer)
        if end.sock.fileno() in self._ends:
            self._watch(end)

    def _write(self, end: _End) -> None:
        try:
            if end.wire.is_slow:
                while end.due:
                    end.sock.send(end.due[:1])
                    del end.due[:1]
            elif end.due:
                sent = end.sock.send(end.due)
                del end.due[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._reset(end)
            return
        if end.is_closing and not end.due:
            for one in (end, end.peer):
                self._forget(one)
                one.sock.close()
            return
        self._watch(end)
        self._watch(end.peer)

    def _watch(self, end: _End, *, deaf: bool = False) -> None:
        if end.sock.fileno() not in self._ends:
            return
        reads = not end.peer.is_closing and len(end.peer.due) < _HIGH
        interest = (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if end.due else 0)
        if end.wire.is_black:
            interest = 0
        if deaf:
            # Linux tells of a hang-up whatever is asked for.
            self._epoll.unregister(end.sock)
            end.interest = -1
        elif end.interest == -1:
            self._epoll.register(end.sock, interest)
            end.interest = interest
        elif interest != end.interest:
            self._epoll.modify(end.sock, interest)
            end.interest = interest

    def _forget(self, end: _End) -> None:
        if self._ends.pop(end.sock.fileno(), None) is not None and end.interest != -1:
            self._epoll.unregister(end.sock)

    def _reset(self, end: _End) -> None:
        for one in (end, end.peer):
            self._forget(one)
            _end_with_reset(one.sock)


def _end_with_reset(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()

"""One simulated connection between a socket of the gateway's and a model peer, and what befalls it.

::

    gateway ── AF_UNIX ──▶ Connection ── pieces, each with its time ──▶ peer
            ◀────────────            ◀── pieces, each with its time ──

What one end says arrives at the other in order, later, and cut anywhere. A connection may stand still, lose
one direction or both without a word, or be reset.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from tests.simulation.clock import Clock
from tests.simulation.sockets import GatewaySocket

#: Bytes that are taken from a socket at once, and that may be on their way to a peer.
_READ = 64 * 1024
_WINDOW = 256 * 1024


class Line(Protocol):
    """A connection, as a model sees it."""

    @property
    def number(self) -> int: ...
    def send(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def reset(self) -> None: ...
    def lose(self, *, inward: bool, outward: bool) -> None: ...


class Peer(Protocol):
    """A model's end of a connection."""

    def connected(self, connection: Line) -> None: ...
    def received(self, data: bytes) -> None: ...
    def ended(self, why: str) -> None:
        """Called once: there is nothing more to be said or heard."""


class Surroundings(Protocol):
    """What a connection asks of its network."""

    seed: str
    latency: float
    cutting: float
    clock: Clock
    epoll: select.epoll

    def register(self, connection: Connection) -> None: ...
    def forget(self, connection: Connection) -> None: ...
    def count(self, what: str) -> None: ...
    def touch(self) -> None: ...
    def trace(self, connection: Connection, way: bytes, data: bytes) -> None: ...
    def told(self, data: bytes) -> None: ...


class _Flow:
    """One direction."""

    __slots__ = ("arrives", "lost", "on_the_way", "pieces", "stalled_until", "waiting")

    def __init__(self) -> None:
        #: When the last piece arrives.
        self.arrives = 0.0
        self.on_the_way = 0
        #: When each piece arrives, at the earliest, and what is done with it then.
        self.pieces: deque[tuple[float, bytes, Callable[[bytes], None]]] = deque()
        self.stalled_until = 0.0
        #: Nothing arrives any more, and nobody is told.
        self.lost = False
        #: What the gateway's socket had no room for.
        self.waiting: deque[bytes] = deque()


class Connection:
    """One connection; the network's end of it."""

    def __init__(
        self, network: Surroundings, sock: socket.socket, peer: Peer, near: str, number: int
    ) -> None:
        self.network, self.sock, self.peer = network, sock, peer
        #: Who is at the other end, for the story: "client 3", "broker a".
        self.near, self._number = near, number
        #: What passes is never the same: how much it is tells.
        self.is_secret = False
        self.random = Random(f"{network.seed}/{number}")
        self.latency = network.latency * self.random.uniform(0.3, 2.0)
        self.inward, self.outward = _Flow(), _Flow()
        #: The gateway's socket, for resets.
        self.gateway_end: GatewaySocket | None = None
        self.peer_left = self.is_over = self.has_told = False
        self.interest = select.EPOLLIN
        network.register(self)

    @property
    def number(self) -> int:
        return self._number

    # -- the peer's side ---------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """The peer says something."""
        if self.is_over or self.peer_left or not data:
            return
        random, flow = self.random, self.inward
        if len(data) > 1 and random.random() < self.network.cutting:
            at = random.randrange(1, len(data))
            self._arrive(flow, data[:at], self._to_gateway)
            self._arrive(flow, data[at:], self._to_gateway, random.uniform(0, 4 * self.latency))
        else:
            self._arrive(flow, data, self._to_gateway)

    def close(self) -> None:
        """The peer has closed its socket."""
        if not self.peer_left and not self.is_over:
            self.peer_left = True
            self._arrive(self.inward, b"", self._to_gateway)

    def reset(self) -> None:
        """The connection is reset, for both; what is on its way is lost."""
        if self.is_over:
            return
        self.network.count("reset")
        self._reset_gateway()
        self._tell("reset")

    # -- what befalls it -----------------------------------------------------------------------------

    def stall(self, seconds: float) -> None:
        """Nothing arrives for so long, then all does."""
        until = self.network.clock.now + seconds
        self.inward.stalled_until = self.outward.stalled_until = until
        self.network.count("stall")

    def lose(self, *, inward: bool, outward: bool) -> None:
        """Nothing arrives any more in that direction; nobody is told."""
        self.inward.lost |= inward
        self.outward.lost |= outward
        self.network.count("half open" if inward != outward else "black hole")

    # -- on the way --------------------------------------------------------------------------------

    def _arrive(self, flow: _Flow, data: bytes, there: Callable[[bytes], None], more: float = 0.0) -> None:
        when = self.network.clock.now + more + self.latency * self.random.uniform(0.9, 1.3)
        flow.arrives = when = max(when, flow.arrives, flow.stalled_until)
        flow.on_the_way += len(data)
        flow.pieces.append((when, data, there))
        self.network.clock.at(when, lambda: self._due(flow))

    def _due(self, flow: _Flow) -> None:
        """Let arrive what has been on its way for long enough, in order."""
        now = self.network.clock.now
        if flow.stalled_until > now:
            # It was on its way when all stood still.
            self.network.clock.at(flow.stalled_until, lambda: self._due(flow))
            return
        while flow.pieces and flow.pieces[0][0] <= now:
            _when, data, there = flow.pieces.popleft()
            flow.on_the_way -= len(data)
            if not self.is_over and not flow.lost:
                there(data)

    def _to_peer(self, data: bytes) -> None:
        self._look()
        if self.peer_left:
            # The peer's kernel has nobody who would read it.
            if data:
                self._reset_gateway()
            return
        if data:
            self.network.trace(self, b">", data)
            self.peer.received(data)
        else:
            self._tell("end")

    def _to_gateway(self, data: bytes) -> None:
        self.inward.waiting.append(data)
        self.flush()

    def flush(self) -> None:
        """Give the gateway what has arrived."""
        waiting = self.inward.waiting
        self.network.touch()
        try:
            while waiting:
                data = waiting[0]
                if data:
                    sent = self.sock.send(data)
                    self.network.trace(self, b"<", data[:sent])
                    if sent < len(data):
                        waiting[0] = data[sent:]
                        break
                else:
                    self.sock.shutdown(socket.SHUT_WR)
                waiting.popleft()
        except BlockingIOError:
            pass
        except OSError:
            # It has closed its end, of which reading tells.
            waiting.clear()
        self._look()

    def _look(self) -> None:
        interest = select.EPOLLOUT if self.inward.waiting else 0
        if self.outward.on_the_way < _WINDOW:
            interest |= select.EPOLLIN
        if interest != self.interest and self.interest >= 0 and not self.is_over:
            self.interest = interest
            self.network.touch()
            self.network.epoll.modify(self.sock, interest)

    def ready(self, events: int) -> None:
        """Its socket has something to read, room, or an end."""
        if events & select.EPOLLOUT:
            self.flush()
        if not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) or self.is_over:
            return
        self.network.touch()
        try:
            data = self.sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = None
        if data:
            self._arrive(self.outward, data, self._to_peer)
            self._look()
            return
        # The gateway has closed it, or said that nothing more comes; a reset overtakes nothing here.
        self.network.epoll.unregister(self.sock)
        self.interest = -1
        if data is None:
            self._arrive(self.outward, b"", lambda _: self.reset())
        else:
            self._arrive(self.outward, b"", self._to_peer)
            if self.peer_left:
                self._arrive(self.outward, b"", lambda _: self._over())

    def _reset_gateway(self) -> None:
        self.network.touch()
        end = self.gateway_end
        if end is not None and end.descriptor >= 0:
            # A unix socket that is closed with something unread resets its peer.
            with contextlib.suppress(OSError):
                os.write(end.descriptor, b"\0")
        self._over()

    def _tell(self, why: str) -> None:
        if not self.has_told:
            self.has_told = True
            self.peer_left = True
            self.peer.ended(why)
            self._over()

    def _over(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.network.touch()
            if self.interest >= 0:
                self.network.epoll.unregister(self.sock)
            self.network.forget(self)
            self.sock.close()

"""The simulated network: who listens where, who connects to whom, and all connections.

The gateway's listening sockets are real ones, in the abstract name space; brokers are models, known by their
addresses. Between connections nothing keeps an order.
"""

from __future__ import annotations

import errno
import hashlib
import select
import socket
from collections import Counter
from collections.abc import Callable
from random import Random

from tests.simulation.clock import Clock
from tests.simulation.connection import Connection, Peer
from tests.simulation.sockets import Address, GatewaySocket, Listening, name_of
from tests.simulation.tls import Papers, Secured

#: What a socket's buffer is full of while it does not stand: it is not writable then.
_FULL = bytes(4096)
#: Sockets after which it is looked for closed ones.
_MANY = 1000


class Network:
    """All connections of one world."""

    def __init__(self, clock: Clock, seed: str, *, latency: float, cutting: float, buffers: int) -> None:
        """``latency`` in seconds; ``cutting`` is the part of pieces that arrive in two; ``buffers`` are the
        bytes that the kernel holds for a socket of the gateway's."""
        self.clock, self.seed = clock, seed
        self.latency, self.cutting, self.buffers = latency, cutting, buffers
        self.random = Random(f"{seed}/network")
        self.epoll = select.epoll()
        #: By descriptor.
        self.connections: dict[int, Connection] = {}
        #: Address -> who makes a peer for a new connection; None: it is refused; missing: nobody answers.
        self.servers: dict[Address, Callable[[], Peer] | None] = {}
        self.names: dict[Address, str] = {}
        self.faults: Counter[str] = Counter()
        self._numbers = 0
        self._calling: dict[str, Connection] = {}
        #: The gateway's ends: those that are open are among them.
        self._ends: list[GatewaySocket] = []
        #: Both ends of what the gateway has dialled where nobody answers.
        self._unanswered: list[tuple[socket.socket, GatewaySocket]] = []
        self._hash = hashlib.sha256()
        self.pieces = self.bytes = 0
        self._is_touched = False
        #: Of clients and brokers that speak TLS.
        self.papers: Papers | None = None
        self.tls_clients = self.tls_brokers = False

    # -- what connections ask ----------------------------------------------------------------------

    def register(self, connection: Connection) -> None:
        self.touch()
        self.connections[connection.sock.fileno()] = connection
        self.epoll.register(connection.sock, connection.interest)

    def forget(self, connection: Connection) -> None:
        self.connections.pop(connection.sock.fileno(), None)

    def count(self, what: str) -> None:
        """A fault."""
        self.faults[what] += 1

    def trace(self, connection: Connection, way: bytes, data: bytes) -> None:
        self.pieces += 1
        self.bytes += len(data)
        self._hash.update(b"%d%s%.7f " % (connection.number, way, self.clock.now))
        self._hash.update(b"%d" % len(data) if connection.is_secret else data)

    def told(self, data: bytes) -> None:
        """What came to a model in secret."""
        self._hash.update(data)

    @property
    def digest(self) -> str:
        """Of all that was heard by anybody, and when."""
        return self._hash.hexdigest()

    def touch(self) -> None:
        """A descriptor may tell of something that it did not tell of before."""
        self._is_touched = True

    def was_touched(self) -> bool:
        """Whether one may, since this was asked."""
        is_touched, self._is_touched = self._is_touched, False
        return is_touched

    def poll(self) -> bool:
        """Move what sockets have; whether there was anything."""
        events = self.epoll.poll(0)
        for fd, event in events:
            connection = self.connections.get(fd)
            if connection is not None:
                connection.ready(event)
        return bool(events)

    def near(self, name: str) -> list[Connection]:
        """The connections of a peer, as the story names it."""
        return [one for one in self.connections.values() if one.near == name]

    def open_ends(self) -> list[GatewaySocket]:
        """The gateway's ends that it has not closed."""
        self._ends = [end for end in self._ends if end.descriptor >= 0]
        return self._ends

    def _keep(self, end: GatewaySocket) -> None:
        self._ends.append(end)
        if len(self._ends) >= _MANY:
            self.open_ends()

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # -- clients to the gateway --------------------------------------------------------------------

    def connect(self, peer: Peer, near: str, source: str, to: Address, *, is_plain: bool = False) -> None:
        """A client dials the gateway; ``peer`` hears how it went. ``is_plain``: it speaks no TLS."""
        if self.papers is not None and self.tls_clients and not is_plain:
            peer = Secured(peer, self.papers.client(self.random), self.papers)
        self.clock.after(self.latency, lambda: self._connect(peer, near, source, to))

    def _connect(self, peer: Peer, near: str, source: str, to: Address) -> None:
        number = self._number()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        name = name_of((source, 20000 + number % 40000), number)
        sock.bind(name)
        self.touch()
        error = sock.connect_ex(name_of(to))
        if error:
            sock.close()
            peer.ended("refused")
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.buffers)
        connection = Connection(self, sock, peer, near, number)
        self._calling[name] = connection
        self.clock.after(self.latency, lambda: None if connection.is_over else peer.connected(connection))

    def accepted(self, sock: GatewaySocket, name: str) -> None:
        """The gateway has accepted a connection."""
        self._keep(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.buffers)
        connection = self._calling.pop(name, None)
        if connection is not None:
            connection.gateway_end = sock

    def listening(self, address: Address) -> Listening:
        return Listening(address, self)

    # -- the gateway to brokers --------------------------------------------------------------------

    def dial(self, address: Address) -> GatewaySocket:
        """The gateway dials a broker: a socket that is writable when it is known how that ended."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        made = GatewaySocket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=theirs.detach())
        for sock in (ours, made):
            sock.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        made.send(_FULL)
        self._keep(made)
        self.clock.after(2 * self.latency, lambda: self._dial(ours, made, address))
        return made

    def _dial(self, ours: socket.socket, made: GatewaySocket, address: Address) -> None:
        self.touch()
        if made.fileno() < 0:
            ours.close()
            return
        if address not in self.servers:
            # Nobody answers, and nobody says so.
            self._unanswered = [pair for pair in self._unanswered if pair[1].descriptor >= 0]
            self._unanswered.append((ours, made))
            return
        ours.recv(len(_FULL))
        make = self.servers[address]
        if make is None:
            made.error = errno.ECONNREFUSED
            ours.close()
            return
        number = self._number()
        made.own, made.peer = ("10.9.0.1", 20000 + number % 40000), address
        for sock in (ours, made):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.buffers)
        peer: Peer = make()
        if self.papers is not None and self.tls_brokers:
            peer = Secured(peer, self.papers.broker)
        connection = Connection(self, ours, peer, self.names[address], number)
        connection.gateway_end = made
        peer.connected(connection)

    def die(self) -> None:
        """The gateway's process is killed: its kernel resets what it had."""
        for connection in list(self.connections.values()):
            connection.reset()
        self._calling.clear()

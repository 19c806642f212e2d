"""TCP connections to others: to an address at once, to a name as RFC 8305 has it.

What a name stood for a moment ago is dialled at once, too: to ask for it each time costs as much as half a
login. Where that fails, or takes long, all is done again from the name.

What a connection is like, and one that is accepted, is said here, too (`prepare`).
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import random
import socket
import time
from functools import lru_cache
from typing import Final

import attrs
import trio

from amqpgate.gateway.transport.waiting import in_trio, move_on_after, wait_writable
from amqpgate.values import define, frozen

#: Seconds for which it is taken that a name has the same addresses; Envoy's default.
FRESH: Final = 5.0
#: Seconds after which a second address is tried beside the first (RFC 8305, section 5).
PATIENCE: Final = 0.25

#: Congestion controls that pace: they spread what is sent over time, with a timer per 64 KiB.
_PACED = b"bbr"
#: Built into every Linux, open to every user, and never paced.
_UNPACED = b"reno"
#: Linux's longest name of a congestion control, with its final NUL.
_NAME_MAX = 16

#: Seconds without a byte after which the kernel asks whether a peer is there, between two questions, and how
#: many it puts before the connection has ended: two minutes. Load balancers forget it after four or more.
KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6),
)

#: What connect says of a connection that stands.
_CONNECTED: Final = (0, errno.EISCONN)


async def connect(host: str, port: int) -> socket.socket:
    """A connected socket that does not block. A name with several addresses is tried as RFC 8305 has it.

    Raises ``OSError``; deadlines are the caller's.
    """
    attempt = begin(host, port)
    if attempt is not None:
        return await attempt.finish()
    addresses = KNOWN.of(host)
    if addresses is not None:
        # Of several brokers behind one name none gets all that come within these seconds.
        address = random.choice(addresses.hosts)  # noqa: S311 - no secret
        with contextlib.suppress(OSError), move_on_after(PATIENCE):
            return await _begin(addresses.family, address, port).finish()
    return await in_trio(_connect_by_name, host, port)


def begin(host: str, port: int) -> Attempt | None:
    """What `connect` begins with for an address; None: it is a name. Raises ``OSError``."""
    family = _family_of(host)
    return None if family is None else _begin(family, host, port)


def _begin(family: socket.AddressFamily, address: str, port: int) -> Attempt:
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        error = sock.connect_ex((address, port))
        if error == errno.EINPROGRESS:
            # Within one machine, and on a good day within one network, it is there by now (connect(2)).
            error = sock.connect_ex((address, port))
        return Attempt(sock, error)
    except BaseException:
        sock.close()
        raise


@frozen
class Attempt:
    """A connection that is asked for."""

    sock: socket.socket
    #: What the kernel says of it: an ``errno``.
    _error: int

    @property
    def is_pending(self) -> bool:
        """Whether it is neither there nor refused: it is writable when it is."""
        return self._error == errno.EALREADY

    def settle(self) -> None:
        """Nothing is waited for: it stands, or ``OSError`` is raised."""
        if self._error not in _CONNECTED:
            raise OSError(self._error, os.strerror(self._error))

    @property
    def stands(self) -> bool:
        """Whether it is there, and nothing has to be waited for."""
        return self._error in _CONNECTED

    async def finish(self) -> socket.socket:
        """Its socket when it stands. Raises ``OSError``; it is closed then."""
        sock, error = self.sock, self._error
        try:
            if error == errno.EALREADY:
                await wait_writable(sock)
                error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error not in _CONNECTED:
                raise OSError(error, os.strerror(error))
        except BaseException:
            sock.close()
            raise
        return sock


async def _connect_by_name(host: str, port: int) -> socket.socket:
    KNOWN.forget(host)
    # Of text Python asks tables of Unicode, although a host is ASCII (`config.parse_host`).
    name = host.encode()
    stream = await trio.open_tcp_stream(name, port)
    with contextlib.ExitStack() as unfinished:
        sock = unfinished.enter_context(socket.socket(fileno=stream.socket.detach()))
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            # Of the family that has just answered: others may not lead anywhere.
            found = await trio.socket.getaddrinfo(name, port, family=sock.family, type=socket.SOCK_STREAM)
            hosts = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
            # One with a scope needs more than its text.
            if hosts and all(_family_of(address) for address in hosts):
                KNOWN.found(host, Addresses(sock.family, hosts))
        unfinished.pop_all()
    return sock


@frozen
class Addresses:
    """Of one name, and one family."""

    family: socket.AddressFamily
    hosts: tuple[str, ...]
    #: On ``time.monotonic``'s clock.
    found: float = attrs.field(factory=time.monotonic)


@define(eq=False)
class ResolvedNames:
    """What names stood for a moment ago."""

    _found: dict[str, Addresses] = attrs.field(factory=dict, init=False)

    def of(self, host: str) -> Addresses | None:
        """Its addresses; None: it is to be asked for."""
        found = self._found.get(host)
        return found if found is not None and time.monotonic() - found.found < FRESH else None

    def found(self, host: str, addresses: Addresses) -> None:
        """It has these now."""
        self._found[host] = addresses

    def forget(self, host: str) -> None:
        """Ask for it again."""
        self._found.pop(host, None)


#: Of the process. There are as many names as its settings, and brokers that redirect, have.
KNOWN: Final = ResolvedNames()


@lru_cache(maxsize=256)
def _family_of(host: str) -> socket.AddressFamily | None:
    """Of an address; None: it is a name, or has a scope."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return family
    return None


# -- options of sockets ------------------------------------------------------------------------


def prepare(sock: socket.socket, address: str | None = None) -> None:
    """Make a connected TCP socket non-blocking, without Nagle's delay, and not paced within one machine.

    Where the system's congestion control is BBR, loopback is paced like a wide-area network. There is
    nothing to share it with, and the timers cost more than the copying: ``make bench`` on such a machine
    saw a publish of 64 KiB cost 14 us or 48 us by luck, and mostly 14 to 20 us since (spec/decisions/0004).
    ``address``: what it was connected to, if that was an address.
    """
    if sock.gettimeout() != 0:
        sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    unpace(sock, address if address is not None and _is_loopback(address) else None)


def prepare_listening(sock: socket.socket) -> None:
    """What `prepare` does, for all connections that a bound socket will accept, as far as it can: they have
    its options. The rest is `unpace`, with their addresses."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(sock)
    own = str(sock.getsockname()[0])
    if _is_loopback(own):
        unpace(sock, own)


def keep_alive(sock: socket.socket) -> None:
    """Have the kernel find out where the peer has gone without a word (tcp(7))."""
    for level, option, value in KEEP_ALIVE:
        sock.setsockopt(level, option, value)


def is_paced(sock: socket.socket) -> bool:
    """Whether what is sent is spread over time. What a listening socket accepts is as that is."""
    try:
        name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_MAX)
    except OSError:
        # A kernel that lacks the option works as it did.
        return False
    return name.startswith(_PACED)


def unpace(sock: socket.socket, peer: str | None = None) -> None:
    """Do not pace what is sent to its peer, if that is on this machine. ``peer``: its address, if known."""
    if is_paced(sock):
        try:
            peer = peer or str(sock.getpeername()[0])
            if _is_loopback(peer) or peer == sock.getsockname()[0]:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _UNPACED)
        except OSError:
            # A kernel that forbids the option works as it did.
            pass


@lru_cache(maxsize=1024)
def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback

"""TCP connections to others: to an address at once, to a name as RFC 8305 has it.

What a name stood for a moment ago is dialled at once, too: to ask for it each time costs as much as half a
login. Where that fails, or takes long, all is done again from the name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import socket
import time
from functools import lru_cache
from typing import Final

import attrs
import trio

from amqpgate.gateway.transport.waiting import in_trio, move_on_after, wait_writable
from amqpgate.values import frozen

#: Seconds for which it is taken that a name has the same addresses; Envoy's default.
FRESH: Final = 5.0
#: Seconds after which a second address is tried beside the first (RFC 8305, section 5).
PATIENCE: Final = 0.25

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
    stream = await trio.open_tcp_stream(host, port)
    with contextlib.ExitStack() as unfinished:
        sock = unfinished.enter_context(socket.socket(fileno=stream.socket.detach()))
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            # Of the family that has just answered: others may not lead anywhere.
            found = await trio.socket.getaddrinfo(host, port, family=sock.family, type=socket.SOCK_STREAM)
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


@attrs.define(eq=False)
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

"""Listening sockets, and how connections are taken from them."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final

import trio

from amqpgate.datapath import build, reserve
from amqpgate.gateway.transport.connecting import unpace
from amqpgate.gateway.transport.stepper import Stepper
from amqpgate.logs import RECURRING
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)

#: accept fails so when the process or the system has no room for another socket; waiting helps.
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
#: Linux reports what happened to the connection, not to the listening socket, so (accept(2), "Error
#: handling"); besides those that are ``ConnectionError``.
_ITS_OWN_FAULT = frozenset(
    {
        errno.EPERM,
        errno.EPROTO,
        errno.ENOPROTOOPT,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENONET,
        errno.EOPNOTSUPP,
        errno.ETIMEDOUT,
    }
)
#: Pause after that, in seconds: long enough not to spin, short enough not to be felt.
BREATH = 0.1


#: Connections that the kernel completes ahead of accept.
BACKLOG = 4096

#: Connections that are accepted before others have their turn: each takes some 20 us.
MOST_ACCEPTED: Final = 16


@frozen(eq=False)
class ListeningSocket:
    """A socket, and what those that it accepts have of it."""

    sock: socket.socket
    is_paced: bool


@define(eq=False)
class Accepting(Stepper):
    """Takes connections from a listening socket, and closes it when it is cancelled.

    What the kernel has let in by then is taken first: it would be reset. None is taken while memory is short:
    what is left is for those that there are.
    """

    listening: ListeningSocket
    #: Takes a connection in: its socket, and its peer as ``host:port``. It is closed where that raises.
    enter: Callable[[socket.socket, str], None]
    #: Called when the listening socket itself is broken.
    on_broken: Callable[[Exception], None]

    def proceed(self) -> bool:
        self.is_queued = False
        if self.is_cancelled:
            self._close()
            return True
        try:
            for _ in range(MOST_ACCEPTED):
                if reserve.is_short():
                    log.error("cannot accept: memory is short", extra=RECURRING)
                    return self._rest()
                came = take(self.listening)
                if came is None:
                    self.wait_for(self.listening.sock)
                    return False
                self._enter(*came)
            self.scheduler.resume_soon(self)
        except (MemoryError, SystemError):
            # Memory was wanted for one connection; Python's own accept does not always say so. There may be
            # some again.
            return self._rest()
        except OSError as error:
            if error.errno in _NO_ROOM:
                log.error("cannot accept: %s", error, extra=RECURRING)
                return self._rest()
            return self._break(error)
        except Exception as error:
            return self._break(error)
        return False

    def look(self, now: float) -> None:
        self.scheduler.resume_soon(self)

    def _enter(self, connection: socket.socket, address: str) -> None:
        try:
            self.enter(connection, address)
        except Exception:
            # One connection's fault ends that connection.
            log.exception("a connection from %s was not taken in", address)
            connection.close()

    def _rest(self) -> bool:
        """Accept nothing for a while."""
        with contextlib.suppress(MemoryError):
            self.ignore_all()
            try:
                self.scheduler.look_at(self, trio.current_time() + BREATH)
            except MemoryError:
                self.scheduler.resume_soon(self)
        return False

    def _break(self, error: Exception) -> bool:
        self._close()
        self.on_broken(error)
        return True

    def _close(self) -> None:
        self.ignore_all()
        with self.listening.sock, contextlib.suppress(OSError, MemoryError, SystemError):
            while (came := take(self.listening)) is not None:
                self._enter(*came)


def take(listening: ListeningSocket) -> tuple[socket.socket, str] | None:
    """The next connection, prepared, and its peer as ``host:port``; None where there is none.

    Raises ``OSError`` where there is no room, or the listening socket is broken.
    """
    while True:
        try:
            came = build.accept(listening.sock)
        except ConnectionError:
            continue  # it left before it was accepted
        except OSError as error:
            if error.errno not in _ITS_OWN_FAULT:
                raise
        else:
            if came is None:
                return None
            connection, (host, port) = came
            if listening.is_paced:
                unpace(connection, host)
            return connection, f"{host}:{port}"

"""Listening sockets, and how connections are taken from them."""

from __future__ import annotations

import errno
import logging
import socket

from amqpgate.datapath import build, reserve
from amqpgate.gateway.transport.connecting import unpace
from amqpgate.gateway.transport.waiting import sleep, wait_readable
from amqpgate.logs import RECURRING

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


async def accept(sock: socket.socket, *, is_paced: bool = True) -> tuple[socket.socket, str]:
    """The next connection, prepared, and its peer as ``host:port``. ``is_paced``: it may be.

    None is taken while memory is short: what is left is for those that there are. Raises ``OSError`` only
    where the listening socket itself is broken.
    """
    while True:
        if reserve.is_short():
            log.error("cannot accept: memory is short", extra=RECURRING)
            await sleep(BREATH)
            continue
        try:
            came = take(sock, is_paced=is_paced)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            log.error("cannot accept: %s", error, extra=RECURRING)
            await sleep(BREATH)
            continue
        if came is not None:
            return came
        await wait_readable(sock)


def take(sock: socket.socket, *, is_paced: bool = True) -> tuple[socket.socket, str] | None:
    """As ``accept``, but without waiting: None where there is no connection.

    Raises ``OSError`` for want of room, too.
    """
    while True:
        try:
            connection, (host, port) = build.accept(sock)
        except BlockingIOError:
            return None
        except ConnectionError:
            continue  # it left before it was accepted
        except OSError as error:
            if error.errno not in _ITS_OWN_FAULT:
                raise
        else:
            if is_paced:
                unpace(connection, host)
            return connection, f"{host}:{port}"

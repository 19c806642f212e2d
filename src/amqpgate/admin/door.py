"""Takes in the connections of one address of HTTP, and has each served, so many at once."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.admin.crowd import Crowd
from amqpgate.config import Address
from amqpgate.errors import ListenError
from amqpgate.logs import RECURRING, log_failure
from amqpgate.values import define

if TYPE_CHECKING:
    from typing import TypeAlias

    #: Serves a connection, and calls the second when something has been heard, or has been said and taken.
    Talk: TypeAlias = Callable[[trio.abc.Stream, Callable[[], None]], Awaitable[None]]

log = logging.getLogger(__name__)

#: Connections of one address at once.
MOST_CONNECTIONS: Final = 256
_BACKLOG: Final = 100
#: accept fails so when the process or the system has no room for another socket.
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
#: Seconds until another one is accepted then.
_BREATH: Final = 0.1


@define(eq=False)
class _Visit:
    """One connection."""

    stream: trio.abc.Stream
    scope: trio.CancelScope

    def cancel(self) -> None:
        """End it, also where a library sends and shields that from being cancelled."""
        self.scope.cancel()
        stream = self.stream
        if isinstance(stream, trio.SSLStream):
            stream = stream.transport_stream
        if isinstance(stream, trio.SocketStream):
            stream.socket.close()


@define(eq=False)
class Door:
    """The way in at one address."""

    #: In the log.
    what: str
    talk: Talk
    most: int = MOST_CONNECTIONS
    _crowd: Crowd = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._crowd = Crowd(self.most)

    async def serve(
        self,
        address: Address,
        context: ssl.SSLContext | None,
        shutdown: Callable[[], Awaitable[None]],
        last_words: float,
        task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Until ``shutdown`` returns, and ``last_words`` seconds longer for what is under way.

        The status is the address as a URL. Raises ``OSError`` where it is taken.
        """
        sock = _listening(address, self.what)
        host, port = sock.getsockname()[:2]
        sockets = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
        listener: trio.abc.Listener[trio.abc.Stream] = sockets
        if context is not None:
            listener = trio.SSLListener(sockets, context, https_compatible=True)
        scheme = "http" if context is None else "https"
        async with trio.open_nursery() as waiting:
            async with trio.open_nursery() as connections:
                try:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._accept, listener, connections)
                        task_status.started(f"{scheme}://{Address(host, port)}")
                        await shutdown()
                        nursery.cancel_scope.cancel()
                except BaseException:
                    self._crowd.end()
                    raise
                waiting.start_soon(self._end_after, last_words)
            waiting.cancel_scope.cancel()

    async def _end_after(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self._crowd.end()

    async def _accept(self, listener: trio.abc.Listener[trio.abc.Stream], connections: trio.Nursery) -> None:
        """Take connections in. Where there is no room for one there may be a moment later."""
        async with listener:
            while True:
                try:
                    connections.start_soon(self._talk, await listener.accept())
                    continue
                except (MemoryError, SystemError):
                    pass
                except OSError as error:
                    if error.errno not in _NO_ROOM:
                        raise
                    log.error("cannot accept: %s", error, extra=RECURRING)
                with contextlib.suppress(MemoryError):
                    await trio.sleep(_BREATH)

    async def _talk(self, stream: trio.abc.Stream) -> None:
        """One connection, which is closed afterwards. What fails on it ends it alone."""
        try:
            try:
                with trio.CancelScope() as scope:
                    visit = _Visit(stream, scope)
                    self._crowd.enter(visit)
                    try:
                        await self.talk(stream, lambda: self._crowd.moved(visit))
                    finally:
                        self._crowd.leave(visit)
            except Exception:
                log_failure(log, "a connection of %s failed", self.what)
            finally:
                await trio.aclose_forcefully(stream)
        except Exception:
            log_failure(log, "a connection of %s could not be closed", self.what)


def _listening(address: Address, what: str) -> socket.socket:
    """A socket that listens there. An IPv6 address takes what the system has it take of IPv4.

    Raises `ListenError`.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address.host, address.port))
            sock.listen(_BACKLOG)
        except OSError as error:
            raise ListenError(what, str(address), address.port, error) from error
    except BaseException:
        sock.close()
        raise
    return sock

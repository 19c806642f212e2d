"""The admin interface: its addresses, and who answers what comes there.

::

    connection ──▶ `plain` request for an `endpoint` ──▶ its answer      again and again
        │
        └────────▶ anything else ──▶ `framework` ──▶ `application`       to its end, with what was read of it

The web framework takes 12 MiB and half a second of CPU. It is imported, in a thread, for the first request
that needs it; in most processes there is none.
"""

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
from amqpgate.admin.endpoint import Endpoints
from amqpgate.admin.guarding import Rules
from amqpgate.admin.lifecycle import lifecycle_endpoints
from amqpgate.admin.probes import OPEN, probe_endpoints
from amqpgate.admin.simple import SimpleServer
from amqpgate.admin.subject import AdminSubject
from amqpgate.config import Address, Admin, ListenerTls
from amqpgate.logs import RECURRING, log_failure

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from amqpgate.admin.framework import Framework

log = logging.getLogger(__name__)

#: Connections of one address at once.
MOST_CONNECTIONS: Final = 256
#: Seconds for answers and streams that are under way when the gateway ends.
LAST_WORDS: Final = 1.0
_BACKLOG: Final = 100
#: accept fails so when the process or the system has no room for another socket.
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
#: Seconds until another one is accepted then.
_BREATH: Final = 0.1


def endpoints_of(subject: AdminSubject) -> Endpoints:
    """All that is answered without the web framework."""
    return {**probe_endpoints(subject), **lifecycle_endpoints(subject)}


async def serve_admin(
    admin: Admin,
    subject: AdminSubject,
    *,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``shutdown`` returns. The status is the addresses that were bound, the probes' last.

    Raises ``ConfigError`` where its certificate cannot be used, and ``OSError`` where an address is taken.
    """
    over, token, is_loopback = trio.Event(), admin.token(), admin.bind.is_loopback
    endpoints, probes = endpoints_of(subject), probe_endpoints(subject)

    def application() -> Starlette:
        from amqpgate.admin.application import application

        return application(subject, endpoints, token, over=over, is_loopback=is_loopback)

    def probes_application() -> Starlette:
        from amqpgate.admin.application import probes_application

        return probes_application(probes)

    tls = None if admin.tls is None else ListenerTls(cert=admin.tls.cert, key=admin.tls.key)
    async with trio.open_nursery() as nursery:
        simple = SimpleServer(endpoints, Rules(token, OPEN, is_loopback))
        main = _Server(simple, application, over)
        bound: list[str] = [await nursery.start(main.serve, admin.bind, tls)]
        if admin.probes is not None:
            open_to_all = _Server(SimpleServer(probes, None), probes_application, over)
            bound.append(await nursery.start(open_to_all.serve, admin.probes, None))
        task_status.started(bound)
        await shutdown()
        over.set()


@attrs.define(eq=False)
class _Server:
    """Serves one address."""

    simple: SimpleServer
    make_application: Callable[[], Starlette]
    over: trio.Event
    _crowd: Crowd = attrs.field(factory=lambda: Crowd(MOST_CONNECTIONS), init=False)
    _framework: Framework | None = attrs.field(default=None, init=False)
    _loading: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def serve(
        self,
        address: Address,
        tls: ListenerTls | None,
        task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Until ``over``, and `LAST_WORDS` longer. The status is the address as a URL."""
        context = None if tls is None else _context(tls)
        sock = _listening(address)
        host, port = sock.getsockname()[:2]
        sockets = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
        listener: trio.abc.Listener[trio.abc.Stream] = sockets
        if context is not None:
            listener = trio.SSLListener(sockets, context, https_compatible=True)
        scheme = "http" if context is None else "https"
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._accept, listener, connections)
                task_status.started(f"{scheme}://{Address(host, port)}")
                await self.over.wait()
                nursery.cancel_scope.cancel()
            self.simple.end()
            if self._framework is not None:
                await self._framework.end()
            connections.cancel_scope.deadline = trio.current_time() + LAST_WORDS

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
                    self._crowd.enter(scope)
                    try:
                        await self._answer(stream, lambda: self._crowd.moved(scope))
                    finally:
                        self._crowd.leave(scope)
            except Exception:
                log_failure(log, "a connection of the admin interface failed")
            finally:
                await trio.aclose_forcefully(stream)
        except Exception:
            log_failure(log, "a connection of the admin interface could not be closed")

    async def _answer(self, stream: trio.abc.Stream, on_moved: Callable[[], None]) -> None:
        rest = await self.simple.serve(stream, on_moved)
        if rest is None:
            return
        async with self._loading:
            if self._framework is None:
                try:
                    self._framework = await trio.to_thread.run_sync(self._load)
                except ImportError:
                    # The files may be another version's by now. What relays goes on.
                    log.exception("the admin interface answers probes only: a part of it cannot be imported")
                    return
        await self._framework.serve(stream, rest, on_moved)

    def _load(self) -> Framework:
        from amqpgate.admin.framework import Framework

        return Framework(self.make_application())


def _context(tls: ListenerTls) -> ssl.SSLContext:
    # What it takes is nothing for a supervisor whose interface speaks plain HTTP.
    from amqpgate.admin.https import Certificates

    return Certificates(tls).context()


def _listening(address: Address) -> socket.socket:
    """A socket that listens there. An IPv6 address takes what the system has it take of IPv4."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address.host, address.port))
        sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock

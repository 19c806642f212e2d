"""The admin interface: its addresses, and who answers what comes there.

::

    connection ──▶ `plain` request for an `endpoint` ──▶ its answer      again and again
        │
        └────────▶ anything else ──▶ `framework` ──▶ `application`       to its end, with what was read of it

The web framework takes 12 MiB and half a second of CPU. It is imported, in a thread, for the first request
that needs it; in most processes there is none.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.admin.door import MOST_CONNECTIONS, Door
from amqpgate.admin.endpoint import Endpoints
from amqpgate.admin.guarding import Rules
from amqpgate.admin.lifecycle import lifecycle_endpoints
from amqpgate.admin.probes import OPEN, probe_endpoints
from amqpgate.admin.simple import IDLE, SimpleServer
from amqpgate.admin.subject import AdminSubject
from amqpgate.config import Address, Admin, ListenerTls
from amqpgate.values import define

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from amqpgate.admin.framework import Framework

log = logging.getLogger(__name__)

#: Seconds for answers and streams that are under way when the gateway ends.
LAST_WORDS: Final = 1.0


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


@define(eq=False)
class _Server:
    """Serves one address."""

    simple: SimpleServer
    make_application: Callable[[], Starlette]
    over: trio.Event
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
        door = Door("the admin interface", self._answer, MOST_CONNECTIONS)
        await door.serve(address, context, self._end, LAST_WORDS, task_status)

    async def _end(self) -> None:
        await self.over.wait()
        self.simple.end()
        if self._framework is not None:
            await self._framework.end()

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

        return Framework(self.make_application(), IDLE)


def _context(tls: ListenerTls) -> ssl.SSLContext:
    # What it takes is nothing for a supervisor whose interface speaks plain HTTP.
    from amqpgate.admin.https import Certificates

    return Certificates(tls).context()

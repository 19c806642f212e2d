"""The web framework's server, for connections that somebody else has accepted and has read some bytes of.

It speaks HTTP/1.1 and nothing else. A request to go on with another protocol (h2c, WebSocket) is answered as
if it had not asked for that (RFC 9110, section 7.8). HTTP/2 that nobody has agreed on is refused with 505.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, cast

import h11
import hypercorn.config
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from hypercorn.utils import parse_socket_addr
from starlette.applications import Starlette

#: Seconds that a peer may take to read what has been sent to it.
_PATIENCE: Final = 30.0


class Framework:
    """Serves one application. ``idle``: seconds for the head of a request, the silence before it included."""

    def __init__(self, application: Starlette, idle: float) -> None:
        self._application = ASGIWrapper(cast("ASGIFramework", application))
        self._config = hypercorn.config.Config()
        self._config.accesslog = None
        self._config.errorlog = logging.getLogger("hypercorn.error")
        self._config.keep_alive_timeout = idle
        self._context = WorkerContext(None)
        self._turn = trio.Lock()

    async def serve(self, stream: trio.abc.Stream, first: bytes, on_moved: Callable[[], None]) -> None:
        """One connection to its end; ``first`` is what has been read of it. ``on_moved`` is called when more
        has been, or something has been said and taken."""
        is_tls = isinstance(stream, trio.SSLStream)
        below = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
        assert isinstance(below, trio.SocketStream)
        again = _ReadAgain(stream, first, on_moved, self._turn)
        await _Http1Server(self._application, self._config, self._context, again, below.socket, is_tls)

    async def end(self) -> None:
        """Close what nothing is under way on; the rest ends by itself, or is cancelled."""
        await self._context.terminated.set()


class _Http1Server(TCPServer):
    """The framework's server, without the choice of a protocol."""

    def __init__(
        self,
        application: ASGIWrapper,
        config: hypercorn.config.Config,
        context: WorkerContext,
        stream: _ReadAgain,
        sock: trio.socket.SocketType,
        is_tls: bool,
    ) -> None:
        super().__init__(application, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]
        self._sock, self._is_tls = sock, is_tls

    async def run(self) -> None:
        try:
            client = parse_socket_addr(self._sock.family, self._sock.getpeername())
            server = parse_socket_addr(self._sock.family, self._sock.getsockname())
            async with TaskGroup() as tasks:
                self._task_group = tasks
                protocol = H11Protocol(
                    self.app,
                    self.config,
                    self.context,
                    tasks,
                    ConnectionState(self.state),
                    self._is_tls,
                    client,
                    server,
                    self.protocol_send,
                )
                protocol.connection = _Http1(
                    h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_size
                )
                self.protocol = protocol  # type: ignore[assignment]
                await self.idle_task.restart(tasks, self._idle_timeout)
                await self._read_data()
        except OSError:
            pass
        finally:
            await self._close()


class _Http1(h11.Connection):
    """Requests to go on with another protocol ask for nothing."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if not isinstance(event, h11.Request):
            return event
        if not event.http_version.startswith(b"1."):
            raise h11.RemoteProtocolError("this version of HTTP is not spoken", error_status_hint=505)
        kept = [header for header in event.headers.raw_items() if header[0].lower() != b"upgrade"]
        if len(kept) == len(event.headers):
            return event
        return h11.Request(
            method=event.method, target=event.target, headers=kept, http_version=event.http_version
        )


class _ReadAgain(trio.abc.Stream):
    """A stream whose first bytes are read once more, and whose peer has to read what is sent.

    Of all that have read something one goes on in each turn of the event loop, the first first: messages are
    relayed between turns, and a turn with a request of each of 200 pages would be long.
    """

    def __init__(
        self, stream: trio.abc.Stream, first: bytes, on_moved: Callable[[], None], turn: trio.Lock
    ) -> None:
        self._stream, self._first, self._on_moved, self._turn = stream, first, on_moved, turn
        if isinstance(stream, trio.SocketStream):
            self.send_eof = stream.send_eof

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if not self._first:
            more = await self._stream.receive_some(max_bytes)
            self._on_moved()
            async with self._turn:
                await trio.lowlevel.checkpoint()
            return more
        async with self._turn:
            await trio.lowlevel.checkpoint()
        size = len(self._first) if max_bytes is None else max_bytes
        piece, self._first = self._first[:size], self._first[size:]
        return piece

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            with trio.fail_after(_PATIENCE):
                await self._stream.send_all(data)
        except trio.TooSlowError:
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError("the peer does not read") from None
        self._on_moved()

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()

"""The web framework's server, for connections that somebody else has accepted and has read some bytes of."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

import hypercorn.config
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from starlette.applications import Starlette


class Framework:
    """Serves one application."""

    def __init__(self, application: Starlette) -> None:
        self._application = ASGIWrapper(cast("ASGIFramework", application))
        self._config = hypercorn.config.Config()
        self._config.accesslog = None
        self._config.errorlog = logging.getLogger("hypercorn.error")
        self._context = WorkerContext(None)

    async def serve(self, stream: trio.abc.Stream, first: bytes, on_moved: Callable[[], None]) -> None:
        """One connection to its end; ``first`` is what has been read of it. ``on_moved`` is called when more
        has been, or something has been said and taken."""
        again: _ReadAgain
        if isinstance(stream, trio.SSLStream):
            again = _ReadAgainTls(stream, first, on_moved)
        else:
            assert isinstance(stream, trio.SocketStream)
            again = _ReadAgainPlain(stream, first, on_moved)
        state = ConnectionState({})
        await TCPServer(self._application, self._config, self._context, state, again)  # type: ignore[arg-type]

    async def end(self) -> None:
        """Close what nothing is under way on; the rest ends by itself, or is cancelled."""
        await self._context.terminated.set()


class _ReadAgain(trio.abc.Stream):
    """A stream whose first bytes are read once more."""

    def __init__(self, stream: trio.abc.Stream, first: bytes, on_moved: Callable[[], None]) -> None:
        self._stream, self._first, self._on_moved = stream, first, on_moved

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if not self._first:
            more = await self._stream.receive_some(max_bytes)
            self._on_moved()
            return more
        await trio.lowlevel.checkpoint()
        size = len(self._first) if max_bytes is None else max_bytes
        piece, self._first = self._first[:size], self._first[size:]
        return piece

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)
        self._on_moved()

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _ReadAgainPlain(_ReadAgain):
    """One of a plain socket."""

    def __init__(self, stream: trio.SocketStream, first: bytes, on_moved: Callable[[], None]) -> None:
        super().__init__(stream, first, on_moved)
        #: The server asks it for its addresses.
        self.socket = stream.socket
        self.send_eof = stream.send_eof


class _ReadAgainTls(_ReadAgain):
    """One with TLS, whose handshake is over: another one does nothing."""

    def __init__(
        self, stream: trio.SSLStream[trio.SocketStream], first: bytes, on_moved: Callable[[], None]
    ) -> None:
        super().__init__(stream, first, on_moved)
        #: The server asks its socket for its addresses.
        self.transport_stream = stream.transport_stream
        self.do_handshake = stream.do_handshake
        self.selected_alpn_protocol: Callable[[], str | None] = stream.selected_alpn_protocol

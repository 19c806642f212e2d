"""Answers `plain` requests for `endpoint`s on a connection, until something else comes on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

import attrs
import trio

from amqpgate.admin import plain
from amqpgate.admin.asking import asked_by, tell_refusal
from amqpgate.admin.endpoint import Asked, EndpointAnswer, Endpoints
from amqpgate.admin.guarding import SAFE, Rules, is_trusted
from amqpgate.admin.subject import Refused
from amqpgate.telemetry.answers import IncompleteError
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Seconds that a connection may take for a request, the silence before it included.
IDLE: Final = 5.0
#: Seconds that a peer may take for its TLS handshake, or to read an answer.
_PATIENCE: Final = 60.0
_READ: Final = 4096


@define(eq=False)
class SimpleServer:
    """Serves the connections of one address."""

    endpoints: Endpoints
    #: Who may ask for what; None where all may ask for everything, and nobody is trusted.
    rules: Rules | None
    _is_over: bool = attrs.field(default=False, init=False)
    #: Of connections that nothing is under way on.
    _idle: set[trio.CancelScope] = attrs.field(factory=set, init=False)

    async def serve(
        self, stream: trio.abc.Stream, on_moved: Callable[[], None] = lambda: None
    ) -> bytes | None:
        """What was read and is not for this, once that has come; None where the connection is over.

        ``on_moved`` is called when something has been heard, or has been said and taken.
        """
        try:
            if isinstance(stream, trio.SSLStream):
                with trio.fail_after(_PATIENCE):
                    await stream.do_handshake()
            return await self._serve(stream, on_moved)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return None

    def end(self) -> None:
        """Requests that are under way are answered, and no others."""
        self._is_over = True
        for scope in self._idle:
            scope.cancel()

    async def _serve(self, stream: trio.abc.Stream, on_moved: Callable[[], None]) -> bytes | None:
        data = bytearray()
        while not self._is_over:
            try:
                request = await self._receive(stream, data, on_moved)
            except plain.NotPlainError:
                return bytes(data)
            if request is None:
                return None
            endpoint = (request.method, request.path)
            if endpoint not in self.endpoints:
                return bytes(data)
            del data[: request.size]
            told, more = await self._answer(request, _address(stream))
            text = plain.response(
                told.status,
                told.body,
                told.media,
                now=time.time(),
                keeps_alive=request.keeps_alive,
                more=more,
            )
            with trio.fail_after(_PATIENCE):
                await stream.send_all(text)
            on_moved()
            if told.after is not None:
                told.after()
            if not request.keeps_alive:
                await stream.aclose()
                return None
        return None

    async def _receive(
        self, stream: trio.abc.Stream, data: bytearray, on_moved: Callable[[], None]
    ) -> plain.PlainRequest | None:
        """The next request, the first bytes of ``data``; None at the end, and after `IDLE` seconds.

        Raises ``NotPlainError``.
        """
        with trio.move_on_after(IDLE) as scope:
            self._idle.add(scope)
            try:
                while (request := plain.read(data)) is None:
                    piece = await stream.receive_some(_READ)
                    if not piece:
                        return None
                    data += piece
                    on_moved()
                return request
            finally:
                self._idle.discard(scope)
        return None

    async def _answer(
        self, request: plain.PlainRequest, address: str
    ) -> tuple[EndpointAnswer, tuple[str, ...]]:
        """The answer, and headers that it has besides."""
        is_known = False
        try:
            if self.rules is not None:
                self.rules.check(request.method, request.path, b"", request.headers)
                is_known = is_trusted(request.headers, self.rules.token)
            bears_token = is_known and self.rules is not None and self.rules.token is not None
            with asked_by(bears_token=bears_token, address=address):
                told = await self.endpoints[request.method, request.path](
                    Asked(is_known, request.body, request.headers.get("accept", ""))
                )
        except Refused as refused:
            if request.method not in SAFE:
                tell_refusal(request.method, request.path, refused.status, address)
            more = ("www-authenticate: Bearer",) if refused.status == 401 else ()
            return EndpointAnswer(refused.status, f"{refused}\n".encode()), more
        except IncompleteError as error:
            return EndpointAnswer(503, f"{error}\n".encode()), ()
        except Exception:
            # As the web framework does it. Nobody who asks ends the gateway.
            log.exception("%s %s failed", request.method, request.path)
            return EndpointAnswer(500, b"Internal Server Error"), ()
        return told, ()


def _address(stream: trio.abc.Stream) -> str:
    """Who is at the other end."""
    below = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    if not isinstance(below, trio.SocketStream):
        return "-"
    try:
        return str(below.socket.getpeername()[0])
    except OSError:
        return "-"

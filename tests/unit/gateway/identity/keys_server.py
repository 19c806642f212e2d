"""A server on loopback that says over HTTP what it is told to, byte by byte."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import attrs
import trio


def answer(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    """A response with a body."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


@attrs.define
class KeysServer:
    """Its answers, by path. An answer of None never comes."""

    port: int = 0
    answers: dict[str, bytes | None] = attrs.field(factory=dict)
    asked: list[str] = attrs.field(factory=list)
    #: Answers wait for it.
    gate: trio.Event | None = None

    def url(self, path: str, scheme: str = "http") -> str:
        return f"{scheme}://localhost:{self.port}{path}"

    async def serve(self, stream: trio.SocketStream, context: ssl.SSLContext | None) -> None:
        over: trio.SocketStream | trio.SSLStream[trio.SocketStream] = stream
        if context is not None:
            over = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            request = b""
            while b"\r\n\r\n" not in request:
                received = await over.receive_some()
                if not received:
                    return
                request += bytes(received)
            path = request.split()[1].decode()
            self.asked.append(path)
            if self.gate is not None:
                await self.gate.wait()
            said = self.answers.get(path, answer(b"", "404 Not Found"))
            if said is None:
                await trio.sleep_forever()
            else:
                await over.send_all(said)
        except (trio.BrokenResourceError, ssl.SSLError):
            pass
        finally:
            await trio.aclose_forcefully(stream)


@asynccontextmanager
async def keys_server(context: ssl.SSLContext | None = None) -> AsyncIterator[KeysServer]:
    """One that serves while inside."""
    server = KeysServer()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(trio.serve_tcp, partial(server.serve, context=context), 0, host="127.0.0.1")
        )
        server.port = listeners[0].socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()

"""One GET of a small document, by trio, bounded in time and bytes: what an issuer's keys are fetched with.

Nothing is followed, decompressed or sent again: what is not answered with 200 and the document is an error.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Final

import attrs
import h11
import trio

from amqpgate.config import KeysUrl
from amqpgate.errors import AmqpgateError

_CHUNK: Final = 16 << 10


class FetchError(AmqpgateError):
    """The document could not be had. The text says why, for operators."""


@attrs.define(eq=False)
class Authorities:
    """Whom a server's certificate may be signed by; a file is read again when it changes."""

    #: None: the system's.
    file: Path | None
    _context: ssl.SSLContext | None = attrs.field(default=None, init=False, repr=False)
    _seen: tuple[int, int, int] | None = attrs.field(default=None, init=False)

    async def context(self) -> ssl.SSLContext:
        """Raises `FetchError`."""
        # To read the system's takes tens of milliseconds.
        return await trio.to_thread.run_sync(self._current)

    def _current(self) -> ssl.SSLContext:
        try:
            seen = None
            if self.file is not None:
                is_ = os.stat(self.file)
                seen = is_.st_ino, is_.st_size, is_.st_mtime_ns
            if self._context is None or seen != self._seen:
                self._context = ssl.create_default_context(
                    cafile=None if self.file is None else str(self.file)
                )
                self._seen = seen
        except (OSError, ssl.SSLError) as error:
            raise FetchError(f"{self.file or 'the system'}: no authorities: {error.strerror}") from error
        return self._context


async def get(url: KeysUrl, authorities: Authorities, *, within: float, most: int) -> bytes:
    """The document there, of ``most`` bytes at most, ``within`` so many seconds. Raises `FetchError`."""
    try:
        with trio.fail_after(within):
            return await _get(url, authorities, most)
    except trio.TooSlowError:
        raise FetchError(f"{url}: no answer within {within:g} s") from None
    except (OSError, trio.BrokenResourceError, ssl.SSLError) as error:
        cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else error
        raise FetchError(f"{url}: {cause or 'the connection broke'}") from error
    except h11.ProtocolError as error:
        raise FetchError(f"{url}: no HTTP is spoken there: {error}") from error


async def _get(url: KeysUrl, authorities: Authorities, most: int) -> bytes:
    stream: trio.SocketStream | trio.SSLStream[trio.SocketStream]
    stream = await trio.open_tcp_stream(url.host, url.port)
    try:
        if url.is_tls:
            stream = trio.SSLStream(
                stream, await authorities.context(), server_hostname=url.host, https_compatible=True
            )
        return await _ask(stream, url, most)
    finally:
        await trio.aclose_forcefully(stream)


async def _ask(
    stream: trio.SocketStream | trio.SSLStream[trio.SocketStream], url: KeysUrl, most: int
) -> bytes:
    connection = h11.Connection(h11.CLIENT)
    host = f"[{url.host}]" if ":" in url.host else url.host
    if url.port != (443 if url.is_tls else 80):
        host += f":{url.port}"
    request = h11.Request(
        method="GET",
        target=url.path,
        headers=[
            ("Host", host),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "amqpgate"),
            ("Connection", "close"),
        ],
    )
    said = connection.send(request), connection.send(h11.EndOfMessage())
    await stream.send_all(b"".join(data for data in said if data is not None))
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some(_CHUNK)))
        elif isinstance(event, h11.Response):
            if event.status_code != 200:
                raise FetchError(f"{url}: answers with status {event.status_code}")
            if dict(event.headers).get(b"content-encoding", b"identity") != b"identity":
                raise FetchError(f"{url}: answers with what is compressed")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most:
                raise FetchError(f"{url}: answers with more than {most} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return bytes(body)
        elif isinstance(event, h11.ConnectionClosed):
            raise FetchError(f"{url}: the connection ended before the answer did")

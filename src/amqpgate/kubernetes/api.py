"""Requests to an API server of Kubernetes, over trio: bounded in time and bytes, and each watched line too.

Connections are kept for the next request. Nothing is followed or decompressed, and no proxy is asked: the
token goes to the server that the settings name, and nowhere else.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import attrs
import h11
import trio

from amqpgate.errors import AmqpgateError
from amqpgate.gateway.identity.https import Authorities, FetchError
from amqpgate.resources.documents import Json, Resource
from amqpgate.resources.settings import ServerUrl

#: Seconds for one request and its answer.
WITHIN: Final = 15.0
#: Bytes of an answer. Pages of a list are asked for so that they are smaller.
MOST_ANSWER: Final = 32 << 20
#: Bytes of one line of a watch: an object has 1.5 MB at most, which JSON may write longer.
MOST_LINE: Final = 8 << 20
#: Requests under way at once, watches aside.
_MOST_REQUESTS: Final = 6
_MOST_TOKEN: Final = 64 << 10
_CHUNK: Final = 64 << 10

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
#: Rows without their objects: what to ask for where an object cannot be read.
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"

_Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class ApiError(AmqpgateError):
    """The API server did not do what it was asked for. ``status`` is 0 where it did not answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class UnreadableAnswerError(ApiError):
    """An answer that is too large, too deep, or no JSON."""


def read_json(data: bytes) -> Resource:
    """An object of JSON. Raises `UnreadableAnswerError`."""
    try:
        value: Json = json.loads(data, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else "no JSON"
        raise UnreadableAnswerError(f"the API server answers with what is {why}") from None
    if not isinstance(value, dict):
        raise UnreadableAnswerError("the API server answers with what is no object")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


@attrs.define(eq=False)
class _Connection:
    """One connection, and how far it is in its conversation."""

    stream: _Stream
    http: h11.Connection = attrs.field(factory=lambda: h11.Connection(h11.CLIENT))
    is_used: bool = False

    async def ask(self, request: h11.Request, body: bytes) -> h11.Response:
        """The head of the answer."""
        said = [self.http.send(request)]
        if body:
            said.append(self.http.send(h11.Data(data=body)))
        said.append(self.http.send(h11.EndOfMessage()))
        await self.stream.send_all(b"".join(data for data in said if data is not None))
        while True:
            event = await self.event()
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.ConnectionClosed):
                raise trio.BrokenResourceError("the connection ended before the answer")

    async def event(self) -> h11.Event:
        """The next one."""
        while True:
            event = self.http.next_event()
            if event is h11.NEED_DATA:
                self.http.receive_data(bytes(await self.stream.receive_some(_CHUNK)))
            elif isinstance(event, h11.Event):
                return event
            else:
                raise h11.RemoteProtocolError("more than one answer")

    async def body(self, most: int) -> bytes:
        """The whole of it."""
        found = bytearray()
        async with aclosing(self.pieces()) as pieces:
            async for data in pieces:
                found += data
                if len(found) > most:
                    raise UnreadableAnswerError(f"the API server answers with more than {most} bytes")
        return bytes(found)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """As they come."""
        while True:
            event = await self.event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise trio.BrokenResourceError("the connection ended within the answer")


@attrs.define(eq=False)
class Api:
    """One API server."""

    url: ServerUrl
    token_file: Path | None
    ca: Path | None
    within: float = WITHIN
    _authorities: Authorities = attrs.field(init=False, repr=False)
    _idle: list[_Connection] = attrs.field(factory=list, init=False, repr=False)
    _turns: trio.CapacityLimiter = attrs.field(
        factory=lambda: trio.CapacityLimiter(_MOST_REQUESTS), init=False, repr=False
    )

    def __attrs_post_init__(self) -> None:
        self._authorities = Authorities(self.ca)

    async def get(self, path: str, *, accept: str = "application/json", **query: str | int) -> Resource:
        """The object or list there. Raises `ApiError`."""
        return await self._ask("GET", _target(path, query), b"", accept=accept)

    async def create(self, path: str, value: Resource) -> Resource:
        """The object as it was made. Raises `ApiError`."""
        return await self._ask("POST", path, _json(value), kind="application/json")

    async def replace(self, path: str, value: Resource) -> Resource:
        """The object as it is now. Raises `ApiError`."""
        return await self._ask("PUT", path, _json(value), kind="application/json")

    async def patch(self, path: str, value: Resource, kind: str = MERGE, **query: str | int) -> Resource:
        """The object as it is now. Raises `ApiError`."""
        return await self._ask("PATCH", _target(path, query), _json(value), kind=kind)

    async def _ask(
        self, method: str, target: str, body: bytes, *, kind: str = "", accept: str = "application/json"
    ) -> Resource:
        async with self._turns:
            with self._told(method, target), trio.fail_after(self.within):
                status, data = await self._answer(method, target, body, kind, accept)
        if status < 300:
            return read_json(data)
        raise ApiError(f"{method} {_shown(target)}: {status} {_reason(data)}", status)

    async def _answer(
        self, method: str, target: str, body: bytes, kind: str, accept: str
    ) -> tuple[int, bytes]:
        while True:
            connection = self._idle.pop() if self._idle else await self._dial()
            was_used = connection.is_used
            is_kept = False
            try:
                response = await connection.ask(await self._request(method, target, body, kind, accept), body)
                data = await connection.body(MOST_ANSWER)
                if connection.http.our_state is h11.DONE and connection.http.their_state is h11.DONE:
                    connection.http.start_next_cycle()
                    connection.is_used = is_kept = True
                    self._idle.append(connection)
                return response.status_code, data
            except (OSError, trio.BrokenResourceError):
                # The server may have closed it while nothing was said. What is asked here may be asked twice.
                if not was_used:
                    raise
            finally:
                if not is_kept:
                    await trio.aclose_forcefully(connection.stream)

    @asynccontextmanager
    async def watch(
        self, path: str, *, seconds: int, **query: str | int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch, which the server ends after ``seconds``. Raises `ApiError`."""
        query |= {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        target = _target(path, query)
        with self._told("GET", target):
            with trio.fail_after(self.within):
                connection = await self._dial()
            try:
                with trio.fail_after(self.within):
                    request = await self._request("GET", target, b"", "", "application/json")
                    response = await connection.ask(request, b"")
                    if response.status_code != 200:
                        data = await connection.body(MOST_ANSWER)
                        raise ApiError(f"watch {_shown(target)}: {_reason(data)}", response.status_code)
                async with aclosing(_lines(connection)) as lines:
                    yield lines
            finally:
                await trio.aclose_forcefully(connection.stream)

    def _told(self, method: str, target: str) -> _Told:
        return _Told(f"{method} {_shown(target)}", self.within)

    async def _dial(self) -> _Connection:
        stream = await trio.open_tcp_stream(self.url.host, self.url.port)
        if not self.url.is_tls:
            return _Connection(stream)
        context = await self._authorities.context()
        return _Connection(
            trio.SSLStream(stream, context, server_hostname=self.url.host, https_compatible=True)
        )

    async def _request(self, method: str, target: str, body: bytes, kind: str, accept: str) -> h11.Request:
        headers = [
            ("Host", self.url.authority),
            ("Accept", accept),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "amqpgate-operator"),
        ]
        if method != "GET":
            headers += [("Content-Type", kind), ("Content-Length", str(len(body)))]
        if self.token_file is not None:
            # Kubelets renew it, so it is read each time.
            token = await trio.to_thread.run_sync(_token, self.token_file)
            headers.append(("Authorization", f"Bearer {token}"))
        try:
            return h11.Request(method=method, target=target, headers=headers)
        except h11.LocalProtocolError:
            # The library's own sentence would show the token.
            raise ApiError("the token has what no header may have") from None

    async def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            await trio.aclose_forcefully(self._idle.pop().stream)


@attrs.frozen
class _Told:
    """Tells every failure of a request as an `ApiError`."""

    what: str
    within: float

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, trio.TooSlowError):
            raise ApiError(f"{self.what}: no answer within {self.within:g} s") from None
        if isinstance(error, h11.ProtocolError):
            raise ApiError(f"{self.what}: no HTTP is spoken there") from None
        if isinstance(error, FetchError):
            raise ApiError(str(error)) from None
        if isinstance(error, OSError | trio.BrokenResourceError | ssl.SSLError):
            cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else error
            raise ApiError(f"{self.what}: {cause or error or 'the connection broke'}") from None


async def _lines(connection: _Connection) -> AsyncGenerator[bytes, None]:
    rest = bytearray()
    async with aclosing(connection.pieces()) as pieces:
        async for data in pieces:
            begin = len(rest)
            rest += data
            while (end := rest.find(b"\n", begin)) >= 0:
                yield bytes(rest[:end])
                del rest[: end + 1]
                begin = 0
            if len(rest) > MOST_LINE:
                raise UnreadableAnswerError(f"a line of a watch is longer than {MOST_LINE} bytes")


def _token(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MOST_TOKEN).decode("ascii", "replace").strip()


def _json(value: Resource) -> bytes:
    # What others have sent and is quoted may be no Unicode: halves of pairs.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _target(path: str, query: Mapping[str, str | int]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _shown(target: str) -> str:
    return target.partition("?")[0]


def _reason(data: bytes) -> str:
    """What a Status says, as one short line."""
    try:
        status = read_json(data)
    except UnreadableAnswerError:
        return "and no reason"
    said = " ".join(str(status.get(key) or "") for key in ("reason", "message"))
    return said.strip()[:300] or "and no reason"

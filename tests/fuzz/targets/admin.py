"""Requests to the admin interface: never an answer of 500, and nothing for who may not ask."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import attrs
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.routing import Route

from amqpgate.admin.application import application
from amqpgate.admin.http import endpoints_of
from amqpgate.app.wiring import build
from amqpgate.config import parse
from amqpgate.operator.single import SingleGateway
from amqpgate.yamldoc import Secret
from tests.fuzz.choices import Choices

MOST = 400
SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
admin: {bind: "127.0.0.1:0"}
"""
TOKEN = "t0ken"
METHODS = ("GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "BREW")
HOSTS = (
    b"localhost",
    b"127.0.0.1:15674",
    b"[::1]:1",
    b"evil.example",
    b"",
    b"localhost.evil.example",
    b"[",
    b"\xff",
)
ORIGINS = (None, b"http://localhost", b"http://evil.example", b"null", b"\xff", b"")
KEYS = ("limit", "kind", "only", "match", "every", "seconds", "count", "frames", "since", "sort", "user")
TOKENS = (
    *(key.encode() for key in KEYS),
    *(b"=", b"&", b"%00", b"%ff", b"%F0%9F%98%80", b"../", b"//", b"?", b"1e999", b"-1", b"nan", b"inf"),
    *(
        b"99999999999999999999",
        b"basic.publish",
        b"{",
        b"}",
        b'{"',
        b'":',
        b"null",
        b"[[[[",
        b"(",
        b")",
        b"*",
    ),
)


@cache
def paths() -> tuple[str, ...]:
    """All that there are."""
    return tuple(sorted(path for path, _ in _routes()))


@cache
def _routes() -> tuple[tuple[str, bool], ...]:
    app = _application(None)
    routes = [route for route in app.routes if isinstance(route, Route)]
    return tuple((route.path, bool(getattr(route, "is_open", False))) for route in routes)


def _application(token: str | None) -> Starlette:
    gateway = build(parse(SETTINGS, {}))
    secret = None if token is None else Secret(token)
    subject = SingleGateway(gateway)
    return application(subject, endpoints_of(subject), secret, over=trio.Event())


def seeds() -> Iterator[bytes]:
    """Every path with and without a query."""
    for number in range(len(paths())):
        for method in (0, 1):
            yield bytes((number, 0, method, 0, 1, 1, 4)) + bytes(range(4)) + b"10&user=a*&limit=3"


@attrs.define
class Answer:
    """What the application has said."""

    status: int = 0
    size: int = 0


def check(data: bytes) -> None:
    """Ask, and look at the status."""
    choices = Choices(data)
    path = choices.pick(paths())
    method = choices.pick(METHODS) if choices.flag() else ("GET", "POST", "DELETE")[choices.below(3)]
    host = choices.pick(HOSTS) if choices.rarely() else HOSTS[0]
    what = choices.byte()
    token = TOKEN if what & 2 else None
    headers: list[tuple[bytes, bytes]] = [(b"host", host)]
    if what & 1:
        headers.append((b"x-amqpgate", b"1"))
    bears = what >> 2 & 3
    if bears:
        headers.append((b"authorization", (b"Bearer t0ken", b"Bearer t0kem", b"Bearer \xff\xfe")[bears - 1]))
    if what & 16:
        headers.append((b"content-type", (b"application/json", b"text/plain; charset=\xff")[what >> 5 & 1]))
    origin = choices.pick(ORIGINS) if what & 64 else None
    if origin is not None:
        headers.append((b"origin", origin))
    named = choices.below(3)
    query = "&".join(f"{choices.pick(KEYS)}=" for _ in range(named)).encode()
    query += choices.some(80)
    for name in ("id", "name", "path", "session", "route"):
        path = path.replace("{" + name + "}", choices.some(12).decode("utf-8", "replace"))
        path = path.replace("{" + name + ":path}", choices.some(12).decode("utf-8", "replace"))
    if choices.rarely():
        path += choices.some(20).decode("utf-8", "replace")
    body = choices.rest()
    answer = trio.run(ask, token, method, path, query, headers, body)
    assert answer.status != 500, (method, path, query, headers, body)
    assert answer.status >= 200
    if host in (b"evil.example", b"localhost.evil.example"):
        assert answer.status == 421, (host, answer.status)
        return
    is_open = any(known == path and is_open for known, is_open in _routes())
    if token is not None and bears != 1 and not is_open:
        assert answer.status in (400, 401, 421), (answer.status, path)
    elif method not in ("GET", "HEAD", "OPTIONS") and origin == b"http://evil.example":
        assert answer.status in (400, 401, 403, 421), (answer.status, path)


async def ask(
    token: str | None,
    method: str,
    path: str,
    query: bytes,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
) -> Answer:
    """One request as a server hands it in; a stream ends as soon as it waits."""
    over = trio.Event()
    gateway = build(parse(SETTINGS, {}))
    subject, secret = SingleGateway(gateway), None if token is None else Secret(token)
    app = application(subject, endpoints_of(subject), secret, over=over)
    answer = Answer()
    pieces = [{"type": "http.request", "body": body, "more_body": False}]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }

    async def receive() -> dict[str, Any]:
        if pieces:
            return pieces.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            answer.status = message["status"]
        answer.size += len(message.get("body", b""))

    async def run() -> None:
        await app(scope, receive, send)  # type: ignore[arg-type]
        done.set()

    done = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        if not done.is_set():
            over.set()
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    # Its descriptors are not left to whoever collects cycles.
    gateway.pump.close()
    gateway.registry.fibers.close()
    # What waits for the gateway's own tasks, which do not run here, has not begun to answer.
    answer.status = answer.status or 299
    return answer

"""Who may ask, and who may change something."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from amqpgate.admin.guard import Guard
from amqpgate.admin.guarding import Rules, is_local_name
from amqpgate.admin.subject import Refused
from amqpgate.yamldoc import Secret


def request(method: str = "GET", path: str = "/sessions", **headers: str) -> Request:
    told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "path": path, "headers": told})


def status(asked: Request, token: str | None = None, *, is_loopback: bool = True) -> int:
    """What the rules say: 200 for yes."""
    rules = Rules(None if token is None else Secret(token), {"/livez"}, is_loopback)
    query = asked.scope.get("query_string", b"")
    try:
        rules.check(asked.method, asked.scope["path"], query, asked.headers)
    except Refused as refused:
        return refused.status
    return 200


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:15680",
        "localhost.:1",
        "gate.localhost:1",
        "127.0.0.1",
        "127.9.9.9:15680",
        "[::1]:15680",
        "[::1]",
        "::1",
        None,
    ],
)
def test_names_of_this_machine(host: str | None) -> None:
    assert is_local_name(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:15680",
        "10.0.0.1",
        "localhost.evil.example",
        "",
        ":80",
        "127.0.0.1.evil",
        "[::2]",
    ],
)
def test_names_of_others(host: str) -> None:
    assert not is_local_name(host)
    assert status(request(host=host)) == 421
    # With a token, which no page has, and off loopback, where anybody names it as he likes.
    assert status(request(host=host, authorization="Bearer t"), "t", is_loopback=False) == 200


def test_a_token_is_for_all_but_what_is_open() -> None:
    assert status(request(), "t") == 401
    assert status(request(path="/livez"), "t") == 200
    assert status(request(authorization="Bearer t"), "t") == 200
    # Without the token, what is open can be asked, and not changed.
    assert status(request("POST", "/livez"), "t") == 200
    assert status(request("POST"), "t") == 401


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 403),
        ({"content_type": "application/x-www-form-urlencoded"}, 403),
        ({"content_type": "text/plain"}, 403),
        ({"content_type": "application/json"}, 200),
        ({"content_type": "Application/JSON; charset=utf-8"}, 200),
        ({"content_type": "text/plain; application/json"}, 403),
        ({"x_amqpgate": "1"}, 200),
        ({"x_amqpgate": "1", "origin": "http://localhost:15680", "host": "localhost:15680"}, 200),
        ({"x_amqpgate": "1", "origin": "http://localhost:9999", "host": "localhost:15680"}, 403),
        ({"x_amqpgate": "1", "origin": "null", "host": "localhost:15680"}, 403),
        ({"x_amqpgate": "1", "origin": "http://evil.example"}, 403),
    ],
)
def test_changes_that_no_page_of_others_can_ask_for(headers: dict[str, str], expected: int) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert status(request(method, **headers)) == expected
    assert status(request(**headers)) == 200


def test_a_token_does_not_excuse_another_ones_origin() -> None:
    bearer = {"authorization": "Bearer t"}
    assert status(request("POST", **bearer), "t") == 200
    assert status(request("POST", origin="http://evil.example", **bearer), "t") == 403


async def test_the_path_that_is_open_is_the_one_that_is_asked_for() -> None:
    """Not what a URL, made of Host and path, says (seen with starlette 0.41)."""
    said: list[int] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            said.append(message["status"])

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    guard = Guard(app, Rules(Secret("secret"), {"/livez"}, False))
    for asked in (request(host="gate/livez?"), request(path="/livez", host="gate")):
        await guard(asked.scope, receive, send)
    assert said == [401, 200]


@pytest.mark.parametrize("query", [b"limit=\xff", "only=é".encode()])
def test_a_query_that_is_not_ascii_is_refused(query: bytes) -> None:
    asked = request(host="localhost")
    asked.scope["query_string"] = query
    assert status(asked) == 400

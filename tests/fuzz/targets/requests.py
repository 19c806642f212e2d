"""Requests that the admin interface reads without the web framework: as that one's parser reads them."""

from __future__ import annotations

from collections.abc import Iterator

import h11

from amqpgate.admin.plain import LONGEST, NotPlainError, read
from tests.fuzz.choices import Choices

MOST = 400
TOKENS = (
    *(
        b"GET /",
        b"POST /",
        b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b": ",
        b"Host: h\r\n",
    ),
    *(
        b"livez",
        b"drain",
        b"Content-Length: 5\r\n",
        b"Connection: close\r\n",
        b"keep-alive",
        b"\t",
        b" ",
        b"0",
    ),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n", b"hello"),
)


def seeds() -> Iterator[bytes]:
    """Requests of each kind, and two at once."""
    get = b"GET /livez HTTP/1.1\r\nHost: localhost:15680\r\nUser-Agent: kube-probe/1.30\r\n\r\n"
    post = (
        b"POST /drain HTTP/1.1\r\nHost: h\r\nContent-Length: 13\r\nX-Amqpgate: 1\r\n\r\n" + b'{"window": 1}'
    )
    for request in (get, post, get + post, post + get):
        yield b"\0" + request
    yield b"\0GET /metrics HTTP/1.0\r\nConnection: close\r\n\r\n"
    yield b"\1GET /livez HTTP/1.1\r\nHost: h\r\nA:\tb\tc \r\nConnection: keep-alive\r\n\r\n"


def check(data: bytes) -> None:
    """What is read here is read so there; and what is whole is not whole before."""
    choices = Choices(data)
    step = 1 + choices.below(16)
    text = choices.rest()
    try:
        request = read(text)
    except NotPlainError:
        return
    if request is None:
        assert len(text) < LONGEST
        return
    for end in range(0, request.size, step):
        assert read(text[:end]) is None, (text, end)
    there = h11.Connection(h11.SERVER)
    there.receive_data(text[: request.size])
    first = there.next_event()
    assert isinstance(first, h11.Request), (text, first)
    assert (first.method.decode(), first.target.decode()) == (request.method, request.path), text
    assert [(name.decode(), value.decode()) for name, value in first.headers] == [*request.headers.items()], (
        text
    )
    body = b""
    while isinstance(event := there.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage), (text, event)
    assert body == request.body, text
    # Nothing of it is left, and who says that the connection ends means it.
    assert there.trailing_data == (b"", False), text
    assert request.keeps_alive <= (there.their_state is not h11.MUST_CLOSE), text

"""Requests that are read without the web framework."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.admin.plain import LONGEST, NotPlainError, PlainRequest, read, response

PROBE = b"GET /readyz HTTP/1.1\r\nHost: localhost:15680\r\nUser-Agent:  kube-probe/1.30 \r\nAccept:\r\n\r\n"
DRAIN = b'POST /drain HTTP/1.1\r\nHost: h\r\nContent-Length: 13\r\nX-Amqpgate: 1\r\n\r\n{"window": 1}'


def test_a_probe() -> None:
    headers = {"host": "localhost:15680", "user-agent": "kube-probe/1.30", "accept": ""}
    assert read(PROBE) == PlainRequest("GET", "/readyz", headers, b"", True, len(PROBE))


def test_a_body_and_what_follows_it() -> None:
    request = read(DRAIN + PROBE)
    assert request is not None
    assert (request.method, request.path, request.body, request.size) == (
        "POST",
        "/drain",
        b'{"window": 1}',
        len(DRAIN),
    )


@pytest.mark.parametrize("whole", [PROBE, DRAIN])
def test_every_beginning_may_become_one(whole: bytes) -> None:
    for end in range(len(whole)):
        assert read(whole[:end]) is None
    assert read(whole) is not None


@pytest.mark.parametrize(
    ("version", "connection", "expected"),
    [
        ("1.1", None, True),
        ("1.1", "keep-alive", True),
        ("1.1", "Close", False),
        ("1.0", None, False),
        ("1.0", "keep-alive", False),
    ],
)
def test_which_connections_go_on(version: str, connection: str | None, expected: bool) -> None:
    more = "" if connection is None else f"Connection: {connection}\r\n"
    request = read(f"GET /livez HTTP/{version}\r\nHost: h\r\n{more}\r\n".encode())
    assert request is not None
    assert request.keeps_alive is expected


@pytest.mark.parametrize(
    "data",
    [
        b"HEAD /livez HTTP/1.1\r\n",
        b"get /",
        b"\r\nGET /livez HTTP/1.1\r\nHost: h\r\n\r\n",
        b"PRI * HTTP/2.0\r\n",
        b"\x16\x03\x01",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/1.2\r\nHost: h\r\n\r\n",
        b"GET /livez HTTP/1.1 \r\nHost: h\r\n\r\n",
        b"GET  /livez HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /livez\r\n\r\n",
        b"GET /livez?x HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /live%7A HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /page/ HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET http://h/livez HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /livez HTTP/1.1\nHost: h\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\xe9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\0\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n",
        b"POST /drain HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n",
        b"POST /drain HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: " + b"h" * LONGEST,
    ],
)
def test_whatever_is_written_in_another_way_is_not_plain(data: bytes) -> None:
    with pytest.raises(NotPlainError):
        read(data)


@given(st.binary(max_size=200), st.integers(min_value=0, max_value=len(DRAIN)))
def test_what_is_read_is_what_was_there(more: bytes, end: int) -> None:
    data = DRAIN[:end] + more
    try:
        request = read(data)
    except NotPlainError:
        return
    if request is not None:
        assert request.size <= len(data)
        assert data[: request.size].endswith(request.body)


def test_an_answer() -> None:
    text = response(503, b"no\n", "text/plain", now=784111777.9, keeps_alive=True)
    assert text == (
        b"HTTP/1.1 503 Service Unavailable\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        b"content-type: text/plain\r\ncontent-length: 3\r\n\r\nno\n"
    )
    last = response(401, b"", "text/plain", now=0, keeps_alive=False, more=("www-authenticate: Bearer",))
    assert last.endswith(b"content-length: 0\r\nwww-authenticate: Bearer\r\nconnection: close\r\n\r\n")

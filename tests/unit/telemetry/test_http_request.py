"""One request of HTTP, of those whose answers have no end, or are none."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from amqpgate.config import HttpUrl
from amqpgate.telemetry.http_request import EndlessError, NotTakenError, ask, exchange, why_of
from tests.support.raw_answers import http as answer
from tests.support.raw_answers import saying


def asked(address: str, *, within: float = 60.0, most: int = 1000) -> tuple[int, bytes]:
    host, _, port = address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    try:
        found, data = exchange(connection, "GET", "/", None, {}, within=within, most=most)
    finally:
        connection.close()
    return found.status, data


def test_an_answer_of_the_most_bytes_is_whole() -> None:
    with saying(answer(b"x" * 1000)) as address:
        assert asked(address) == (200, b"x" * 1000)


def test_an_answer_with_more_bytes_is_read_no_further() -> None:
    with (
        saying(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 500, again=True) as address,
        pytest.raises(EndlessError, match="more than 1000 bytes"),
    ):
        asked(address)
    with saying(answer(b"x" * 1001)) as address, pytest.raises(EndlessError):
        asked(address)


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1",
        b"HTTP/1.1 200 OK\r\n\r\n1",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_an_answer_without_an_end_ends_with_the_time(begin: bytes) -> None:
    with saying(begin) as address, pytest.raises(EndlessError, match=r"longer than 0\.05 s"):
        asked(address, within=0.05)


def test_words_without_an_end_end_with_the_time() -> None:
    """Each read has its bytes: no limit of a single one helps."""
    with (
        saying(b"HTTP/1.1 100 Continue\r\n\r\n", again=True) as address,
        pytest.raises(EndlessError, match="longer"),
    ):
        asked(address, within=0.05)


def test_what_is_no_http_is_shown_as_it_begins_and_on_one_line() -> None:
    with (
        saying(b"SSH-2.0-\x1b[31m" + b"x" * 1000 + b"\r\n") as address,
        pytest.raises(NotTakenError) as caught,
    ):
        ask(HttpUrl.parse(f"http://{address}/v1"), "POST", "/v1", b"", {}, ca=None, timeout=60)
    text = str(caught.value)
    assert text.startswith("no HTTP is spoken there: it says 'SSH-2.0-\\x1b[31mxxx")
    assert len(text) < 300


def test_a_peer_that_hangs_up_says_nothing() -> None:
    assert why_of(http.client.RemoteDisconnected("it has gone")) == "it has gone"
    assert why_of(OSError(2, "No\nsuch")) == "No\\nsuch"


def test_an_authority_that_is_not_there_is_told(tmp_path: Path) -> None:
    url = HttpUrl.parse("https://127.0.0.1:9/")
    with pytest.raises(NotTakenError, match="FileNotFoundError"):
        ask(url, "GET", "/", b"", {}, ca=tmp_path / "none", timeout=1)

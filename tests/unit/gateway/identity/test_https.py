"""One bounded GET: what is no answer is an error, and never waits for ever."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trio
import trustme

from amqpgate.config import KeysUrl
from amqpgate.gateway.identity.https import Authorities, FetchError, get
from tests.unit.gateway.identity.keys_server import answer, keys_server

MOST = 1000


async def fetched(url: str, authorities: Authorities | None = None) -> bytes:
    return await get(KeysUrl.parse(url), authorities or Authorities(None), within=5, most=MOST)


async def test_a_document() -> None:
    async with keys_server() as server:
        server.answers["/a?b=c"] = answer(b"x" * MOST)
        server.answers["/chunked"] = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        )
        assert await fetched(server.url("/a?b=c")) == b"x" * MOST
        assert await fetched(server.url("/chunked")) == b"abc"
        assert server.asked == ["/a?b=c", "/chunked"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (answer(b"x" * (MOST + 1)), "more than 1000 bytes"),
        (answer(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"), "status 302"),
        (answer(b"", "500 Oh"), "status 500"),
        (answer(b"x", more="Content-Encoding: gzip\r\n"), "compressed"),
        (answer(b"xx")[:-1], "no HTTP"),
        (b"", "no HTTP"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "no HTTP"),
    ],
)
async def test_what_is_no_answer(said: bytes, why: str) -> None:
    async with keys_server() as server:
        server.answers["/"] = said
        with pytest.raises(FetchError, match=why):
            await fetched(server.url("/"))


async def test_who_does_not_answer() -> None:
    async with keys_server() as server:
        server.answers["/"] = None
        with pytest.raises(FetchError, match=r"no answer within 0\.05 s"):
            await get(KeysUrl.parse(server.url("/")), Authorities(None), within=0.05, most=MOST)
        port = server.port
    with pytest.raises(FetchError, match=r"http://127\.0\.0\.1"):
        await fetched(f"http://127.0.0.1:{port}/")


async def test_a_certificate_is_verified(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    file = tmp_path / "ca.pem"
    other.cert_pem.write_to_path(file)
    async with keys_server(context) as server:
        server.answers["/"] = answer(b"right")
        authorities = Authorities(file)
        with pytest.raises(FetchError, match="certificate verify failed"):
            await fetched(server.url("/", "https"), authorities)
        # The file is read again when it changes.
        authority.cert_pem.write_to_path(file)
        assert await fetched(server.url("/", "https"), authorities) == b"right"
        with pytest.raises(FetchError):
            await fetched(f"https://127.0.0.1:{server.port}/", authorities)
        file.unlink()
        with pytest.raises(FetchError, match="no authorities"):
            await fetched(server.url("/", "https"), authorities)


async def test_it_can_be_cancelled() -> None:
    async with keys_server() as server:
        server.answers["/"] = None
        with trio.move_on_after(0.05) as scope:
            await fetched(server.url("/"))
        assert scope.cancelled_caught

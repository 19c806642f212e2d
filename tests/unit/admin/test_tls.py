"""The admin interface over TLS, the command line's way to it, and a certificate that is replaced."""

from __future__ import annotations

import http.client
import ssl
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trustme
from click.testing import CliRunner, Result

from amqpgate.admin.http import serve_admin
from amqpgate.app.wiring import build
from amqpgate.cli import main
from amqpgate.config import parse
from amqpgate.errors import ConfigError
from amqpgate.operator.single import SingleGateway

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
admin: {bind: "127.0.0.1:0", tls: {cert: cert, key: key}}
"""


def write_papers(folder: Path, authority: trustme.CA) -> None:
    leaf = authority.issue_cert("localhost")
    leaf.private_key_pem.write_to_path(folder / "key")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert")


async def serve(folder: Path, nursery: trio.Nursery) -> str:
    """The address of an interface with the certificate that is there."""
    settings = parse(SETTINGS, {}, file=str(folder / "amqpgate.yaml"))
    gateway = build(settings)

    async def run(task_status: trio.TaskStatus[list[str]]) -> None:
        assert settings.admin is not None
        await serve_admin(
            settings.admin, SingleGateway(gateway), shutdown=trio.sleep_forever, task_status=task_status
        )

    bound: list[str] = await nursery.start(run)
    gateway.lifecycle.readiness.become(True)
    return bound[0]


async def test_it_shows_its_certificate(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    write_papers(tmp_path, authority)
    authority.cert_pem.write_to_path(tmp_path / "ca")
    address = await serve(tmp_path, nursery)
    assert address.startswith("https://127.0.0.1:")
    name = address.replace("127.0.0.1", "localhost")

    async def health(at: str) -> Result:
        return await trio.to_thread.run_sync(CliRunner().invoke, main, ["health", "--admin", at])

    stranger = await health(name)
    assert (stranger.exit_code, "CERTIFICATE_VERIFY_FAILED" in stranger.stderr) == (1, True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca"))
    assert (await health(name)).exit_code == 0
    # Its name counts.
    assert (await health(address)).exit_code == 1
    assert (await health(name.removeprefix("https://"))).exit_code == 1


def dial(address: str, authority: trustme.CA, *protocols: str) -> http.client.HTTPSConnection:
    """A connection whose other end must show a certificate of this authority."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(list(protocols) or ["http/1.1"])
    authority.configure_trust(context)
    port = int(address.rpartition(":")[2])
    connection = http.client.HTTPSConnection("localhost", port, timeout=20, context=context)
    connection.connect()
    return connection


def lives(connection: http.client.HTTPSConnection) -> bool:
    connection.request("GET", "/livez")
    answer = connection.getresponse()
    answer.read()
    return answer.status == 200


async def test_a_replaced_certificate_is_shown_to_who_comes_then(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    before, after = trustme.CA(), trustme.CA()
    write_papers(tmp_path, before)
    address = await serve(tmp_path, nursery)

    def ask() -> None:
        with closing(dial(address, before)) as early:
            assert lives(early)
            write_papers(tmp_path, after)
            with closing(dial(address, after)) as late:
                assert lives(late)
            with pytest.raises(ssl.SSLCertVerificationError):
                dial(address, before)
            # What cannot be used leaves the last one in use.
            (tmp_path / "cert").write_text("broken")
            with closing(dial(address, after)) as late:
                assert lives(late)
            assert lives(early), "who is there stays"

    await trio.to_thread.run_sync(ask)


async def test_http_2_is_spoken_with_no_certificate(tmp_path: Path, nursery: trio.Nursery) -> None:
    authority = trustme.CA()
    write_papers(tmp_path, authority)
    address = await serve(tmp_path, nursery)

    def spoken() -> str | None:
        with closing(dial(address, authority, "h2", "http/1.1")) as connection:
            assert isinstance(connection.sock, ssl.SSLSocket)
            return connection.sock.selected_alpn_protocol()

    assert await trio.to_thread.run_sync(spoken) == "http/1.1"
    write_papers(tmp_path, authority)
    assert await trio.to_thread.run_sync(spoken) == "http/1.1"


async def test_without_a_certificate_there_is_no_interface(tmp_path: Path) -> None:
    write_papers(tmp_path, trustme.CA())
    (tmp_path / "cert").write_text("broken")
    with pytest.RaisesGroup(ConfigError, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            await serve(tmp_path, nursery)

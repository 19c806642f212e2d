"""The admin interface over TLS, and the command line's way to it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trustme
from click.testing import CliRunner, Result

from amqpgate.admin.http import serve_admin
from amqpgate.app import build
from amqpgate.cli import main
from amqpgate.config import parse

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
admin: {bind: "127.0.0.1:0", tls: {cert: cert, key: key}}
"""


async def test_it_shows_its_certificate(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost")
    leaf.private_key_pem.write_to_path(tmp_path / "key")
    leaf.cert_chain_pems[0].write_to_path(tmp_path / "cert")
    authority.cert_pem.write_to_path(tmp_path / "ca")
    settings = parse(SETTINGS, {}, file=str(tmp_path / "amqpgate.yaml"))
    gateway = build(settings)

    async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
        assert settings.admin is not None
        await serve_admin(settings.admin, gateway, shutdown=trio.sleep_forever, task_status=task_status)

    (address,) = await nursery.start(serve)
    assert address.startswith("https://127.0.0.1:")
    gateway.ready = True
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

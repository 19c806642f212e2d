"""Admin interfaces to ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trustme

from amqpgate.admin.http import _Server, serve_admin
from amqpgate.app.wiring import build
from amqpgate.config import parse
from amqpgate.operator.single import SingleGateway
from tests.unit.admin.interfaces import Interface

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
admin: {bind: "127.0.0.1:0"%s}
"""


@pytest.fixture
async def open_interface(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., object]:
    loaded: list[str] = []
    load = _Server._load

    def noted(server: _Server) -> object:
        loaded.append("framework")
        return load(server)

    monkeypatch.setattr(_Server, "_load", noted)

    async def open_it(authority: trustme.CA | None = None, more: str = "") -> Interface:
        if authority is not None:
            leaf = authority.issue_cert("localhost")
            leaf.private_key_pem.write_to_path(tmp_path / "key")
            leaf.cert_chain_pems[0].write_to_path(tmp_path / "cert")
            more += ", tls: {cert: cert, key: key}"
        settings = parse(SETTINGS % more, {}, file=str(tmp_path / "amqpgate.yaml"))
        gateway = build(settings)
        over, ended = trio.Event(), trio.Event()

        async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
            assert settings.admin is not None
            await serve_admin(
                settings.admin, SingleGateway(gateway), shutdown=over.wait, task_status=task_status
            )
            ended.set()

        (address,) = await nursery.start(serve)
        return Interface(int(address.rpartition(":")[2]), loaded, over, ended, authority)

    return open_it

"""The admin window over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
import trio

from amqpgate.admin.http import serve_admin
from amqpgate.app import build
from amqpgate.config import Settings, parse
from amqpgate.gateway.server import Gateway

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
admin: {bind: "127.0.0.1:0"%s}
"""


@attrs.frozen
class Window:
    """A gateway that is not started, and its admin address."""

    gateway: Gateway
    address: str

    async def get(
        self, path: str, *, token: str | None = None, method: str = "GET"
    ) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers."""
        request = urllib.request.Request(f"{self.address}{path}", method=method)
        if token is not None:
            request.add_header("Authorization", token)

        def ask() -> tuple[int, str, dict[str, str]]:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status, answer.read().decode(), dict(answer.headers)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode(), dict(error.headers)

        return await trio.to_thread.run_sync(ask)


def settings(folder: Path, token: str | None) -> Settings:
    extra = ""
    if token is not None:
        (folder / "token").write_text(token)
        extra = ", tokenFile: token"
    return parse(SETTINGS % extra, {}, file=str(folder / "amqpgate.yaml"))


@pytest.fixture
async def open_window(tmp_path: Path, nursery: trio.Nursery) -> Callable[..., object]:
    async def open_it(token: str | None = None) -> Window:
        chosen = settings(tmp_path, token)
        assert chosen.admin is not None
        gateway = build(chosen)

        async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
            assert chosen.admin is not None
            await serve_admin(chosen.admin, gateway, shutdown=trio.sleep_forever, task_status=task_status)

        (address,) = await nursery.start(serve)
        return Window(gateway, address)

    return open_it


async def test_probes(open_window: Callable[..., object]) -> None:
    window = await open_window()
    assert (await window.get("/livez"))[:2] == (200, "ok\n")
    assert (await window.get("/readyz"))[:2] == (503, "not ready: draining or starting\n")
    window.gateway.ready = True
    assert (await window.get("/readyz"))[:2] == (200, "ready\n")
    window.gateway.drain()
    assert (await window.get("/readyz"))[0] == 503
    assert (await window.get("/livez"))[0] == 200


async def test_metrics(open_window: Callable[..., object]) -> None:
    window = await open_window()
    window.gateway.metrics.ended("closed")
    status, text, headers = await window.get("/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'amqpgate_connections_total{outcome="closed"} 1.0' in text
    assert "amqpgate_sessions 0.0" in text


async def test_nothing_else_is_there(open_window: Callable[..., object]) -> None:
    window = await open_window()
    assert (await window.get("/"))[0] == 404
    assert (await window.get("/metrics", method="POST"))[0] == 405


async def test_a_token_guards_all_but_the_probes(open_window: Callable[..., object]) -> None:
    window = await open_window("s3cret\n")
    for token in (None, "s3cret", "Bearer wrong", "Bearer s3cret\xe9", "bearer s3cret", "Basic s3cret"):
        status, text, headers = await window.get("/metrics", token=token)
        assert status == 401, token
        assert "s3cret" not in text
        assert headers["www-authenticate"] == "Bearer"
    # What is there is not told either.
    assert (await window.get("/nothing"))[0] == 401
    assert (await window.get("/metrics", token="Bearer s3cret"))[0] == 200
    assert (await window.get("/livez"))[0] == 200
    assert (await window.get("/readyz"))[0] == 503


async def test_it_ends_when_it_is_told_to(tmp_path: Path, nursery: trio.Nursery) -> None:
    chosen = settings(tmp_path, None)
    assert chosen.admin is not None
    gateway = build(chosen)
    over = trio.Event()
    ended = trio.Event()

    async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
        assert chosen.admin is not None
        await serve_admin(chosen.admin, gateway, shutdown=over.wait, task_status=task_status)
        ended.set()

    (address,) = await nursery.start(serve)
    window = Window(gateway, address)
    assert (await window.get("/livez"))[0] == 200
    over.set()
    with trio.fail_after(10):
        await ended.wait()
    with pytest.raises(OSError, match="refused"):
        await window.get("/livez")

"""The admin window over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import pytest
import trio

from amqpgate.admin.http import serve_admin
from amqpgate.app.wiring import build
from amqpgate.config import Settings, parse
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.operator.single import SingleGateway

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
        self,
        path: str,
        *,
        token: str | None = None,
        method: str = "GET",
        origin: str | None = None,
        **headers: str,
    ) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers."""
        request = urllib.request.Request(f"{self.address}{path}", method=method)
        if token is not None:
            request.add_header("Authorization", token)
        if origin is not None:
            request.add_header("Origin", origin)
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)

        def ask() -> tuple[int, str, dict[str, str]]:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status, answer.read().decode(), dict(answer.headers)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode(), dict(error.headers)

        return await trio.to_thread.run_sync(ask)


def settings(folder: Path, token: str | None, more: str = "") -> Settings:
    extra = ""
    if token is not None:
        (folder / "token").write_text(token)
        extra = ", tokenFile: token"
    return parse(SETTINGS % extra + more, {}, file=str(folder / "amqpgate.yaml"))


@pytest.fixture
async def open_window(tmp_path: Path, nursery: trio.Nursery) -> Callable[..., object]:
    async def open_it(token: str | None = None, more: str = "") -> Window:
        chosen = settings(tmp_path, token, more)
        assert chosen.admin is not None
        gateway = build(chosen)

        async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
            assert chosen.admin is not None
            await serve_admin(
                chosen.admin, SingleGateway(gateway), shutdown=trio.sleep_forever, task_status=task_status
            )

        (address,) = await nursery.start(serve)
        return Window(gateway, address)

    return open_it


async def test_probes(open_window: Callable[..., object]) -> None:
    window = await open_window()
    assert (await window.get("/livez"))[:2] == (200, "ok\n")
    assert (await window.get("/readyz"))[:2] == (503, "not ready: starting\n")
    window.gateway.lifecycle.readiness.become(True)
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
    assert 'amqpgate_sessions{route=""} 0.0' in text


async def test_nothing_else_is_there(open_window: Callable[..., object]) -> None:
    window = await open_window()
    assert (await window.get("/page/"))[0] == 404
    assert (await window.get("/metrics", method="POST", x_amqpgate="1"))[0] == 405


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


POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: all}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, effect: allow, operations: ["*"]}]
"""


async def test_policies_are_read_again_when_asked(
    tmp_path: Path, open_window: Callable[..., Awaitable[Window]]
) -> None:
    file = tmp_path / "policies" / "a.yaml"
    file.parent.mkdir()
    file.write_text(POLICY)
    window = await open_window("s3cret", "policies: policies\n")
    window.gateway.lifecycle.readiness.become(True)
    bearer = "Bearer s3cret"
    assert (await window.get("/reload", method="POST"))[0] == 401
    assert (await window.get("/reload", token=bearer))[0] == 405
    assert (await window.get("/reload", token=bearer, method="POST", origin="http://evil.example"))[0] == 403
    first = window.gateway.policies.digest

    file.write_text(POLICY.replace("guest", "someone"))
    status, text, headers = await window.get("/reload", token=bearer, method="POST")
    assert (status, headers["content-type"]) == (200, "application/json")
    said = json.loads(text)
    assert said["status"] == "done"
    assert said["digest"] == window.gateway.policies.digest != first

    file.write_text(POLICY.replace("user:", "usr:"))
    status, text, _ = await window.get("/reload", token=bearer, method="POST")
    wrong = json.loads(text)
    assert status == 422
    assert wrong["digest"] == said["digest"] == window.gateway.policies.digest
    assert (wrong["file"], wrong["line"], wrong["column"]) == (str(file), 6, 15)
    assert "did you mean 'user'?" in wrong["error"]

    # The detail is for those who may see it.
    assert (await window.get("/readyz"))[:2] == (200, "ready\n")
    status, text, _ = await window.get("/readyz", token=bearer)
    lines = text.splitlines()
    assert (status, lines[0]) == (200, "ready")
    assert lines[1].startswith(f"policies: digest sha256:{said['digest'][:16]}, read at 20")
    assert lines[2].startswith(f"policies: {file}:6:15: unknown key 'usr'")


async def test_without_policies_there_is_nothing_to_read(
    open_window: Callable[..., Awaitable[Window]],
) -> None:
    window = await open_window()
    status, text, _ = await window.get("/reload", method="POST", x_amqpgate="1")
    assert (status, json.loads(text)["status"]) == (409, "nothing")


async def test_it_ends_when_it_is_told_to(tmp_path: Path, nursery: trio.Nursery) -> None:
    chosen = settings(tmp_path, None)
    assert chosen.admin is not None
    gateway = build(chosen)
    over = trio.Event()
    ended = trio.Event()

    async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
        assert chosen.admin is not None
        await serve_admin(chosen.admin, SingleGateway(gateway), shutdown=over.wait, task_status=task_status)
        ended.set()

    (address,) = await nursery.start(serve)
    window = Window(gateway, address)
    assert (await window.get("/livez"))[0] == 200
    over.set()
    with trio.fail_after(10):
        await ended.wait()
    with pytest.raises(OSError, match="refused"):
        await window.get("/livez")

"""The address for kubelets and Prometheus."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest
import trio

from amqpgate.admin.http import serve_admin
from amqpgate.app.wiring import build
from amqpgate.config import parse
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.server.lifecycle import Lifecycle
from amqpgate.gateway.server.standing import Impairment
from amqpgate.operator.single import SingleGateway

SETTINGS = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
policies: policies
admin: {bind: "127.0.0.1:0", tokenFile: token, probes: "127.0.0.1:0"}
"""

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: secret}
spec: {subjects: [{user: bob}], rules: [{id: a, effect: allow, operations: [basic.publish]}]}
"""


@pytest.fixture
async def window(tmp_path: Path, nursery: trio.Nursery) -> tuple[Gateway, str, str]:
    """A gateway that is not started, its admin address, and that of its probes."""
    (tmp_path / "token").write_text("t0ken")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/secret.yaml").write_text(POLICY)
    settings = parse(SETTINGS, {}, file=str(tmp_path / "amqpgate.yaml"))
    gateway = build(settings)

    async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
        assert settings.admin is not None
        await serve_admin(
            settings.admin, SingleGateway(gateway), shutdown=trio.sleep_forever, task_status=task_status
        )

    admin, probes = await nursery.start(serve)
    return gateway, admin, probes


async def get(url: str, method: str = "GET") -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await trio.to_thread.run_sync(ask)


async def test_probes_and_metrics_need_no_token(window: tuple[Gateway, str, str]) -> None:
    _, admin, probes = window
    assert await get(f"{probes}/livez") == (200, "ok\n")
    status, text = await get(f"{probes}/metrics")
    assert status == 200
    assert "amqpgate_ready 0.0" in text
    assert (await get(f"{admin}/metrics"))[0] == 401


async def test_nothing_else_is_there(window: tuple[Gateway, str, str]) -> None:
    probes = window[2]
    for path in ("/", "/routes", "/pools", "/config", "/sessions"):
        assert (await get(probes + path))[0] == 404
    for path in ("/reload", "/drain"):
        assert (await get(probes + path, "POST"))[0] == 404
    assert (await get(f"{probes}/metrics", "POST"))[0] == 405


async def test_started_stays_so_while_it_drains(
    window: tuple[Gateway, str, str], nursery: trio.Nursery
) -> None:
    gateway, _, probes = window
    assert (await get(f"{probes}/startupz"))[0] == 503
    assert (await get(f"{probes}/readyz"))[0] == 503
    await nursery.start(gateway.run)
    assert await get(f"{probes}/startupz") == (200, "started\n")
    assert await get(f"{probes}/readyz") == (200, "ready\n")
    gateway.drain()
    assert (await get(f"{probes}/readyz"))[0] == 503
    assert await get(f"{probes}/startupz") == (200, "started\n")


async def test_it_is_not_ready_while_it_is_impaired(
    window: tuple[Gateway, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, _, probes = window
    monkeypatch.setattr(Lifecycle, "phase", "ready")
    for impairment, why in (
        (Impairment.MEMORY, "memory is short"),
        (Impairment.AUDIT, "audit records are not written"),
        (Impairment.AUDIT | Impairment.MEMORY, "audit records are not written and memory is short"),
    ):
        gateway.lifecycle.check(impairment)
        # A change of the phase does not make it forget that.
        gateway.lifecycle.changed()
        assert await get(f"{probes}/readyz") == (503, f"not ready: {why}\n")
    gateway.lifecycle.check(Impairment(0))
    assert await get(f"{probes}/readyz") == (200, "ready\n")

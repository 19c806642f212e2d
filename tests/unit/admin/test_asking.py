"""Each change that an operator makes is in the audit records and in the log: who, from where, what with."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.support.audit import records, setting

from .test_http import open_window
from .test_lifecycle import ask

__all__ = ["open_window"]

ROUTES = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: routes}
spec: {routes: [{id: all, upstream: {cluster: broker}}]}
"""


@pytest.mark.parametrize("token", [None, "hunter2"])
async def test_who_did_it_is_told(
    open_window,  # type: ignore[no-untyped-def]
    token: str | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/routes.yaml").write_text(ROUTES)
    audit = setting(tmp_path / "audit", 3600)
    window = await open_window(token, f"policies: {tmp_path / 'policies'}\n{audit}")
    gateway = window.gateway
    gateway.observers.audit.start(gateway.reloading.state)
    level = logging.getLogger().level
    headers = {"X-Amqpgate": "1"} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        for path, body in (
            ("/pause", b""),
            ("/resume", b""),
            ("/reload", b""),
            ("/log-level", b'{"level": "warning"}'),
            *((("/routes/all/pause", b""),) if token is not None else ()),
            ("/drain", b'{"window": 3}'),
        ):
            status, text = await ask(window, path, body, **{"Content-Type": "application/json"}, **headers)
            assert status in (200, 202), (path, text)
        # Neither is done.
        assert (await ask(window, "/sessions/none/close", b"{}", **headers))[0] == 404
        assert (await ask(window, "/pause", b"", Origin="http://evil.example", **headers))[0] == 403
    finally:
        logging.getLogger().setLevel(level)
        gateway.observers.audit.stop()
    told = [
        json.loads(str(one["detail"]))
        for one in records(tmp_path / "audit", "events")
        if one["kind"] == "admin"
    ]
    by = "anyone" if token is None else "token"
    assert {(one.pop("by"), one.pop("address")) for one in told} == {(by, "127.0.0.1")}
    assert told == [
        {"action": "pause"},
        {"action": "resume"},
        {"action": "reload", "result": "done"},
        {"action": "log-level", "level": "warning"},
        *([{"action": "pause", "route": "all"}] if token is not None else []),
        {"action": "drain", "window": "3"},
    ]
    for line in (f"pause: by an operator ({by}, 127.0.0.1)", "POST /pause from 127.0.0.1 is refused: 403"):
        assert line in caplog.text
    assert "hunter2" not in caplog.text

"""`/history`, and what keeps it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from amqpgate.app.wiring import build
from amqpgate.buckets import CONFIRMS
from amqpgate.config import parse
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.server.housekeeping import Housekeeping
from amqpgate.telemetry.history import SERIES, STEP, History, slot_at

from .test_http import open_window  # noqa: F401

SETTINGS = "listeners: [{name: main, bind: '127.0.0.1:0'}]\nupstreams: [{name: broker, host: 127.0.0.1}]\n"


async def test_it_is_told_and_asked_for(
    open_window: Callable[..., object],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History.of(memoryview(bytearray(len(SharedMemory.make(2).history))))
    now = slot_at(time.time())
    for ring in history.rings:
        for slot in range(now - 30, now + 2):
            ring.write(slot, [3.0] * len(SERIES), [0] * (len(CONFIRMS) + 1))
    monkeypatch.setattr("amqpgate.operator.single.SingleGateway.history", history)
    window = await open_window("s3cret")  # type: ignore[misc]
    assert (await window.get("/history"))[0] == 401
    status, text, _ = await window.get("/history?minutes=1", token="Bearer s3cret")
    found = json.loads(text)
    assert (status, found["step"], len(found["at"])) == (200, STEP, 60 // STEP)
    assert set(found["published"]) == {6.0}
    for wrong in ("0", "61", "x"):
        status, text, _ = await window.get(f"/history?minutes={wrong}", token="Bearer s3cret")
        assert (status, text) == (400, "minutes: a whole number from 1 to 60\n")


@pytest.mark.parametrize(("more", "writes"), [("", False), ("admin: {bind: '127.0.0.1:0'}\n", True)])
def test_nothing_is_written_where_nobody_can_ask(more: str, writes: bool) -> None:
    gateway = build(parse(SETTINGS + more, {}))
    try:
        (keeping,) = (
            run.__self__
            for run in gateway.services
            if isinstance(getattr(run, "__self__", None), Housekeeping)
        )
        assert (keeping.history is not None) is writes
    finally:
        gateway.pump.close()
        gateway.registry.fibers.close()

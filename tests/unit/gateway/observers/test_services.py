"""What operators do is written down where there are audit records."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.gateway.audited import MakeStage, audited, told
from tests.unit.gateway.conftest import Stage

__all__ = ["audited"]


def test_what_an_operator_does_is_an_event(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    observers = stage.running.gateway.observers
    stage.running.call(lambda: observers.note("pause", route="r", by="alice"))
    [event] = told(stage, tmp_path, "events", kind="admin")
    assert json.loads(str(event["detail"])) == {"action": "pause", "by": "alice", "route": "r"}
    assert event["session"] is None


def test_without_records_nothing_is_written(stage: Stage) -> None:
    observers = stage.running.gateway.observers
    assert (observers.audit, observers.tracer) == (None, None)
    stage.running.call(lambda: observers.note("pause", route="r"))

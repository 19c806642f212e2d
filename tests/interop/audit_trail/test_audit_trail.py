"""From records to policies and back: what was done passes; without a grant exactly what needs it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.interop.audit_trail.plays import stage_of_programs
from tests.interop.audit_trail.programs import PROGRAMS
from tests.interop.audit_trail.trail import grants, recommend, record, without, write
from tests.support.rabbitmq import RabbitMQ


def test_what_was_recorded_is_what_is_needed(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    stage = stage_of_programs(rabbitmq)
    first = record(stage, tmp_path / "audit")
    assert first.passed == {*PROGRAMS}
    least = recommend(tmp_path / "audit", tmp_path / "least")
    assert first.refused_by(least) == set()

    enforced = record(stage, tmp_path / "enforced", policies=tmp_path / "least")
    assert enforced.passed == first.passed
    assert enforced.denied == set()

    needed = {grant: first.refused_by(without(least, grant)) for grant in grants(least)}
    assert {"orders", "depth", "jobs", "replies", "news", "copies"} <= set().union(*needed.values())
    grant = next(grant for grant, tests in needed.items() if tests == {"orders"})
    less = write(without(least, grant), tmp_path / "less")
    dropped = record(stage, tmp_path / "dropped", policies=less)
    assert first.passed - dropped.passed == needed[grant]
    assert dropped.denied == needed[grant]

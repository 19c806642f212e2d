"""Recommend in increments: what is new is read, and what comes out is what all records together say."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.frames import engine
from amqpgate.pipeline.jobs.kept_requests import SCHEMA, read_kept
from amqpgate.pipeline.jobs.recommend import recommend, recommend_of, requests_of, together
from amqpgate.records import Usage
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, lines, table_of, usage, write
from tests.support.audit_verbs import audit_locally
from tests.support.loop import seen
from tests.unit.pipeline.conftest import SETTINGS

DAY = timedelta(days=1)
pytestmark = pytest.mark.usefixtures("running")
Audit = Callable[..., str]


def on_spark(*words: object) -> str:
    result = CliRunner().invoke(main, ["audit", *map(str, words), *SETTINGS])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(
    params=[audit_locally, pytest.param(on_spark, marks=pytest.mark.slow)], ids=["local", "spark"]
)
def audit(request: pytest.FixtureRequest) -> Audit:
    function: Audit = request.param
    return function


def records_of(day: int) -> list[Usage]:
    """Some of it is the same each day, and some has other ids."""
    begin = START + day * DAY
    told = [
        attrs.evolve(
            step.record,
            record_id=f"{day}-{number}",
            window_start=begin,
            window_end=begin + timedelta(seconds=10),
            first=begin,
            last=begin + timedelta(seconds=number),
        )
        for number, step in enumerate(seen(day % 2))
    ]
    return [
        *told,
        usage(f"{day}-u", begin, 3, user=None, routing_key="k"),
        usage(f"{day}-v", begin, 5, vhost="other", routing_key="k"),
    ]


def add(folder: Path, *days: int) -> None:
    for day in days:
        write(folder, "usage", table_of("usage", records_of(day)), per_file=60, gateway=f"gate-{day}")


def test_days_that_are_added_give_what_all_of_them_give(tmp_path: Path, audit: Audit) -> None:
    add(tmp_path / "all", 0, 1, 2, 3)
    whole = audit("recommend", tmp_path / "all")
    raw, state = tmp_path / "raw", tmp_path / "seen.parquet"
    for days in ([0, 1], [2, 3], []):
        add(raw, *days)
        found = audit("recommend", raw, "--state", state)
        if days:
            # What was read is needed no more: but for the last day, so that the folder has records.
            last = raw / "usage" / f"date={(START + days[-1] * DAY).date()}"
            for other in (raw / "usage").iterdir():
                if other != last:
                    shutil.rmtree(other)
    assert found == whole
    assert "different requests" in found
    # Each different request once, whatever the days.
    assert len(pq.read_table(state)) == len(set(_requests(0, 1, 2, 3)))


def test_requests_of_parts_are_those_of_all(plans: Plans) -> None:
    with engine(plans.name):
        parts = [requests_of(plans.frame("usage", records_of(day))) for day in range(3)]
        whole = recommend(plans.frame("usage", [one for day in range(3) for one in records_of(day)]))
        assert recommend_of(together(together(parts[0], parts[1]), parts[2])) == whole


def _requests(*days: int) -> list[tuple[object, ...]]:
    asked = ("user", "vhost", "operation", "exchange", "routing_key", "queue", "destination")
    free = ("basic.qos",)
    return [
        (*(getattr(one, name) for name in asked), one.arguments, one.more_keys, one.passive)
        for day in days
        for one in records_of(day)
        if one.operation not in free
    ]


def test_what_cannot_be_added_is_told(tmp_path: Path) -> None:
    state = tmp_path / "seen.parquet"
    add(tmp_path / "raw", 0)
    audit_locally("recommend", tmp_path / "raw", "--state", state, "--vhost", "loop")
    before = state.read_bytes()
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "a.jsonl").write_text("\n".join(lines("usage", records_of(0))))
    for words, told in (
        ([tmp_path / "raw"], "is about virtual host 'loop'"),
        ([tmp_path / "raw", "--since", "2026-01-01"], "leave out --since and --until"),
        ([tmp_path / "json", "--vhost", "loop"], "files of JSON lines grow"),
    ):
        with pytest.raises(subprocess.CalledProcessError) as error:
            audit_locally("recommend", *words, "--state", state)
        assert told in error.value.stderr
    assert state.read_bytes() == before


def test_a_state_of_others_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(PipelineError, match="is damaged"):
        read_kept(path, None)
    pq.write_table(SCHEMA.empty_table(), path)
    with pytest.raises(PipelineError, match="of another amqpgate"):
        read_kept(path, None)
    about = {b"amqpgate": json.dumps({"version": 2}).encode()}
    pq.write_table(SCHEMA.empty_table().replace_schema_metadata(about), path)
    with pytest.raises(PipelineError, match="of another amqpgate"):
        read_kept(path, None)

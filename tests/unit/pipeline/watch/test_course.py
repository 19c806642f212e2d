"""The course of a watch: each file once, the same alerts after any death, each sink has all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest

from amqpgate.cli.audit_sinks import TableSink
from amqpgate.pipeline.contract import whole
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import Span
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.watch import course as module
from amqpgate.pipeline.watch.alert import Alert
from amqpgate.pipeline.watch.course import AlertCourse, AlertSink, Batch, Stopped, Undelivered
from amqpgate.pipeline.watch.denied import Denied
from tests.support.audit_records import START, event, table_of, write

MINUTE = timedelta(minutes=1)


class Crash(BaseException):
    """The process is gone."""


@attrs.define
class Kept:
    """A sink that remembers, and dies or refuses at some calls."""

    told: list[list[str]] = attrs.field(factory=list)
    dies: set[int] = attrs.field(factory=set)
    refuses: int = 0

    def deliver(self, alerts: Sequence[Alert], number: int) -> None:
        self.told.append([alert.id for alert in alerts])
        if len(self.told) in self.dies:
            raise Crash
        if self.refuses:
            self.refuses -= 1
            raise Undelivered("no")


def course(
    raw: Path, state: Path, *sinks: AlertSink, waits: list[float] | None = None, stop: bool = False
) -> AlertCourse:
    def pause(seconds: float) -> bool:
        (waits if waits is not None else []).append(seconds)
        return stop

    return AlertCourse(
        folder=str(raw),
        watch=Denied(2 * MINUTE),
        sinks=sinks,
        state=state,
        span=Span(since=START),
        pause=pause,
        tell=lambda text: None,
    )


def refuse(raw: Path, name: str, time: datetime, times: int = 1) -> Path:
    events = [
        event(f"{name}-{number}", "denied", time, user=name, operation="basic.publish")
        for number in range(times)
    ]
    (path,) = write(raw, "events", table_of("events", events), gateway=name)
    return path


def run(it: AlertCourse, *moments: datetime) -> list[bool]:
    with it.opened():
        return [it.go_on(moment) for moment in moments]


def test_each_file_is_read_once(tmp_path: Path) -> None:
    raw, state, sink = tmp_path / "raw", tmp_path / "state", Kept()
    refuse(raw, "a", START, 3)
    refuse(raw, "before", START - MINUTE)
    assert run(course(raw, state, sink), START + MINUTE, START + MINUTE) == [True, False]
    assert run(course(raw, state, sink), START + MINUTE) == [False]
    refuse(raw, "b", START + MINUTE)
    cut = refuse(raw, "c", START)
    cut.write_bytes(cut.read_bytes()[:-1])
    assert run(course(raw, state, sink), START + 9 * MINUTE, START + 9 * MINUTE) == [True, True]
    assert run(course(raw, state, sink), START + 99 * MINUTE) == [False]
    assert len([id_ for ids in sink.told for id_ in ids]) == 2


@pytest.mark.parametrize("place", ["step", "deliver", "remember", "settle"])
def test_who_dies_tells_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """FileSink that come in between are none of the batch that was settled."""
    raw, state = tmp_path / "raw", tmp_path / "state"
    refuse(raw, "a", START, 3)
    address = address_of(f"delta:{tmp_path}/table")
    assert address is not None
    table = open_lake(address)
    rows, sink = TableSink(table, "alerts"), Kept(dies={1} if place == "deliver" else set())
    with monkeypatch.context() as patch:
        if place == "step":
            patch.setattr(Denied, "step", lambda *_: (_ for _ in ()).throw(Crash()))
        if place in ("remember", "settle"):
            name, real = "state.json" if place == "remember" else "pending.json", module._write

            def write_(path: Path, what: object) -> None:
                if path.name == name:
                    raise Crash
                real(path, what)  # type: ignore[arg-type]

            patch.setattr(module, "_write", write_)
        with pytest.raises(Crash):
            run(course(raw, state, rows, sink), START + 9 * MINUTE, START + 20 * MINUTE)
    refuse(raw, "b", START, 5)
    late = START + 30 * MINUTE
    assert run(course(raw, state, rows, sink), late, late, late, late)[-1] is False
    found = table.load("alerts")
    assert found is not None
    told = [row for file in found.files() for row in pq.read_table(found.open(file.path)).to_pylist()]
    assert sorted((row["user"], row["value"]) for row in told) == [("a", 3), ("b", 5)]
    assert len({row["id"] for row in told}) == 2
    assert {id_ for ids in sink.told for id_ in ids} == {row["id"] for row in told}


def test_a_backlog_is_taken_up_to_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who dies amid the first batch takes the same files again, however much that may be by then."""
    raw, late = tmp_path / "raw", START + 30 * MINUTE
    first, *_ = (refuse(raw, name, START) for name in "abc")
    found = whole(str(first), "events")
    assert not isinstance(found, str)
    users: list[list[str]] = []

    def step(_: Denied, batch: Batch) -> list[Alert]:
        users.append(batch.records["events"]["user"].to_pylist())
        if len(users) == 1:
            raise Crash
        return []

    monkeypatch.setattr(Denied, "step", step)
    monkeypatch.setattr(module, "_BYTES", 1 + found.nbytes)
    with pytest.raises(Crash):
        run(course(raw, tmp_path / "state"), late)
    monkeypatch.setattr(module, "_BYTES", 1)
    assert run(course(raw, tmp_path / "state"), late, late) == [True, True]
    assert users == [["a", "b"], ["a", "b"], ["c"]]


def test_a_sink_that_refuses_is_asked_again(tmp_path: Path) -> None:
    raw, waits, sink = tmp_path / "raw", list[float](), Kept(refuses=8)
    refuse(raw, "a", START)
    late = START + 30 * MINUTE
    assert run(course(raw, tmp_path / "state", sink, waits=waits), START, late) == [True, True]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert len({tuple(ids) for ids in sink.told}) == 1
    # A signal ends the waiting, and the next run tells it.
    refuse(raw, "b", late)
    sink = Kept(refuses=1)
    with pytest.raises(Stopped):
        run(course(raw, tmp_path / "state", sink, stop=True), late, late + 9 * MINUTE)
    assert run(course(raw, tmp_path / "state", sink), late + 99 * MINUTE) == [True]
    assert sink.told[0] == sink.told[1]


def test_one_at_a_time(tmp_path: Path) -> None:
    with course(tmp_path, tmp_path / "s").opened(), pytest.raises(PipelineError, match="in use by another"):
        run(course(tmp_path, tmp_path / "s"))
    (tmp_path / "s/state.json").write_text("{")
    with pytest.raises(PipelineError, match=r"state\.json is damaged"):
        run(course(tmp_path, tmp_path / "s"))
    (tmp_path / "s/state.json").write_text(json.dumps({"number": 1}))
    with pytest.raises(PipelineError, match=r"state\.json is damaged"):
        run(course(tmp_path, tmp_path / "s"))

"""Parts that only look on may fail: that is counted, logged once for each place, and ends nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.telemetry.families import Collector, Metric
from amqpgate.telemetry.faults import FAULTS, PARTS, Faults, Registry, contained
from amqpgate.telemetry.instruments import CounterMetric
from amqpgate.telemetry.metrics import Metrics


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests provoke is not seen here, and what these do is not seen elsewhere."""
    monkeypatch.setattr(FAULTS, "counts", dict.fromkeys(PARTS, 0))


def test_what_is_contained_gives_something_else_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    @contained("traces", "nothing")
    def halves(number: int) -> str:
        """Of a number."""
        return str(2 // number)

    before = FAULTS.counts["traces"]
    assert (halves(2), halves.__doc__) == ("1", "Of a number.")
    assert [halves(0) for _ in range(3)] == ["nothing"] * 3
    assert FAULTS.counts["traces"] == before + 3
    [record] = caplog.records
    assert "traces failed in " in record.getMessage()
    assert record.exc_info is not None


def test_each_place_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    faults = Faults()
    for where in ("one", "two", "one"):
        try:
            raise ValueError(where)
        except ValueError:
            faults.caught("audit", where)
    assert faults.counts == {**dict.fromkeys(PARTS, 0), "audit": 3}
    assert len(caplog.records) == 2


class _Broken(Collector):
    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        yield Metric("half", "of it", "gauge")
        raise ValueError("and no more")


def test_a_collector_that_fails_costs_no_other_its_metrics() -> None:
    registry, before = Registry(), FAULTS.counts["metrics"]
    CounterMetric("first", "one", registry=registry)
    registry.register(_Broken())
    CounterMetric("last", "one", registry=registry)
    assert [metric.name for metric in registry.collect()] == ["first", "last"]
    assert FAULTS.counts["metrics"] == before + 1


def test_the_faults_are_a_metric() -> None:
    text = Metrics(lambda: None).text().decode()
    for part, count in FAULTS.counts.items():
        assert f'amqpgate_internal_errors_total{{part="{part}"}} {float(count)}' in text

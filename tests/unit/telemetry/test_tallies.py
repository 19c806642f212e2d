"""Plain numbers that are scraped as metrics: as prometheus_client's own would be."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from amqpgate.telemetry.tallies import Tallies


def test_tallies_are_scraped_as_a_counter() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    tallies = Tallies(ours, "things", "What there is.", ["one", "other"])
    counter = Counter("things", "What there is.", ["one", "other"], registry=theirs)
    for labels, count in {("a", 'b"\n'): 3, ("c", ""): 0}.items():
        tallies.counts[labels] += count
        counter.labels(*labels).inc(count)
    assert generate_latest(ours) == generate_latest(theirs)


def test_a_name_is_one_metric_s() -> None:
    registry = CollectorRegistry()
    Tallies(registry, "things", "What there is.", [])
    with pytest.raises(ValueError, match="Duplicated"):
        Tallies(registry, "things", "What there is.", [])

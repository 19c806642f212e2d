"""Families by the labels that the settings ask for: as they are scraped, merged and sent."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.telemetry.labelled import LabelledMetrics
from amqpgate.telemetry.merge import Workers
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.readings import LabelledUse, Traffic

from .otlp.test_metrics import sent
from .test_metrics import TOTALS

USE = LabelledUse(
    sessions=2,
    published=Traffic(3, 30),
    refused=Traffic(7, 70),
    sent=Traffic(4, 40),
    denials=5,
    waited=6,
)

#: What text formats have a meaning for.
HOSTILE = 'a"b\\c{d="e"},f\\n # é'


def metrics(labelled: Mapping[tuple[str, ...], LabelledUse]) -> Metrics:
    made = Metrics(lambda: attrs.evolve(TOTALS, labelled=labelled))
    made.registry.register(
        LabelledMetrics(lambda: attrs.evolve(TOTALS, labelled=labelled), ["vhost", "user"])
    )
    return made


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """Those that are not 0 of the labelled families, by name, virtual host, user, direction, verdict."""
    return {
        (
            sample.name.removeprefix("amqpgate_labelled_"),
            *(
                sample.labels[name]
                for name in ("vhost", "user", "direction", "verdict")
                if name in sample.labels
            ),
        ): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name.startswith("amqpgate_labelled_") and sample.value
    }


def test_each_family_has_the_labels_that_were_asked_for() -> None:
    assert samples(metrics({(HOSTILE, "billing"): USE}).text()) == {
        ("sessions", HOSTILE, "billing"): 2,
        ("messages_total", HOSTILE, "billing", "publish", "allow"): 3,
        ("messages_total", HOSTILE, "billing", "publish", "deny"): 7,
        ("messages_total", HOSTILE, "billing", "deliver", "allow"): 4,
        ("message_bytes_total", HOSTILE, "billing", "publish", "allow"): 30,
        ("message_bytes_total", HOSTILE, "billing", "publish", "deny"): 70,
        ("message_bytes_total", HOSTILE, "billing", "deliver", "allow"): 40,
        ("denials_total", HOSTILE, "billing"): 5,
        ("throttle_seconds_total", HOSTILE, "billing"): 6,
    }


def test_nothing_is_told_before_something_is_read() -> None:
    made = Metrics(lambda: None)
    made.registry.register(LabelledMetrics(lambda: None, ["vhost"]))
    assert b"labelled" not in made.text()


@pytest.mark.parametrize("is_open", [False, True])
def test_workers_are_added_up_by_labels(is_open: bool) -> None:
    one, other = metrics({(HOSTILE, "a"): USE, ("v", "b"): USE}), metrics({(HOSTILE, "a"): USE})
    workers = Workers()
    merged = workers.merge([(0, one.text()), (1, other.text())], is_open=is_open)
    found = samples(merged)
    assert found["messages_total", HOSTILE, "a", "publish", "allow"] == 6
    assert found["sessions", HOSTILE, "a"] == 4
    assert found["denials_total", "v", "b"] == 5
    # What has been counted stays when its worker ends, and its sessions are gone.
    workers.gone(0)
    found = samples(workers.merge([(1, other.text())], is_open=is_open))
    assert found["messages_total", HOSTILE, "a", "publish", "allow"] == 6
    assert found["sessions", HOSTILE, "a"] == 2


def test_a_collector_gets_them_with_their_labels() -> None:
    found = sent(metrics({(HOSTILE, "a"): USE}).registry)
    assert found["amqpgate_labelled_message_bytes_total"].unit == "By"
    assert found["amqpgate_labelled_throttle_seconds_total"].unit == "s"
    (point,) = found["amqpgate_labelled_denials_total"].sum.data_points
    assert {one.key: one.value.string_value for one in point.attributes} == {"vhost": HOSTILE, "user": "a"}
    assert point.as_double == 5

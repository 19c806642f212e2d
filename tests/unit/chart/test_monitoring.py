"""The alerts and the dashboard that the chart installs are those of its files."""

from __future__ import annotations

import json

import yaml

from tests.unit.chart.rendering import CHART, documents, render
from tests.unit.chart.test_kubernetes import wrong

METRICS = {"prometheusRule": {"enabled": True, "labels": {"release": "a"}}, "dashboard": {"enabled": True}}
VALUES = {"config": {"upstreams": [{"name": "rabbit", "url": "amqp://rabbit"}]}, "metrics": METRICS}


def test_alerts() -> None:
    (rule,) = (one for one in documents(render(VALUES)) if one["kind"] == "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((CHART / "files/alerts/amqpgate.yaml").read_text())
    assert wrong(rule, "1.34.0") is None


def test_dashboard() -> None:
    (data,) = (
        one["data"] for one in documents(render(VALUES)) if "grafana_dashboard" in str(one["metadata"])
    )
    assert isinstance(data, dict)
    assert json.loads(data["amqpgate.json"]) == json.loads(
        (CHART / "files/dashboards/amqpgate.json").read_text()
    )

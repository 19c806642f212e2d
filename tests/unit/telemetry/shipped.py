"""The dashboard and the alerts that are shipped, and the metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import yaml

from amqpgate.config import parse
from amqpgate.gateway.server import Gateway
from amqpgate.policy import PolicySet

FILES = Path(__file__).parents[3] / "helm/amqpgate/files"
ALERTS = FILES / "alerts/amqpgate.yaml"
DASHBOARD = FILES / "dashboards/amqpgate.json"

#: What a name of a histogram's or a counter's samples has more than its family's.
_SUFFIX = re.compile(r"_(bucket|count|sum)$")


@attrs.frozen
class Query:
    """One target of a panel."""

    panel: str
    promql: str


def alerts() -> list[dict[str, object]]:
    """As they stand in the file."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def queries() -> list[Query]:
    """As they stand in the dashboard, with its variables."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [Query(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]


def named(promql: str) -> set[str]:
    """The families that an expression is about."""
    without_strings = re.sub(r'"[^"]*"', "", promql)
    return {_SUFFIX.sub("", name) for name in re.findall(r"\b(?:amqpgate|process)_[a-z_]+", without_strings)}


def families() -> dict[str, str]:
    """Every family of a gateway, by its name in the text, with its type."""
    settings = parse("listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n", {})
    gateway = Gateway(settings, PolicySet.empty(), "0")
    try:
        text = gateway.metrics.text().decode()
    finally:
        gateway.pump.close()
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))

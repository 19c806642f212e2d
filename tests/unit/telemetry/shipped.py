"""The dashboard and the alerts that are shipped, and the metrics that there are."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import trio
import yaml
from prometheus_client.metrics_core import Metric

from amqpgate.config import parse
from amqpgate.gateway.server.assembly import build
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.kubernetes.metrics import OperatorMetrics
from amqpgate.policy import PolicySet
from amqpgate.telemetry.merge import HOW

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


@contextlib.contextmanager
def gateway() -> Iterator[Gateway]:
    """One that has done nothing yet, and was scraped. It has all the metrics that there are."""
    text = "listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n"
    settings = parse(f"{text}metrics: {{by: [vhost, listener, user], users: [c]}}\n", {})
    made = build(settings, PolicySet.empty(), "0")
    try:
        trio.run(made.metrics_text)
        yield made
    finally:
        made.pump.close()
        made.registry.fibers.close()


def families() -> dict[str, str]:
    """Every family of a gateway and of an operator, by its name in the text, with its type."""
    with gateway() as made:
        text = made.metrics.text().decode()
    text += OperatorMetrics().text().decode()
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


def metrics_table() -> str:
    """Every family, its labels and its help, as ``docs/observability.md`` has them."""
    with gateway() as made:
        registry = made.metrics.registry
        rows = [
            _row(family, getattr(collector, "_labelnames", ()) or getattr(family, "_labelnames", ()))
            for collector in registry._collector_to_names
            for family in collector.collect()
        ]
    return "\n".join(["| metric | type | |", "|---|---|---|", *sorted(rows)])


def _row(family: Metric, labels: Iterable[str]) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    shown = f"{name}{{{','.join(labels)}}}" if labels else name
    words: dict[object, str] = {min: "of several workers the least", max: "of several workers the most"}
    text = family.documentation.rstrip(".")
    if family.name in HOW and "several workers" not in text:
        text += f"; {words[HOW[family.name]]}"
    return f"| `{shown}` | {family.type} | {text} |"

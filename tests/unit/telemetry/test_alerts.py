"""The alerts that are shipped: each with a case that fires, judged by Prometheus' own tool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.support.prometheus import promtool

from .shipped import ALERTS, alerts, families, named

CASES = Path(__file__).with_name("alerts.yaml")


def test_prometheus_takes_them() -> None:
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stderr
    assert f"{len(alerts())} rules found" in done.stdout


def test_they_fire_when_they_should_and_only_then() -> None:
    done = promtool("test", "rules", CASES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_that_is_wrong_would_be_found(tmp_path: Path) -> None:
    text = CASES.read_text().replace("../../../helm/amqpgate/files/alerts/amqpgate.yaml", str(ALERTS))
    assert 'alertname="AmqpgateLoopLag"' in text
    wrong = tmp_path / "alerts.yaml"
    wrong.write_text(text.replace('alertname="AmqpgateLoopLag"', 'alertname="AmqpgateOther"'))
    assert promtool("test", "rules", wrong).returncode != 0


def test_each_has_a_case_that_fires() -> None:
    expected = {
        label
        for case in yaml.safe_load(CASES.read_text())["tests"]
        for at in case["promql_expr_test"]
        for sample in at["exp_samples"]
        for label in [sample["labels"].split('"')[1]]
    }
    assert expected == {rule["alert"] for rule in alerts()}


def test_the_runbook_has_each() -> None:
    page = Path(__file__).parents[3].joinpath("docs/operations.md").read_text()
    runbook = page.partition("## When an alert fires\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(Amqpgate\w+)`", runbook)) == {rule["alert"] for rule in alerts()}


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_each_says_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].partition("/blob/main/")[2].partition("#")
    # Where it leads stands the alert itself, once.
    marked = f'<a id="{anchor}"></a>`{rule["alert"]}`'
    assert Path(__file__).parents[3].joinpath(page).read_text().count(marked) == 1
    assert len(rule["annotations"]["description"]) > len(rule["annotations"]["summary"])


def test_no_two_lead_to_one_place() -> None:
    places = {rule["annotations"]["runbook_url"] for rule in alerts()}  # type: ignore[index]
    assert len(places) == len(alerts())


def test_what_they_ask_for_exists() -> None:
    known = families()
    for rule in alerts():
        assert named(str(rule["expr"])) <= set(known), rule["alert"]

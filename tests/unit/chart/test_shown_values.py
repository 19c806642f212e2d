"""The values that docs/kubernetes.md and the examples show can be installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.unit.chart.rendering import ROOT, documents, render
from tests.unit.chart.test_kubernetes import VERSIONS, wrong

SECTION = (ROOT / "docs/kubernetes.md").read_text().partition("\n## Kubernetes\n")[2].partition("\n## ")[0]
SHOWN = [
    text
    for text in re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
    if "config:" in text
]


def test_there_are_values_for_an_application_and_for_a_gateway() -> None:
    assert [text.splitlines()[0] for text in SHOWN] == ["# values.yaml", "# gateway.yaml"]


@pytest.mark.parametrize("text", SHOWN)
def test_they_render(text: str) -> None:
    values = yaml.safe_load(text)
    assert documents(render(values, application="amqpgate" in values))


def test_what_helm_is_told_to_set_is_a_value() -> None:
    for keys in re.findall(r"^\$ helm install .*$", SECTION, re.MULTILINE):
        values: dict[str, object] = {"config": {"upstreams": [{"name": "a", "host": "a"}]}}
        for name, value in re.findall(r"--set (\S+?)=(\S+)", keys):
            *path, last = name.split(".")
            inner = values
            for part in path:
                inner = inner.setdefault(part, {})  # type: ignore[assignment]
            inner[last] = yaml.safe_load(value)
        assert documents(render(values))


@pytest.mark.parametrize("file", sorted((ROOT / "examples/helm").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_examples_are_valid(file: Path) -> None:
    found = documents(render(yaml.safe_load(file.read_text())))
    assert not [error for document in found if (error := wrong(document, VERSIONS[-1])) is not None]

"""What Artifact Hub shows of the chart is what there is."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from amqpgate.resources.documents import ResourceKey, written
from tests.unit.chart.rendering import CHART, documents, render

ABOUT = yaml.safe_load((CHART / "Chart.yaml").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())


def said(name: str) -> list[dict[str, Any]]:
    """A list that stands in an annotation, as text."""
    found: list[dict[str, Any]] = yaml.safe_load(ABOUT["annotations"][f"artifacthub.io/{name}"])
    return found


def test_the_images_are_those_of_the_values() -> None:
    own = DEFAULTS["image"]
    image = f"{own['registry']}/{own['repository']}:{ABOUT['appVersion']}"
    redis = DEFAULTS["redis"]["image"]
    assert {one["image"] for one in said("images")} == {
        *(f"{image}{suffix}" for suffix in ("", "-audit", "-pipeline")),
        f"{redis['registry']}/{redis['repository']}:{redis['tag']}",
    }


@pytest.mark.parametrize("values", [{}, {"audit": {"enabled": True}}], ids=["gateway", "audit"])
def test_what_is_installed_without_a_word_is_one_of_them(values: dict[str, object]) -> None:
    images = {one["image"] for one in said("images")}
    found: Any = documents(render(values))
    pods = [one["spec"]["template"]["spec"] for one in found if one["kind"] == "Deployment"]
    assert pods
    assert {container["image"] for pod in pods for container in pod["containers"]} <= images


def test_the_definitions_are_those_that_are_installed() -> None:
    files = [yaml.safe_load(path.read_text()) for path in sorted((CHART / "files/crds").glob("*.yaml"))]
    there = {(one["spec"]["names"]["kind"], one["metadata"]["name"]) for one in files}
    assert {(one["kind"], one["name"]) for one in said("crds")} == there
    versions = {version["name"] for one in files for version in one["spec"]["versions"]}
    assert {one["version"] for one in said("crds")} == versions


@pytest.mark.parametrize("example", said("crdsExamples"), ids=lambda example: str(example["kind"]))
def test_an_example_is_valid(example: dict[str, Any]) -> None:
    name = example["metadata"]["name"]
    assert written(ResourceKey(example["kind"], "mq", name), name, example, 1).text


def test_changes_have_kinds_that_it_knows() -> None:
    kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}
    assert {one["kind"] for one in said("changes")} <= kinds
    assert all(one["description"] for one in said("changes"))

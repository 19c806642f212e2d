"""The definitions are structural, as Kubernetes takes them, and the chart has those of the code."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from amqpgate.resources.definitions import RESOURCE_KINDS, ResourceKind, definition, manifests
from amqpgate.resources.settings import schema
from tests.unit.chart.rendering import CHART, ROOT

CRDS = CHART / "files/crds"
#: Apply by a client keeps the whole in an annotation, which has 256 KiB at most.
MOST_ANNOTATION = 256 << 10


def parts(schema: dict[str, object], path: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    """Every value's schema, by path."""
    yield path, schema
    for key, inner in dict(schema.get("properties") or {}).items():  # type: ignore[call-overload]
        yield from parts(inner, f"{path}.{key}")
    for key in ("items", "additionalProperties"):
        inner = schema.get(key)
        if isinstance(inner, dict):
            yield from parts(inner, f"{path}[]")


def test_the_chart_has_those_of_the_code() -> None:
    """Repair it with: make crds"""
    assert {path.name: path.read_text() for path in CRDS.iterdir()} == manifests()
    assert json.loads((ROOT / "spec/schema/operator.json").read_text()) == schema()


def test_every_kind_is_there_but_tests() -> None:
    assert {kind.name for kind in RESOURCE_KINDS} == {kind.name for kind in DOCUMENT_KINDS} - {"PolicyTest"}
    names = [name for kind in RESOURCE_KINDS for name in (kind.plural, kind.short)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", RESOURCE_KINDS, ids=lambda kind: kind.name)
def test_it_is_structural(kind: ResourceKind) -> None:
    made = definition(kind)
    assert len(json.dumps(made)) < MOST_ANNOTATION
    (version,) = made["spec"]["versions"]  # type: ignore[index,call-overload]
    root = version["schema"]["openAPIV3Schema"]
    text = json.dumps(root)
    for word in ("$ref", "$defs", "definitions", "patternProperties", "uniqueItems", '"default":'):
        assert word not in text
    for path, part in parts(root):
        keeps = part.get("x-kubernetes-preserve-unknown-fields") is True
        either = part.get("x-kubernetes-int-or-string") is True
        assert isinstance(part.get("type"), str) or keeps or either, path
        assert not (either and "type" in part), path
        assert "properties" not in part or not isinstance(part.get("additionalProperties"), dict), path
        assert part.get("additionalProperties") not in (True, False), path
        # What its author wrote wrongly is told, not cut out: a rule without a key would mean more.
        is_ours = not path.startswith((".status", ".metadata", ".apiVersion", ".kind"))
        if is_ours and "properties" in part:
            assert keeps, path
        for junction in ("oneOf", "anyOf", "allOf"):
            for choice in part.get(junction, ()):  # type: ignore[attr-defined]
                assert set(choice) == {"required"}, path


def test_it_is_printed() -> None:
    done = CliRunner().invoke(main, ["operator", "crds"])
    assert done.exit_code == 0
    assert len(list(yaml.safe_load_all(done.output))) == len(RESOURCE_KINDS)

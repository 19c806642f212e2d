"""Every case is valid for every Kubernetes from 1.28 to the newest that is known, with no field too many."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import cast

import jsonschema
import pytest
import yaml
from kubernetes_validate import ValidationError, utils

from tests.unit.chart.rendering import CASES, Document, documents, render_case

VERSIONS = [version for version in dict.fromkeys(utils.all_versions()) if not version < "1.28"]
#: What no Kubernetes has of itself: our own schemas, of what is used.
CUSTOM = yaml.safe_load((Path(__file__).parent / "custom_resources.yaml").read_text())


@pytest.fixture(autouse=True, scope="module")
def _read_once() -> Iterator[None]:
    """The definitions of one version are 1.8 MB, and would be read for each object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))
        yield


def wrong(document: Document, version: str) -> str | None:
    """What is wrong with it, if anything."""
    try:
        if (kind := f"{document['apiVersion']} {document['kind']}") in CUSTOM["resources"]:
            schema = {"definitions": CUSTOM["definitions"]} | CUSTOM["resources"][kind]
            jsonschema.validate(document, {"$schema": "http://json-schema.org/draft-07/schema#"} | schema)
        else:
            utils.validate(document, version, strict=True)
    except (ValidationError, jsonschema.ValidationError) as error:
        return f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
    return None


def test_the_versions_are_those_that_there_are() -> None:
    assert VERSIONS[0].startswith("1.28.")
    assert len(VERSIONS) >= 10
    assert all(int(new.split(".")[1]) == int(old.split(".")[1]) + 1 for old, new in pairwise(VERSIONS))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_case_is_valid(version: str) -> None:
    found = {
        f"{case}: {document['kind']}": error
        for case in CASES
        for document in documents(render_case(case, version))
        if (error := wrong(document, version)) is not None
    }
    assert not found


@pytest.mark.parametrize(
    ("case", "kind", "spoil"),
    [
        ("gateway", "Deployment", lambda spec: spec["template"]["spec"].update(terminationGracePeriod=1)),
        ("gateway", "Service", lambda spec: spec["ports"][0].update(port="amqp")),
        ("gateway-full", "ServiceMonitor", lambda spec: spec["endpoints"][0].update(intervall="30s")),
        ("sidecar", "PodMonitor", lambda spec: spec.pop("podMetricsEndpoints")),
        ("injector-cert-manager", "Certificate", lambda spec: spec.pop("issuerRef")),
        ("pipeline-spark", "SparkApplication", lambda spec: spec["driver"].update(coers=1)),
        (
            "pipeline-schedule",
            "ScheduledSparkApplication",
            lambda spec: spec["template"].update(type="Snake"),
        ),
    ],
)
def test_a_mistake_is_seen(case: str, kind: str, spoil: object) -> None:
    document = next(found for found in documents(render_case(case)) if found["kind"] == kind)
    assert callable(spoil)
    spoil(cast("dict[str, object]", document["spec"]))
    assert wrong(document, VERSIONS[-1]) is not None

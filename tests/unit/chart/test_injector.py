"""The injector takes what the chart renders, and puts the same sidecar into pods as the chart does."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import yaml

from amqpgate.inject.manifests import inject_manifests
from amqpgate.inject.settings import Injector, parse
from tests.unit.chart.rendering import Document, documents, render_case

POD = """
apiVersion: v1
kind: Pod
metadata: {name: orders}
spec:
  containers:
  - {name: orders, image: orders, env: [{name: AMQP_URL, value: "amqp://rabbit"}]}
"""


def told(case: str, folder: Path) -> Injector:
    """Its settings, with the certificate where the Secret would have it."""
    (text,) = (
        cast("dict[str, str]", found["data"])["injector.yaml"]
        for found in documents(render_case(case))
        if found["kind"] == "ConfigMap"
    )
    for name in ("tls.crt", "tls.key"):
        (folder / name).touch()
    return parse(text.replace("/etc/amqpgate/tls", str(folder)), {})


def test_its_settings(tmp_path: Path) -> None:
    settings = told("injector", tmp_path)
    assert (settings.image, settings.sidecar) == ("registry.example.org/amqpgate:0.1.0", "native")
    assert (settings.on_error, settings.policies) == ("open", "default-policies")
    assert settings.variables == ("AMQP_URL", "BROKER_URL")
    assert settings.bind.port == 8443
    settings = told("injector-cert-manager", tmp_path)
    assert (settings.on_error, settings.sidecar) == ("closed", "classic")


@pytest.mark.parametrize("case", ["application", "application-classic"])
def test_the_sidecar_is_the_same(case: str, tmp_path: Path) -> None:
    ours = sidecar(documents(render_case(case)))
    kind = "injector" if case == "application" else "injector-cert-manager"
    theirs = sidecar([yaml.safe_load(inject_manifests(POD, told(kind, tmp_path), file="pod.yaml"))])
    for key in ("name", "ports", "resources", "securityContext", "restartPolicy"):
        assert ours.get(key) == theirs.get(key), key
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        path = cast("dict[str, dict[str, object]]", ours[probe])["httpGet"]["path"]
        assert path == cast("dict[str, dict[str, object]]", theirs[probe])["httpGet"]["path"]


def test_a_pod_with_the_charts_sidecar_is_left_as_it_is(tmp_path: Path) -> None:
    text = render_case("application")["application/templates/deployment.yaml"]
    assert inject_manifests(text, told("injector", tmp_path), file="deployment.yaml") == text


def sidecar(found: list[Document]) -> Document:
    """The container `amqpgate`, wherever it is."""
    for document in found:
        spec = cast("dict[str, object]", document.get("spec", {}))
        template = cast("dict[str, dict[str, object]]", spec.get("template", {"spec": spec}))["spec"]
        for place in ("initContainers", "containers"):
            for container in cast("list[Document]", template.get(place, [])):
                if container["name"] == "amqpgate":
                    return container
    raise AssertionError("there is none")

"""The injector takes what the chart renders, and leaves the chart's own sidecars alone."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from amqpgate.inject.manifests import inject_manifests
from amqpgate.inject.settings import Injector, parse
from tests.unit.chart.rendering import documents, render_case


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
    assert (settings.image, settings.sidecar) == ("registry.example.org/amqpgate/amqpgate:0.2.0", "native")
    assert (settings.on_error, settings.policies) == ("open", "default-policies")
    assert settings.variables == ("AMQP_URL", "BROKER_URL")
    assert settings.bind.port == 8443
    settings = told("injector-cert-manager", tmp_path)
    assert (settings.on_error, settings.sidecar) == ("closed", "classic")


def test_a_pod_with_the_charts_sidecar_is_left_as_it_is(tmp_path: Path) -> None:
    text = render_case("application")["application/templates/deployment.yaml"]
    assert inject_manifests(text, told("injector", tmp_path), file="deployment.yaml").text == text

"""The sidecar that the injector puts in is the one that the chart writes."""

from __future__ import annotations

import pytest

from amqpgate.inject import inject, parse
from amqpgate.yamldoc.schema import Json
from tests.unit.chart.rendering import documents, render

from .pods import URL, container, env, pod


@pytest.mark.parametrize(("version", "kind"), [("1.34.0", "native"), ("1.28.0", "classic")])
def test_the_same_container(version: str, kind: str) -> None:
    manifests = render({"amqpgate": {"kubeVersion": version}}, application=True)
    (deployment,) = [one for one in documents(manifests) if one["kind"] == "Deployment"]
    written = sidecar_of(deployment["spec"]["template"])
    settings = parse(f"sidecar: {kind}\nimagePullPolicy: IfNotPresent\n", {})
    annotations: dict[str, Json] = {"config": "a", "policies": "b"}
    injection = inject(pod(container(env("AMQP_URL", URL)), annotations=annotations), settings)
    assert injection is not None
    put_in = sidecar_of(injection.pod)
    # Where the broker is, the chart writes into the settings.
    assert put_in.pop("env") == [env("AMQPGATE_UPSTREAM", "amqp://rabbit.mq:5672")]
    written.pop("env", None)
    assert put_in == written


def sidecar_of(template: dict[str, Json]) -> dict[str, Json]:
    spec = template["spec"]
    everyone = spec.get("initContainers", []) + spec["containers"]
    (found,) = [one for one in everyone if one["name"] == "amqpgate"]
    return found

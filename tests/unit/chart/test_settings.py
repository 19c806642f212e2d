"""The gateway takes the settings and the policies that the chart renders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from amqpgate.config import Settings, parse
from amqpgate.policy import load_folder
from tests.unit.chart.rendering import CASES, documents, render, render_case

ENVIRONMENT = {"AMQPGATE_REDIS_PASSWORD": "secret"}
UPSTREAMS = [{"name": "rabbit", "url": "amqp://rabbit"}]


def mounted(folder: Path, manifests: dict[str, str]) -> Settings | None:
    """The settings, read as in a pod with all volumes; None where there is no gateway in it."""
    maps = [
        found["data"] for found in documents(manifests) if found["kind"] == "ConfigMap" and "data" in found
    ]
    texts = [data["amqpgate.yaml"] for data in maps if isinstance(data, dict) and "amqpgate.yaml" in data]
    if not texts:
        return None
    (text,) = texts
    (folder / "policies").mkdir()
    (folder / "audit").mkdir()
    for data in maps:
        assert isinstance(data, dict)
        for name, content in data.items():
            if "kind:" in content and name != "operator.yaml":
                (folder / "policies" / name).write_text(content)
    for path in re.findall(r"/etc/amqpgate/(secrets/\S+)", text):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("secret")
    text = text.replace("/etc/amqpgate", str(folder)).replace("/var/lib/amqpgate", str(folder))
    return parse(text, ENVIRONMENT)


@pytest.mark.parametrize("case", CASES)
def test_the_gateway_takes_them(case: str, tmp_path: Path) -> None:
    settings = mounted(tmp_path, render_case(case))
    assert (settings is None) == (case in ("injector", "injector-cert-manager", "pipeline-spark"))
    if settings is None:
        return
    assert settings.admin is not None
    assert settings.admin.bind.is_loopback
    assert str(settings.admin.probes) == "0.0.0.0:15681"
    assert settings.log.format == "json"
    if any((tmp_path / "policies").iterdir()):
        assert settings.policies is not None
        assert load_folder(settings.policies).digest
    sidecar = case.startswith(("sidecar", "application", "pipeline-schedule"))
    assert all(listener.bind.is_loopback for listener in settings.listeners) >= sidecar


def test_the_settings_of_the_fullest_case(tmp_path: Path) -> None:
    settings = mounted(tmp_path, render_case("gateway-full"))
    assert settings is not None
    assert settings.shared_limits is not None
    # The most replicas that there may be, times the workers of each.
    assert settings.shared_limits.replicas == 24
    assert str(settings.shared_limits.redis) == "redis://shop-mq-gateway-redis.mq.svc:6379/0"
    assert settings.shared_limits.when_away == "closed"
    assert settings.audit is not None
    # It has not become 6.7108864e+07 on its way.
    assert settings.audit.max_queue == 67108864
    assert settings.watch_policies is False


def test_a_policy_as_text_stays_as_it_is() -> None:
    text = "# What\nkind: AccessPolicy  # a comment: {{ not a template }}\n"
    found = documents(render({"config": {"upstreams": UPSTREAMS}, "policies": {"a.yaml": text}}))
    (data,) = (one["data"] for one in found if str(one["metadata"]).find("-policies") > 0)
    assert data == {"a.yaml": text}


def test_policies_make_a_new_pod_only_where_they_are_not_watched() -> None:
    def sums(policy: str, watch: bool) -> object:
        settings = {"upstreams": UPSTREAMS, "watchPolicies": watch}
        text = render({"config": settings, "policies": {"a.yaml": policy}})
        document = yaml.safe_load(text["amqpgate/templates/gateway/workload.yaml"])
        return document["spec"]["template"]["metadata"]["annotations"]

    assert sums("kind: A", watch=True) == sums("kind: B", watch=True)
    assert sums("kind: A", watch=False) != sums("kind: B", watch=False)

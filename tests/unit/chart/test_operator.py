"""The operator takes what the chart renders, and gateways mount what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import helm_python
import pytest
import yaml
from kubernetes_validate import utils

from amqpgate.config import parse as parse_gateway
from amqpgate.resources.definitions import RESOURCE_KINDS
from amqpgate.resources.settings import parse
from tests.unit.chart.rendering import Document, Values, documents, render, render_case

CONFIG: Values = {"upstreams": [{"name": "rabbit", "url": "amqp://rabbit"}]}


def data_of(found: list[Document], file: str) -> str:
    """A file of the ConfigMap that has it."""
    maps = [cast("dict[str, str]", one["data"]) for one in found if one["kind"] == "ConfigMap"]
    (text,) = (data[file] for data in maps if file in data)
    return text


def test_its_settings_are_those_of_the_gateway(tmp_path: Path) -> None:
    found = documents(render_case("gateway-resources"))
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).touch()
    text = data_of(found, "operator.yaml").replace("/etc/amqpgate/tls", str(tmp_path))
    settings = parse(text, {})
    assert settings.webhook is not None
    (hook,) = (one for one in found if one["kind"] == "ValidatingWebhookConfiguration")
    (about,) = cast("list[dict[str, dict[str, dict[str, str]]]]", hook["webhooks"])
    assert about["failurePolicy"] == "Ignore"
    assert about["clientConfig"]["service"]["path"] == "/validate"
    assert str(settings.config_map) == "shop-amqpgate-resources"
    assert settings.gateway.upstreams == ("rabbit",)
    assert not settings.gateway.shared_limits
    assert [(str(one.namespace), one.kinds) for one in settings.tenants] == [
        ("shop", ("AccessPolicy", "RatePolicy")),
        ("billing", ("AccessPolicy",)),
    ]
    (workload,) = (one for one in found if one["kind"] == "StatefulSet")
    pod = cast("dict[str, dict[str, dict[str, list[Document]]]]", workload["spec"])["template"]["spec"]
    mounted = {one["name"]: one.get("configMap") for one in pod["volumes"]}
    # It is the operator's to make: no pod starts without it.
    assert mounted["amqpgate-policies"] == {"name": "shop-amqpgate-resources"}


def test_a_gateway_of_resources_is_closed_until_one_is_there(tmp_path: object) -> None:
    def default_of(**config: object) -> str:
        values: Values = {"config": CONFIG | config, "customResources": {"enabled": True, "install": False}}
        text = data_of(documents(render(values)), "amqpgate.yaml")
        return parse_gateway(text.replace("/etc/amqpgate/policies", str(tmp_path)), {}).default_access

    assert default_of() == "deny"
    assert default_of(defaultAccess="allow") == "allow"


def test_the_definitions_come_with_it_and_stay() -> None:
    found = documents(render({"config": CONFIG, "customResources": {"enabled": True}}))
    made = [one for one in found if one["kind"] == "CustomResourceDefinition"]
    assert len(made) == len(RESOURCE_KINDS)
    for one in made:
        metadata = cast("dict[str, dict[str, str]]", one["metadata"])
        assert metadata["annotations"]["helm.sh/resource-policy"] == "keep"
        utils.validate(one, "1.34", strict=True)
    (role,) = (one for one in found if one["kind"] == "Role")
    rules = cast("list[dict[str, list[str]]]", role["rules"])
    assert set(rules[0]["resources"]) == {kind.plural for kind in RESOURCE_KINDS}
    assert not any("*" in word for rule in rules for words in rule.values() for word in words)
    assert "secrets" not in yaml.safe_dump(rules)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"policies": {"a.yaml": "# none"}}, "customResources.enabled: policies are resources then"),
        ({"existingPolicies": "mine"}, "customResources.enabled: policies are resources then"),
        ({"config": {}}, "customResources.enabled: say config.upstreams"),
    ],
)
def test_policies_come_from_one_place(values: Values, words: str) -> None:
    with pytest.raises(helm_python.HelmRenderError) as refused:
        render({"config": CONFIG, "customResources": {"enabled": True}} | values)
    assert words in str(refused.value)

"""A wrong value is refused, and the message says where and why."""

from __future__ import annotations

from typing import Final

import helm_python
import pytest
import yaml

from amqpgate import __version__
from amqpgate.chart.schema import NEVER_NULL
from tests.unit.chart.rendering import APPLICATION, CHART, Values, assembled, documents, render

UPSTREAMS = [{"name": "rabbit", "url": "amqp://rabbit"}]
CONFIG: Values = {"upstreams": UPSTREAMS}
POLICY: Values = {
    "apiVersion": "amqpgate.io/v1alpha1",
    "kind": "AccessPolicy",
    "metadata": {"name": "a"},
    "spec": {"subjects": [{"usr": "a"}], "rules": []},
}


#: What the schema refuses.
REFUSED: Final[list[tuple[Values, str]]] = [
    ({"config": {"workers": 2}}, "at '/config': missing property 'upstreams'"),
    ({"mode": "sidecar", "config": {}}, "at '/config': missing property 'upstreams'"),
    ({"tcpRoutes": [{"port": "amqp"}]}, "at '/tcpRoutes/0': missing property 'parentRefs'"),
    ({"autoscaling": {"keda": {"serverAddress": "prometheus"}}}, "at '/autoscaling/keda/serverAddress'"),
    ({"mode": "gatway"}, "at '/mode': value must be one of 'gateway', 'sidecar', 'injector'"),
    ({"replicas": 3}, "additional properties 'replicas' not allowed"),
    ({"replicaCount": "three"}, "at '/replicaCount': got string, want integer"),
    ({"image": {"digest": "latest"}}, "at '/image/digest': 'latest' does not match pattern"),
    ({"resources": {"limits": {"memory": "lots"}}}, "at '/resources/limits/memory': 'lots' does not"),
    ({"config": CONFIG | {"limits": {"drainTimout": "5s"}}}, "'/config/limits': additional properties"),
    ({"config": CONFIG | {"limits": {"drainTimeout": "soon"}}}, "'/config/limits/drainTimeout': 'soon'"),
    (
        {"config": {"upstreams": [{"name": "a", "url": "http://a"}]}},
        "'/config/upstreams/0/url': 'http://a'",
    ),
    ({"policies": {"a.txt": ""}}, "invalid propertyName 'a.txt'"),
    ({"policies": {"a.yaml": {"kind": "Access"}}}, "at '/policies/a.yaml/kind': value must be one of"),
    ({"policies": {"a.yaml": POLICY}}, "'/policies/a.yaml/spec/subjects/0': additional properties 'usr'"),
    ({"service": {"nodePorts": {"amqp": 0}}}, "at '/service/nodePorts/amqp': minimum: got 0, want 1"),
    (
        {"injector": {"config": {"onError": "open"}}},
        "at '/injector/config': additional properties 'onError'",
    ),
    ({"injector": {"caBundle": "LS0t"}}, "at '/injector/caBundle': 'LS0t' does not match pattern"),
    ({"pipeline": {"schedule": "hourly"}}, "at '/pipeline/schedule': 'hourly' does not match pattern"),
]


@pytest.mark.parametrize(("values", "words"), REFUSED)
def test_the_schema_refuses(values: Values, words: str) -> None:
    values = {"config": CONFIG} | values
    with pytest.raises(helm_python.HelmValuesError) as refused:
        render(values)
    assert words in str(refused.value)


def listeners(*binds: str) -> Values:
    return CONFIG | {"listeners": [{"name": f"l{n}", "bind": bind} for n, bind in enumerate(binds)]}


EDGE: Final[list[object]] = [{"name": "edge"}]
#: What does not go together, and `amqpgate check --values` sees as well.
APART: Final[list[tuple[Values, str]]] = [
    (
        {"tcpRoutes": [{"port": "amqp", "parentRefs": EDGE}, {"port": "amqp", "parentRefs": EDGE}]},
        "port amqp has a route already; put both Gateways into the parentRefs of tcpRoutes[0]",
    ),
    (
        {
            "mode": "injector",
            "injector": {"certManager": {"enabled": True}},
            "tcpRoutes": [{"port": "amqp", "parentRefs": EDGE}],
        },
        "lead to the Service of a gateway; with mode: injector there is none",
    ),
    (
        {"config": listeners("0.0.0.0:5672", "127.0.0.1:5672", "10.0.0.1:5672")},
        "config.listeners[2].bind: port 5672 is taken by config.listeners[0].bind",
    ),
    (
        {"config": listeners("127.0.0.1:5672", "0.0.0.0:5671", "127.0.0.1:5672")},
        "config.listeners[2].bind: port 5672 is taken by config.listeners[0].bind",
    ),
    (
        {"config": listeners("0.0.0.0:5672", "[::]:15681")},
        "config.admin.probes: port 15681 is taken by config.listeners[1].bind",
    ),
    (
        {"config": listeners("0.0.0.0:5672") | {"admin": {"probes": "0.0.0.0:5672"}}},
        "config.admin.probes: port 5672 is taken by config.listeners[0].bind",
    ),
    (
        {"config": listeners("0.0.0.0:15680") | {"admin": {"bind": "0.0.0.0:15680"}}},
        "config.admin.bind: port 15680 is taken by config.listeners[0].bind",
    ),
    (
        {"config": CONFIG | {"policies": "/x"}, "policies": {"a.yaml": "# none"}},
        "is another folder than the one with policies and existingPolicies; say either",
    ),
    (
        {"config": CONFIG | {"policies": "/x"}, "existingPolicies": "mine"},
        "is another folder than the one with policies and existingPolicies; say either",
    ),
]


@pytest.mark.parametrize(("values", "words"), APART)
def test_the_templates_refuse_what_is_asked_for_twice(values: Values, words: str) -> None:
    with pytest.raises(helm_python.HelmRenderError) as refused:
        render({"config": CONFIG} | values)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [
        {"config": listeners("0.0.0.0:5672", "127.0.0.1:5672", "[::1]:5672")},
        {"config": listeners("0.0.0.0:5672", "0.0.0.0:5671")},
        {"config": CONFIG | {"policies": "/etc/amqpgate/policies"}, "existingPolicies": "mine"},
        {"config": CONFIG | {"policies": "/x"}},
    ],
)
def test_what_goes_together_is_rendered(values: Values) -> None:
    assert render(values)


def test_the_service_has_each_port_once() -> None:
    values: Values = {
        "config": listeners("0.0.0.0:5672", "0.0.0.0:5673"),
        "service": {"ports": {"amqp-1": 5672}},
    }
    with pytest.raises(helm_python.HelmRenderError, match="ports: 5672 is the port of amqp and of amqp-1"):
        render(values)


@pytest.mark.parametrize("path", NEVER_NULL)
def test_an_empty_key_is_named(path: str) -> None:
    """Else templates fail with words of Go."""
    values: object = None
    for step in reversed(path.split(".")):
        values = {step: values}
    assert isinstance(values, dict)
    with pytest.raises(helm_python.HelmValuesError) as refused:
        render({"config": CONFIG} | values)
    assert f"missing property '{path.rpartition('.')[2]}'" in str(refused.value)


def test_other_empty_keys_are_their_defaults() -> None:
    """Or their absence: no template looks into them."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    nothing = {key for key, value in defaults.items() if value is not None} - {"mode", *NEVER_NULL}
    assert {"config", "policies", "resources"} <= nothing
    rendered = render(dict.fromkeys(sorted(nothing)), checked=False)
    assert documents(rendered)
    assert rendered["amqpgate/templates/configmap.yaml"] == render({})["amqpgate/templates/configmap.yaml"]


def test_passwords_in_clear_are_told() -> None:
    upstreams = [
        {"name": "a", "url": "amqp://gate:s3cret@rabbit/x"},
        {"name": "b", "host": "b", "user": "gate", "password": "s3cret"},
        {"name": "c", "url": "amqp://gate:${PASSWORD}@rabbit"},
        {"name": "d", "host": "b", "user": "gate", "passwordFile": "/etc/amqpgate/secrets/d/password"},
    ]
    config = {"upstreams": upstreams, "listeners": [{"name": "a", "bind": "0.0.0.0:5672", "upstream": "a"}]}
    notes = render({"config": config})["amqpgate/templates/NOTES.txt"]
    assert (
        "ConfigMap shop-amqpgate:\n  config.upstreams[0].url\n  config.upstreams[1].password\nSay " in notes
    )
    assert "s3cret" not in notes
    assert "In clear" not in render({"config": CONFIG})["amqpgate/templates/NOTES.txt"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"terminationGracePeriodSeconds": 39}, "drainTimeout and 10 s to write what is left are 40"),
        (
            {"terminationGracePeriodSeconds": 120, "config": CONFIG | {"limits": {"drainTimeout": "1m50s"}}},
            "terminationGracePeriodSeconds: 120 is too short",
        ),
        (
            {"config": CONFIG | {"limits": {"drainTimeout": "${TIME}"}}},
            "terminationGracePeriodSeconds: say it",
        ),
        ({"redis": {"enabled": True}}, "redis.existingSecret: name a Secret"),
        ({"config": CONFIG | {"sharedLimits": {"whenAway": "closed"}}}, "config.sharedLimits: say redis and"),
        (
            {"config": CONFIG | {"listeners": [{"name": "a", "bind": "[::1]:5672"}]}},
            "config.listeners: no other pod can reach any of them",
        ),
        (
            {"config": CONFIG | {"listeners": [{"name": "a", "bind": "${BIND}"}]}},
            "config.listeners: the address of 'a' must be written out",
        ),
        ({"autoscaling": {"enabled": True, "minReplicas": 11}}, "autoscaling.maxReplicas: 10 is less than"),
        ({"autoscaling": {"enabled": True, "connections": 0}}, "autoscaling: say what to go by"),
        (
            {"autoscaling": {"enabled": True, "keda": {"enabled": True}}},
            "autoscaling.keda.serverAddress: say where Prometheus answers",
        ),
        (
            {"autoscaling": {"enabled": True, "connections": 0, "keda": {"enabled": True}}},
            "autoscaling: say what to go by: connections",
        ),
        (
            {"autoscaling": {"enabled": True, "extraMetrics": [{"type": "Pods"}], "keda": {"enabled": True}}},
            "autoscaling.extraMetrics: are for an autoscaler without KEDA",
        ),
        (
            {"autoscaling": {"enabled": True, "minReplicas": 11, "keda": {"enabled": True}}},
            "autoscaling.maxReplicas: 10 is less than",
        ),
        (
            {"tcpRoutes": [{"port": "amqps", "parentRefs": [{"name": "edge"}]}]},
            "tcpRoutes: the Service has no port 'amqps'; it has amqp",
        ),
        (
            {"audit": {"enabled": True, "persistence": {"enabled": True, "accessModes": ["ReadWriteOnce"]}}},
            "audit.persistence.accessModes: ReadWriteOnce is for workload: StatefulSet",
        ),
        (
            {"mode": "sidecar", "audit": {"enabled": True, "persistence": {"enabled": True}}},
            "audit.persistence: is the gateway's",
        ),
        (
            {"customResources": {"enabled": True, "webhook": {"enabled": True}}},
            "customResources.webhook.existingSecret: name a Secret",
        ),
        (
            {"customResources": {"enabled": True, "webhook": {"enabled": True, "existingSecret": "tls"}}},
            "customResources.webhook.caBundle: the authority",
        ),
        ({"mode": "injector"}, "injector.existingSecret: name a Secret"),
        ({"mode": "injector", "injector": {"existingSecret": "tls"}}, "injector.caBundle: the authority"),
        (
            {"pipeline": {"kind": "SparkApplication", "table": {"persistence": {"enabled": True}}}},
            "pipeline.table.persistence.accessModes: executors write to it as well",
        ),
    ],
)
def test_the_templates_refuse_what_does_not_go_together(values: Values, words: str) -> None:
    values = {"config": CONFIG} | values
    if "audit" in values and values.get("mode") == "sidecar":
        with pytest.raises(helm_python.HelmRenderError) as refused:
            render({"amqpgate": values}, application=True)
    else:
        with pytest.raises(helm_python.HelmRenderError) as refused:
            render(values)
    assert words in str(refused.value)


def route(cluster: str, **more: object) -> Values:
    routes = [{"id": "a", "upstream": {"cluster": cluster, **more}}]
    return {
        "apiVersion": "amqpgate.io/v1alpha1",
        "kind": "RoutePolicy",
        "metadata": {"name": "a"},
        "spec": {"routes": routes},
    }


def test_all_unknown_upstreams_are_told_at_once_with_what_there_is() -> None:
    config: Values = {
        "upstreams": [*UPSTREAMS, {"name": "eu-1", "url": "amqp://eu"}],
        "listeners": [
            {"name": "a", "bind": "0.0.0.0:5672", "upstream": "rabit"},
            {"name": "b", "bind": "0.0.0.0:5673"},
        ],
    }
    policies: Values = {
        "a.yaml": route("eu-2", mirror={"cluster": "backup"}),
        "b.yaml": route("rabbit"),
        "c.yaml": "kind: RoutePolicy",
    }
    with pytest.raises(helm_python.HelmRenderError) as refused:
        render({"config": config, "policies": policies})
    there = "config.upstreams has rabbit, eu-1"
    for line in (
        "config.listeners[1]: say which upstream: there are rabbit, eu-1",
        f"config.listeners[0].upstream: no upstream is named 'rabit' (did you mean 'rabbit'?); {there}",
        "policies.a.yaml: spec.routes[0].upstream.cluster: no upstream is named 'eu-2'"
        f" (did you mean 'eu-1'?); {there}",
        f"policies.a.yaml: spec.routes[0].upstream.mirror.cluster: no upstream is named 'backup'; {there}",
    ):
        assert line in str(refused.value)
    assert "b.yaml" not in str(refused.value)
    # Policies that are not the chart's are not looked at, nor names that the environment has.
    listener = {"name": "a", "bind": "0.0.0.0:5672", "upstream": "${NAME}"}
    config["listeners"] = [listener]
    assert render({"config": config, "existingPolicies": "p", "policies": policies})


def test_an_application_cannot_include_a_gateway() -> None:
    with pytest.raises(helm_python.HelmRenderError, match="mode: sidecar is what an application's chart"):
        render({"amqpgate": {"mode": "gateway"}}, application=True)


def test_a_time_of_zero_is_a_time() -> None:
    text = render({"config": CONFIG | {"limits": {"drainTimeout": 0, "closeTimeout": "1s500ms"}}})
    workload = yaml.safe_load(text["amqpgate/templates/gateway/workload.yaml"])
    assert workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 17


def test_helm_finds_nothing_to_say() -> None:
    for values in ({}, {"config": CONFIG}):
        assert not helm_python.lint(CHART, values, strict=True)["messages"]
    with assembled(APPLICATION) as application:
        assert not helm_python.lint(application, {}, strict=True)["messages"]


def test_it_is_of_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__

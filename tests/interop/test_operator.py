"""The operator on a real API server: definitions, RBAC of the chart, statuses, the lease, hostile resources.

The server has neither controllers nor nodes, so what a gateway would mount is read from the ConfigMap.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
import trustme
import yaml

from amqpgate.policy import Source, build
from amqpgate.resources.definitions import definitions
from tests.support.kubernetes import OPERATOR, TENANT, RealApiServer, missing, real_api_server
from tests.support.ports import free_port, refuses
from tests.unit.chart.rendering import documents, render

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]

GROUP = "/apis/amqpgate.io/v1alpha1/namespaces"
ACCESS = f"{GROUP}/mq/accesspolicies"
MAP = "/api/v1/namespaces/mq/configmaps/shop-amqpgate-resources"
APPLY = "application/apply-patch+yaml"

VALUES: dict[str, object] = {
    # The oldest that the chart is for.
    "kubeVersion": "1.28.0",
    "config": {"upstreams": [{"name": "rabbit", "url": "amqp://rabbit"}]},
    "customResources": {
        "enabled": True,
        "install": False,
        "tenants": [{"namespace": "team-a", "subjects": [{"user": "a-*", "vhosts": ["a"]}]}],
    },
}
#: The chart asks for an authority; the test has another one.
WEBHOOK = {"enabled": True, "existingSecret": "tls", "caBundle": "-----BEGIN CERTIFICATE-----"}


@attrs.define
class World:
    """The server with what the chart makes, and an operator as its own account."""

    server: RealApiServer
    settings: Path
    ports: list[int]
    processes: list[subprocess.Popen[bytes]]

    def begin(self, **more: object) -> None:
        """One more operator."""
        port = free_port()
        text = yaml.safe_load(self.settings.read_text()) | {"bind": f"127.0.0.1:{port}"} | more
        own = self.settings.with_name(f"operator-{port}.yaml")
        own.write_text(yaml.safe_dump(text))
        log = self.settings.with_name(f"operator-{port}.log").open("wb")
        with log:
            self.processes.append(
                subprocess.Popen([sys.executable, "-m", "amqpgate", "operator", "-c", str(own)], stderr=log)
            )
        self.ports.append(port)

    def end(self, number: int = 0) -> None:
        """The operator with that number, by SIGTERM."""
        process = self.processes.pop(number)
        self.ports.pop(number)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    def logs(self) -> str:
        return "".join(path.read_text() for path in self.settings.parent.glob("operator-*.log"))

    def apply(self, policy: dict[str, Any], namespace: str = "mq", plural: str = "accesspolicies") -> int:
        """As `kubectl apply --server-side`."""
        path = f"{GROUP}/{namespace}/{plural}/{policy['metadata']['name']}?fieldManager=kubectl&force=true"
        return self.server.ask("PATCH", path, policy, kind=APPLY)[0]

    def files(self) -> dict[str, str]:
        status, found = self.server.ask("GET", MAP)
        return dict(found["data"]) if status == 200 else {}

    def told(self, name: str, namespace: str = "mq") -> dict[str, Any]:
        _, found = self.server.ask("GET", f"{GROUP}/{namespace}/accesspolicies/{name}")
        conditions = found.get("status", {}).get("conditions", [{}])
        return dict(found.get("status", {}), **conditions[0])


def until(holds: Callable[[], bool], what: Callable[[], object] = lambda: None) -> None:
    for _ in range(300):
        if holds():
            return
        time.sleep(0.2)
    raise AssertionError(what())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("kubernetes")
    with real_api_server(folder) as server:
        for namespace in ("mq", "team-a", "elsewhere"):
            assert server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})[0] == 201
        for one in definitions():
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            assert server.ask("POST", path, one)[0] == 201
        paths = {
            "Role": "rbac.authorization.k8s.io/v1/namespaces/{}/roles",
            "RoleBinding": "rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
            "Deployment": "apps/v1/namespaces/{}/deployments",
        }
        made = documents(render(VALUES))
        for one in made:
            if one["kind"] in paths:
                metadata = cast("dict[str, str]", one["metadata"])
                path = f"/apis/{paths[str(one['kind'])].format(metadata['namespace'])}"
                status, said = server.ask("POST", path, one)
                assert status == 201, said
        (text,) = (
            cast("dict[str, str]", one["data"])["operator.yaml"]
            for one in made
            if one["kind"] == "ConfigMap" and "operator.yaml" in cast("dict[str, str]", one["data"])
        )
        settings = yaml.safe_load(text) | {"namespace": "mq"}
        (folder / "operator-token").write_text(OPERATOR)
        settings["server"] = {
            "url": server.url,
            "tokenFile": str(folder / "operator-token"),
            "ca": str(server.ca),
        }
        (folder / "operator.yaml").write_text(yaml.safe_dump(settings))
        world = World(server, folder / "operator.yaml", [], [])
        for _ in range(60):
            if server.ask("GET", ACCESS)[0] == 200:
                break
            time.sleep(0.2)
        world.begin()
        try:
            until(lambda: bool(world.files()), world.logs)
            yield world
        finally:
            while world.processes:
                world.end()
        assert "admin-token" not in world.logs()
        assert "operator-token" not in world.logs().replace(str(folder), "")
        assert "Traceback" not in world.logs()


def access(name: str, user: str = "orders", **spec: Any) -> dict[str, Any]:
    rules = [{"id": "announce", "effect": "allow", "operations": ["basic.publish"], "exchange": "orders"}]
    return {
        "apiVersion": "amqpgate.io/v1alpha1",
        "kind": "AccessPolicy",
        "metadata": {"name": name},
        "spec": {"subjects": [{"user": user}], "rules": rules, **spec},
    }


def test_from_apply_to_the_folder_and_the_status(world: World) -> None:
    assert world.apply(access("orders")) in (200, 201)
    until(lambda: world.told("orders").get("status") == "True", world.logs)
    told = world.told("orders")
    assert (told["observedGeneration"], told["inForceGeneration"]) == (1, 1)
    assert "accesspolicy.mq.orders.yaml" in world.files()
    files = world.files()
    digest = build([Source(name, files[name].encode()) for name in sorted(files)]).digest
    _, found = world.server.ask("GET", MAP)
    assert found["metadata"]["annotations"]["amqpgate.io/digest"] == digest
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
    _, row = world.server.ask("GET", ACCESS)
    assert row["items"]


def test_a_wrong_key_is_kept_and_told_not_cut_out(world: World) -> None:
    world.apply(access("typo"))
    until(lambda: world.told("typo").get("status") == "True")
    wrong = access("typo")
    wrong["spec"]["rules"][0]["routingKy"] = "a"
    assert world.apply(wrong) == 200
    until(lambda: world.told("typo").get("status") == "False")
    told = world.told("typo")
    assert "spec.rules[0].routingKy: unknown key 'routingKy' (did you mean 'routingKey'?)" in told["message"]
    assert told["inForceGeneration"] == 1
    _, events = world.server.ask("GET", "/api/v1/namespaces/mq/events")
    until(lambda: any(one["reason"] == "Invalid" for one in _events(world)))
    assert events["kind"] == "EventList"


def _events(world: World) -> list[dict[str, Any]]:
    return list(world.server.ask("GET", "/api/v1/namespaces/mq/events")[1]["items"])


def test_the_server_refuses_what_the_definition_knows(world: World) -> None:
    assert world.apply(access("bad", mode="sometimes")) == 422
    bad = access("bad")
    bad["spec"]["rules"][0]["effect"] = "perhaps"
    assert world.apply(bad) == 422
    bad = access("bad")
    del bad["spec"]["subjects"]
    assert world.apply(bad) == 422


def test_its_role_allows_no_more_than_it_needs(world: World) -> None:
    ask = world.server.ask
    for method, path, body in (
        ("GET", "/api/v1/namespaces/mq/secrets", None),
        ("GET", "/api/v1/namespaces/mq/configmaps", None),
        ("GET", "/api/v1/namespaces/mq/configmaps/other", None),
        ("GET", f"{GROUP}/elsewhere/accesspolicies", None),
        ("GET", f"{GROUP}/team-a/routepolicies", None),
        ("POST", ACCESS, access("own")),
        ("DELETE", f"{ACCESS}/orders", None),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/mq/leases", None),
    ):
        assert ask(method, path, body, token=OPERATOR)[0] == 403, path
    assert ask("GET", ACCESS, token=TENANT)[0] == 403


def test_other_namespaces_are_bounded(world: World) -> None:
    good = access("orders")
    good["spec"]["subjects"] = [{"user": "a-web", "vhosts": ["a"]}]
    world.apply(good, "team-a")
    world.apply(access("everybody", "*"), "team-a")
    until(lambda: world.told("orders", "team-a").get("status") == "True", world.logs)
    until(lambda: world.told("everybody", "team-a").get("reason") == "OutOfBounds")
    assert "name: team-a/orders" in world.files()["accesspolicy.team-a.orders.yaml"]


def test_hostile_resources_hurt_nobody_else(world: World) -> None:
    deep = json.dumps(access("DEEP", rules=[], onDeny={"x": "LEVELS"})).replace('"LEVELS"', "%s")
    for name, levels in (("deep-a", 40), ("deep-b", 3000), ("deep-c", 9000)):
        text = deep.replace("DEEP", name) % ("[" * levels + "]" * levels)
        status, _ = world.server.ask("POST", ACCESS, raw=text.encode())
        assert status in (201, 400, 413, 422), status
        if status == 201:
            until(lambda name=name: _is_refused(world, name), world.logs)
    wide = access("wide", rules=[])
    wide["spec"]["onDeny"] = {"x": "y" * 900_000}
    assert world.server.ask("POST", ACCESS, wide)[0] == 201
    until(lambda: world.told("wide").get("reason") == "Invalid")
    odd = access("a.b-c.d" + ".e" * 100)
    assert world.server.ask("POST", ACCESS, odd)[0] == 201
    until(lambda: world.told(odd["metadata"]["name"]).get("status") == "True")
    world.apply(access("after"))
    until(lambda: world.told("after").get("status") == "True", world.logs)


def _is_refused(world: World, name: str) -> bool:
    """By a table, for its JSON is too deep to be read here, too."""
    _, told = world.server.ask("GET", f"{ACCESS}/{name}/status")
    text = told if isinstance(told, str) else json.dumps(told)
    return '"reason": "Invalid"' in text or '"reason":"Invalid"' in text


def test_hundreds_of_resources(world: World) -> None:
    for number in range(300):
        assert world.server.ask("POST", ACCESS, access(f"many-{number}", f"user-{number}"))[0] == 201
    until(lambda: sum(name.startswith("accesspolicy.mq.many-") for name in world.files()) == 300, world.logs)
    until(lambda: world.told("many-299").get("status") == "True")
    assert world.server.ask("DELETE", ACCESS)[0] == 200
    until(lambda: not any(".mq." in name for name in world.files()), world.logs)


def test_what_others_write_into_the_configmap_goes(world: World) -> None:
    before = world.files()
    patch = {"data": {"open.yaml": "# everything"}}
    assert world.server.ask("PATCH", MAP, patch, kind="application/merge-patch+json")[0] == 200
    until(lambda: world.files() == before)
    assert world.server.ask("DELETE", MAP)[0] == 200
    until(lambda: world.files() == before, world.logs)


def test_one_of_two_works_and_the_other_takes_over(world: World) -> None:
    world.begin()
    until(lambda: "not yet" not in _probe(world.ports[1], "readyz"))
    assert "amqpgate_operator_leading 0.0" in _probe(world.ports[1], "metrics")
    assert "amqpgate_operator_leading 1.0" in _probe(world.ports[0], "metrics")
    world.end()
    world.apply(access("late"))
    until(lambda: world.told("late").get("status") == "True", world.logs)
    assert "amqpgate_operator_leading 1.0" in _probe(world.ports[0], "metrics")


def _probe(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return "not yet"


def test_the_webhook_refuses_what_is_wrong_and_warns(world: World, tmp_path: Path) -> None:
    port, ca = free_port(), trustme.CA()
    leaf = ca.issue_cert("127.0.0.1")
    leaf.private_key_pem.write_to_path(tmp_path / "tls.key")
    leaf.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    tls = {"cert": str(tmp_path / "tls.crt"), "key": str(tmp_path / "tls.key")}
    values = VALUES | {"customResources": cast("Any", VALUES["customResources"]) | {"webhook": WEBHOOK}}
    (made,) = (one for one in documents(render(values)) if one["kind"] == "ValidatingWebhookConfiguration")
    # As the chart has it, but for the Service, which nobody leads to here.
    (hook,) = cast("list[dict[str, Any]]", made["webhooks"])
    bundle = base64.b64encode(ca.cert_pem.bytes()).decode()
    hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}/validate", "caBundle": bundle}
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    status, said = world.server.ask("POST", path, made)
    assert status == 201, said
    name = cast("dict[str, str]", made["metadata"])["name"]
    try:
        # None answers yet, and the failure policy is Ignore.
        assert world.apply(access("early", mod="enforce")) == 201
        world.begin(webhook={"bind": f"127.0.0.1:{port}", "tls": tls})
        # Not by trying: what is stored already, and is not changed, passes.
        until(lambda: not refuses(port), world.logs)
        wrong = access("refused", mod="enforce")
        status, said = world.server.ask("POST", ACCESS, wrong)
        assert status in (403, 422)
        assert "spec.mod: unknown key 'mod' (did you mean 'mode'?)" in said["message"]
        assert 'admission webhook "policies.amqpgate.io" denied the request' in said["message"]
        assert world.apply(access("stored")) == 201
        until(lambda: world.told("stored").get("status") == "True", world.logs)
        # What was stored before can be labelled and removed, and is told in its status.
        until(lambda: world.told("early").get("reason") == "Invalid", world.logs)
        label = {"metadata": {"labels": {"a": "b"}}}
        patched = world.server.ask("PATCH", f"{ACCESS}/early", label, kind="application/merge-patch+json")
        assert patched[0] == 200
        assert world.server.ask("DELETE", f"{ACCESS}/early")[0] == 200
        world.end(-1)
        assert world.apply(wrong) == 201
    finally:
        world.server.ask("DELETE", f"{path}/{name}")
    world.server.ask("DELETE", f"{ACCESS}/refused")

"""What the charts render, strictly validated and admitted by a real API server that stores none of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from amqpgate.resources.definitions import definitions
from tests.support.kubernetes import RealApiServer, missing, real_api_server
from tests.unit.chart.rendering import CASES, at_version, documents, is_application, render, values_of

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]

#: Whose definitions are not ours and are not there.
FOREIGN = {
    "monitoring.coreos.com",
    "keda.sh",
    "cert-manager.io",
    "gateway.networking.k8s.io",
    "sparkoperator.k8s.io",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApiServer]:
    with real_api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        for namespace in ("mq", "shop", "billing"):
            assert server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})[0] == 201
        # A pod that names a class which is not there is not admitted.
        priority = {"metadata": {"name": "messaging"}, "value": 1}
        assert server.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority)[0] == 201
        yield server


def version(server: RealApiServer) -> str:
    said = server.ask("GET", "/version")[1]
    return f"{said['major']}.{said['minor'].rstrip('+')}.0"


def refusal(server: RealApiServer, document: dict[str, Any]) -> str | None:
    """What the server says against it, if anything."""
    group, _, name = document["apiVersion"].rpartition("/")
    root = f"/apis/{document['apiVersion']}" if group else f"/api/{name}"
    status, listed = server.ask("GET", root)
    if status != 200:
        return f"no {document['apiVersion']}"
    (found,) = (
        one for one in listed["resources"] if one["kind"] == document["kind"] and "/" not in one["name"]
    )
    metadata = document["metadata"]
    place = f"/namespaces/{metadata.get('namespace', 'mq')}" if found["namespaced"] else ""
    path = f"{root}{place}/{found['name']}?dryRun=All&fieldValidation=Strict"
    status, said = server.ask("POST", path, document)
    return None if status == 201 else f"{document['kind']} {metadata['name']}: {said.get('message', said)}"


@pytest.mark.parametrize("case", CASES)
def test_what_the_charts_render_is_admitted(case: str, server: RealApiServer) -> None:
    values = at_version(case, values_of(case), version(server))
    made = cast("list[dict[str, Any]]", documents(render(values, application=is_application(case))))
    ours = [one for one in made if one["apiVersion"].partition("/")[0] not in FOREIGN]
    assert ours
    assert [said for one in ours if (said := refusal(server, one))] == []


def test_an_unknown_field_is_seen(server: RealApiServer) -> None:
    wrong = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "dat": {}}
    assert "dat" in str(refusal(server, wrong))


@pytest.mark.parametrize("definition", definitions(), ids=lambda one: one["spec"]["names"]["plural"])
def test_definitions_are_admitted(definition: dict[str, Any], server: RealApiServer) -> None:
    assert refusal(server, definition) is None

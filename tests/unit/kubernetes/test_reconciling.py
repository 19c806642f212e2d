"""The operator on the stand-in of an API server: what gets in force, what is told, what goes wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from starlette.responses import PlainTextResponse, Response

from amqpgate.kubernetes import reconciling
from amqpgate.kubernetes.api import Api
from amqpgate.kubernetes.serving import OperatorProcess
from amqpgate.kubernetes.shelf import Shelf
from amqpgate.policy import Source, build
from amqpgate.resources.settings import parse
from tests.support.api_server import ApiServer, Thing, api_server

MAPS = "/api/v1/namespaces/mq/configmaps"
EVENTS = "/api/v1/namespaces/mq/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/mq/leases"
NAME = "amqpgate-policies"


def at(plural: str, namespace: str = "mq") -> str:
    """Where resources are."""
    return f"/apis/amqpgate.io/v1alpha1/namespaces/{namespace}/{plural}"


ACCESS = at("accesspolicies")


def access(name: str, user: str = "orders", **spec: Any) -> Thing:
    """A policy that lets somebody publish."""
    rules = [{"id": "announce", "effect": "allow", "operations": ["basic.publish"], "exchange": "orders"}]
    return {
        "apiVersion": "amqpgate.io/v1alpha1",
        "kind": "AccessPolicy",
        "metadata": {"name": name},
        "spec": {"subjects": [{"user": user}], "rules": rules, **spec},
    }


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciling, "SETTLING", 0.02)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with api_server() as server:
        yield server


@asynccontextmanager
async def operator(server: ApiServer, more: str = "") -> AsyncIterator[OperatorProcess]:
    """One that runs."""
    settings = parse(f"namespace: mq\nserver: {{url: '{server.url}'}}\n{more}", {})
    process = OperatorProcess.of(settings, {})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.run)
        yield process
        nursery.cancel_scope.cancel()


def files(server: ApiServer) -> dict[str, str]:
    """What gateways would mount."""
    found = server.stored.get(MAPS, {}).get(NAME)
    data: dict[str, str] = {} if found is None else found["data"]
    if data:
        build([Source(name, data[name].encode()) for name in sorted(data)])
    return data


def condition(server: ApiServer, collection: str, name: str) -> Thing:
    """What was told of a resource; empty where nothing was."""
    conditions = server.get(collection, name).get("status", {}).get("conditions", [{}])
    found: Thing = conditions[0]
    return found


def is_told(server: ApiServer, collection: str, name: str, answer: str) -> bool:
    return condition(server, collection, name).get("status") == answer


async def test_from_a_resource_to_a_folder_and_back_to_its_status(server: ApiServer) -> None:
    await server.put(ACCESS, access("orders"))
    async with operator(server) as process:
        await server.until(lambda: is_told(server, ACCESS, "orders", "True"))
        assert list(files(server)) == ["accesspolicy.mq.orders.yaml"]
        status = server.get(ACCESS, "orders")["status"]
        assert (status["observedGeneration"], status["inForceGeneration"]) == (1, 1)
        assert len(status["digest"]) == 16
        assert process.is_ready
        # The digest is the one that a gateway tells of the folder.
        made = build([Source(name, text.encode()) for name, text in files(server).items()])
        written = server.get(MAPS, NAME)["metadata"]
        assert written["annotations"]["amqpgate.io/digest"] == made.digest
        assert written["labels"]["app.kubernetes.io/managed-by"] == "amqpgate-operator"
        assert "amqpgate_operator_resources{" in process.metrics.text().decode()

        await server.delete(ACCESS, "orders")
        await server.until(lambda: list(files(server)) == ["none.yaml"])


async def test_an_event_is_told_though_the_watch_tells_of_the_status_before_the_answer_comes(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = trio.Event()
    take, patch = Shelf.take, Api.patch

    async def taken(shelf: Shelf, resource: Thing) -> None:
        await take(shelf, resource)
        if "status" in resource:
            heard.set()

    async def answered_late(api: Api, path: str, *args: Any, **query: Any) -> Thing:
        told = await patch(api, path, *args, **query)
        if path.endswith("/status"):
            await heard.wait()
        return told

    monkeypatch.setattr(Shelf, "take", taken)
    monkeypatch.setattr(Api, "patch", answered_late)
    await server.put(ACCESS, access("orders", efect="deny"))
    async with operator(server):
        await server.until(
            lambda: [one["reason"] for one in server.stored.get(EVENTS, {}).values()] == ["Invalid"]
        )


async def test_an_invalid_version_changes_nothing_and_is_told_why(server: ApiServer) -> None:
    await server.put(ACCESS, access("orders"))
    await server.put(ACCESS, access("others", "others"))
    async with operator(server):
        await server.until(lambda: len(files(server)) == 2)
        before = files(server)
        wrong = access("orders")
        wrong["spec"]["rules"][0] |= {"efect": "deny", "exchange": {"prefx": "a"}}
        await server.put(ACCESS, wrong)
        await server.until(lambda: is_told(server, ACCESS, "orders", "False"))
        told = condition(server, ACCESS, "orders")
        assert told["reason"] == "Invalid"
        assert "spec.rules[0].efect: unknown key 'efect' (did you mean 'effect'?)" in told["message"]
        assert "spec.rules[0].exchange.prefx: unknown key" in told["message"]
        assert "generation 1 stays in force" in told["message"]
        status = server.get(ACCESS, "orders")["status"]
        assert (status["observedGeneration"], status["inForceGeneration"]) == (2, 1)
        # The other one goes on.
        await server.put(ACCESS, access("others", "else"))
        await server.until(lambda: "user: else" in files(server)["accesspolicy.mq.others.yaml"])
        assert files(server)["accesspolicy.mq.orders.yaml"] == before["accesspolicy.mq.orders.yaml"]
        await server.until(lambda: "Invalid" in [one["reason"] for one in server.stored[EVENTS].values()])
        event = next(one for one in server.stored[EVENTS].values() if one["reason"] == "Invalid")
        assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "orders")
    # Nor does an operator that begins anew take it away.
    async with operator(server):
        await server.put(ACCESS, access("third"))
        await server.until(lambda: len(files(server)) == 3)
        assert files(server)["accesspolicy.mq.orders.yaml"] == before["accesspolicy.mq.orders.yaml"]


async def test_gateways_do_not_begin_with_a_part_of_what_there_is(server: ApiServer) -> None:
    await server.put(ACCESS, access("orders"))
    server.instead["accesspolicies?limit"] = "hang"
    async with operator(server):
        await server.until(lambda: sum("policies" in path for _, path in server.asked) >= 7)
        await trio.sleep(0.5)
        assert MAPS not in server.stored
    server.instead.clear()
    async with operator(server):
        await server.until(lambda: bool(files(server)))
        assert list(files(server)) == ["accesspolicy.mq.orders.yaml"]


async def test_what_was_never_valid_is_not_in_force(server: ApiServer) -> None:
    await server.put(ACCESS, access("orders", rules="none"))
    async with operator(server):
        await server.until(lambda: is_told(server, ACCESS, "orders", "False"))
        assert "nothing of it is in force" in condition(server, ACCESS, "orders")["message"]
        assert list(files(server)) == ["none.yaml"]
        assert server.get(ACCESS, "orders")["status"].get("digest") is None
        await server.put(ACCESS, access("orders"))
        await server.until(lambda: is_told(server, ACCESS, "orders", "True"))


@pytest.mark.parametrize("compact", [False, True])
async def test_watches_that_break_and_versions_that_are_gone(server: ApiServer, compact: bool) -> None:
    async with operator(server):
        await server.put(ACCESS, access("first"))
        await server.until(lambda: "accesspolicy.mq.first.yaml" in files(server))
        await server.bookmark()
        await server.break_watches(compact=compact)
        await server.put(ACCESS, access("second"))
        await server.delete(ACCESS, "first")
        await server.until(lambda: list(files(server)) == ["accesspolicy.mq.second.yaml"])


TERRIBLE: dict[str, Response | str] = {
    "hangs": "hang",
    "no json": PlainTextResponse("<html>502</html>"),
    "deep": PlainTextResponse("[" * 100_000),
    "an empty object": PlainTextResponse("{}"),
    "null items": PlainTextResponse(
        '{"kind":"AccessPolicyList","metadata":{"resourceVersion":"1"},"items":null}'
    ),
    "no crd": PlainTextResponse('{"kind":"Status","reason":"NotFound"}', 404),
    "forbidden": PlainTextResponse('{"kind":"Status","reason":"Forbidden"}', 403),
    "failing": PlainTextResponse("", 500),
}


@pytest.mark.parametrize("how", TERRIBLE)
async def test_a_server_that_does_not_list_takes_nothing_away(server: ApiServer, how: str) -> None:
    await server.put(ACCESS, access("orders"))
    rates = at("ratepolicies")
    async with operator(server):
        await server.until(lambda: len(files(server)) == 1)
    server.instead["mq/accesspolicies?"] = TERRIBLE[how]
    async with operator(server) as process:
        # Other kinds go on meanwhile.
        limit = {"id": "slow", "messages": "10/s"}
        spec = {"subjects": [{"user": "a"}], "limits": [limit]}
        await server.put(rates, {"kind": "RatePolicy", "metadata": {"name": "slow"}, "spec": spec})
        await server.until(lambda: is_told(server, rates, "slow", "True"))
        assert sorted(files(server)) == ["accesspolicy.mq.orders.yaml", "ratepolicy.mq.slow.yaml"]
        assert not process.is_ready
        server.instead.clear()


async def test_one_resource_that_cannot_be_read_does_not_hide_the_others(server: ApiServer) -> None:
    for number in range(5):
        await server.put(ACCESS, access(f"policy-{number}"))
    deep = access("policy-2b")
    deep["metadata"]["annotations"] = {"test/deep": "5000"}
    deep["spec"]["rules"] = "DEEP"
    await server.put(ACCESS, deep)
    async with operator(server):
        await server.until(lambda: len(files(server)) == 5)
        await server.until(lambda: is_told(server, ACCESS, "policy-2b", "False"))
        assert "nested too deeply" in condition(server, ACCESS, "policy-2b")["message"]
        # Nor when it comes by a watch.
        deep["metadata"]["name"] = "policy-9"
        await server.put(ACCESS, deep)
        await server.put(ACCESS, access("policy-8"))
        await server.until(lambda: len(files(server)) == 6)


HALF = "\ud800"
BEYOND_UTF_8 = {
    "a value": (access("bad", user=f"a{HALF}"), "spec.subjects[0].user"),
    "a key": (access("bad", **{f"{HALF}k": 1}), "spec"),
    "an id": (access("bad", rules=[{"id": HALF, "effect": HALF}]), "spec.rules[0].id"),
}


@pytest.mark.parametrize("where", BEYOND_UTF_8)
async def test_what_cannot_be_utf_8_is_refused_and_stops_nobody(server: ApiServer, where: str) -> None:
    bad, path = BEYOND_UTF_8[where]
    await server.put(ACCESS, bad)
    async with operator(server):
        await server.until(lambda: is_told(server, ACCESS, "bad", "False"))
        told = condition(server, ACCESS, "bad")["message"]
        assert f"{path}: there is text that is no Unicode, half of a surrogate pair\n" in told
        # Nor when it comes by a watch; what is quoted of it goes as far as it can.
        odd = {**bad, "metadata": {"name": "odd"}}
        await server.put(ACCESS, odd)
        server.get(ACCESS, "odd")["metadata"]["uid"] = HALF
        await server._store("MODIFIED", ACCESS, server.get(ACCESS, "odd"))
        await server.until(lambda: is_told(server, ACCESS, "odd", "False"))
        await server.put(ACCESS, access("after"))
        await server.until(lambda: is_told(server, ACCESS, "after", "True"))
        assert list(files(server)) == ["accesspolicy.mq.after.yaml"]


@pytest.mark.parametrize("name", ["../../etc/x", "..", "A b\n", "a/status", "", HALF, "x" * 254])
async def test_what_is_no_name_becomes_no_part_of_paths(
    server: ApiServer, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    await server.put(ACCESS, access(name))
    deep = access(f"{name}/deep".encode("ascii", "replace").decode())
    deep["metadata"]["annotations"] = {"test/deep": "5000"}
    deep["spec"]["rules"] = "DEEP"
    await server.put(ACCESS, deep)
    async with operator(server):
        await server.until(lambda: bool(files(server)))
        await server.put(ACCESS, access(name, "others"))
        await server.put(ACCESS, access("after"))
        await server.until(lambda: is_told(server, ACCESS, "after", "True"))
        await server.delete(ACCESS, name)
        await server.put(ACCESS, access("last"))
        await server.until(lambda: is_told(server, ACCESS, "last", "True"))
    assert list(files(server)) == ["accesspolicy.mq.after.yaml", "accesspolicy.mq.last.yaml"]
    paths = {path for method, path in server.asked if method == "PATCH"}
    assert paths == {f"{MAPS}/{NAME}", f"{ACCESS}/after/status", f"{ACCESS}/last/status"}
    assert f"{ACCESS}: {name[:63]!a} is not read: the name of an object has a-z" in caplog.text


async def test_what_others_do_to_the_configmap_is_undone(server: ApiServer) -> None:
    await server.put(ACCESS, access("orders"))
    async with operator(server):
        await server.until(lambda: len(files(server)) == 1)
        mine = dict(files(server))
        theirs = json.loads(json.dumps(server.get(MAPS, NAME)))
        theirs["data"] = {"accesspolicy.mq.orders.yaml": "# nothing", "open.yaml": "# everything"}
        await server._store("MODIFIED", MAPS, theirs)
        await server.until(lambda: files(server) == mine)
        await server.delete(MAPS, NAME)
        await server.until(lambda: files(server) == mine)


TENANTS = """
tenants:
- {namespace: team-a, subjects: [{user: "a-*", vhosts: [a]}]}
"""


async def test_other_namespaces_write_for_their_own_users_only(server: ApiServer) -> None:
    theirs = at("accesspolicies", "team-a")
    good = access("orders")
    good["spec"]["subjects"] = [{"user": "a-web", "vhosts": ["a"]}]
    await server.put(theirs, good)
    await server.put(ACCESS, access("orders"))
    for name, subject in {
        "everybody": {"user": "*"},
        "beside": {"user": "a-web"},
        "another": {"user": "b-web", "vhosts": ["a"]},
        "group": {"groups": ["admins"], "vhosts": ["a"]},
    }.items():
        bad = access(name)
        bad["spec"]["subjects"] = [*good["spec"]["subjects"], subject]
        await server.put(theirs, bad)
    async with operator(server, TENANTS):
        for name in ("everybody", "beside", "another", "group"):
            await server.until(lambda name=name: is_told(server, theirs, name, "False"))
            told = condition(server, theirs, name)
            assert told["reason"] == "OutOfBounds"
            assert "spec.subjects[1]" in told["message"]
        # Two of one name are two policies.
        assert sorted(files(server)) == ["accesspolicy.mq.orders.yaml", "accesspolicy.team-a.orders.yaml"]
        assert "name: team-a/orders" in files(server)["accesspolicy.team-a.orders.yaml"]
        # Groups and routes of other namespaces are not even looked at.
        lists = {path for method, path in server.asked if method == "GET" and "/team-a/" in path}
        assert lists == {theirs, at("ratepolicies", "team-a")}
    # Who may no longer write has nothing in force any more.
    async with operator(server):
        await server.until(lambda: list(files(server)) == ["accesspolicy.mq.orders.yaml"])


async def test_two_routes_of_one_id_are_not_both_in_force(server: ApiServer) -> None:
    routes = at("routepolicies")

    def route(name: str, *ids: str) -> Thing:
        made = [{"id": one, "match": {"user": "a"}, "upstream": {"cluster": "rabbit"}} for one in ids]
        return {"kind": "RoutePolicy", "metadata": {"name": name}, "spec": {"routes": made}}

    async with operator(server, "gateway: {upstreams: [rabbit]}\n"):
        await server.put(routes, route("zulu", "one"))
        await server.until(lambda: is_told(server, routes, "zulu", "True"))
        for number in range(8):
            await server.put(routes, route(f"alpha-{number}", "one" if number == 5 else f"r{number}"))
        await server.until(lambda: is_told(server, routes, "alpha-5", "False"))
        # Who came first stays; all the others are there.
        assert condition(server, routes, "alpha-5")["reason"] == "Conflict"
        await server.until(lambda: len(files(server)) == 8)
        unknown = route("far", "far")
        unknown["spec"]["routes"][0]["upstream"]["cluster"] = "rabit"
        await server.put(routes, unknown)
        await server.until(lambda: is_told(server, routes, "far", "False"))
        assert "no upstream 'rabit' (did you mean 'rabbit'?)" in condition(server, routes, "far")["message"]
        file = route("file", "file")
        file["spec"]["routes"][0]["upstream"] |= {"user": "a", "passwordFile": "/etc/hostname"}
        await server.put(routes, file)
        await server.until(lambda: is_told(server, routes, "file", "False"))
        assert "names no files" in condition(server, routes, "file")["message"]


async def test_a_resource_that_flaps_is_written_and_told_now_and_then(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "SETTLING", 0.3)
    async with operator(server):
        for number in range(200):
            await server.put(ACCESS, access("flap", rules="none") if number % 2 else access("flap"))
            await trio.sleep(0.005)
        await server.put(ACCESS, access("flap", "last"))
        await server.until(lambda: "user: last" in files(server).get("accesspolicy.mq.flap.yaml", ""))
        patches = [path for method, path in server.asked if method == "PATCH"]
        assert len(patches) < 60
        assert len(server.stored[EVENTS]) <= 40


async def test_of_two_operators_one_works_and_the_other_takes_over(server: ApiServer) -> None:
    async with operator(server) as first, trio.open_nursery() as nursery:
        await server.until(lambda: first._working is not None)
        settings = parse(f"namespace: mq\nserver: {{url: '{server.url}'}}", {})
        second = OperatorProcess.of(settings, {})
        second.identity = "second"
        nursery.start_soon(second.run)
        await server.until(lambda: ("GET", f"{LEASES}/amqpgate-operator") in server.asked[-5:])
        assert second._working is None
        assert second.is_ready
        # Another one has it: the first stops.
        lease = json.loads(json.dumps(server.get(LEASES, "amqpgate-operator")))
        lease["spec"] |= {"holderIdentity": "second", "leaseTransitions": 7}
        await server._store("MODIFIED", LEASES, lease)
        await server.until(lambda: first._working is None and second._working is not None)
        nursery.cancel_scope.cancel()
    # Who ends lets go of it.
    assert server.get(LEASES, "amqpgate-operator")["spec"]["holderIdentity"] == ""


async def test_a_token_is_shown_read_anew_and_told_to_nobody(
    server: ApiServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret-one\n")
    server.tokens = {"s3cret-two"}
    async with _with_token(server, token):
        await trio.sleep(0.3)
        assert not server.stored
        token.write_text("s3cret-two\n")
        await server.put(ACCESS, access("orders"))
        await server.until(lambda: len(files(server)) == 1)
        token.write_text("s3cret\nHost: evil")
        await trio.sleep(0.1)
    assert "s3cret" not in caplog.text + "".join(capfd.readouterr())
    assert "Unauthorized" in caplog.text


@asynccontextmanager
async def _with_token(server: ApiServer, token: Path) -> AsyncIterator[None]:
    settings = parse(f"namespace: mq\nserver: {{url: '{server.url}', tokenFile: '{token}'}}", {})
    process = OperatorProcess.of(settings, {})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.run)
        yield
        nursery.cancel_scope.cancel()

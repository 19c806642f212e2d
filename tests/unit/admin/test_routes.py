"""Routes in the admin window; what pausing does to connections is in tests/interop/test_gateway_pause.py."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import trio

from amqpgate.admin.http import serve_admin
from amqpgate.app.wiring import build
from amqpgate.config import Settings, parse
from amqpgate.operator.single import SingleGateway
from amqpgate.telemetry.answers import NOTHING, Answers, Args

from .test_http import SETTINGS, Window

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: p}
spec:
  routes:
  - {id: one, match: {user: bob}, upstream: {cluster: broker}, paused: true}
  - {id: two.2, upstream: {cluster: broker}}
"""


def settings(folder: Path, token: str | None) -> Settings:
    extra = ""
    if token is not None:
        (folder / "token").write_text(token)
        extra = ", tokenFile: token"
    (folder / "policies").mkdir()
    (folder / "policies" / "routes.yaml").write_text(POLICY)
    return parse(SETTINGS % extra + "policies: policies\n", {}, file=str(folder / "amqpgate.yaml"))


async def window(chosen: Settings, nursery: trio.Nursery, subject: object = None) -> Window:
    gateway = build(chosen)

    async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
        assert chosen.admin is not None
        await serve_admin(
            chosen.admin,
            subject or SingleGateway(gateway),  # type: ignore[arg-type]
            shutdown=trio.sleep_forever,
            task_status=task_status,
        )

    (address,) = await nursery.start(serve)
    return Window(gateway, address)


async def paused(it: Window) -> dict[str, bool]:
    status, text, _ = await it.get("/routes", token="Bearer t")
    assert status == 200
    return {route["id"]: route["paused"] for route in json.loads(text)["routes"]}


async def test_pause_and_resume(tmp_path: Path, nursery: trio.Nursery) -> None:
    it = await window(settings(tmp_path, "t"), nursery)
    assert await paused(it) == {"one": True, "two.2": False}
    assert await it.get("/routes/one/resume", token="Bearer t", method="POST") is not None
    assert (await it.get("/routes/two.2/pause", token="Bearer t", method="POST"))[:2] == (200, "paused\n")
    assert await paused(it) == {"one": False, "two.2": True}
    for path, status in (("/routes/none/pause", 404), ("/routes/one/stop", 404), ("/routes/one", 404)):
        assert (await it.get(path, token="Bearer t", method="POST"))[0] == status
    _, text, _ = await it.get("/routes/two.1/pause", token="Bearer t", method="POST")
    assert text == "there is no route of that name (did you mean 'two.2'?)\n"
    assert (await it.get("/routes/one/pause", token="Bearer t"))[0] == 405
    assert (await it.get("/routes/one/pause", method="POST"))[0] == 401
    assert await paused(it) == {"one": False, "two.2": True}


async def test_what_an_operator_said_holds_over_a_reload(tmp_path: Path, nursery: trio.Nursery) -> None:
    it = await window(settings(tmp_path, "t"), nursery)
    await it.get("/routes/one/resume", token="Bearer t", method="POST")
    it.gateway.use(it.gateway.policies)
    assert await paused(it) == {"one": False, "two.2": False}
    # The document comes to say the same; from then on it is the document that speaks.
    (policy,) = it.gateway.policies.routes
    one, two = policy.spec.routes
    opened = attrs.evolve(policy.spec, routes=(attrs.evolve(one, paused=False), two))
    it.gateway.use(attrs.evolve(it.gateway.policies, documents=(attrs.evolve(policy, spec=opened),)))
    it.gateway.use(attrs.evolve(it.gateway.policies, documents=(policy,)))
    assert await paused(it) == {"one": True, "two.2": False}


async def test_without_a_token_nobody_pauses(tmp_path: Path, nursery: trio.Nursery) -> None:
    """Any page in a browser of this machine can post to loopback."""
    it = await window(settings(tmp_path, None), nursery)
    status, text, _ = await it.get("/routes/two.2/pause", method="POST", x_amqpgate="1")
    assert (status, "admin.tokenFile" in text) == (403, True)
    assert await paused(it) == {"one": True, "two.2": False}


class _Workers:
    """As a supervisor is one of whose workers hangs."""

    ready = started = True

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        return Answers({0: [{"id": "one", "paused": True, "waiting": 0}]}, (1,))


async def test_an_order_that_not_all_have_heard_is_no_success(tmp_path: Path, nursery: trio.Nursery) -> None:
    it = await window(settings(tmp_path, "t"), nursery, _Workers())
    status, text, _ = await it.get("/routes/one/pause", token="Bearer t", method="POST")
    assert (status, text) == (503, "not every worker has answered in time; ask again\n")

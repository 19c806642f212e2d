"""What the settings must have for a mirror, and which sessions share one."""

from __future__ import annotations

import pytest
import trio
from prometheus_client import CollectorRegistry

from amqpgate.config import Upstream, parse
from amqpgate.errors import ConfigError
from amqpgate.gateway.observers.mirror import dial
from amqpgate.gateway.observers.mirror.registry import MirrorRegistry
from amqpgate.gateway.observers.mirror.session import Feed
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.router import Router, check_routes
from amqpgate.policy import Choice, PolicySet, Principal, Source, build
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.telemetry.upstreams import UpstreamMetrics

SETTINGS = """
listeners: [{name: main, bind: '127.0.0.1:0', upstream: a}]
upstreams:
- {name: a, host: a}
- {name: b, host: b, user: u, password: p}
- {name: c, host: c, vhost: there}
"""
HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\nspec:\n  routes:\n"
LOGIN = "user: x, passwordEnv: P"


def policies(*upstreams: str) -> PolicySet:
    lines = [f"  - {{id: r{index}, upstream: {{{one}}}}}\n" for index, one in enumerate(upstreams)]
    return build([Source("p.yaml", (HEAD + "".join(lines)).encode())])


@pytest.mark.parametrize(
    ("upstream", "words"),
    [
        (
            "cluster: a, mirror: {cluster: d}",
            "no upstream is named 'd' in the settings, which is to be the mirror",
        ),
        (
            "cluster: a, mirror: {cluster: c}",
            "needs a login of its own, for the clients' passwords are not kept",
        ),
        ("cluster: a, mirror: {cluster: a, user: x, passwordEnv: P}", "would get messages twice"),
        (
            "clusters: [{cluster: c}, {cluster: a}], mirror: {cluster: a, " + LOGIN + "}",
            "would get messages twice",
        ),
        ("cluster: a, vhost: v, mirror: {cluster: a, vhost: v, " + LOGIN + "}", "would get messages twice"),
        (
            "cluster: a, mirror: {cluster: c, user: x, passwordEnv: NONE}",
            "mirror: the environment variable NONE",
        ),
    ],
)
def test_refused_mirrors(upstream: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        check_routes(parse(SETTINGS, {}), policies(upstream), {"P": "secret"})
    assert "RoutePolicy 'p', route 'r0'" in str(refused.value)


@pytest.mark.parametrize(
    "upstream",
    [
        "cluster: a, mirror: {cluster: b}",
        "cluster: a, mirror: {cluster: c, " + LOGIN + "}",
        "cluster: a, mirror: {cluster: a, vhost: other, " + LOGIN + "}",
    ],
)
def test_mirrors_that_are_well(upstream: str) -> None:
    check_routes(parse(SETTINGS, {}), policies(upstream), {"P": "secret"})


class Stand:
    """The mirrors of a gateway that does not run."""

    def __init__(self, *upstreams: str) -> None:
        registry = CollectorRegistry()
        routing = Router(parse(SETTINGS, {}), TlsContexts(), UpstreamMetrics(registry))
        self.mirrors = MirrorRegistry(routing, "1", MirrorMetrics(registry))
        self.use(*upstreams)

    def use(self, *upstreams: str) -> None:
        self.mirrors.routing.use(policies(*upstreams))

    def feed(self, route: str = "r0", *, cluster: str = "a", vhost: str = "/") -> Feed | None:
        routes = {one.id: one for _, one in self.mirrors.routing.table.routes}
        return self.mirrors.feed(Choice("p", routes[route], cluster), Principal("bob", vhost), "s")

    def fed(self, route: str = "r0", *, vhost: str = "/") -> Feed:
        feed = self.feed(route, vhost=vhost)
        assert feed is not None
        return feed


def test_sessions_share_a_mirror_by_virtual_host_and_a_sampler_by_route() -> None:
    mirror = "cluster: a, mirror: {cluster: b, percent: "
    stand = Stand(mirror + "10}", mirror + "20, exchanges: [e]}", mirror + "20, buffer: 9Mi}")
    one, two, three = stand.fed(), stand.fed("r1"), stand.fed("r2")
    assert one.queue is stand.fed().queue is two.queue
    assert one.sampler is stand.fed().sampler is not two.sampler
    assert three.queue is not one.queue
    assert stand.fed(vhost="v").queue is not one.queue


def test_the_virtual_host_is_the_documents_or_the_upstreams_or_the_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("P", "secret")
    stand = Stand(
        "cluster: a, mirror: {cluster: b}",
        "cluster: a, mirror: {cluster: c, " + LOGIN + "}",
        "cluster: a, mirror: {cluster: c, vhost: v, " + LOGIN + "}",
    )
    feeds = [stand.fed(f"r{number}", vhost="mine") for number in range(3)]
    assert len({feed.queue for feed in feeds}) == 3
    opened: list[str | None] = []

    async def dialled(_: object, settings: Upstream, *_rest: object, **_named: object) -> None:
        opened.append(settings.vhost)

    monkeypatch.setattr(dial, "dial_mirror", dialled)
    for mirror in stand.mirrors._mirrors.values():
        trio.run(mirror.dial)
    assert opened == ["mine", "there", "v"]


def test_no_mirror() -> None:
    stand = Stand(
        "cluster: a",
        "cluster: a, mirror: {cluster: b, percent: 0}",
        "cluster: b, mirror: {cluster: b, vhost: v}",
    )
    assert stand.feed() is stand.feed("r1") is None
    assert stand.mirrors.feed(None, Principal("bob", "/"), "s") is None
    # The same virtual host of the same cluster.
    assert stand.feed("r2", cluster="b", vhost="v") is None
    assert stand.feed("r2", cluster="b", vhost="w") is not None


def test_other_policies_change_the_share_and_keep_the_mirror() -> None:
    stand = Stand("cluster: a, mirror: {cluster: b, percent: 10}")
    before = stand.fed()
    stand.use("cluster: a, mirror: {cluster: b, percent: 20}")
    after = stand.fed()
    assert before.queue is after.queue
    assert (before.sampler.share, after.sampler.share) == (0.1, 0.2)

"""For whom the broker is dialled before it is known who comes, and the settings of where it goes."""

from __future__ import annotations

import attrs
import pytest
import trio
from prometheus_client import CollectorRegistry
from trio.testing import wait_all_tasks_blocked

from amqpgate.config import Listener, parse
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.route_pause import PausedError
from amqpgate.gateway.upstream.router import Router, rewritten
from amqpgate.policy import Principal, Source, Target, build
from amqpgate.telemetry.upstreams import UpstreamMetrics

SETTINGS = """\
listeners:
- {name: plain, bind: 'localhost:0', upstream: plain}
- {name: shared, bind: 'localhost:0', upstream: shared}
upstreams:
- {name: plain, url: 'amqp://h/v'}
- {name: shared, host: h, connections: pooled, version: '0-9-1'}
"""
HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\nspec:\n  routes:\n"


@attrs.define
class Ways:
    router: Router

    def use(self, *routes: str) -> None:
        lines = (f"  - {{id: r{index}, {route}}}\n" for index, route in enumerate(routes))
        self.router.use(build([Source("p.yaml", (HEAD + "".join(lines)).encode())]))

    def listener(self, name: str) -> Listener:
        return next(one for one in self.router.settings.listeners if one.name == name)

    def is_early(self, listener: str) -> bool:
        return self.router.choose_early(self.listener(listener), stranger(listener), "s") is not None


def stranger(listener: str) -> Principal:
    return Principal(None, "", "10.0.0.7", listener)


@pytest.fixture
def ways() -> Ways:
    return Ways(Router(parse(SETTINGS, {}), TlsContexts(), UpstreamMetrics(CollectorRegistry())))


def test_who_may_share_a_connection_says_first_who_it_is(ways: Ways) -> None:
    assert ways.is_early("plain")
    assert not ways.is_early("shared")


@pytest.mark.parametrize(
    ("upstream", "early"),
    [
        ("{cluster: plain}", True),
        ("{cluster: shared}", False),
        ("{cluster: plain, connections: pooled}", False),
        ("{cluster: shared, connections: own}", True),
        # The hash of the session decides; here it is the second.
        ("{clusters: [{cluster: plain}, {cluster: shared, weight: 1000}]}", False),
        ("{clusters: [{cluster: plain}, {cluster: shared, weight: 1000}], connections: own}", True),
    ],
)
@pytest.mark.parametrize("listener", ["plain", "shared"])
def test_a_route_says_it_for_its_own(ways: Ways, listener: str, upstream: str, early: bool) -> None:
    ways.use(f"match: {{listeners: [{listener}]}}, upstream: {upstream}")
    assert ways.is_early(listener) is early
    # It is not for the others.
    assert ways.is_early("plain" if listener == "shared" else "shared") is (listener == "shared")


async def test_routes_that_change_meanwhile_to_a_shared_one_turn_away(ways: Ways) -> None:
    listener, who = ways.listener("plain"), stranger("plain")
    ways.use("upstream: {cluster: plain}, paused: true")
    early = ways.router.choose_early(listener, who, "s")
    assert early is not None

    async def change() -> None:
        await wait_all_tasks_blocked()
        ways.use("upstream: {cluster: shared}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change)
        with pytest.raises(PausedError, match="connect again"):
            await ways.router.dialler(listener, who, "s", early=early)
    settings = (await ways.router.dialler(listener, who, "s", early=None)).destination.settings
    assert (settings.name, settings.connections) == ("shared", "pooled")


def test_what_a_route_says_of_connections_holds_for_its_clients_only(ways: Ways) -> None:
    plain, shared = (cluster.settings for cluster in ways.router.clusters.values())
    pooled, own, silent = (Target(cluster="c", connections=said) for said in ("pooled", "own", None))
    assert [rewritten(plain, target).connections for target in (pooled, own, silent)] == [
        "pooled",
        "own",
        "own",
    ]
    assert [rewritten(shared, target).connections for target in (pooled, own, silent)] == [
        "pooled",
        "own",
        "pooled",
    ]
    assert attrs.evolve(rewritten(plain, pooled), connections="own") == plain
    changed = rewritten(shared, Target(cluster="c", connections="own", version="0-8", vhost="w"))
    assert (changed.connections, changed.version, changed.vhost) == ("own", "0-8", "w")


def test_where_there_are_no_routes_a_listeners_clients_go_home(ways: Ways) -> None:
    home, plain = ways.router.home(ways.listener("plain")), ways.router.clusters["plain"]
    assert home is not None
    assert (home.cluster, home.settings, home.choice) == (plain, plain.settings, None)
    assert ways.router.home(ways.listener("shared")) is None

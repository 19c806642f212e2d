"""Health checks: what counts as well, who is told of a change, and that no check ends the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
import trio
from prometheus_client import CollectorRegistry

from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream import health_check
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.gateway.upstream.health_check import check, look_after
from amqpgate.telemetry.events import Events, EventSubscriber
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.clusters import cluster
from tests.support.inprocess import PATIENCE, Doorway
from tests.support.metrics import sample_value
from tests.support.talker import Talker


@pytest.fixture
def door() -> Iterator[Doorway]:
    with contextlib.closing(Doorway()) as door:
        yield door


def watched(door: Doorway, health: str) -> Cluster:
    return cluster(f"health: {{{health}}}", endpoints=f"127.0.0.1:{door.port}")


async def checked(it: Cluster, door: Doorway, answer: Callable[[Talker], None] | None) -> str | None:
    """What one check comes to, where the broker answers so; None: it accepts nobody."""
    found: list[str | None] = []

    async def look() -> None:
        found.append(await check(it, it.endpoints[0], TlsContexts()))

    def accept() -> None:
        with door.accept() as broker:
            assert answer is not None
            answer(broker)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            if answer is not None:
                nursery.start_soon(trio.to_thread.run_sync, accept)
    return found[0]


def says(method: amqp.ConnectionClose | amqp.ConnectionOpenOk) -> Callable[[Talker], None]:
    def answer(broker: Talker) -> None:
        broker.exactly(8)
        broker.say(method)
        broker.expect_end()

    return answer


def hangs_up(broker: Talker) -> None:
    # What is not read makes a close a reset.
    broker.exactly(8)


def greets(broker: Talker) -> None:
    broker.greet()
    broker.expect_end()


async def test_a_broker_that_says_start_is_well_and_what_it_says_is_kept(door: Doorway) -> None:
    it = watched(door, "check: amqp")
    assert await checked(it, door, greets) is None
    assert it.start is not None
    assert it.endpoints[0].starts.known("auto", trio.current_time()) is not None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says(amqp.ConnectionClose(320, "not now")), "it said connection.close 320"),
        (says(amqp.ConnectionOpenOk()), "expected 'connection.start', got 'connection.open-ok'"),
        (lambda broker: broker.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), ""),
        (hangs_up, "connection closed"),
    ],
    ids=["refuses everybody", "another method", "another protocol", "hangs up"],
)
async def test_what_is_no_start_is_not_well(
    door: Doorway, answer: Callable[[Talker], None], why: str
) -> None:
    it = watched(door, "check: amqp")
    found = await checked(it, door, answer)
    assert found is not None
    assert why in found
    assert it.start is None


async def test_a_broker_that_says_nothing_has_so_long(door: Doorway) -> None:
    it = watched(door, "check: amqp, timeout: 100ms")
    assert await checked(it, door, lambda broker: broker.receive() and broker.expect_end()) == (
        "no answer within 0.1 s"
    )


async def test_a_port_may_be_enough(door: Doorway) -> None:
    it = watched(door, "check: tcp")
    assert await checked(it, door, Talker.expect_end) is None
    door.close()
    found = await checked(it, door, None)
    assert found is not None
    assert "cannot connect" in found


async def test_without_checks_nobody_is_asked(door: Doorway) -> None:
    it = cluster(endpoints=f"127.0.0.1:{door.port}")
    with trio.fail_after(PATIENCE):
        await look_after(it, TlsContexts(), UpstreamMetrics(CollectorRegistry()), Events())
    door.sock.settimeout(0)
    with pytest.raises(BlockingIOError):
        door.accept()


async def test_a_change_is_told_once_and_a_check_that_fails_ends_no_other(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    it = cluster("health: {interval: 1s, failures: 2, successes: 1}", endpoints="h:1 h:2")
    answers: dict[int, list[str | None]] = {1: [None, "away", "away", "away", None], 2: []}
    asked: list[int] = []

    async def scripted(of: Cluster, endpoint: object, contexts: object) -> str | None:
        port = endpoint.address.port  # type: ignore[attr-defined]
        asked.append(port)
        if port == 2:
            raise ZeroDivisionError("a defect")
        return answers[1].pop(0)

    monkeypatch.setattr(health_check, "check", scripted)
    registry, events, heard = CollectorRegistry(), Events(), EventSubscriber()
    with events.heard_by(heard), trio.move_on_after(4.5):
        await look_after(it, TlsContexts(), UpstreamMetrics(registry), events)
    assert asked.count(1) == asked.count(2) == 5
    assert [endpoint.up for endpoint in it.endpoints] == [True, False]
    heard.end()
    told = [(one["endpoint"], one["up"], one["why"]) async for _, one in heard]  # type: ignore[call-overload,index]
    assert sorted(told, key=str) == [
        ("h:1", False, "away"),
        ("h:1", True, None),
        ("h:2", False, "a defect"),
    ]
    assert sample_value(registry, "amqpgate_upstream_up", {"upstream": "c", "endpoint": "h:2"}) == 0

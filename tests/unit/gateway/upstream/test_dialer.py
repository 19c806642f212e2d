"""Several new clients ask a broker at once of which nothing is known. The test is the broker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import attrs
import pytest
import trio
from prometheus_client import CollectorRegistry
from trio.testing import wait_all_tasks_blocked

from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.cluster import Cluster, Destination
from amqpgate.gateway.upstream.dialer import DialedBroker, Dialer, UpstreamUnavailableError
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.clusters import cluster
from tests.support.inprocess import PATIENCE, Doorway
from tests.support.talker import Talker


@pytest.fixture
def door() -> Iterator[Doorway]:
    with contextlib.closing(Doorway()) as door:
        yield door


@attrs.define(eq=False)
class Asking:
    """Clients of one broker, each of which is asked at once what it hears first."""

    cluster: Cluster
    metrics: UpstreamMetrics = attrs.field(factory=lambda: UpstreamMetrics(CollectorRegistry()))
    #: What each heard; whether it has a connection of its own; or what it was told instead.
    starts: list[amqp.ConnectionStart | amqp.ConnectionClose] = attrs.field(factory=list)
    lines: list[DialedBroker] = attrs.field(factory=list)
    errors: list[UpstreamUnavailableError] = attrs.field(factory=list)

    async def ask(self, name: str) -> None:
        settings = self.cluster.settings
        dialler = Dialer(Destination(self.cluster, settings, TlsContexts(), 131072, self.metrics), name)
        try:
            start, line = await dialler.greet()
        except UpstreamUnavailableError as error:
            self.errors.append(error)
        else:
            self.starts.append(start)
            if line is not None:
                self.lines.append(line)


@pytest.fixture
def asking(door: Doorway) -> Iterator[Asking]:
    asking = Asking(cluster("retries: {attempts: 1}", endpoints=f"127.0.0.1:{door.port}"))
    yield asking
    for line in asking.lines:
        line.hop.close()


async def accept(door: Doorway) -> Talker:
    return await trio.to_thread.run_sync(door.accept)


async def greet(broker: Talker) -> None:
    await trio.to_thread.run_sync(broker.greet)


async def test_of_many_one_dials_and_all_hear_its_start(door: Doorway, asking: Asking) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(asking.ask, name)
            with await accept(door) as broker:
                await wait_all_tasks_blocked()
                assert not asking.starts
                await greet(broker)
    assert len(asking.starts) == 3
    assert asking.starts[1:] == asking.starts[:1] * 2
    assert len(asking.lines) == 1


async def test_who_waited_for_one_that_failed_dials_on_its_own(door: Doorway, asking: Asking) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(asking.ask, name)
            with await accept(door) as silent:
                await wait_all_tasks_blocked()
                silent.close()
            # Both have come before either is answered: one does not wait for the other.
            with await accept(door) as one, await accept(door) as another:
                await greet(one)
                await greet(another)
    assert len(asking.errors) == 1
    assert len(asking.starts) == len(asking.lines) == 2
    assert asking.cluster.endpoints[0].inquiry._under_way is None


async def test_who_comes_after_a_failure_finds_nobody_to_wait_for(door: Doorway, asking: Asking) -> None:
    with trio.fail_after(PATIENCE):
        for answers in (False, True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(asking.ask, "a")
                with await accept(door) as broker:
                    if answers:
                        await greet(broker)
    assert len(asking.errors) == len(asking.lines) == 1

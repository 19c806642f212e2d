"""The first call of a broker that is known, and how the dialler goes on where it is not as before."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import attrs
import pytest
import trio
from prometheus_client import CollectorRegistry

from amqpgate.config import Secret
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.cluster import Cluster, Destination
from amqpgate.gateway.upstream.dialer import Dialer, UpstreamUnavailableError
from amqpgate.gateway.upstream.first_call import FirstCall
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.clusters import cluster
from tests.support.inprocess import PATIENCE, Doorway
from tests.support.talker import Talker


@attrs.define(eq=False)
class Stage:
    """One broker, whose start has been heard."""

    door: Doorway
    cluster: Cluster
    metrics: UpstreamMetrics
    kept: contextlib.ExitStack

    def destination(self, **changed: object) -> Destination:
        settings = attrs.evolve(self.cluster.settings, **changed)
        return Destination(self.cluster, settings, TlsContexts(), 131072, self.metrics)

    def known(self, now: float, **changed: object) -> FirstCall | None:
        return FirstCall.known(self.destination(**changed), "session", now)

    async def accept(self, **greeting: object) -> Talker:
        broker = self.kept.enter_context(await trio.to_thread.run_sync(self.door.accept))
        await trio.to_thread.run_sync(lambda: broker.greet(**greeting))
        return broker

    async def meet(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.accept)
            (await Dialer(self.destination(), "session").connect()).hop.close()

    def call(self, **changed: object) -> FirstCall:
        found = self.known(trio.current_time(), **changed)
        assert found is not None
        self.kept.callback(found.close)
        return found


@pytest.fixture
def stage() -> Iterator[Stage]:
    with contextlib.ExitStack() as kept:
        door = kept.enter_context(contextlib.closing(Doorway()))
        where = cluster("retries: {attempts: 2}", endpoints=f"127.0.0.1:{door.port}")
        yield Stage(door, where, UpstreamMetrics(CollectorRegistry()), kept)


async def heard(call: FirstCall) -> bytes:
    assert call.sock is not None
    await trio.lowlevel.wait_readable(call.sock)
    return call.sock.recv(16384)


async def test_nobody_is_known_before_it_has_spoken(stage: Stage) -> None:
    assert stage.known(trio.current_time()) is None


async def test_what_is_for_the_dialler(stage: Stage) -> None:
    await stage.meet()
    for changed in ({"user": "shared", "password": Secret("x")}, {"version": "0-8"}):
        assert stage.known(trio.current_time(), **changed) is None
    assert stage.known(trio.current_time() + 3600) is None


async def test_it_answers_as_before(stage: Stage) -> None:
    with trio.fail_after(PATIENCE):
        await stage.meet()
        call = stage.call()
        assert call.begin()
        await stage.accept()
        assert call.answers(await heard(call))
        dialed = call.dialed(b"more")
        assert await dialed.hop.receive() == b"more"
        assert dialed.greeting is call.start


async def test_the_dialler_goes_on_where_the_start_is_another(stage: Stage) -> None:
    with trio.fail_after(PATIENCE):
        await stage.meet()
        call = stage.call()
        assert call.begin()
        await stage.accept(properties=Table.of({"product": "Other"}))
        data = await heard(call)
        assert not call.answers(data)
        call.leave(data)
        line = await call.dialler().connect()
        with contextlib.closing(line.hop):
            assert line.hop.sock is call.sock
            assert isinstance(line.greeting, amqp.ConnectionStart)
            assert line.greeting.server_properties.get("product") == "Other"


async def test_the_dialler_waits_no_longer_for_it(stage: Stage) -> None:
    await stage.meet()
    call = stage.call()
    assert call.begin()
    call.until = trio.current_time() - 1
    call.leave()
    began = time.monotonic()
    stage.door.close()
    with pytest.raises(UpstreamUnavailableError):
        await call.dialler().connect()
    assert time.monotonic() - began < PATIENCE


async def test_who_refuses_is_given_up(stage: Stage) -> None:
    await stage.meet()
    call = stage.call()
    stage.door.close()
    is_told = call.begin()
    if is_told is False:
        assert call.sock is not None
        await trio.lowlevel.wait_writable(call.sock)
        is_told = call.connected()
    assert is_told is None
    assert call.sock is None
    # It was the only one.
    with pytest.raises(UpstreamUnavailableError, match="cannot connect"):
        await call.dialler().connect()


async def test_who_is_not_tried_is_tried_by_the_dialler(stage: Stage) -> None:
    with trio.fail_after(PATIENCE):
        await stage.meet()
        call = stage.call()
        call.since, call.until = trio.current_time(), trio.current_time() + 5
        endpoint = call.dialler().next(call.since)
        call.dialler().put_back(endpoint)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.accept)
            line = await call.dialler().connect()
        assert line.endpoint is endpoint
        line.hop.close()


async def test_what_nobody_goes_on_with_is_closed(stage: Stage) -> None:
    await stage.meet()
    call = stage.call()
    assert call.begin()
    call.leave()
    call.dialler().abandon()
    assert call.sock is not None
    assert call.sock.fileno() == -1

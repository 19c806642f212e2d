"""Connections to mirrors: which endpoint is tried, who is let in, and what is said of the gateway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import pytest
import trio

from amqpgate.gateway.observers.mirror.dial import Dialled, dial_mirror
from amqpgate.gateway.observers.mirror.line import MirrorFaultError
from amqpgate.gateway.transport.method_stream import StreamClosedError
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import Doorway
from tests.support.playing import Plays, beside
from tests.support.talker import CAPABILITIES, Talker
from tests.unit.gateway.upstream.test_cluster import cluster


@pytest.fixture
def doors() -> Iterator[tuple[Doorway, Doorway]]:
    with contextlib.closing(Doorway()) as first, contextlib.closing(Doorway()) as second:
        yield first, second


def lets_in(broker: Talker) -> None:
    broker.greet(properties=CAPABILITIES)
    said = broker.expect(amqp.ConnectionStartOk)
    assert (said.mechanism, said.response) == ("PLAIN", b"\0app\0secret")
    shown = said.client_properties
    assert (shown.get("product"), shown.get("connection_name")) == ("amqpgate", "amqpgate mirror m")
    broker.say(amqp.ConnectionTune(7, 8192, 30))
    broker.expect(amqp.ConnectionTuneOk)
    assert broker.expect(amqp.ConnectionOpen).virtual_host == "there"
    broker.say(amqp.ConnectionOpenOk())


def closes(code: int) -> Plays:
    def plays(broker: Talker) -> None:
        broker.greet(properties=CAPABILITIES)
        broker.expect(amqp.ConnectionStartOk)
        broker.say(amqp.ConnectionClose(code, "NO - not now", 0, 0))

    return plays


def hangs_up(broker: Talker) -> None:
    broker.greet(properties=CAPABILITIES)
    broker.expect(amqp.ConnectionStartOk)
    broker.close()


def is_silent(broker: Talker) -> None:
    broker.greet(properties=CAPABILITIES)
    broker.expect(amqp.ConnectionStartOk)
    broker.expect_end()


def talks_nonsense(broker: Talker) -> None:
    broker.greet(properties=CAPABILITIES)
    broker.expect(amqp.ConnectionStartOk)
    broker.raw(b"\x01\0\x07\0\0\0\x04\0\x0a\0\x1e\xce")


def confirms_nothing(broker: Talker) -> None:
    broker.greet(properties=Table.of({"capabilities": {"publisher_confirms": False}}))
    broker.expect_end()


async def dial(cluster: Cluster, *played: tuple[Doorway, Plays]) -> Dialled:
    """A connection, while the brokers play their parts."""
    dials = partial(dial_mirror, cluster, cluster.settings, TlsContexts(), version="1", name="m")
    return await beside(dials, *played)


def cluster_of(*doors: Doorway) -> Cluster:
    keys = "user: app, password: secret, vhost: there, handshakeTimeout: 200ms"
    return cluster(keys, endpoints=" ".join(f"127.0.0.1:{door.port}" for door in doors))


async def test_it_is_logged_in_with_its_virtual_host_open(doors: tuple[Doorway, Doorway]) -> None:
    it = cluster_of(*doors)
    dialled = await dial(it, (doors[0], lets_in))
    dialled.hop.close()
    assert (dialled.user, dialled.tune.channel_max, dialled.tune.frame_max) == ("app", 7, 8192)
    assert dialled.tune.heartbeat == 30


@pytest.mark.parametrize("plays", [hangs_up, is_silent, talks_nonsense, confirms_nothing, closes(320)])
async def test_where_one_lets_nobody_in_the_next_one_is_tried(
    doors: tuple[Doorway, Doorway], plays: Plays
) -> None:
    """It has answered the header, and would be the first to be asked each time."""
    it = cluster_of(*doors)
    dialled = await dial(it, (doors[0], plays), (doors[1], lets_in))
    dialled.hop.close()
    assert [endpoint.failures for endpoint in it.endpoints] == [1, 0]


async def test_what_the_last_one_does_is_told(doors: tuple[Doorway, Doorway]) -> None:
    it = cluster_of(*doors)
    with pytest.raises(MirrorFaultError, match="offers no publisher confirms"):
        await dial(it, (doors[0], hangs_up), (doors[1], confirms_nothing))
    with pytest.raises(StreamClosedError):
        await dial(it, (doors[0], confirms_nothing), (doors[1], hangs_up))


async def test_a_login_that_is_refused_is_tried_nowhere_else(doors: tuple[Doorway, Doorway]) -> None:
    it = cluster_of(*doors)
    with pytest.raises(MirrorFaultError, match="refused: 403 NO - not now"):
        await dial(it, (doors[0], closes(403)))
    assert [endpoint.failures for endpoint in it.endpoints] == [0, 0]


async def test_who_is_cancelled_leaves_no_socket(doors: tuple[Doorway, Doorway]) -> None:
    it, token, scope = cluster_of(doors[0]), trio.lowlevel.current_trio_token(), trio.CancelScope()

    def plays(broker: Talker) -> None:
        broker.greet(properties=CAPABILITIES)
        broker.expect(amqp.ConnectionStartOk)
        trio.from_thread.run_sync(scope.cancel, trio_token=token)
        broker.expect_end()

    with scope:
        await dial(it, (doors[0], plays))
    assert scope.cancelled_caught
    assert it.endpoints[0].failures == 0

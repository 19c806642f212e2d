"""Connections that no single client opens: who is tried, what a refusal is, and that none is left open."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import attrs
import pytest
import trio
from prometheus_client import CollectorRegistry

from amqpgate.gateway.pool.dial import Opened, PoolDialer, open_on, part_with, preauthenticate
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.broker_side import UpstreamFaultError
from amqpgate.gateway.upstream.cluster import Cluster, Destination
from amqpgate.gateway.upstream.dialer import Dialer, UpstreamUnavailableError
from amqpgate.gateway.upstream.own_login import LoginRefusedError
from amqpgate.protocol.sasl import Credentials
from amqpgate.telemetry.upstreams import UpstreamMetrics
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import Doorway
from tests.support.playing import Plays, beside
from tests.support.talker import Talker
from tests.unit.gateway.upstream.test_cluster import cluster

LOGIN = Credentials("bob", b"secret")


@attrs.define(eq=False)
class Two:
    """A cluster of two brokers, the first of which is tried first."""

    first: Doorway
    second: Doorway
    cluster: Cluster
    metrics: UpstreamMetrics = attrs.field(factory=lambda: UpstreamMetrics(CollectorRegistry()))

    @property
    def destination(self) -> Destination:
        return Destination(self.cluster, self.cluster.settings, TlsContexts(), 131072, self.metrics)

    async def open(self, *played: tuple[Doorway, Plays]) -> Opened:
        dialer = PoolDialer(self.destination, LOGIN, "there", "shown", "1.2")
        return await beside(lambda: dialer.open(clients=3), *played)

    @property
    def failures(self) -> list[int]:
        return [endpoint.failures for endpoint in self.cluster.endpoints]


@pytest.fixture
def two() -> Iterator[Two]:
    with contextlib.closing(Doorway()) as first, contextlib.closing(Doorway()) as second:
        places = f"127.0.0.1:{first.port} 127.0.0.1:{second.port}"
        yield Two(first, second, cluster("handshakeTimeout: 200ms", endpoints=places))


def logs_in(broker: Talker) -> amqp.ConnectionStartOk:
    broker.greet()
    return broker.expect(amqp.ConnectionStartOk)


def opens(broker: Talker) -> None:
    broker.say(amqp.ConnectionTune(100, 8192, 30))
    tune = broker.expect(amqp.ConnectionTuneOk)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (100, 8192, 30)
    assert broker.expect(amqp.ConnectionOpen).virtual_host == "there"


def lets_in(broker: Talker) -> None:
    said = logs_in(broker)
    assert (said.mechanism, said.response) == ("PLAIN", b"\0bob\0secret")
    assert said.client_properties.get("connection_name") == "amqpgate pool shown"
    shown = said.client_properties.get("amqpgate")
    assert shown == {"pool": "shown", "session": "", "clients": 3}
    opens(broker)
    broker.say(amqp.ConnectionOpenOk())


def hangs_up(broker: Talker) -> None:
    logs_in(broker)
    broker.close()


def hangs_up_late(broker: Talker) -> None:
    logs_in(broker)
    opens(broker)
    broker.close()


def is_silent(broker: Talker) -> None:
    logs_in(broker)
    broker.expect_end()


def is_silent_late(broker: Talker) -> None:
    logs_in(broker)
    opens(broker)
    broker.expect_end()


def says_another_thing(broker: Talker) -> None:
    logs_in(broker)
    broker.say(amqp.ConnectionOpenOk())
    broker.expect_end()


def tunes_too_small(broker: Talker) -> None:
    logs_in(broker)
    broker.say(amqp.ConnectionTune(100, 100, 30))
    broker.expect_end()


def closes_for_now(broker: Talker) -> None:
    """Which says nothing of the login."""
    logs_in(broker)
    opens(broker)
    broker.say(amqp.ConnectionClose(320, "CONNECTION_FORCED - not now", 0, 0))


FAULTS = [
    hangs_up,
    hangs_up_late,
    is_silent,
    is_silent_late,
    says_another_thing,
    tunes_too_small,
    closes_for_now,
]


async def test_it_is_there_with_its_virtual_host_open(two: Two) -> None:
    opened = await two.open((two.first, lets_in))
    opened.hop.close()
    assert (opened.tune.channel_max, opened.tune.frame_max, opened.address.port) == (
        100,
        8192,
        two.first.port,
    )
    # What clients are proposed before there is a connection for them.
    assert two.cluster.tune == amqp.ConnectionTune(100, 8192, 30)


@pytest.mark.parametrize("plays", FAULTS)
async def test_where_one_lets_nobody_in_the_next_one_is_tried(two: Two, plays: Plays) -> None:
    opened = await two.open((two.first, plays), (two.second, lets_in))
    opened.hop.close()
    assert opened.address.port == two.second.port
    assert two.failures == [1, 0]


async def test_when_none_lets_anybody_in_the_last_one_is_told_of(two: Two) -> None:
    with pytest.raises(UpstreamUnavailableError, match=f"127.0.0.1:{two.second.port}: .*200 ms|0.2 s"):
        await two.open((two.first, hangs_up), (two.second, is_silent))


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_refusal_is_an_answer_and_is_answered(two: Two, is_late: bool) -> None:
    def refuses(broker: Talker) -> None:
        logs_in(broker)
        if is_late:
            opens(broker)
        broker.say(amqp.ConnectionClose(403, "ACCESS_REFUSED - no bob", 10, 40))
        broker.expect(amqp.ConnectionCloseOk)
        broker.expect_end()

    two.cluster.failed(two.cluster.endpoints[0], 0.0)
    with pytest.raises(LoginRefusedError) as refused:
        await two.open((two.first, refuses))
    assert refused.value.refusal.reply_code == 403
    assert two.failures == [0, 0]


async def test_one_that_has_logged_in_and_is_gone_is_a_fault(two: Two) -> None:
    """A client may take long to say its virtual host."""

    async def do() -> Opened:
        first = await preauthenticate(Dialer(two.destination, "s"), LOGIN, name="n", version="1", entry={})
        try:
            return await open_on(first, two.destination, "there")
        finally:
            assert first.broker.hop.sock.fileno() == -1

    def plays(broker: Talker) -> None:
        logs_in(broker)
        broker.say(amqp.ConnectionTune(100, 8192, 30))
        broker.expect(amqp.ConnectionTuneOk)
        broker.close()

    with pytest.raises(UpstreamFaultError):
        await beside(do, (two.first, plays))


@pytest.mark.parametrize("is_late", [False, True])
async def test_who_is_cancelled_leaves_no_socket(two: Two, is_late: bool) -> None:
    token, scope = trio.lowlevel.current_trio_token(), trio.CancelScope()

    def plays(broker: Talker) -> None:
        logs_in(broker)
        if is_late:
            opens(broker)
        trio.from_thread.run_sync(scope.cancel, trio_token=token)
        broker.expect_end()

    with scope:
        await two.open((two.first, plays))
    assert scope.cancelled_caught


@pytest.mark.parametrize("answers", [True, False])
async def test_one_that_is_not_needed_says_why_and_closes(two: Two, answers: bool) -> None:
    async def do() -> None:
        opened = await PoolDialer(two.destination, LOGIN, "there", "shown", "1").open(clients=3)
        await part_with(opened.hop, "the login is good", 0.2)
        assert opened.hop.sock.fileno() == -1

    def plays(broker: Talker) -> None:
        lets_in(broker)
        close = broker.expect(amqp.ConnectionClose)
        assert (close.reply_code, "the login is good" in close.reply_text) == (200, True)
        if answers:
            broker.say(amqp.ConnectionCloseOk())
        broker.expect_end()

    await beside(do, (two.first, plays))

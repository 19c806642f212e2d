"""The end of a shared connection, as its sessions see it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.datapath.engine import End
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import pooled

MANY = 3000


@pytest.mark.parametrize("hangs_up", [True, False])
def test_what_the_broker_said_before_it_closed_the_connection_is_heard(
    make_stage: Callable[..., Stage], hangs_up: bool
) -> None:
    """It is more than goes into one turn of the connection."""
    stage = make_stage(
        upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}", limits="closeTimeout: 1s"
    )
    client, broker = pooled(stage)
    passive = amqp.ExchangeDeclare(exchange="x", type="direct", passive=True)
    client.raw(method_frame(1, passive) * MANY)
    for _ in range(MANY):
        broker.expect(amqp.ExchangeDeclare, 1)
    said = method_frame(1, amqp.ExchangeDeclareOk()) * MANY
    broker.raw(said + method_frame(0, amqp.ConnectionClose(320, "CONNECTION_FORCED - bye", 0, 0)))
    broker.expect(amqp.ConnectionCloseOk)
    if hangs_up:
        broker.close()
    for _ in range(MANY):
        client.expect(amqp.ExchangeDeclareOk, 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, "bye" in close.reply_text) == (320, True)
    if not hangs_up:
        broker.expect_end()


def test_a_violation_that_the_data_path_finds_is_the_brokers(
    make_stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    """As of a broker that is translated."""
    stage = make_stage(upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}")
    client, _broker = pooled(stage)
    gateway = stage.running.gateway

    def violate() -> None:
        (pool,) = gateway.pools.pools.values()
        (connection,) = pool.connections.values()
        violation = ProtocolViolation(503, "a broken record")
        gateway.pump.remove(connection.link, End.FAILED, Side.UPSTREAM, violation)

    stage.running.call(violate)
    assert "a broken record" in client.expect(amqp.ChannelClose, 1).reply_text
    assert "upstream broke the protocol: COMMAND_INVALID - a broken record" in caplog.text
    assert gateway.pump.counters.failures == 0

"""What metrics tell of pools: by upstream, whatever users and virtual hosts there are."""

from __future__ import annotations

from amqpgate.gateway.pool.pool import Pool
from amqpgate.gateway.pool.usage import unsent, usage
from amqpgate.telemetry.readings import PoolUse
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import asked, joined, opened, pooled
from tests.unit.gateway.pool.test_pool import faulty


def use_of(stage: Stage) -> PoolUse:
    pools = stage.running.gateway.pools
    return stage.running.call(lambda: usage(pools.pools.values()))["broker"]


def counted(**counts: int) -> dict[str, int]:
    """With zero for what is not named."""
    return dict.fromkeys(("open", "retiring", "closing", "blocked", "dialling"), 0) | counts


def test_channels_and_sessions_are_counted_by_what_they_are_at(shared: Stage) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    opened(client, broker, 2, 3)
    use = use_of(shared)
    assert (use.links, use.sessions, use.waiting) == (counted(open=1), 2, 0)
    assert use.channels == {"opening": 0, "spare": 0, "taken": 3, "closing": 0}
    asked(other, broker, 1, 2)
    other.say(amqp.ChannelClose(200, "", 0, 0), 1)
    broker.expect(amqp.ChannelClose, 2)
    # It is the session's until the broker has answered.
    assert use_of(shared).channels["taken"] == 3
    client.say(amqp.ChannelClose(200, "", 0, 0), 2)
    client.expect(amqp.ChannelCloseOk, 2)
    assert use_of(shared).channels == {"opening": 0, "spare": 0, "taken": 2, "closing": 1}


def test_a_connection_is_blocked_until_it_is_being_closed(shared: Stage) -> None:
    client, broker = pooled(shared)
    broker.say(amqp.ConnectionBlocked("low on memory"))
    asked(client, broker)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    assert use_of(shared).links == counted(blocked=1)
    [pool] = shared.running.gateway.pools.pools.values()
    [connection] = pool.connections.values()
    shared.running.call(connection.entry.close)
    assert use_of(shared).links == counted(closing=1)


def test_pools_of_one_upstream_are_one() -> None:
    pools: list[Pool] = [faulty(), faulty()]
    for pool in pools:
        pool.plan.dialling = 2
    assert usage(pools) == {
        "broker": PoolUse(
            links=counted(dialling=4),
            channels={"opening": 0, "spare": 0, "taken": 0, "closing": 0},
            sessions=0,
            waiting=0,
        )
    }
    assert usage([]) == {}
    assert unsent(pools) == 0


def test_what_a_broker_does_not_read_is_counted(shared: Stage) -> None:
    client, broker = pooled(shared)
    opened(client, broker, 2, 2)
    [pool] = shared.running.gateway.pools.pools.values()
    assert shared.running.call(lambda: unsent([pool])) == 0
    client.fill(b"".join(publish(b"x" * 100_000) for _ in range(200)))
    assert shared.running.call(lambda: unsent([pool])) > 0


def publish(body: bytes) -> bytes:
    return content_frames(1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), body, 131072)

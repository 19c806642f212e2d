"""A session among others on one connection: what reaches it, and what it leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.memory import held, in_memory, uncollected
from tests.unit.gateway.pool.pooled import asked, joined, let_in, logged_in, opened, pooled
from tests.unit.gateway.rated import rates

__all__ = ["uncollected"]

#: Deliveries are looked at by their headers.
EXCHANGES = """
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: t}
spec:
  subjects: [{user: guest}]
  names: {exchanges: {prefix: a.}}
"""


def answered(client: Talker, broker: Talker, channel: int, there: int) -> None:
    """The session goes on there."""
    asked(client, broker, channel, there)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), there)
    client.expect(amqp.QueueDeclareOk, channel)


def test_each_hears_what_is_said_on_its_channels_under_its_own_numbers(shared: Stage) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    opened(other, broker, 7, 3)
    for there in (3, 1, 2):
        broker.content(amqp.BasicReturn(312, "NO_ROUTE", "", f"{there}"), b"x", channel=there)
    assert client.expect_content(amqp.BasicReturn, 1).method.routing_key == "1"
    heard = [other.expect_content(amqp.BasicReturn, channel).method.routing_key for channel in (7, 1)]
    assert heard == ["3", "2"]


def test_clients_that_came_and_went_leave_nothing(shared: Stage) -> None:
    """Neither those that leave in order nor those that are gone, logged in or not."""
    client, broker = pooled(shared)

    def visits(count: int) -> None:
        for _ in range(count):
            logged_in(shared).bye()
            logged_in(shared).reset()
            half = shared.client()
            half.raw(amqp.PROTOCOL_HEADER)
            half.expect(amqp.ConnectionStart)
            half.reset()

    visits(5)
    eventually(lambda: len(shared.running.gateway.sessions) == 1)
    before = held()
    visits(15)
    eventually(lambda: len(shared.running.gateway.sessions) == 1)
    # The test's clients have these.
    eventually(lambda: (held() - before).keys() <= {"FrameDecoder"})
    answered(client, broker, 1, 1)


@pytest.mark.usefixtures("uncollected")
def test_clients_that_came_and_went_are_no_cycles(shared: Stage) -> None:
    """Python may not look for those for hours, and memory rises meanwhile."""
    pooled(shared)

    def visits(count: int) -> None:
        for _ in range(count):
            logged_in(shared).bye()
            logged_in(shared).reset()
            half = shared.client()
            half.raw(amqp.PROTOCOL_HEADER)
            half.reset()
        eventually(lambda: len(shared.running.gateway.sessions) == 1)

    visits(3)
    before = in_memory()
    visits(5)
    # The test's clients have these; the data path, what its last event was about.
    eventually(lambda: max((in_memory() - before - Counter(FrameDecoder=99)).values(), default=0) < 2)


def test_who_goes_amid_a_message_leaves_no_half_of_it(shared: Stage) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    whole = content_frames(1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), b"x" * 100, 131072)
    client.raw(whole + whole[:-20])
    assert broker.content_of(broker.expect(amqp.BasicPublish, 1), 1).body == b"x" * 100
    client.reset()
    broker.expect(amqp.ChannelClose, 1)
    answered(other, broker, 1, 2)
    # What was under way to it is for nobody, and its number is another's when the broker has answered.
    broker.content(amqp.BasicReturn(312, "NO_ROUTE", "", "q"), b"x", channel=1)
    broker.say(amqp.ChannelCloseOk(), 1)
    opened(other, broker, 2, 1)


def test_the_broker_closes_one_channel_and_no_other(shared: Stage) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND - no", 50, 10), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 404
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    answered(other, broker, 1, 2)
    opened(client, broker, 1, 1)


@pytest.mark.parametrize("waits_for", ["nothing", "header", "tokens"])
def test_what_waits_when_the_connection_is_lost_is_for_nobody(
    make_stage: Callable[..., Stage], waits_for: str
) -> None:
    """The broker delivers it again; the session goes on by another connection."""
    policies = rates("deliverMessages: 1/m") if waits_for == "tokens" else EXCHANGES
    upstream = "connections: pooled, pool: {spareChannels: 0, consumers: shared}"
    stage = make_stage(upstream=upstream, policies=policies)
    client, broker = pooled(stage)
    relayed(client, broker, amqp.BasicQos(0, 200), amqp.BasicQosOk(), 1)
    relayed(client, broker, amqp.BasicConsume(queue="q", consumer_tag="c"), amqp.BasicConsumeOk("c"), 1)
    method = method_frame(1, amqp.BasicDeliver("c", 1, False, "x", "k"))
    whole = content_frames(
        1, amqp.BasicDeliver("c", 1, False, "x", "k"), amqp.BasicProperties(), b"x", 131072
    )
    broker.raw({"nothing": b"", "header": method, "tokens": whole * 5}[waits_for])
    # Behind it, by the same connection.
    other = joined(stage, broker, 2)
    for _ in range(2 if waits_for == "tokens" else 0):
        client.expect_content(amqp.BasicDeliver)
    broker.close()
    for talker in (client, other):
        talker.expect(amqp.ChannelClose, 1)
        talker.say(amqp.ChannelCloseOk(), 1)
    client.say(amqp.ChannelOpen(), 5)
    again = stage.broker()
    let_in(again)
    again.expect(amqp.ChannelOpen, 1)
    again.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk, 5)
    answered(client, again, 5, 1)


def test_a_session_that_ends_with_the_brokers_close_unanswered_answers_it(shared: Stage) -> None:
    """Else the number would never be free."""
    client, broker = pooled(shared)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND - no", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    client.reset()
    broker.expect(amqp.ChannelCloseOk, 1)
    joined(shared, broker, 1)


def test_a_channel_that_the_broker_does_not_open_is_closed_for_its_client(shared: Stage) -> None:
    client, broker = pooled(shared)
    client.say(amqp.ChannelOpen(), 2)
    broker.expect(amqp.ChannelOpen, 2)
    broker.say(amqp.ChannelClose(320, "CONNECTION_FORCED - no", 20, 10), 2)
    assert client.expect(amqp.ChannelClose, 2).reply_code == 320
    client.say(amqp.ChannelCloseOk(), 2)
    broker.expect(amqp.ChannelCloseOk, 2)
    answered(client, broker, 1, 1)


def test_a_client_that_goes_before_its_channel_is_open_leaves_it_closed(shared: Stage) -> None:
    client, broker = pooled(shared)
    client.say(amqp.ChannelOpen(), 2)
    broker.expect(amqp.ChannelOpen, 2)
    client.reset()
    closed = {broker.hear()[0] for _ in range(2)}
    assert closed == {1, 2}
    broker.say(amqp.ChannelOpenOk(), 2)
    for there in (1, 2):
        broker.say(amqp.ChannelCloseOk(), there)
    other = joined(shared, broker, 1)
    opened(other, broker, 2, 2)


@pytest.mark.parametrize("is_told", [False, True])
def test_with_the_connection_its_channels_close_and_may_be_opened_on_another(
    shared: Stage, is_told: bool
) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    asked(client, broker)
    if is_told:
        broker.say(amqp.ConnectionClose(320, "CONNECTION_FORCED - bye", 0, 0))
    else:
        broker.close()
    for one in (client, other):
        assert one.expect(amqp.ChannelClose, 1).reply_code == 320
        one.say(amqp.ChannelCloseOk(), 1)
    assert len(shared.running.gateway.sessions) == 2


def test_whom_the_broker_blames_hears_its_words_and_nobody_else(shared: Stage) -> None:
    """Of two who share a connection only one has asked for such a thing."""
    client, broker = pooled(shared)
    other = joined(shared, broker)
    asked(client, broker)
    ids = amqp.QueueDeclare
    broker.say(amqp.ConnectionClose(541, "INTERNAL_ERROR - odd queue", ids.CLASS_ID, ids.METHOD_ID))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (541, "INTERNAL_ERROR - odd queue")
    assert other.expect(amqp.ChannelClose, 1).reply_code == 320


def test_one_that_has_no_channel_has_no_connection(shared: Stage) -> None:
    client, broker = pooled(shared)
    [session] = shared.running.gateway.sessions.values()
    upstream = session.upstream
    assert (upstream.connection_id, upstream.number_of(1), upstream.address) == (
        1,
        1,
        f"127.0.0.1:{shared.door.port}",
    )
    client.say(amqp.ChannelClose(200, "", 0, 0), 1)
    client.expect(amqp.ChannelCloseOk, 1)
    assert (upstream.connection_id, upstream.number_of(1), upstream.address) == (None, None, None)
    broker.close()
    # It is no concern of the client's.
    eventually(lambda: not shared.running.gateway.pools.pools or not any_connection(shared))
    client.hear_nothing(0.05)


def any_connection(stage: Stage) -> bool:
    return any(pool.connections for pool in stage.running.gateway.pools.pools.values())


def test_frames_of_a_channel_that_is_closed_are_for_nobody(shared: Stage) -> None:
    client, broker = pooled(shared)
    client.say(amqp.ChannelClose(200, "", 0, 0), 1)
    client.expect(amqp.ChannelCloseOk, 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.raw(method_frame(1, amqp.ChannelFlow(active=True)) + method_frame(1, amqp.ChannelCloseOk()))
    client.say(amqp.ChannelOpen(), 5)
    there, opening = broker.hear()
    assert isinstance(opening, amqp.ChannelOpen)
    broker.say(amqp.ChannelOpenOk(), there)
    client.expect(amqp.ChannelOpenOk, 5)

"""What each side hears at the end of a session, and that nothing is left of it."""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Callable

import pytest

from amqpgate.gateway.session import client_methods
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.leaving import close_heard
from tests.unit.gateway.memory import in_memory, uncollected

__all__ = ["uncollected"]

MakeStage = Callable[..., Stage]

PUBLISH = content_frames(
    1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), b"x" * 300_000, 131072
)
DELIVER = content_frames(1, amqp.BasicDeliver("c"), amqp.BasicProperties(), b"x" * 300_000, 131072)
CLOSE_OK = amqp.ConnectionCloseOk()

#: How much of a message has been sent: nothing; within the method; between frames; within a body; all.
CUTS = [0, 5, len(method_frame(1, amqp.BasicPublish(routing_key="q"))), 200_000, len(PUBLISH)]


#: Of which each session has what is counted, changed and told.
POLICIES = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  rules: [{id: all, effect: allow, operations: ["*"]}]
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: rates}
spec:
  subjects: [{user: "*"}]
  limits: [{id: per-user, per: [user, vhost], messages: 1M/s}]
---
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: marks}
spec:
  subjects: [{user: "*"}]
  headers: {set: {x-by: gate}}
"""


def half_close(talker: Talker) -> None:
    talker.sock.shutdown(socket.SHUT_WR)


@pytest.mark.usefixtures("uncollected")
def test_what_a_session_was_is_no_cycle(make_stage: MakeStage) -> None:
    """Python may not look for those for hours, and memory rises meanwhile."""
    stage = make_stage(policies=POLICIES)

    def visits(count: int) -> None:
        for _ in range(count):
            client, broker = stage.opened()
            client.publish(b"x", "q")
            broker.expect_content(amqp.BasicPublish)
            client.reset()
            broker.expect(amqp.ConnectionClose)
            broker.say(CLOSE_OK)
        stage.running.wait_idle()

    visits(3)
    before = in_memory()
    visits(5)
    # The test's clients and brokers have these; the data path, what its last event was about.
    theirs = Counter(FrameDecoder=99, ConnectionStart=99, Table=99, Field=99)
    eventually(lambda: max((in_memory() - before - theirs).values(), default=0) < 2)


@pytest.mark.parametrize("leave", [Talker.close, Talker.reset, half_close])
@pytest.mark.parametrize("cut", CUTS)
def test_a_client_that_vanishes(stage: Stage, cut: int, leave: Callable[[Talker], None]) -> None:
    client, broker = stage.opened()
    client.raw(PUBLISH[:cut])
    leave(client)
    assert close_heard(broker) == amqp.ConnectionClose(
        320, "CONNECTION_FORCED - client closed its connection"
    )
    broker.say(CLOSE_OK)
    broker.expect_end()
    client.close()
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"client_gone": 1}


@pytest.mark.parametrize("leave", [Talker.close, Talker.reset, half_close])
@pytest.mark.parametrize("cut", CUTS)
def test_a_broker_that_vanishes(stage: Stage, cut: int, leave: Callable[[Talker], None]) -> None:
    client, broker = stage.opened()
    broker.raw(DELIVER[:cut])
    leave(broker)
    assert close_heard(client) == amqp.ConnectionClose(
        320, "CONNECTION_FORCED - upstream closed its connection"
    )
    client.say(CLOSE_OK)
    client.expect_end()
    client.close()
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"upstream_gone": 1}


def test_sides_that_are_silent(make_stage: MakeStage) -> None:
    """Without a heartbeat for two intervals; one second is the shortest that there is."""
    stage = make_stage(listener="heartbeat: 1")
    client, broker = stage.opened(tune_ok=amqp.ConnectionTuneOk(2047, 131072, 1))
    deaf_client, silent_broker = stage.opened(tune=amqp.ConnectionTune(2047, 131072, 1))
    assert close_heard(broker) == amqp.ConnectionClose(320, "CONNECTION_FORCED - client sent no heartbeats")
    assert close_heard(deaf_client) == amqp.ConnectionClose(
        320, "CONNECTION_FORCED - upstream sent no heartbeats"
    )
    client.expect_end()
    silent_broker.expect_end()
    for talker in (broker, deaf_client):
        talker.say(CLOSE_OK)
    for talker in (client, broker, deaf_client, silent_broker):
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"client_silent": 1, "upstream_silent": 1}


def test_what_the_broker_said_before_it_vanished_arrives(stage: Stage) -> None:
    """Also where the client is slow: the bytes that wait for it come before the close."""
    client, broker = stage.opened(read_buffer=8192)
    for _ in range(3):
        broker.raw(DELIVER)
    broker.close()
    for _ in range(3):
        assert len(client.expect_content(amqp.BasicDeliver).body) == 300_000
    assert client.expect(amqp.ConnectionClose).reply_code == 320


def test_what_the_client_said_before_it_vanished_arrives(stage: Stage) -> None:
    client, broker = stage.opened()
    client.raw(PUBLISH * 3)
    client.close()
    for _ in range(3):
        assert len(broker.expect_content(amqp.BasicPublish).body) == 300_000
    assert broker.expect(amqp.ConnectionClose).reply_code == 320


def test_a_close_that_is_not_answered_has_a_deadline(make_stage: MakeStage) -> None:
    stage = make_stage(limits="closeTimeout: 200ms")
    client, broker = stage.opened()
    client.reset()
    broker.expect(amqp.ConnectionClose)
    broker.expect_end()
    stage.running.wait_idle()


def test_a_peer_that_reads_nothing_at_the_end_has_a_deadline(make_stage: MakeStage) -> None:
    stage = make_stage(limits="closeTimeout: 200ms")
    client, broker = stage.opened(read_buffer=8192)
    broker.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        broker.raw(DELIVER * 100)
    broker.reset()
    stage.running.wait_idle()
    assert all(frame.channel == 1 for frame in client.all())


def test_what_a_leaving_peer_still_says_is_read_and_dropped(stage: Stage) -> None:
    """Or the answer would be a reset, which destroys the close that is under way to it."""
    client, broker = stage.opened()
    client.say(amqp.ChannelOpen(), 1)
    for _ in range(20):
        client.raw(PUBLISH)
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_text == "CHANNEL_ERROR - second 'channel.open' seen"
    client.say(CLOSE_OK)
    client.expect_end()
    assert close_heard(broker).reply_code == 320


def test_a_peer_that_closes_meanwhile_is_answered(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(amqp.ChannelOpen(), 1)
    client.expect(amqp.ConnectionClose)
    broker.expect(amqp.ConnectionClose)
    for talker in (client, broker):
        talker.say(amqp.ConnectionClose(200, "bye"))
        talker.expect(amqp.ConnectionCloseOk)
        talker.say(CLOSE_OK)
        talker.expect_end()


def test_a_fault_of_the_gateway_ends_one_session(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = make_stage(
        policies="""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: all}
spec:
  subjects: [{user: "*"}]
  rules: [{id: all, effect: allow, operations: ["*"]}]
"""
    )
    client, broker = stage.opened()
    bystander, others_broker = stage.opened()

    def fail(*_: object) -> None:
        raise RuntimeError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(client_methods, "operation_of", fail)
        client.say(amqp.QueueDeclare(queue="q"), 1)
        assert client.expect(amqp.ConnectionClose) == amqp.ConnectionClose(
            541, "INTERNAL_ERROR - amqpgate failed; see its log"
        )
        assert broker.expect(amqp.ConnectionClose) == amqp.ConnectionClose(
            320, "CONNECTION_FORCED - amqpgate failed"
        )
    for talker in (client, broker):
        talker.say(CLOSE_OK)
        talker.expect_end()
        talker.close()
    bystander.say(amqp.QueueDeclare(queue="q"), 1)
    others_broker.expect(amqp.QueueDeclare, 1)
    eventually(lambda: stage.running.outcomes() == {"failed": 1})
    assert stage.running.gateway.pump.counters.failures == 1
    told = [record for record in caplog.records if "on purpose" in record.getMessage()]
    assert [record.levelno for record in told if record.levelno > logging.INFO] == [logging.ERROR]

"""What is waited for before a session hears connection.close, and what is not."""

from __future__ import annotations

import pytest

from amqpgate.gateway.session.graceful_close import BREATH, GracefulClose
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import through
from tests.unit.gateway.leaving import LATE, DrainStage, confirming, published, say_goodbye


def test_a_confirm_that_is_due_is_waited_for(stage: Stage) -> None:
    client, broker = confirming(stage)
    published(client, broker, b"one")
    published(client, broker, b"two")
    drain = DrainStage.begin(stage)
    drain.look()
    client.publish(b"not read any more", "k")
    broker.say(amqp.BasicAck(2), 1)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 2
    drain.look()
    assert drain.live == 1
    broker.say(amqp.BasicAck(1), 1)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 1
    drain.look()
    drain.look(LATE + 0.4)
    assert drain.live == 1, "it may not have read the confirm"
    drain.look(LATE + 0.6)
    # The publish that came too late has not been passed on, and no confirm has been made up.
    say_goodbye(client, broker)


def test_who_waits_for_nothing_is_told(stage: Stage) -> None:
    client, broker = confirming(stage)
    published(client, broker, b"one")
    broker.say(amqp.BasicNack(1), 1)
    client.expect(amqp.BasicNack, 1)
    drain = DrainStage.begin(stage)
    drain.look()
    drain.look(LATE + 1)
    say_goodbye(client, broker)


@pytest.mark.parametrize("due", [0, 1])
def test_a_message_that_is_half_here_is_not_waited_for(stage: Stage, due: int) -> None:
    """Its sender is told by the close, and hears no confirm."""
    client, broker = confirming(stage)
    for number in range(due):
        published(client, broker, b"%d" % number)
    method = amqp.BasicPublish(routing_key="k")
    whole = content_frames(1, method, amqp.BasicProperties(), b"x" * 1000, 508)
    client.raw(whole[:-10])
    broker.expect(amqp.BasicPublish, 1)
    broker.frame()
    broker.frame()
    drain = DrainStage.begin(stage)
    drain.look()
    drain.look(LATE + 1)
    assert drain.live == due
    for number in range(due):
        broker.say(amqp.BasicAck(number + 1), 1)
        client.expect(amqp.BasicAck, 1)
        drain.look(LATE + 2)
        drain.look(LATE + 3)
    say_goodbye(client, broker)


def test_the_answer_to_a_commit_is_waited_for(stage: Stage) -> None:
    client, broker = stage.opened()
    through(client, broker, amqp.TxSelect(), amqp.TxSelectOk())
    published(client, broker, b"one")
    client.say(amqp.TxCommit(), 1)
    broker.expect(amqp.TxCommit, 1)
    drain = DrainStage.begin(stage)
    drain.look()
    assert drain.live == 1
    broker.say(amqp.TxCommitOk(), 1)
    client.expect(amqp.TxCommitOk, 1)
    drain.look(LATE + 1)
    drain.look(LATE + 2)
    say_goodbye(client, broker)


def test_a_transaction_that_is_not_committed_is_not(stage: Stage) -> None:
    client, broker = stage.opened()
    through(client, broker, amqp.TxSelect(), amqp.TxSelectOk())
    published(client, broker, b"one")
    drain = DrainStage.begin(stage)
    drain.look()
    drain.look(LATE + 1)
    say_goodbye(client, broker)


def test_what_the_client_answers_to_the_brokers_close_is_read(stage: Stage) -> None:
    client, broker = confirming(stage)
    published(client, broker, b"one")
    drain = DrainStage.begin(stage)
    drain.look()
    broker.say(amqp.ConnectionClose(320, "CONNECTION_FORCED - broker forced"))
    client.expect(amqp.ConnectionClose)
    drain.look()
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    client.close()
    broker.expect_end()
    broker.close()


def test_who_becomes_owed_something_has_its_breath_anew(stage: Stage) -> None:
    """What was read before the client was halted may still be on its way."""
    client, broker = stage.opened()
    through(client, broker, amqp.TxSelect(), amqp.TxSelectOk())
    running, leaving = stage.running, GracefulClose()
    (session,) = running.gateway.sessions.values()

    def look(now: float) -> bool:
        return session in running.call(lambda: leaving.look(now))

    running.call(lambda: leaving.begin(session))
    assert not look(0)
    running.call(lambda: session.channels.states[1].committing(1))
    assert not look(2 * BREATH)
    running.call(lambda: session.channels.states[1].committing(-1))
    assert not look(3 * BREATH)
    assert not look(3.9 * BREATH)
    assert look(4 * BREATH)
    # To begin again does not start it again.
    running.call(lambda: leaving.begin(session))
    assert look(4 * BREATH)
    broker.close()
    client.expect(amqp.ConnectionClose)


def test_who_leaves_by_itself_is_forgotten(stage: Stage) -> None:
    client, broker = confirming(stage)
    published(client, broker, b"one")
    running, leaving = stage.running, GracefulClose()
    (session,) = running.gateway.sessions.values()
    running.call(lambda: leaving.begin(session))
    assert session in leaving
    broker.close()
    client.expect(amqp.ConnectionClose)
    client.close()
    running.wait_idle()
    assert running.call(lambda: leaving.look(0.0)) == []
    assert session not in leaving

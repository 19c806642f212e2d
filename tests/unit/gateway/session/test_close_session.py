"""How an operator closes a session: what is waited for, and what is not."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.leaving import confirming, published

MakeStage = Callable[..., Stage]


def close(stage: Stage, why: str = "make room", *, now: bool = False) -> None:
    """Have the oldest session closed."""
    gateway = stage.running.gateway
    assert stage.running.call(lambda: gateway.close_session(next(iter(gateway.sessions)), why, now=now))


def are_told(*talkers: Talker, why: str = "make room") -> None:
    for talker in talkers:
        assert talker.expect(amqp.ConnectionClose) == amqp.ConnectionClose(320, f"CONNECTION_FORCED - {why}")
        talker.say(amqp.ConnectionCloseOk())
        talker.expect_end()
        talker.close()


def test_who_is_owed_nothing_is_told_and_the_others_go_on(stage: Stage) -> None:
    one, two = stage.opened(), stage.opened()
    close(stage)
    are_told(*one)
    published(*two, b"goes on")
    close(stage, "and you")
    are_told(*two, why="and you")
    stage.running.wait_idle()
    assert stage.running.outcomes()["forced"] == 2


def test_a_confirm_that_is_due_is_waited_for(stage: Stage) -> None:
    client, broker = confirming(stage)
    published(client, broker, b"one")
    close(stage)
    client.publish(b"not read any more", "k")
    client.hear_nothing(0.2)
    broker.say(amqp.BasicAck(1), 1)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 1
    are_told(client, broker)


def test_several_at_once(stage: Stage) -> None:
    """One task has them all; it is there again for who is closed when the first are gone."""
    for _ in range(2):
        owed, free = confirming(stage), stage.opened()
        published(*owed, b"one")
        sessions = stage.running.call(lambda: list(stage.running.gateway.sessions))
        before = stage.running.tasks()
        for session in sessions:
            stage.running.call(lambda id=session: stage.running.gateway.close_session(id, "make room"))
        are_told(*free)
        eventually(lambda before=before: stage.running.tasks() == before + 1)
        owed[1].say(amqp.BasicAck(1), 1)
        owed[0].expect(amqp.BasicAck, 1)
        are_told(*owed)
        stage.running.wait_idle()
        eventually(lambda before=before: stage.running.tasks() == before)


def test_who_is_owed_something_is_told_at_the_end_of_the_window(make_stage: MakeStage) -> None:
    client, broker = confirming(stage := make_stage(limits="drainTimeout: 400ms"))
    published(client, broker, b"never confirmed")
    close(stage)
    are_told(client, broker)


def test_now_does_not_wait(stage: Stage) -> None:
    client, broker = confirming(stage)
    published(client, broker, b"never confirmed")
    close(stage, now=True)
    are_told(client, broker)


def test_who_leaves_already_hears_the_first_reason_or_now(stage: Stage) -> None:
    owed, stuck = confirming(stage), confirming(stage)
    for pair in (owed, stuck):
        published(*pair, b"one")
    close(stage)
    close(stage, "another reason")
    stage.running.call(
        lambda: stage.running.gateway.close_session(
            list(stage.running.gateway.sessions)[1], "not yet", now=False
        )
    )
    stage.running.call(
        lambda: stage.running.gateway.close_session(list(stage.running.gateway.sessions)[1], "now", now=True)
    )
    are_told(*stuck, why="now")
    owed[1].say(amqp.BasicAck(1), 1)
    owed[0].expect(amqp.BasicAck, 1)
    are_told(*owed)


def test_the_broker_closes_it_meanwhile(stage: Stage) -> None:
    """The client's answer is read, though nothing else of it is."""
    client, broker = confirming(stage)
    published(client, broker, b"one")
    close(stage)
    broker.say(amqp.ConnectionClose(320, "CONNECTION_FORCED - broker forced"))
    assert client.expect(amqp.ConnectionClose).reply_text == "CONNECTION_FORCED - broker forced"
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    client.close()
    broker.expect_end()
    broker.close()
    stage.running.wait_idle()


def test_a_client_that_does_not_answer_a_close_has_the_window(make_stage: MakeStage) -> None:
    stage = make_stage(limits="drainTimeout: 400ms, closeTimeout: 200ms")
    client, broker = stage.opened()
    broker.say(amqp.ConnectionClose(320, "CONNECTION_FORCED - broker forced"))
    client.expect(amqp.ConnectionClose)
    close(stage)
    client.expect_end()
    broker.expect_end()


def test_a_drain_ends_who_is_being_closed(make_stage: MakeStage) -> None:
    stage = make_stage(limits="closeTimeout: 500ms")
    client, broker = confirming(stage)
    published(client, broker, b"never confirmed")
    close(stage)
    stage.running.call(lambda: stage.running.gateway.drain(0.2))
    close_ = client.expect(amqp.ConnectionClose)
    assert close_.reply_code == 320
    client.say(amqp.ConnectionCloseOk())
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    stage.running.join()


def test_nobody_of_that_id(stage: Stage) -> None:
    assert not stage.running.call(lambda: stage.running.gateway.close_session("none", "why"))

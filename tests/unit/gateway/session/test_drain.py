"""Which sessions are told when, and what is waited for before."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.gateway.session.drain import Drain, Times, staying
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

#: A moment in a drain when every session has had its turn.
LATE = 1000.0


@attrs.define(eq=False)
class DrainStage:
    """A drain of the stage's gateway, whose clock is the test's."""

    stage: Stage
    draining: Drain

    @classmethod
    def begin(cls, stage: Stage) -> DrainStage:
        return cls(stage, Drain(len(stage.running.gateway.sessions), Times.of(25, 5)))

    def look(self, after: float = LATE) -> None:
        gateway = self.stage.running.gateway
        self.stage.running.call(lambda: self.draining.look(list(gateway.sessions.values()), after))

    @property
    def live(self) -> int:
        """Sessions that have not been told."""
        gateway = self.stage.running.gateway
        return self.stage.running.call(
            lambda: sum(session.relay.active for session in gateway.sessions.values())
        )


def say_goodbye(*talkers: Talker) -> None:
    for talker in talkers:
        close = talker.expect(amqp.ConnectionClose)
        assert close == amqp.ConnectionClose(320, "CONNECTION_FORCED - amqpgate is shutting down")
        talker.say(amqp.ConnectionCloseOk())
        talker.expect_end()
        talker.close()


def confirming(stage: Stage) -> tuple[Talker, Talker]:
    client, broker = stage.opened()
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    return client, broker


def published(client: Talker, broker: Talker, body: bytes) -> None:
    client.publish(body, "k")
    assert broker.expect_content(amqp.BasicPublish).body == body


@pytest.mark.parametrize(
    ("window", "close_timeout", "times"),
    [
        (25, 5, Times(16, 20, 25)),
        (60, 5, Times(44, 55, 60)),
        (2, 5, Times(0.8, 1, 5)),
        (0, 5, Times(0, 0, 5)),
    ],
)
def test_the_times_of_a_drain(window: float, close_timeout: float, times: Times) -> None:
    assert attrs.astuple(Times.of(window, close_timeout)) == pytest.approx(attrs.astuple(times))


def test_few_stay_until_the_end_and_many_go_evenly() -> None:
    times = Times.of(25, 5)
    assert [staying(1, after, times) for after in (0, 8, 15.9, 16)] == [1, 1, 1, 0]
    assert [staying(1000, after, times) for after in (0, 4, 8, 12, 16, 17)] == [1000, 750, 500, 250, 0, 0]
    assert staying(0, 0, times) == 0
    assert staying(5, 0, Times.of(0, 5)) == 0


def test_slices_begin_with_the_oldest(stage: Stage) -> None:
    pairs = [stage.opened() for _ in range(4)]
    drain = DrainStage.begin(stage)
    drain.look(0)
    assert drain.live == 4
    drain.look(8)
    assert drain.live == 2
    for pair in pairs[:2]:
        say_goodbye(*pair)
    for client, broker in pairs[2:]:
        published(client, broker, b"goes on")
    drain.look(8)
    assert drain.live == 2
    drain.look(16)
    for pair in pairs[2:]:
        say_goodbye(*pair)


def test_who_leaves_by_himself_has_been_counted(stage: Stage) -> None:
    pairs = [stage.opened() for _ in range(4)]
    drain = DrainStage.begin(stage)
    for client, broker in pairs[:2]:
        client.close()
        broker.expect(amqp.ConnectionClose)
        broker.close()
    eventually(lambda: drain.live == 2)
    drain.look(8)
    assert drain.live == 2


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
    client.octets(whole[:-10])
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
    relayed(client, broker, amqp.TxSelect(), amqp.TxSelectOk(), 1)
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
    relayed(client, broker, amqp.TxSelect(), amqp.TxSelectOk(), 1)
    published(client, broker, b"one")
    drain = DrainStage.begin(stage)
    drain.look()
    drain.look(LATE + 1)
    say_goodbye(client, broker)


def test_who_is_closing_already_is_left_alone(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    DrainStage.begin(stage).look()
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    client.close()
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes()["closed"] == 1


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


def test_at_the_end_who_still_waits_is_told(make_stage: MakeStage) -> None:
    stage = make_stage(limits="drainTimeout: 200ms")
    client, broker = confirming(stage)
    published(client, broker, b"never confirmed")
    stage.running.call(stage.running.gateway.drain)
    say_goodbye(client, broker)
    stage.running.join()


def test_a_second_drain_changes_nothing(stage: Stage) -> None:
    client, broker = stage.opened()
    gateway = stage.running.gateway
    stage.running.call(lambda: gateway.drain(60))
    stage.running.call(lambda: gateway.drain(0))
    published(client, broker, b"goes on")
    assert stage.running.call(gateway.standing).state == "draining"

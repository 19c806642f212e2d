"""Sessions that leave: in a drain whose clock is the test's, and in the middle of a message."""

from __future__ import annotations

import attrs

from amqpgate.gateway.session.drain import Drain, Times
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage

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
    client.say(amqp.ConfirmSelect(), 1)
    broker.expect(amqp.ConfirmSelect, 1)
    broker.say(amqp.ConfirmSelectOk(), 1)
    client.expect(amqp.ConfirmSelectOk, 1)
    return client, broker


def published(client: Talker, broker: Talker, body: bytes) -> None:
    client.publish(body, "k")
    assert broker.expect_content(amqp.BasicPublish).body == body


def close_heard(talker: Talker) -> amqp.ConnectionClose:
    """The connection.close that comes after whatever was under way; every frame before it is whole."""
    for frame in talker.all():
        if frame.channel == 0:
            method = decode_method(frame.payload)
            assert isinstance(method, amqp.ConnectionClose)
            return method
    raise AssertionError("the end came without a close")

"""Whose pool is whose: which logins the broker is asked about, and how all of it ends."""

from __future__ import annotations

import threading

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import CAPABILITIES, Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import asks_for_its_vhost, joined, pooled


def knocks(stage: Stage, password: bytes) -> Talker:
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0" + password, "en_US"))
    return client


def pools(stage: Stage) -> int:
    return stage.running.call(lambda: len(stage.running.gateway.pools.pools))


def test_a_login_that_the_broker_has_accepted_is_not_asked_about_again(shared: Stage) -> None:
    _, broker = pooled(shared)
    joined(shared, broker)
    assert pools(shared) == 1


def test_another_password_is_another_login_which_the_broker_judges(shared: Stage) -> None:
    _, broker = pooled(shared)
    client = knocks(shared, b"wrong")
    asked = shared.broker()
    asked.greet()
    assert asked.expect(amqp.ConnectionStartOk).response == b"\0guest\0wrong"
    asked.say(amqp.ConnectionClose(403, "ACCESS_REFUSED - Login was refused", 0, 0))
    asked.expect(amqp.ConnectionCloseOk)
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (403, "ACCESS_REFUSED - Login was refused")
    assert pools(shared) == 1
    # The one who is right is let in as before.
    joined(shared, broker)


def test_a_virtual_host_that_the_broker_refuses_leaves_no_pool(shared: Stage) -> None:
    client = knocks(shared, b"guest")
    with shared.door.accept() as first:
        first.greet()
        first.expect_end()
    broker = shared.broker()
    broker.greet()
    asks_for_its_vhost(client, broker)
    broker.say(amqp.ConnectionClose(530, "NOT_ALLOWED - access to vhost refused", 10, 40))
    broker.expect(amqp.ConnectionCloseOk)
    assert client.expect(amqp.ConnectionClose).reply_code == 530
    assert pools(shared) == 0
    # What was believed of the login is forgotten with it: the broker is asked again.
    knocks(shared, b"guest")
    again = shared.broker()
    again.greet()
    again.expect(amqp.ConnectionStartOk)


def test_who_goes_while_the_broker_is_asked_leaves_no_socket(shared: Stage) -> None:
    pooled(shared)
    client = knocks(shared, b"other")
    asked = shared.broker()
    asked.greet()
    asked.expect(amqp.ConnectionStartOk)
    client.reset()
    asked.say(amqp.ConnectionTune(2047, 131072, 0))
    asked.expect_end()
    eventually(lambda: shared.running.gateway.acceptor.connections.count == 1)
    assert pools(shared) == 1


def test_at_the_end_every_connection_is_closed_and_its_answer_waited_for(shared: Stage) -> None:
    client, broker = pooled(shared)
    client.say(amqp.ConnectionClose(200, "bye", 0, 0))
    client.expect(amqp.ConnectionCloseOk)
    broker.expect(amqp.ChannelClose, 1)
    registry = shared.running.gateway.pools
    answered = threading.Thread(target=shared.running.ask, args=(registry.finish,))
    answered.start()
    close = broker.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (200, "amqpgate is shutting down")
    broker.say(amqp.ConnectionCloseOk())
    broker.expect_end()
    answered.join()
    assert not any(pool.connections for pool in registry.pools.values())

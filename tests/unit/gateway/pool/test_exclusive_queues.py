"""Exclusive queues on a connection that sessions share."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.exclusive_queues import ExclusiveQueues
from amqpgate.wire.generated import v0_9_1 as amqp

# Only who they are matters.
OWNER = object()
OTHER = object()

MINE = amqp.QueueDeclare(queue="mine", exclusive=True, auto_delete=True)
USES = [
    amqp.QueueDeclare(queue="mine", passive=True),
    amqp.QueueBind(queue="mine", exchange="x"),
    amqp.QueueUnbind(queue="mine", exchange="x"),
    amqp.QueuePurge(queue="mine"),
    amqp.QueueDelete(queue="mine"),
    amqp.BasicConsume(queue="mine"),
    amqp.BasicGet(queue="mine"),
]


def declared() -> ExclusiveQueues:
    queues = ExclusiveQueues("/test")
    queues.declares(OWNER, MINE)
    queues.declared(OWNER, MINE, "mine")
    return queues


@pytest.mark.parametrize("use", USES, ids=lambda use: use.NAME)
def test_who_else_uses_it_hears_405(use: amqp.QueueBind) -> None:
    queues = declared()
    queues.check(OWNER, 1, use, "")
    with pytest.raises(ProtocolViolation) as refused:
        queues.check(OTHER, 1, use, "")
    why = refused.value
    assert (why.code, why.channel, why.class_id, why.method_id) == (405, 1, use.CLASS_ID, use.METHOD_ID)
    assert why.reply_text.startswith(
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/test'."
    )


def test_the_last_queue_of_a_channel_is_meant_by_no_name() -> None:
    queues = declared()
    with pytest.raises(ProtocolViolation):
        queues.check(OTHER, 1, amqp.BasicConsume(), "mine")
    queues.check(OTHER, 1, amqp.BasicConsume(), "another")


def test_it_holds_before_the_broker_has_answered_unless_it_says_no() -> None:
    queues = ExclusiveQueues("/")
    queues.declares(OWNER, MINE)
    with pytest.raises(ProtocolViolation):
        queues.check(OTHER, 1, USES[0], "")
    queues.check(OWNER, 1, USES[0], "")
    queues.not_declared(OWNER, MINE)
    queues.check(OTHER, 1, USES[0], "")
    assert not queues.owns(OWNER)


def test_a_name_that_the_broker_gives() -> None:
    queues = ExclusiveQueues("/")
    nameless = amqp.QueueDeclare(exclusive=True)
    queues.declares(OWNER, nameless)
    assert not queues.owns(OWNER)
    queues.declared(OWNER, nameless, "amq.gen-1")
    with pytest.raises(ProtocolViolation):
        queues.check(OTHER, 1, amqp.QueuePurge(queue="amq.gen-1"), "")


def test_a_declare_that_fails_does_not_take_what_is_there() -> None:
    queues = declared()
    queues.not_declared(OTHER, MINE)
    queues.not_declared(OWNER, MINE)
    assert queues.owns(OWNER)


def test_what_its_owner_deletes_is_anybodys() -> None:
    queues = declared()
    queues.deleted(OTHER, "mine")
    assert queues.owns(OWNER)
    queues.deleted(OWNER, "mine")
    queues.check(OTHER, 1, USES[0], "")


def test_with_its_owner_it_goes_as_it_was_declared() -> None:
    queues = declared()
    queues.declares(OWNER, amqp.QueueDeclare(queue="not there", exclusive=True))
    assert queues.leave(OTHER) == []
    assert queues.leave(OWNER) == [MINE]
    assert queues.leave(OWNER) == []
    queues.check(OTHER, 1, USES[0], "")

"""Which operations need a connection to the broker of their own."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.closes import Channel
from amqpgate.gateway.consumers import Consumer, Consuming
from amqpgate.gateway.sharing import Needs, asks_for, refusal_of
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@pytest.mark.parametrize(
    ("method", "needs"),
    [
        (amqp.QueueDeclare(queue="q"), Needs.NOTHING),
        (amqp.QueueDeclare(queue="q", exclusive=True), Needs.RATHER),
        (amqp.QueueDeclare(queue="q", exclusive=True, no_wait=True), Needs.MUST),
        (amqp.QueueDeclare(queue="q", exclusive=True, passive=True), Needs.NOTHING),
        (amqp.BasicConsume(queue="q"), Needs.NOTHING),
        (amqp.BasicConsume(queue="q", no_ack=True), Needs.RATHER),
        (amqp.BasicConsume(queue="amq.rabbitmq.reply-to"), Needs.RATHER),
        (amqp.BasicPublish(), Needs.NOTHING),
        (amqp.BasicPublish(mandatory=True), Needs.NOTHING),
        (amqp.BasicPublish(immediate=True), Needs.MUST),
        (amqp.BasicRecover(requeue=True), Needs.NOTHING),
        (amqp.BasicRecover(requeue=False), Needs.MUST),
        (amqp.BasicRecoverAsync(requeue=False), Needs.MUST),
        (amqp.BasicQos(0, 10, global_=True), Needs.NOTHING),
        (amqp.BasicQos(1, 10), Needs.MUST),
        (amqp.ExchangeDeclare(exchange="x", type="topic"), Needs.NOTHING),
        (amqp.ExchangeDeclare(exchange="x", type="x-random"), Needs.MUST),
        (amqp.ExchangeDeclare(exchange="x", type="x-random", passive=True), Needs.NOTHING),
        (amqp.ConnectionUpdateSecret(b"new", "why"), Needs.MUST),
        (amqp.ChannelFlow(active=False), Needs.MUST),
        (amqp.ChannelFlow(active=True), Needs.NOTHING),
        (amqp.TxSelect(), Needs.NOTHING),
        (amqp.BasicGet(queue="q"), Needs.NOTHING),
    ],
)
def test_what_an_operation_needs(method: Method, needs: Needs) -> None:
    assert asks_for(method, Channel(), may_consume=True, is_rabbitmq=True) is needs


def test_deliveries_that_are_kept_here_need_nothing() -> None:
    stop = amqp.ChannelFlow(active=False)
    needs = asks_for(stop, Channel(), may_consume=True, is_rabbitmq=True, keeps_deliveries=True)
    assert needs is Needs.NOTHING


def test_a_consumer_without_a_prefetch_count_has_no_bound_and_others_may_be_kept_apart() -> None:
    assert (
        asks_for(amqp.BasicConsume(queue="q"), Channel(), may_consume=False, is_rabbitmq=True) is Needs.RATHER
    )


def test_a_consumer_tag_that_is_in_use_is_refused_as_rabbitmq_does() -> None:
    consuming = Consuming(tags={"mine": Consumer((), 1, no_ack=False)})
    with pytest.raises(ProtocolViolation) as refused:
        asks_for(
            amqp.BasicConsume(consumer_tag="mine"),
            Channel(consuming=consuming),
            may_consume=True,
            is_rabbitmq=True,
        )
    why = refused.value
    assert (why.code, why.scope, why.class_id, why.method_id) == (530, "connection", 60, 20)
    assert why.reply_text == "NOT_ALLOWED - attempt to reuse consumer tag 'mine'"
    assert asks_for(
        amqp.BasicConsume(consumer_tag="other"),
        Channel(consuming=consuming),
        may_consume=True,
        is_rabbitmq=True,
    )


def test_a_global_prefetch_count_is_the_connections_but_for_rabbitmq() -> None:
    limit = amqp.BasicQos(0, 10, global_=True)
    assert asks_for(limit, Channel(), may_consume=True, is_rabbitmq=False) is Needs.MUST
    assert refusal_of(limit, 1, "it consumes").code == 406


@pytest.mark.parametrize(
    ("method", "code", "scope"),
    [
        (amqp.BasicPublish(immediate=True), 540, "connection"),
        (amqp.ChannelFlow(active=False), 540, "connection"),
        (amqp.BasicRecover(), 540, "connection"),
        (amqp.BasicQos(7, 1), 540, "connection"),
        (amqp.ExchangeDeclare(type="nonsense"), 503, "connection"),
        (amqp.ExchangeDeclare(type="x-random"), 406, "channel"),
        (amqp.QueueDeclare(exclusive=True, no_wait=True), 406, "channel"),
    ],
)
def test_what_a_client_hears_that_cannot_have_one(method: Method, code: int, scope: str) -> None:
    why = refusal_of(method, 3, "it consumes")
    assert (why.code, why.scope, why.class_id, why.method_id) == (
        code,
        scope,
        method.CLASS_ID,
        method.METHOD_ID,
    )


def test_a_refusal_says_why() -> None:
    why = refusal_of(amqp.ConnectionUpdateSecret(b"new", "why"), 0, "it consumes")
    assert why.reply_text == (
        "NOT_IMPLEMENTED - 'connection.update-secret' needs a connection to the broker that is not shared, "
        "and it consumes"
    )

"""Which operations need a connection to the broker of their own."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.channel_mapping import ChannelMapping
from amqpgate.gateway.pool.unsupported import Needs, asks_for, refusal_of
from amqpgate.gateway.session.channel_close import SessionChannel
from amqpgate.gateway.session.channel_consumers import ChannelConsumers, SessionConsumer
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table


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
        (amqp.QueuePurge(queue="q"), Needs.RATHER),
        (amqp.QueueDelete(queue="q"), Needs.NOTHING),
        (amqp.QueueDelete(queue="q", if_unused=True), Needs.MUST),
        (amqp.QueueDelete(queue="q", if_empty=True), Needs.MUST),
        (
            amqp.QueueDeclare(queue="q", arguments=Table.of({"x-queue-master-locator": "min-masters"})),
            Needs.MUST,
        ),
        (amqp.QueueDeclare(queue="q", arguments=Table.of({"x-max-length": -1, "mine": 1})), Needs.NOTHING),
        (amqp.QueueDeclare(queue="q", arguments=Table.of({"x-max-age": "1h"})), Needs.NOTHING),
        (amqp.QueueDeclare(queue="q", arguments=Table.of({"x-max-age": "soon"})), Needs.MUST),
        (amqp.QueueDeclare(queue="q", exclusive=True, arguments=Table.of({"x-new": 1})), Needs.MUST),
        (amqp.QueueDeclare(queue="q", passive=True, arguments=Table.of({"x-new": 1})), Needs.NOTHING),
        (amqp.BasicConsume(queue="q", arguments=Table.of({"x-stream-offset": "first"})), Needs.NOTHING),
        (amqp.BasicConsume(queue="q", arguments=Table.of({"x-stream-offset": "nowhere"})), Needs.MUST),
        (amqp.BasicConsume(queue="q", arguments=Table.of({"x-credit": 1})), Needs.MUST),
        (
            amqp.ExchangeDeclare(exchange="x", type="topic", arguments=Table.of({"alternate-exchange": 7})),
            Needs.NOTHING,
        ),
        (amqp.ExchangeDeclare(exchange="x", type="topic", arguments=Table.of({"x-new": 7})), Needs.MUST),
    ],
)
def test_what_an_operation_needs(method: Method, needs: Needs) -> None:
    assert asks_for(method, SessionChannel(), may_consume=True, is_rabbitmq=True) is needs


@pytest.mark.parametrize(
    ("method", "kind", "text"),
    [
        (amqp.BasicGet(queue="q"), "stream", "basic.get not supported by stream queues Q"),
        (amqp.QueuePurge(queue="q"), "stream", "queue.purge not supported by stream queues Q"),
        (
            amqp.BasicConsume(queue="q", no_ack=True),
            "stream",
            "automatic acknowledgement not supported by stream queues Q",
        ),
        (amqp.BasicConsume(queue="q"), "quorum", "Q does not support global qos"),
        (
            amqp.QueueDelete(queue="q", if_unused=True),
            "quorum",
            "cannot delete Q. queue.delete operations with if-unused flag set are not supported by "
            "quorum queues",
        ),
    ],
)
def test_what_a_queue_of_that_type_lacks(method: Method, kind: str, text: str) -> None:
    needs = asks_for(method, SessionChannel(), may_consume=True, is_rabbitmq=True, kind=kind, is_limited=True)
    assert needs is Needs.MUST
    why = refusal_of(method, 3, "it consumes", queue="Q", kind=kind)
    assert (why.code, why.text, why.scope) == (540, text, "connection")


def test_who_gets_is_kept_apart_as_who_consumes() -> None:
    get = amqp.BasicGet(queue="q")
    assert (
        asks_for(get, SessionChannel(), may_consume=True, is_rabbitmq=True, consumers_share=False)
        is Needs.RATHER
    )


def test_who_gets_from_a_queue_that_may_be_a_stream_is_kept_apart() -> None:
    get = amqp.BasicGet(queue="q")
    assert asks_for(get, SessionChannel(), may_consume=True, is_rabbitmq=True, is_known=False) is Needs.RATHER
    assert (
        asks_for(get, SessionChannel(), may_consume=True, is_rabbitmq=False, is_known=False) is Needs.NOTHING
    )


def test_a_consumer_with_a_global_limit_is_kept_apart() -> None:
    needs = asks_for(
        amqp.BasicConsume(queue="q"), SessionChannel(), may_consume=True, is_rabbitmq=True, is_limited=True
    )
    assert needs is Needs.RATHER


def test_where_tags_are_not_known_any_more_there_are_no_more_consumers() -> None:
    state = SessionChannel(consuming=ChannelConsumers(has_more=True))
    with pytest.raises(ProtocolViolation) as refused:
        asks_for(amqp.BasicConsume(), state, channel=3, may_consume=True, is_rabbitmq=True)
    assert (refused.value.code, refused.value.scope) == (406, "channel")


def test_what_the_broker_has_not_asked_is_not_answered() -> None:
    mapping = ChannelMapping(1, is_spare=False)
    assert not mapping.answers(amqp.ChannelFlowOk(True))
    mapping.asks(amqp.ChannelFlow(True))
    mapping.asks(amqp.BasicCancel("t", no_wait=True))
    assert not mapping.answers(amqp.BasicCancelOk("t"))
    assert mapping.answers(amqp.ChannelFlowOk(True))
    assert not mapping.answers(amqp.ChannelFlowOk(True))
    assert mapping.answers(amqp.BasicAck(1))


def test_a_cancel_waits_for_the_consumer() -> None:
    mapping = ChannelMapping(1, is_spare=False, tags_due=["t"])
    assert mapping.awaits_name(amqp.BasicCancel("t"))
    assert not mapping.awaits_name(amqp.BasicCancel("u"))
    assert not mapping.awaits_name(amqp.BasicConsume(consumer_tag="t"))


def test_deliveries_that_are_kept_here_need_nothing() -> None:
    stop = amqp.ChannelFlow(active=False)
    needs = asks_for(stop, SessionChannel(), may_consume=True, is_rabbitmq=True, keeps_deliveries=True)
    assert needs is Needs.NOTHING


def test_a_consumer_without_a_prefetch_count_has_no_bound_and_others_may_be_kept_apart() -> None:
    assert (
        asks_for(amqp.BasicConsume(queue="q"), SessionChannel(), may_consume=False, is_rabbitmq=True)
        is Needs.RATHER
    )


def test_a_consumer_tag_that_is_in_use_is_refused_as_rabbitmq_does() -> None:
    consuming = ChannelConsumers(tags={"mine": SessionConsumer((), 1, no_ack=False)})
    with pytest.raises(ProtocolViolation) as refused:
        asks_for(
            amqp.BasicConsume(consumer_tag="mine"),
            SessionChannel(consuming=consuming),
            may_consume=True,
            is_rabbitmq=True,
        )
    why = refused.value
    assert (why.code, why.scope, why.class_id, why.method_id) == (530, "connection", 60, 20)
    assert why.reply_text == "NOT_ALLOWED - attempt to reuse consumer tag 'mine'"
    assert asks_for(
        amqp.BasicConsume(consumer_tag="other"),
        SessionChannel(consuming=consuming),
        may_consume=True,
        is_rabbitmq=True,
    )


def test_a_global_prefetch_count_is_the_connections_but_for_rabbitmq() -> None:
    limit = amqp.BasicQos(0, 10, global_=True)
    assert asks_for(limit, SessionChannel(), may_consume=True, is_rabbitmq=False) is Needs.MUST
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


@pytest.mark.parametrize(
    ("declare", "needs"),
    [
        (amqp.QueueDeclare(queue="q"), Needs.MUST),
        (amqp.QueueDeclare(queue="q", auto_delete=True), Needs.MUST),
        (amqp.QueueDeclare(queue="q", durable=True), Needs.NOTHING),
        (amqp.QueueDeclare(queue="q", passive=True), Needs.NOTHING),
        (amqp.QueueDeclare(queue="q", exclusive=True), Needs.RATHER),
    ],
)
def test_what_rabbitmq_4_may_end_the_connection_for(declare: Method, needs: Needs) -> None:
    found = asks_for(declare, SessionChannel(), may_consume=True, is_rabbitmq=True, may_deny_transients=True)
    assert found is needs

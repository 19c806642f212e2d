"""Queues, exchanges and bindings of a 0-10 broker."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import EMPTY_TABLE, Table
from tests.unit.bridge.v0_10.broker_lab import START, START_OK, BrokerLab, Heard, exchange, queue


@pytest.fixture
def lab() -> BrokerLab:
    return BrokerLab().login().open()


def test_declare_has_counts_from_a_query(lab: BrokerLab) -> None:
    lab.results[b"q"] = queue(b"q", 7, 2, durable=True)
    assert lab.call(amqp.QueueDeclare(queue="q", durable=True)) == amqp.QueueDeclareOk("q", 7, 2)
    assert lab.commands() == [amqp10.QueueDeclare(b"q", durable=True), amqp10.QueueQuery(b"q")]


def test_declare_without_an_answer_is_carried_out_all_the_same(lab: BrokerLab) -> None:
    assert lab.say(1, amqp.QueueDeclare(queue="q", no_wait=True)) == []
    assert [command.NAME for command in lab.commands()] == ["queue.declare", "queue.query"]


def test_an_exclusive_queue_ends_with_its_session(lab: BrokerLab) -> None:
    lab.call(amqp.QueueDeclare(queue="q", exclusive=True))
    declare = lab.commands()[0]
    assert declare.exclusive
    assert declare.auto_delete


def test_a_queue_without_a_name_gets_one_which_is_the_last(lab: BrokerLab) -> None:
    name = lab.call(amqp.QueueDeclare()).queue
    assert name.startswith("amq.gen-gate.1-")
    assert lab.call(amqp.QueueDeclare()).queue != name
    lab.call(amqp.QueueDeclare(queue=name))
    lab.commands()
    assert lab.call(amqp.QueueBind(exchange="amq.topic", routing_key="k")) == amqp.QueueBindOk()
    assert lab.commands() == [amqp10.ExchangeBind(name.encode(), b"amq.topic", b"k")]


def test_a_name_that_is_made_up_is_not_reserved_where_that_matters() -> None:
    other = BrokerLab()
    other.start = attrs.evolve(START, server_properties=None)
    assert other.login().open().call(amqp.QueueDeclare()).queue.startswith("gen-gate.1-")


@pytest.mark.parametrize(
    "method", [amqp.QueuePurge(), amqp.BasicConsume(), amqp.BasicGet(), amqp.QueueDelete()]
)
def test_there_is_no_last_queue_before_one_was_declared(lab: BrokerLab, method) -> None:
    close = lab.call(method)
    assert (close.reply_code, close.class_id, close.method_id) == (404, method.CLASS_ID, method.METHOD_ID)


def test_a_passive_declare_is_a_query(lab: BrokerLab) -> None:
    lab.results[b"q"] = queue(b"q", 1, 1)
    assert lab.call(amqp.QueueDeclare(queue="q", passive=True)) == amqp.QueueDeclareOk("q", 1, 1)
    assert lab.commands() == [amqp10.QueueQuery(b"q")]
    close = lab.call(amqp.QueueDeclare(queue="none", passive=True))
    assert (close.reply_code, close.class_id, close.method_id) == (404, 50, 10)
    assert "no queue 'none'" in close.reply_text


def test_purge_counts(lab: BrokerLab) -> None:
    lab.results[b"q"] = queue(b"q", 5)
    assert lab.call(amqp.QueuePurge(queue="q")) == amqp.QueuePurgeOk(5)
    assert lab.commands() == [amqp10.QueueQuery(b"q"), amqp10.QueuePurge(b"q")]


@pytest.mark.parametrize(
    ("method", "argument", "received"),
    [
        (amqp.QueueDeclare(queue="q"), "durable", "false"),
        (amqp.QueueDeclare(queue="q", durable=True, auto_delete=True), "auto_delete", "true"),
        (amqp.QueueDeclare(queue="q", durable=True, exclusive=True), "auto_delete", "true"),
        (amqp.ExchangeDeclare(exchange="x", type="topic", durable=True), "type", "topic"),
        (amqp.ExchangeDeclare(exchange="x", type="direct"), "durable", "false"),
        (amqp.ExchangeDeclare(exchange="amq.x", type="topic"), "type", "topic"),
    ],
)
def test_what_is_there_with_other_properties_is_refused(
    lab: BrokerLab, method, argument: str, received: str
) -> None:
    """0-10 ignores durable and auto-delete of what exists, 0-9-1 does not."""
    lab.results[b"q"] = queue(b"q", durable=True)
    lab.results[b"x"] = lab.results[b"amq.x"] = exchange(durable=True)
    close = lab.call(method)
    assert (close.reply_code, close.class_id, close.method_id) == (406, method.CLASS_ID, method.METHOD_ID)
    assert f"inequivalent arg '{argument}' for " in close.reply_text
    assert f"received '{received}' but current is" in close.reply_text


def test_exchanges_of_the_brokers_own(lab: BrokerLab) -> None:
    """qpidd refuses to declare them at all, RabbitMQ if they are others."""
    lab.results[b"amq.topic"] = exchange(b"topic")
    declare = amqp.ExchangeDeclare(exchange="amq.topic", type="topic", durable=True)
    assert lab.call(declare) == amqp.ExchangeDeclareOk()
    assert lab.commands() == [amqp10.ExchangeQuery(b"amq.topic")]
    close = lab.call(amqp.ExchangeDeclare(exchange="amq.mine", type="topic"))
    assert close.reply_code == 403
    assert "exchange name 'amq.mine' contains reserved prefix 'amq.*'" in close.reply_text
    assert [command.NAME for command in lab.commands()] == ["exchange.query"]


def test_deleting_an_exchange_that_may_be_in_use() -> None:
    """qpidd would not look."""
    delete = amqp.ExchangeDelete(exchange="x", if_unused=True)
    lab = BrokerLab().login().open()
    assert lab.call(delete) == amqp.ExchangeDeleteOk()
    lab.results[b"x"] = exchange()
    assert lab.call(delete).reply_code == 540
    other = BrokerLab()
    other.start = attrs.evolve(START, server_properties=None)
    other.results[b"x"] = exchange()
    assert other.login().open().call(delete) == amqp.ExchangeDeleteOk()
    assert other.commands()[-1] == amqp10.ExchangeDelete(b"x", True)


def test_delete_counts(lab: BrokerLab) -> None:
    lab.results[b"q"] = queue(b"q", 5)
    assert lab.call(amqp.QueueDelete(queue="q", if_unused=True)) == amqp.QueueDeleteOk(5)
    assert lab.commands()[-1] == amqp10.QueueDelete(b"q", if_unused=True)


def test_delete_of_what_is_not_there_is_no_error(lab: BrokerLab) -> None:
    assert lab.call(amqp.QueueDelete(queue="q")) == amqp.QueueDeleteOk(0)
    assert lab.call(amqp.ExchangeDelete(exchange="x")) == amqp.ExchangeDeleteOk()
    assert {type(command) for command in lab.commands()} == {amqp10.QueueQuery, amqp10.ExchangeQuery}


def test_delete_ends_the_consumers_of_its_channel_before(lab: BrokerLab) -> None:
    """The broker would end the session."""
    lab.results[b"q"] = queue(b"q")
    lab.call(amqp.BasicConsume(queue="q", consumer_tag="tag"))
    lab.call(amqp.BasicConsume(queue="other", consumer_tag="elsewhere"))
    assert lab.call(amqp.QueueDeclare(queue="q", passive=True)) == amqp.QueueDeclareOk("q")
    lab.commands()
    assert lab.say(1, amqp.QueueDelete(queue="q")) == [
        Heard(1, amqp.QueueDeleteOk()),
        Heard(1, amqp.BasicCancel("tag", no_wait=True)),
    ]
    assert lab.commands()[1:] == [
        amqp10.MessageCancel(b"tag"),
        amqp10.QueueQuery(b"q"),
        amqp10.QueueDelete(b"q"),
    ]
    assert lab.call(amqp.BasicConsume(queue="q", consumer_tag="tag")) == amqp.BasicConsumeOk("tag")


def test_a_delete_without_an_answer_cancels_consumers_all_the_same(lab: BrokerLab) -> None:
    lab.results[b"q"] = queue(b"q")
    lab.call(amqp.BasicConsume(queue="q", consumer_tag="tag"))
    delete = amqp.QueueDelete(queue="q", no_wait=True)
    assert lab.say(1, delete) == [Heard(1, amqp.BasicCancel("tag", no_wait=True))]


def test_a_client_that_takes_no_cancel_is_sent_none() -> None:
    lab = BrokerLab()
    lab.start_ok = attrs.evolve(START_OK, client_properties=EMPTY_TABLE)
    lab.login().open()
    lab.results[b"q"] = queue(b"q")
    lab.call(amqp.BasicConsume(queue="q", consumer_tag="tag"))
    assert lab.say(1, amqp.QueueDelete(queue="q")) == [Heard(1, amqp.QueueDeleteOk())]


def test_a_queue_is_in_use_by_consumers_of_the_same_channel(lab: BrokerLab) -> None:
    lab.results[b"q"] = queue(b"q")
    lab.call(amqp.BasicConsume(queue="q", consumer_tag="tag"))
    assert lab.call(amqp.QueueDelete(queue="q", if_unused=True)).reply_code == 406


def test_delete_ends_the_subscriptions_of_gets_before(lab: BrokerLab) -> None:
    lab.results[b"q"] = queue(b"q", auto_delete=True)
    lab.call(amqp.BasicGet(queue="q"))
    destination = lab.commands()[0].destination
    lab.call(amqp.QueueDelete(queue="q"))
    assert lab.commands() == [
        amqp10.QueueQuery(b"q"),
        amqp10.MessageCancel(destination),
        amqp10.QueueQuery(b"q"),
        amqp10.QueueDelete(b"q"),
    ]


def test_bind_and_unbind(lab: BrokerLab) -> None:
    arguments = Table.of({"x-match": "all"})
    bind = amqp.QueueBind(queue="q", exchange="x", routing_key="k", arguments=arguments)
    assert lab.call(bind) == amqp.QueueBindOk()
    unbind = amqp.QueueUnbind(queue="q", exchange="x", routing_key="k", arguments=arguments)
    assert lab.call(unbind) == amqp.QueueUnbindOk()
    first, second = lab.commands()
    assert (first.queue, first.exchange, first.binding_key[:2]) == (b"q", b"x", b"k#")
    assert first.arguments.get(b"x-match").value == b"all"
    assert second == amqp10.ExchangeUnbind(b"q", b"x", first.binding_key)


def test_exchanges(lab: BrokerLab) -> None:
    declare = amqp.ExchangeDeclare(exchange="x", type="topic", durable=True)
    assert lab.call(declare) == amqp.ExchangeDeclareOk()
    lab.results[b"x"] = exchange()
    assert lab.call(amqp.ExchangeDeclare(exchange="x", passive=True)) == amqp.ExchangeDeclareOk()
    assert lab.call(amqp.ExchangeDelete(exchange="x")) == amqp.ExchangeDeleteOk()
    assert lab.commands() == [
        amqp10.ExchangeDeclare(b"x", b"topic", durable=True),
        amqp10.ExchangeQuery(b"x"),
        amqp10.ExchangeQuery(b"x"),
        amqp10.ExchangeQuery(b"x"),
        amqp10.ExchangeDelete(b"x"),
    ]
    close = lab.call(amqp.ExchangeDeclare(exchange="none", passive=True))
    assert (close.reply_code, close.class_id, close.method_id) == (404, 40, 10)


@pytest.mark.parametrize(
    ("method", "code"),
    [
        (amqp.ExchangeBind(destination="a", source="b"), 540),
        (amqp.ExchangeUnbind(destination="a", source="b"), 540),
        (amqp.ExchangeDeclare(exchange="", type="direct"), 403),
        (amqp.ExchangeDelete(exchange=""), 403),
        (amqp.ExchangeDelete(exchange="amq.topic"), 403),
        (amqp.QueueBind(queue="q", exchange=""), 403),
        (amqp.QueueUnbind(queue="q", exchange=""), 403),
        (amqp.ExchangeDeclare(exchange="x", type="direct", internal=True), 540),
        (amqp.QueueDeclare(queue="q", arguments=Table.of({"x-message-ttl": 1})), 540),
        (amqp.QueueDeclare(queue="q", arguments=Table.of({"x-max-length": "many"})), 406),
    ],
)
def test_what_cannot_be_had_closes_the_channel_and_is_not_asked_for(lab: BrokerLab, method, code) -> None:
    close = lab.call(method)
    assert (close.reply_code, close.class_id, close.method_id) == (code, method.CLASS_ID, method.METHOD_ID)
    assert lab.asked == []
    assert lab.say(1, amqp.ChannelCloseOk()) == []
    lab.open()
    assert lab.call(amqp.QueueDeclare(queue="q")) == amqp.QueueDeclareOk("q")


FAULTS = [
    (amqp.QueueDeclare(queue="q"), "queue.declare", 530, 406),
    (amqp.QueueBind(queue="q", exchange="x"), "exchange.bind", 404, 404),
    (amqp.QueuePurge(queue="q"), "queue.purge", 404, 404),
    (amqp.BasicConsume(queue="q"), "message.subscribe", 405, 405),
    (amqp.ExchangeDeclare(exchange="x", type="odd"), "exchange.declare", 404, 404),
    (amqp.TxSelect(), "tx.select", 540, 540),
    (amqp.QueueDeclare(queue="q"), "queue.query", 403, 403),
    (amqp.BasicGet(queue="q"), "message.subscribe", 408, 404),
]


@pytest.mark.parametrize(("method", "command", "code", "told"), FAULTS)
def test_an_exception_closes_the_channel_for_the_method(
    lab: BrokerLab, method, command: str, code: int, told: int
) -> None:
    lab.faults[command] = amqp10.ExecutionException(code, None, description=b"it is so")
    close = lab.call(method)
    assert (close.reply_code, close.class_id, close.method_id) == (told, method.CLASS_ID, method.METHOD_ID)
    assert "it is so" in close.reply_text
    # The session is gone; what comes before the client knows is dropped.
    assert lab.say(1, amqp.BasicQos(), amqp.ChannelCloseOk()) == []
    lab.faults.clear()
    lab.open()
    assert lab.call(amqp.BasicQos()) == amqp.BasicQosOk()


def test_methods_without_an_equal_are_refused(lab: BrokerLab) -> None:
    assert lab.call(amqp.AccessRequest()) == amqp.AccessRequestOk(1)
    close = lab.call(amqp.BasicCredit(consumer_tag="t"))
    assert (close.reply_code, close.method_id) == (540, amqp.BasicCredit.METHOD_ID)


def test_answers_keep_the_order_of_what_was_asked(lab: BrokerLab) -> None:
    heard = lab.say(1, amqp.QueueDeclare(queue="a"), amqp.BasicQos(), amqp.QueueDeclare(queue="b"))
    assert heard == [
        Heard(1, amqp.QueueDeclareOk("a")),
        Heard(1, amqp.BasicQosOk()),
        Heard(1, amqp.QueueDeclareOk("b")),
    ]

"""What RabbitMQ refuses old clients and their standard does not, where it comes to the same."""

from __future__ import annotations

import pytest

from amqpgate.wire.dialects import LEGACY_CLIENT, QPID_PYTHON_0_8, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Opens, Stage, open_channel

Pair = tuple[Talker, Talker]


@pytest.fixture(params=[LEGACY_CLIENT, QPID_PYTHON_0_8], ids=lambda dialect: dialect.name)
def pair(request: pytest.FixtureRequest, stage: Stage, opens: Opens) -> Pair:
    return opens(stage, request.param, RABBITMQ_0_9_1)


@pytest.fixture
def qpid(stage: Stage, opens: Opens) -> Pair:
    return opens(stage, QPID_PYTHON_0_8, RABBITMQ_0_9_1)


def asks(pair: Pair, question: Method, reached: Method, answer: Method, channel: int = 1) -> None:
    client, broker = pair
    client.say(question, channel)
    assert broker.hear() == (channel, reached)
    broker.say(answer, channel)
    heard, told = client.hear()
    assert (heard, told.NAME.partition("-ok")[0]) == (channel, answer.NAME.partition("-ok")[0])


def consume(pair: Pair, queue: str, tag: str, channel: int = 1, *, exclusive: bool = False) -> None:
    table = Table() if pair[0].dialect is QPID_PYTHON_0_8 else None
    asked = v0_8.BasicConsume(queue=queue, consumer_tag=tag, exclusive=exclusive, arguments=table)
    reached = amqp.BasicConsume(queue=queue, consumer_tag=tag, exclusive=exclusive)
    asks(pair, asked, reached, amqp.BasicConsumeOk(tag), channel)


def declare(pair: Pair, queue: str, *, exclusive: bool = True) -> None:
    asks(
        pair,
        v0_8.QueueDeclare(queue=queue, exclusive=exclusive),
        amqp.QueueDeclare(queue=queue, exclusive=exclusive),
        amqp.QueueDeclareOk(queue),
    )


def test_an_exchange_that_every_broker_has_keeps_its_own_properties(pair: Pair) -> None:
    for name, kind in (("amq.direct", "direct"), ("amq.match", "headers"), ("amq.topic", "fanout")):
        asked = v0_8.ExchangeDeclare(exchange=name, type=kind, auto_delete=True)
        reached = amqp.ExchangeDeclare(exchange=name, type=kind, durable=True)
        asks(pair, asked, reached, amqp.ExchangeDeclareOk())
    passive = amqp.ExchangeDeclare(exchange="amq.direct", type="direct", passive=True)
    asked = v0_8.ExchangeDeclare(exchange="amq.direct", type="direct", passive=True)
    asks(pair, asked, passive, amqp.ExchangeDeclareOk())
    asks(
        pair,
        v0_8.ExchangeDeclare(exchange="mine", type="direct"),
        amqp.ExchangeDeclare(exchange="mine", type="direct"),
        amqp.ExchangeDeclareOk(),
    )


def test_a_new_client_hears_what_rabbitmq_says(stage: Stage, opens: Opens) -> None:
    client, broker = opens(stage, RABBITMQ_0_9_1, RABBITMQ_0_9_1)
    for method in (
        amqp.BasicRecover(requeue=False),
        amqp.ExchangeDeclare(exchange="amq.direct", type="direct"),
        amqp.QueueDeclare(queue="q", exclusive=True),
        amqp.QueueDeclare(queue="q"),
        amqp.TxRollback(),
    ):
        client.say(method, 1)
        assert broker.hear() == (1, method)


def test_an_exclusive_queue_of_ones_own_may_be_declared_again(pair: Pair) -> None:
    declare(pair, "mine")
    again = v0_8.QueueDeclare(queue="mine", durable=True)
    asks(pair, again, amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk("mine"))
    asks(pair, v0_8.QueueDelete(queue="mine"), amqp.QueueDelete(queue="mine"), amqp.QueueDeleteOk())
    declare(pair, "mine", exclusive=False)
    declare(pair, "other", exclusive=False)


def test_a_queue_that_could_not_be_declared_is_not_ones_own(pair: Pair) -> None:
    client, broker = pair
    client.say(v0_8.QueueDeclare(queue="theirs", exclusive=True), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.ChannelClose(405, "RESOURCE_LOCKED", 50, 10), 1)
    client.expect(v0_8.ChannelClose, 1)
    client.say(v0_8.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    open_channel(client, broker, 1)
    declare(pair, "theirs", exclusive=False)


class TestRecoverToTheSame:
    """Without requeue RabbitMQ says 540."""

    def recovers(self, pair: Pair, *, requeue: bool) -> None:
        pair[0].say(v0_8.BasicRecoverAsync(requeue=False), 1)
        _, heard = pair[1].hear()
        assert isinstance(heard, amqp.BasicRecover | amqp.BasicRecoverAsync)
        assert heard.requeue is requeue

    def test_of_an_exclusive_queue(self, pair: Pair) -> None:
        declare(pair, "mine")
        consume(pair, "mine", "c")
        self.recovers(pair, requeue=True)

    def test_in_a_transaction(self, pair: Pair) -> None:
        """The standard has it for channels without one; RabbitMQ does it, and the transaction goes on."""
        declare(pair, "mine")
        consume(pair, "mine", "c")
        asks(pair, v0_8.TxSelect(), amqp.TxSelect(), amqp.TxSelectOk())
        self.recovers(pair, requeue=True)
        asks(pair, v0_8.TxCommit(), amqp.TxCommit(), amqp.TxCommitOk())

    def test_of_a_queue_that_others_may_have_consumers_of(self, pair: Pair) -> None:
        declare(pair, "all", exclusive=False)
        consume(pair, "all", "c")
        self.recovers(pair, requeue=False)

    def test_without_a_consumer(self, pair: Pair) -> None:
        self.recovers(pair, requeue=False)

    def test_of_two_consumers_of_one_queue(self, pair: Pair) -> None:
        declare(pair, "mine")
        consume(pair, "mine", "c")
        open_channel(*pair, 2)
        consume(pair, "mine", "d", 2)
        self.recovers(pair, requeue=False)

    def test_where_one_of_two_is_shared(self, pair: Pair) -> None:
        declare(pair, "mine")
        declare(pair, "all", exclusive=False)
        consume(pair, "mine", "c")
        consume(pair, "all", "d")
        self.recovers(pair, requeue=False)

    def test_after_a_get(self, pair: Pair) -> None:
        declare(pair, "mine")
        consume(pair, "mine", "c")
        asks(pair, v0_8.BasicGet(queue="mine"), amqp.BasicGet(queue="mine"), amqp.BasicGetEmpty())
        self.recovers(pair, requeue=False)

    def test_after_a_consumer_has_ended(self, pair: Pair) -> None:
        """What it got is of nobody else that is there."""
        declare(pair, "mine")
        consume(pair, "mine", "c")
        asks(pair, v0_8.BasicCancel("c"), amqp.BasicCancel("c"), amqp.BasicCancelOk("c"))
        declare(pair, "mine")
        consume(pair, "mine", "d")
        self.recovers(pair, requeue=False)


class TestRollback:
    def acked(self, pair: Pair, *, through: int) -> None:
        """Two messages delivered in a transaction, and some of them acknowledged."""
        client, broker = pair
        consume(pair, "q", "c")
        asks(pair, v0_8.TxSelect(), amqp.TxSelect(), amqp.TxSelectOk())
        for tag in (1, 2):
            broker.content(amqp.BasicDeliver("c", tag), b"", properties=amqp.BasicProperties())
            client.expect_content(v0_8.BasicDeliver)
        client.say(v0_8.BasicAck(through, multiple=True), 1)
        assert broker.hear() == (1, amqp.BasicAck(through, multiple=True))

    def test_delivers_again_to_qpids_client(self, qpid: Pair) -> None:
        client, broker = qpid
        self.acked(qpid, through=2)
        for _ in range(2):
            asks(qpid, v0_8.TxRollback(), amqp.TxRollback(), amqp.TxRollbackOk())
            assert broker.hear() == (1, amqp.BasicRecoverAsync(requeue=True))
            broker.content(amqp.BasicDeliver("c", 3), b"again", properties=amqp.BasicProperties())
            assert client.expect_content(v0_8.BasicDeliver).body == b"again"
            client.say(v0_8.BasicAck(0, multiple=True), 1)
            broker.expect(amqp.BasicAck, 1)

    def test_does_not_where_the_client_has_others(self, qpid: Pair) -> None:
        """They would come again, too, and it has them."""
        self.acked(qpid, through=1)
        asks(qpid, v0_8.TxRollback(), amqp.TxRollback(), amqp.TxRollbackOk())
        declare(qpid, "fence")

    def test_does_not_for_other_clients(self, stage: Stage, opens: Opens) -> None:
        pair = opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1)
        self.acked(pair, through=2)
        asks(pair, v0_8.TxRollback(), amqp.TxRollback(), amqp.TxRollbackOk())
        declare(pair, "fence")


ERRORS = [
    (
        v0_8.ExchangeDeclare(exchange="e"),
        406,
        "PRECONDITION_FAILED - inequivalent arg 'type' for exchange",
        True,
    ),
    (v0_8.ExchangeDeclare(exchange="e"), 406, "PRECONDITION_FAILED - inequivalent arg 'durable'", False),
    (v0_8.ExchangeDeclare(exchange="amq.x"), 403, "ACCESS_REFUSED - contains reserved prefix 'amq.*'", True),
    (v0_8.ExchangeDeclare(exchange="e"), 403, "ACCESS_REFUSED - access to exchange 'e'", False),
    (v0_8.QueuePurge(), 404, "NOT_FOUND - no previously declared queue", True),
    (v0_8.QueuePurge(queue="q"), 404, "NOT_FOUND - no queue 'q'", False),
]


@pytest.mark.parametrize("dialect", [LEGACY_CLIENT, QPID_PYTHON_0_8], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("asked", "code", "text", "is_harsher"), ERRORS)
def test_what_qpid_ends_a_connection_for(
    stage: Stage, opens: Opens, dialect: Dialect, asked: Method, code: int, text: str, is_harsher: bool
) -> None:
    client, broker = opens(stage, dialect, RABBITMQ_0_9_1)
    client.say(asked, 1)
    broker.hear()
    broker.say(amqp.ChannelClose(code, text, asked.CLASS_ID, asked.METHOD_ID), 1)
    if is_harsher and dialect is QPID_PYTHON_0_8:
        close = client.expect(v0_8.ConnectionClose)
        assert (close.reply_code, close.class_id, close.method_id) == (530, asked.CLASS_ID, asked.METHOD_ID)
        assert close.reply_text == "NOT_ALLOWED - " + text.partition(" - ")[2]
        assert broker.expect(amqp.ConnectionClose)
    else:
        assert client.expect(v0_8.ChannelClose, 1).reply_code == code

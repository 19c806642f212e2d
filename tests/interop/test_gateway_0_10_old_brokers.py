"""Clients of AMQP 0-10 on brokers of 0-8 and 0-9, which RabbitMQ is where it is asked in these versions."""

from __future__ import annotations

import pytest

from amqpgate.operator.sessions import row_of
from amqpgate.wire.generated import v0_10 as amqp
from tests.interop.clients_0_10 import Make, make, opened, queue
from tests.support.client_0_10 import Closed, Refused, headers
from tests.support.inprocess import InProcess, eventually

__all__ = ["make", "queue"]


@pytest.fixture(params=["0-8", "0-9", "0-9-1"])
def running(request: pytest.FixtureRequest, make: Make) -> InProcess:
    return make(upstream=f", version: {request.param}")


def test_a_round_trip(running: InProcess, queue: str) -> None:
    with opened(running) as (client, session):
        session.declare(queue)
        for number in range(50):
            session.publish(b"%d" % number, queue, properties=headers(number=str(number)), sync=False)
        session.ask(amqp.ExecutionSync())
        found = session.ask(amqp.QueueQuery(queue=queue.encode()))
        assert isinstance(found, amqp.QueueQueryResult)
        assert found.message_count == 50
        session.subscribe(queue)
        messages = [session.get() for _ in range(50)]
        assert [message.body for message in messages] == [b"%d" % number for number in range(50)]
        assert messages[7].headers == {"number": b"7"}
        session.accept(*messages)
        session.ask(amqp.MessageCancel(destination=b"d"))
        session.ask(amqp.TxSelect())
        session.publish(b"tx", queue)
        session.ask(amqp.TxRollback())
        session.publish(b"tx", queue)
        session.ask(amqp.TxCommit())
        other = client.session(1)
        # What is published last is there when its session is detached.
        other.publish(b"last", queue, sync=False)
        other.detach()

        def count() -> int | None:
            found = session.ask(amqp.QueueQuery(queue=queue.encode()))
            assert isinstance(found, amqp.QueueQueryResult)
            return found.message_count

        eventually(lambda: count() == 2)
        session.ask(amqp.QueueDelete(queue=queue.encode()))
        client.end()


def test_a_transfer_to_nowhere_ends_its_session(running: InProcess) -> None:
    with opened(running) as (client, session):
        with pytest.raises(Refused) as refused:
            session.publish(b"x", "key", exchange="none")
        assert refused.value.code == 404
        client.session(1).publish(b"x", "key")
        rows = running.call(
            lambda: [row_of(one, running.gateway) for one in running.gateway.sessions.values()]
        )
        assert [row["version"] for row in rows] == ["0-10"]


def test_bindings_are_made_and_taken_back(running: InProcess, queue: str) -> None:
    """RabbitMQ has a method for it in 0-8 and 0-9, too, though the standard has none."""
    with opened(running) as (client, session):
        session.declare(queue, auto_delete=True)
        binding = {"queue": queue.encode(), "exchange": b"amq.topic", "binding_key": b"k"}
        session.ask(amqp.ExchangeBind(**binding))
        session.publish(b"bound", "k", exchange="amq.topic")
        session.ask(amqp.ExchangeUnbind(**binding))
        session.publish(b"unbound", "k", exchange="amq.topic")
        session.subscribe(queue)
        session.publish(b"last", queue)
        messages = [session.get(), session.get()]
        assert [message.body for message in messages] == [b"bound", b"last"]
        session.accept(*messages)
        client.end()


def test_a_type_that_the_broker_does_not_know(running: InProcess, queue: str) -> None:
    """RabbitMQ ends the connection before version 4, whoever asks: it is its own 503."""
    with opened(running) as (client, session):
        with pytest.raises(Refused) as refused:
            session.ask(amqp.ExchangeDeclare(exchange=queue.encode(), type=b"nonsense"))
        assert refused.value.code == 404
        session.refused()
        again = client.session(1)
        with pytest.raises(Closed, match="exchange type") as closed:
            again.ask(amqp.ExchangeDeclare(exchange=queue.encode(), type=b"x-nonsense"))
        assert closed.value.text.startswith("503 COMMAND_INVALID")

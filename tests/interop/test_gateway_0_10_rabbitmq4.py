"""Clients of AMQP 0-10 on RabbitMQ 4.3, which has other rules than 3.10 for what their commands come to.

The node denies all that later versions deny: queues that are neither durable nor exclusive, and basic.qos for
a whole channel. With `AMQPGATE_RABBITMQ_ROOT` all other tests of AMQP 0-10 run on such a node, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.types import Map
from tests.interop.clients_0_10 import Make, making, opened, queue
from tests.support.client_0_10 import INFINITE, ClientSession, Closed, Message, Refused, headers, text
from tests.support.rabbitmq import RabbitMQ

__all__ = ["queue"]

pytestmark = pytest.mark.slow

QUORUM = Map(((b"x-queue-type", text("quorum")),))
_ROUND = 2000


@pytest.fixture
def make(rabbitmq4: RabbitMQ, tmp_path: Path) -> Iterator[Make]:
    with making(rabbitmq4, tmp_path) as make:
        yield make


def declare(session: ClientSession, queue: str, arguments: Map | None = None) -> None:
    session.declare(queue, durable=True, arguments=arguments)


def flush(session: ClientSession, destination: str = "d") -> None:
    session.ask(amqp.MessageFlush(destination=destination.encode()))


def release(session: ClientSession, *messages: Message, failed: bool = False) -> None:
    ids = ids_of(message.command_id for message in messages)
    session.ask(amqp.MessageRelease(transfers=ids, set_redelivered=failed))


def grant(session: ClientSession, count: int) -> None:
    session.send(amqp.MessageFlow(destination=b"d", unit=1, value=INFINITE))
    session.send(amqp.MessageFlow(destination=b"d", unit=0, value=count))


@pytest.mark.parametrize("arguments", [None, QUORUM])
def test_messages_are_accepted_released_and_rejected(make: Make, queue: str, arguments: Map | None) -> None:
    with opened(make()) as (client, session):
        declare(session, queue, arguments)
        for number in range(5):
            session.publish(b"%d" % number, queue, properties=headers(n=str(number)))
        session.subscribe(queue, credit=3)
        first, second, third = (session.get() for _ in range(3))
        assert [one.body for one in (first, second, third)] == [b"0", b"1", b"2"]
        assert second.headers["n"] == b"1"
        session.accept(first)
        session.ask(amqp.MessageReject(transfers=ids_of([second.command_id])))
        release(session, third)
        grant(session, 10)
        rest = [session.get() for _ in range(3)]
        assert sorted(one.body for one in rest) == [b"2", b"3", b"4"]
        session.accept(*rest)
        result = session.ask(amqp.QueueQuery(queue=queue.encode()))
        assert isinstance(result, amqp.QueueQueryResult)
        assert result.message_count == 0
        session.ask(amqp.MessageCancel(destination=b"d"))
        session.ask(amqp.QueueDelete(queue=queue.encode()))
        client.end()


@pytest.mark.parametrize("arguments", [None, QUORUM])
def test_a_flush_misses_nothing_that_is_in_the_queue(make: Make, queue: str, arguments: Map | None) -> None:
    """It goes by which answers come behind which deliveries, in classic queues and quorum queues."""
    running = make()
    with opened(running) as (_, session), opened(running) as (_, other):
        declare(session, queue, arguments)
        session.subscribe(queue, credit=0)
        for number in range(150):
            other.publish(b"%d" % number, queue)
            grant(session, 2)
            flush(session)
            [message] = session.messages
            assert message.body == b"%d" % number
            session.messages.clear()
            session.accept(message)
        session.ask(amqp.QueueDelete(queue=queue.encode()))


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    "more", [{}, {"x-delivery-limit": 5}, {"x-dead-letter-exchange": "none", "x-max-length": 1000}], ids=str
)
def test_a_flush_of_a_queue_with_a_single_active_consumer(
    request: pytest.FixtureRequest, tmp_path: Path, queue: str, version: int, more: dict[str, object]
) -> None:
    """A quorum queue that has one refuses basic.get, and closes the channel, with all that the client has."""
    node: RabbitMQ = request.getfixturevalue("rabbitmq4" if version == 4 else "rabbitmq")
    with making(node, tmp_path) as make:
        running = make()
        arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True, **more}
        with contextlib.closing(pika.BlockingConnection(pika.URLParameters(node.url))) as owner:
            owner.channel().queue_declare(queue, durable=True, arguments=arguments)
        with opened(running) as (_, session), opened(running) as (_, other):
            session.subscribe(queue, credit=0)
            mine = []
            for number in range(20):
                # One is not accepted until the end.
                bodies = [b"%d" % (3 * number + at) for at in range(3)]
                for body in bodies:
                    other.publish(body, queue)
                for credit in (2, 2):
                    grant(session, credit)
                    flush(session)
                assert [message.body for message in session.messages] == bodies
                mine += session.messages
                session.messages.clear()
                session.accept(*mine[1:])
                del mine[1:]
                grant(session, 2)
                flush(session)
                assert not session.messages
            # Nobody consumes meanwhile, so somebody else may.
            other.subscribe(queue, credit=1)
            other.publish(b"60", queue)
            assert other.get().body == b"60"
            session.accept(*mine)


def test_a_flush_keeps_the_order_behind_many_settlements(make: Make, queue: str) -> None:
    """A channel tells a quorum queue of 32 settlements at once, and of the rest whenever it has applied
    those. What the queue gives for the rest is younger than what basic.get has answered in the meantime.
    """
    with opened(make()) as (_, session):
        declare(session, queue, QUORUM)
        session.subscribe(queue, credit=0)
        bodies: list[bytes] = []
        for _ in range(10):
            for number in range(_ROUND):
                session.publish(b"%d" % number, queue, sync=number == _ROUND - 1)
            grant(session, 200)
            came = [session.get() for _ in range(200)]
            while came:
                bodies += [message.body for message in came]
                for message in came:
                    session.send(amqp.MessageAccept(transfers=ids_of([message.command_id])))
                grant(session, 200)
                flush(session)
                came = list(session.messages)
                session.messages.clear()
            assert bodies == [b"%d" % number for number in range(_ROUND)]
            bodies.clear()


def test_a_quorum_queue_gives_what_is_asked_for_beside_a_consumer(make: Make, queue: str) -> None:
    """Such a queue answers basic.get that it is empty if a consumer's tag is the text of the delivery tag."""
    running = make()
    with opened(running) as (_, session), opened(running) as (_, other):
        declare(session, queue, QUORUM)
        declare(other, f"{queue}-empty")
        for number in range(3):
            session.subscribe(f"{queue}-empty", f"e{number}", credit=1)
        session.subscribe(queue, credit=3)
        for number in range(4):
            other.publish(b"%d" % number, queue)
        assert [session.get().body for _ in range(3)] == [b"0", b"1", b"2"]
        # In one read, so that no other consumer is made.
        session.session.send(amqp.MessageFlow(destination=b"d", unit=0, value=1))
        flush(session)
        assert [message.body for message in session.messages] == [b"3"]


def test_what_a_client_has_not_seen_is_not_lost(make: Make, queue: str, rabbitmq4: RabbitMQ) -> None:
    """A quorum queue drops what came back 20 times because its consumer has failed. What waits for credit,
    and what is released untouched, comes back as well, but no consumer has failed."""
    if rabbitmq4.eval("rabbit_misc:version().").strip('"') < "4.3":
        pytest.skip("before 4.3 RabbitMQ counts whatever comes back")
    with opened(make()) as (_, session):
        declare(session, queue, QUORUM)
        for number in range(4):
            session.publish(b"%d" % number, queue)
        session.subscribe(queue, credit=4)
        session.send(amqp.MessageStop(destination=b"d"))
        for _ in range(30):
            grant(session, 1)
            release(session, session.get())
        while session.messages:
            release(session, session.messages.popleft())
        grant(session, INFINITE)
        assert sorted(session.get().body for _ in range(4)) == [b"0", b"1", b"2", b"3"]


def test_what_a_client_has_failed_at_is_dropped_in_the_end(make: Make, queue: str) -> None:
    """`set-redelivered` is to the broker what basic.reject is: its limit of deliveries holds."""
    with opened(make()) as (_, session):
        declare(session, queue, QUORUM)
        session.publish(b"poison", queue)
        session.subscribe(queue, credit=1)
        deliveries = 0
        flush(session)
        while session.messages:
            deliveries += 1
            release(session, session.messages.popleft(), failed=True)
            grant(session, 1)
            flush(session)
        assert deliveries == 21


def test_temporary_queues(make: Make, queue: str) -> None:
    """Exclusive and auto-delete queues end as ever. The broker has no such quorum queues: 406."""
    running = make()
    with opened(running) as (client, session):
        session.declare(queue, exclusive=True, auto_delete=True)
        session.publish(b"x", queue)
        session.subscribe(queue)
        session.accept(session.get())
        session.detach()
        for flags in ({"exclusive": True, "auto_delete": True}, {"auto_delete": True}):
            refused = client.session(1)
            with pytest.raises(Refused, match="invalid property") as told:
                refused.declare(queue, durable=True, arguments=QUORUM, **flags)
            assert told.value.code == 406
            refused.refused()
        last = client.session(2)
        result = last.ask(amqp.QueueQuery(queue=queue.encode()))
        assert isinstance(result, amqp.QueueQueryResult)
        assert result.queue is None
        client.end()


@pytest.mark.parametrize("flags", [{}, {"auto_delete": True}, {"exclusive": True}])
def test_a_queue_that_the_broker_denies_ends_the_connection(
    make: Make, queue: str, flags: dict[str, bool]
) -> None:
    """541 of the broker's own. An exclusive queue that stays is not exclusive to the broker."""
    with opened(make()) as (_, session), pytest.raises(Closed, match="transient_nonexcl_queues") as told:
        session.declare(queue, **flags)
    assert told.value.code == 320


@pytest.mark.parametrize("flag", ["if_unused", "if_empty"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_condition_for_a_quorum_queue_ends_the_session_alone(
    make: Make, queue: str, flag: str, is_known: bool
) -> None:
    """RabbitMQ would end the connection."""
    running = make()
    with opened(running) as (client, session), opened(running) as (_, other):
        declare(session if is_known else other, queue, QUORUM)
        with pytest.raises(Refused) as told:
            session.ask(amqp.QueueDelete(queue=queue.encode(), **{flag: True}))
        assert told.value.code == 540
        again = client.session(1)
        again.ask(amqp.QueueDelete(queue=queue.encode()))
        declare(again, queue)
        again.ask(amqp.QueueDelete(queue=queue.encode(), **{flag: True}))
        client.end()


@pytest.mark.parametrize("kind", ["nonsense", "x-nonsense", "x-delayed-message"])
def test_a_type_that_nobody_knows_ends_the_session_alone(make: Make, queue: str, kind: str) -> None:
    with opened(make()) as (client, session):
        with pytest.raises(Refused) as told:
            session.ask(amqp.ExchangeDeclare(exchange=queue.encode(), type=kind.encode()))
        assert told.value.code == 404
        client.session(1).ask(amqp.ExecutionSync())
        client.end()


def test_queries_and_transactions(make: Make, queue: str) -> None:
    running = make()
    with opened(running) as (_, session), opened(running) as (client, other):
        declare(session, queue, QUORUM)
        session.ask(amqp.ExchangeDeclare(exchange=queue.encode(), type=b"topic", durable=True))
        result = other.ask(amqp.ExchangeQuery(name=queue.encode()))
        assert isinstance(result, amqp.ExchangeQueryResult)
        assert (result.type, result.durable, result.not_found) == (b"topic", True, False)
        other.ask(amqp.ExchangeBind(exchange=queue.encode(), queue=queue.encode(), binding_key=b"k.#"))
        other.ask(amqp.TxSelect())
        other.publish(b"1", "k.1", exchange=queue, sync=False)
        other.publish(b"2", "k.2", exchange=queue, sync=False)
        other.ask(amqp.TxCommit())
        session.subscribe(queue)
        session.accept(session.get(), session.get())
        other.ask(amqp.ExchangeDelete(exchange=queue.encode()))
        other.ask(amqp.QueueDelete(queue=queue.encode()))
        client.end()

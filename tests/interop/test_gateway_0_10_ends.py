"""How sessions of clients of AMQP 0-10 end: drains, closes, brokers and clients that go, silence."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.generated import v0_10 as amqp
from tests.interop.clients_0_10 import Make, make, making, opened, queue
from tests.interop.mortal import running_node
from tests.support.client_0_10 import Client010, Closed, Refused
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

__all__ = ["make", "queue"]


@pytest.fixture
def witness(rabbitmq: RabbitMQ, queue: str) -> Iterator[Callable[[], tuple[int, int]]]:
    """How many messages and consumers the queue has, as the broker says; it is there, and is deleted."""
    with Talker.dial(rabbitmq.port) as talker:
        talker.open()
        talker.ask(v0_9_1.QueueDeclare(queue=queue), v0_9_1.QueueDeclareOk, 1)

        def look() -> tuple[int, int]:
            passive = v0_9_1.QueueDeclare(queue=queue, passive=True)
            told = talker.ask(passive, v0_9_1.QueueDeclareOk, 1)
            return told.message_count, told.consumer_count

        yield look
        talker.ask(v0_9_1.QueueDelete(queue=queue), v0_9_1.QueueDeleteOk, 1)
        talker.bye()


Look = Callable[[], tuple[int, int]]


# -- drains --------------------------------------------------------------------------------------------


def test_a_drain_tells_what_is_complete_and_closes(make: Make, queue: str, witness: Look) -> None:
    """What is published and not told complete may be there or not: nothing that is told is lost."""
    running = make()
    with opened(running) as (client, session), opened(running) as (idle, quiet):
        for number in range(2000):
            session.publish(b"%d" % number, queue, sync=False)
        running.call(running.gateway.drain)
        assert client.expect_close().code == 320
        client.expect_end()
        idle.expect_close()
        idle.expect_end()
        running.join()
        assert running.outcomes() == {"drained": 2}
        # All that had come to the broker was confirmed and told, though the client had asked for nothing.
        count, _ = witness()
        assert session.completed == set(range(count))
        assert quiet.exception is None


def test_a_drain_gives_back_what_is_not_accepted(make: Make, queue: str, witness: Look) -> None:
    running = make()
    with opened(running) as (client, session):
        for number in range(10):
            session.publish(b"%d" % number, queue)
        session.subscribe(queue, credit=6)
        messages = [session.get() for _ in range(6)]
        session.accept(*messages[:4])
        running.call(running.gateway.drain)
        client.expect_close()
        client.expect_end()
    running.join()
    assert witness() == (6, 0)


def test_a_drain_does_not_wait_for_who_is_silent(make: Make, queue: str, witness: Look) -> None:
    running = make()
    with opened(running) as (client, session):
        session.publish(b"x", queue)
        client.is_mute = True
        running.call(running.gateway.drain)
        client.expect_close()
        client.expect_end()
        running.join()
        assert running.outcomes() == {"drained": 1}


def test_an_operator_closes_a_session(make: Make) -> None:
    running = make()
    with opened(running) as (client, session):
        session.ask(amqp.ExecutionSync())
        (session_id,) = running.call(lambda: list(running.gateway.sessions))
        running.call(lambda: running.gateway.close_session(session_id, "enough"))
        closed = client.expect_close()
        assert closed.code == 320
        assert "enough" in closed.text
        client.expect_end()


# -- names -----------------------------------------------------------------------------------------------


def test_a_name_is_one_sessions_of_its_connection(make: Make, queue: str, witness: Look) -> None:
    """On one connection it is busy, and taken by force; others have names of their own."""
    running = make()
    with opened(running) as (client, _), opened(running) as (other, _):
        mine, theirs = client.session(1, "name"), other.session(1, "name")
        for session in (mine, theirs):
            session.publish(b"x", queue)
        busy = client.session(2, "name")
        client.until(lambda: busy.ended is not None, "detached")
        assert busy.ended == amqp.DetachCode.SESSION_BUSY
        mine.publish(b"x", queue)
        taker = client.session(3, "name", force=True)
        client.until(lambda: mine.ended is not None, "detached")
        assert mine.ended == amqp.DetachCode.SESSION_BUSY
        for session in (taker, theirs):
            session.publish(b"x", queue)
        assert witness()[0] == 5


# -- clients that go -----------------------------------------------------------------------------------


def half_close(client: Client010) -> None:
    client.sock.shutdown(socket.SHUT_WR)


def reset(client: Client010) -> None:
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    client.sock.close()


@pytest.mark.parametrize("leave", [Client010.close, reset, half_close])
@pytest.mark.parametrize("cut", [0, 7, -7])
def test_a_client_that_vanishes_gives_back_what_it_held(
    make: Make, queue: str, witness: Look, leave: Callable[[Client010], None], cut: int
) -> None:
    running = make()
    with opened(running) as (client, session):
        session.publish(b"one", queue)
        session.publish(b"two", queue)
        session.subscribe(queue)
        session.get()
        session.get()
        assert witness() == (0, 1)
        transfer = amqp.MessageTransfer(destination=b"")
        session.session.send(transfer, [amqp.DeliveryProperties(routing_key=queue.encode())], b"x" * 1000)
        client.sock.sendall(client.connection.take_output()[:cut])
        leave(client)
        eventually(lambda: witness() == (2, 0))
    running.wait_idle()


def test_a_client_that_closes_and_drops_at_once(make: Make, queue: str, witness: Look) -> None:
    """Its last messages arrive all the same."""
    running = make()
    with opened(running) as (client, session):
        # With something unread its kernel would reset the connection, and with that goes what is under way.
        session.ask(amqp.ExecutionSync())
        for _ in range(100):
            session.publish(b"x", queue, sync=False)
        client.connection.close(200, "")
        client.flush()
        client.close()
    running.wait_idle()
    eventually(lambda: witness() == (100, 0))


def test_a_session_that_detaches_has_done_what_it_asked(make: Make, queue: str, witness: Look) -> None:
    running = make()
    with opened(running) as (client, session):
        for _ in range(100):
            session.publish(b"x", queue, sync=False)
        session.detach()
        client.end()
    eventually(lambda: witness() == (100, 0))
    running.wait_idle()
    assert running.outcomes() == {"closed": 1}


def test_a_client_that_never_says_detached(make: Make, queue: str, witness: Look) -> None:
    """Its session holds nothing at the broker, and its others go on."""
    running = make()
    with opened(running) as (client, session):
        session.publish(b"x", queue)
        session.subscribe(queue)
        session.get()
        session.session.send(amqp.QueueDelete(queue=b"none"))
        client.sock.sendall(client.connection.take_output())
        client.is_mute = True
        client.rest(0.3)
        eventually(lambda: witness() == (1, 0))
        client.is_mute = False
        client.session(1).publish(b"y", queue)
    assert witness() == (2, 0)


# -- brokers that go -----------------------------------------------------------------------------------


def test_a_broker_that_dies(tmp_path_factory: pytest.TempPathFactory, queue: str) -> None:
    node = running_node()
    with making(node, tmp_path_factory.mktemp("gateway")) as make:
        running = make()
        with opened(running) as (client, session):
            session.declare(queue, durable=True)
            session.publish(b"x", queue)
            # It forgets queues that Mnesia has not written yet.
            node.eval("mnesia:sync_log().")
            node.kill()
            assert client.expect_close().code == 320
            client.expect_end()
        with pytest.raises(Closed) as closed, Client010.opened(running.port()):
            pass
        assert "CONNECTION_FORCED - cannot connect to upstream" in closed.value.text
        node.start()
        with opened(running) as (client, session):
            session.declare(queue, passive=True)


def test_a_broker_that_closes(make: Make, rabbitmq: RabbitMQ) -> None:
    running = make()
    with opened(running) as (client, session):
        session.ask(amqp.ExecutionSync())
        rabbitmq.close_connections("closed by hand")
        closed = client.expect_close()
        assert (closed.code, "closed by hand" in closed.text) == (320, True)
        client.expect_end()


def test_a_blocked_broker_delays_what_is_complete(
    make: Make, queue: str, witness: Look, rabbitmq: RabbitMQ
) -> None:
    """0-10 has no word for it that clients of qpid-python bear: transfers are complete later."""
    running = make()
    with opened(running) as (client, session), opened(running) as (_, consumer):
        session.publish(b"one", queue)
        consumer.subscribe(queue)
        consumer.accept(consumer.get())
        with rabbitmq.memory_alarm():
            published = session.publish(b"two", queue, sync=False)
            client.rest(0.5)
            assert published not in session.completed
            assert session.exception is None
        session.ask(amqp.ExecutionSync())
        assert consumer.get().body == b"two"


# -- who is silent -------------------------------------------------------------------------------------


def test_heartbeats_both_ways(make: Make) -> None:
    """A client that says nothing for two intervals is cut off; one that answers stays."""
    running = make()
    with Client010.opened(running.port(), heartbeat=1) as beats, opened(running, heartbeat=1) as (silent, _):
        eventually(lambda: len(running.gateway.sessions) == 2)

        def beat() -> bool:
            beats.say(amqp.ConnectionHeartbeat())
            return len(running.gateway.sessions) == 1

        eventually(beat, every=0.05)
        silent.expect_end()
        beats.session().ask(amqp.ExecutionSync())
    running.wait_idle()


def test_who_does_not_log_in(make: Make) -> None:
    running = make(limits=", handshakeTimeout: 1s")
    with Client010.dial(running.port()) as silent, Client010.dial(running.port()) as greeted:
        silent.sock.sendall(b"AMQP")
        greeted.greet()
        silent.expect_end()
        greeted.expect_end()
    running.wait_idle()
    assert running.outcomes() == {"handshake_timeout": 2}


def test_too_many_connections(make: Make) -> None:
    running = make(limits=", maxConnections: 1")
    with opened(running) as (_, session):
        with Client010.dial(running.port()) as late:
            late.expect_end()
        session.ask(amqp.ExecutionSync())
        assert running.outcomes() == {"over_limit": 1}


def test_what_is_refused_before_login(make: Make) -> None:
    """A frame that is larger than a handshake's, and one that does not belong there."""
    running = make()
    for said in (b"\x0f\x00\xff\xff" + bytes(8), b"\x0f\x01\x00\x10" + bytes(12)):
        with Client010.dial(running.port()) as client:
            client.greet()
            client.sock.sendall(said)
            client.expect_end()
    running.wait_idle()
    with pytest.raises((Closed, Refused)), Client010.opened(running.port(), password="wrong"):
        pass

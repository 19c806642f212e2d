"""How clients of AMQP 0-10 come in: mechanisms, own logins, late binding, pools, PROXY headers, workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.gateway.session.session import Session
from amqpgate.wire.generated import v0_10 as amqp
from tests.interop.clients_0_10 import Make, make, opened, queue
from tests.support.client_0_10 import Client010, Closed
from tests.support.gateway import Gateway
from tests.support.inprocess import InProcess, eventually
from tests.support.rabbitmq import RabbitMQ

__all__ = ["make", "queue"]

ROUTE = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: p}
spec:
  routes: [{id: r, match: {user: guest, vhosts: [/]}, upstream: {cluster: broker}}]
"""
#: By each of these the broker is chosen, or shared, otherwise.
WAYS = {"early": {}, "late": {"policies": ROUTE}, "pooled": {"upstream": ", connections: pooled"}}


@pytest.fixture(params=WAYS)
def running(request: pytest.FixtureRequest, make: Make) -> Iterator[InProcess]:
    return make(**WAYS[request.param])


def test_a_login_and_a_round_trip(running: InProcess, queue: str) -> None:
    with opened(running, vhost="/") as (client, session):
        session.declare(queue, auto_delete=True)
        session.publish(b"x" * 200_000, queue)
        session.subscribe(queue)
        message = session.get()
        assert message.body == b"x" * 200_000
        session.accept(message)
        session.detach()
        client.end()


@pytest.mark.parametrize("response", [None, b""])
def test_plain_in_two_steps(running: InProcess, response: bytes | None) -> None:
    """Without a response, or with an empty one, the client is asked."""
    with Client010.dial(running.port()) as client:
        start_ok = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=response, locale=b"en_US")
        client.greet()
        client.say(start_ok)
        assert client.control(amqp.ConnectionSecure).challenge in (None, b"")
        client.say(amqp.ConnectionSecureOk(response=b"\0guest\0guest"))
        client.control(amqp.ConnectionTune)


def test_who_is_refused(running: InProcess) -> None:
    """On the wire both are 320, for 0-10 has no other code. When it comes says what it is taken for, and
    where the broker is chosen late all of it comes after connection.open.
    """
    with pytest.raises(Closed, match="Login was refused") as closed, opened(running, password="wrong"):
        pass
    assert closed.value.code in (403, 530)
    with pytest.raises(Closed, match="vhost none not found") as closed, opened(running, vhost="none"):
        pass
    assert closed.value.code == 530


def test_what_is_offered(running: InProcess) -> None:
    with Client010.dial(running.port()) as client:
        start = client.greet()
        assert start.mechanisms is not None
        assert set(start.mechanisms.items) <= {b"PLAIN", b"ANONYMOUS", b"EXTERNAL"}


@pytest.mark.parametrize(
    "login", [{"mechanism": "ANONYMOUS", "response": b"me"}, {"user": "somebody"}, {"mechanism": "PLAIN"}]
)
def test_the_gateways_own_login(make: Make, queue: str, login: dict[str, object]) -> None:
    running = make(upstream=", user: guest, password: guest")
    with opened(running, **login) as (_, session):
        session.declare(queue, auto_delete=True)
        session.publish(b"x", queue)


def test_a_proxy_header_says_where_the_client_is(make: Make) -> None:
    running = make(listener=", proxyProtocol: any")
    with Client010.dial(running.port(), first=b"PROXY TCP4 10.9.8.7 10.0.0.1 4711 5672\r\n") as client:
        client.log_in()
        client.session().ask(amqp.ExecutionSync())
        assert of(running, 1)[0].principal.source == "10.9.8.7"


# -- shared connections ---------------------------------------------------------------------------------


def of(running: InProcess, count: int) -> list[Session]:
    """The gateway's sessions, of which there are so many, the oldest first."""
    eventually(lambda: len(running.gateway.sessions) == count)
    return list(running.gateway.sessions.values())


def test_clients_share_connections(make: Make, queue: str, rabbitmq: RabbitMQ) -> None:
    """As old clients do: who consumes gets its own, unless consumers may share."""
    running = make(upstream=", connections: pooled, pool: {consumers: shared}")
    before = len(rabbitmq.connections())
    with opened(running) as (_, one), opened(running) as (_, two):
        one.declare(queue, auto_delete=True)
        for number in range(20):
            one.publish(b"%d" % number, queue)
        two.subscribe(queue, credit=10)
        messages = [two.get() for _ in range(10)]
        two.accept(*messages)
        assert [session.upstream.is_pooled for session in of(running, 2)] == [True, True]
        assert len(rabbitmq.connections()) == before + 1
        two.ask(amqp.MessageCancel(destination=b"d"))
        # Transactions need a connection of its own.
        one.ask(amqp.TxSelect())
        one.publish(b"tx", "none")
        one.ask(amqp.TxCommit())


def test_who_needs_a_connection_of_its_own_moves_there(make: Make, queue: str) -> None:
    running = make(upstream=", connections: pooled")
    with opened(running) as (_, session):
        session.publish(b"x", "none")
        (moved,) = of(running, 1)
        assert moved.upstream.is_pooled
        session.declare(queue, auto_delete=True)
        session.subscribe(queue)
        session.publish(b"y", queue)
        assert session.get().body == b"y"
        assert not moved.upstream.is_pooled


# -- workers --------------------------------------------------------------------------------------------

WORKERS = """
workers: 2
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: broker, host: 127.0.0.1, port: %d}]
limits: {drainTimeout: 3s}
admin: {bind: "127.0.0.1:{admin_port}"}
"""


def test_several_workers(rabbitmq: RabbitMQ, queue: str) -> None:
    gateway = Gateway(config=WORKERS % rabbitmq.port)
    with gateway.serving():
        clients = [Client010.opened(gateway.port) for _ in range(8)]
        sessions = [client.session() for client in clients]
        sessions[0].declare(queue, auto_delete=True)
        for session in sessions:
            session.publish(b"x", queue)
        sessions[0].subscribe(queue)
        assert [sessions[0].get().body for _ in sessions] == [b"x"] * 8
        assert gateway.get("/sessions?version=0-10")[1].count('"version": "0-10"') == 8
        sessions[0].detach()
        for client in clients:
            client.end()
            client.close()

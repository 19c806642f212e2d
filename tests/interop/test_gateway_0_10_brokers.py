"""Clients of AMQP 0-9-1, 0-9, 0-8 and 0-10 on brokers of AMQP 0-10.

There are two: a second gateway in front of RabbitMQ, which is one for who says the header of 0-10, and the
embedded broker where it speaks nothing else.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pika
import pika.exceptions
import pytest
import trustme

from tests.interop.brokers import running
from tests.interop.qpid.test_talk_0_10 import SEEN, spoken
from tests.support.embedded import embedded_broker
from tests.support.gateway import Gateway
from tests.support.inprocess import InProcess, eventually, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.versions import SPOKEN, bye, open_up

FAR = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbitmq, url: "amqp://{rabbitmq}"}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
"""
NEAR = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, version: 0-10}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
"""


@pytest.fixture(scope="module")
def broker(rabbitmq: RabbitMQ) -> Iterator[Gateway]:
    """A broker of AMQP 0-10."""
    with running(FAR.format(rabbitmq=rabbitmq.address)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def near(broker: Gateway) -> Iterator[Gateway]:
    """The gateway in front of it."""
    with running(NEAR.format(port=broker.port)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def embedded() -> Iterator[int]:
    """The port of a broker that speaks nothing else."""
    with embedded_broker(versions=("0-10",)) as (_, port):
        yield port


@contextlib.contextmanager
def connected(port: int, **options: object) -> Iterator[pika.BlockingConnection]:
    parameters = pika.ConnectionParameters("127.0.0.1", port, blocked_connection_timeout=20, **options)
    connection = pika.BlockingConnection(parameters)
    yield connection
    if connection.is_open:
        connection.close()


def round_trip(connection: pika.BlockingConnection, count: int = 20) -> None:
    """Messages to a queue of the connection's own, with confirms, and back with acknowledgements."""
    channel = connection.channel()
    queue = channel.queue_declare("", auto_delete=False).method.queue
    channel.confirm_delivery()
    for number in range(count):
        properties = pika.BasicProperties(headers={"n": number}, delivery_mode=2)
        channel.basic_publish("", queue, b"%d" % number, properties)
    channel.basic_qos(prefetch_count=3)
    got = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=20):
        got.append((properties.headers["n"], body))
        channel.basic_ack(method.delivery_tag)
        if len(got) == count:
            break
    channel.cancel()
    channel.queue_delete(queue)
    assert got == [(number, b"%d" % number) for number in range(count)]


def asked(gateway: Gateway, path: str) -> dict[str, list[dict[str, object]]]:
    status, text = gateway.get(path)
    assert status == 200
    return json.loads(text)


# -- as users start it -----------------------------------------------------------------------------------


def test_round_trips_and_what_operators_see(near: Gateway, broker: Gateway) -> None:
    with connected(near.port) as connection:
        round_trip(connection)
        for gateway, versions in ((near, ("0-9-1", "0-10")), (broker, ("0-10", "0-9-1"))):
            (session,) = asked(gateway, "/sessions")["sessions"]
            assert (session["version"], session["upstream_version"]) == versions
    (upstream,) = asked(near, "/upstreams")["upstreams"]
    assert [one["speaks"] for one in upstream["endpoints"]] == ["0-10"]


@pytest.mark.parametrize("name", SEEN)
def test_clients_of_0_10(near: Gateway, rabbitmq: RabbitMQ, name: str) -> None:
    """They are relayed as they are."""
    assert spoken(near.port, rabbitmq, name) == SEEN[name]


def test_a_gateway_that_drains_closes_in_good_order(broker: Gateway) -> None:
    config = NEAR.format(port=broker.port) + "limits: {drainTimeout: 1s, closeTimeout: 5s}\n"
    with running(config) as gateway, connected(gateway.port) as connection:
        round_trip(connection, 1)
        gateway.child.signal(signal.SIGTERM)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.sleep(20)
        assert closed.value.reply_code == 320
        # The broker was told, too.
        eventually(lambda: not asked(broker, "/sessions")["sessions"])


# -- within the test -------------------------------------------------------------------------------------

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}{more}}}]
"""


@attrs.frozen
class Chain:
    """A gateway, what is between it and a broker of 0-10, and how to start another one."""

    make: Callable[..., InProcess]
    port: int


@pytest.fixture
def chain(broker: Gateway) -> Iterator[Chain]:
    with contextlib.ExitStack() as stack:

        def make(more: str = "version: 0-10", port: int = broker.port, **options: object) -> InProcess:
            text = SETTINGS.format(port=port, more=more and f", {more}")
            return stack.enter_context(serving(text, **options))  # type: ignore[arg-type]

        yield Chain(make, broker.port)


@pytest.mark.parametrize("client", SPOKEN)
def test_clients_of_each_version(chain: Chain, client: str) -> None:
    running, words = chain.make(), SPOKEN[client].words
    with running.dial() as talker:
        open_up(talker, SPOKEN[client])
        talker.ask(words.ChannelOpen(), words.ChannelOpenOk, 1)
        bye(talker, SPOKEN[client])
    running.wait_idle()
    assert running.outcomes() == {"closed": 1}


@pytest.mark.parametrize("more", ["version: 0-10", ""])
def test_what_is_refused(chain: Chain, more: str) -> None:
    running = chain.make(more)
    with (
        pytest.raises(pika.exceptions.ProbableAuthenticationError),
        connected(running.port(), credentials=pika.PlainCredentials("guest", "wrong")),
    ):
        pass
    with (
        pytest.raises(pika.exceptions.ProbableAccessDeniedError, match="vhost nowhere not found"),
        connected(running.port(), virtual_host="nowhere"),
    ):
        pass
    running.wait_idle()
    assert running.outcomes() == {"refused": 2}
    (endpoint,) = running.gateway.router.clusters["broker"].endpoints
    assert endpoint.failures == 0


def test_a_login_of_the_gateways_own(chain: Chain) -> None:
    running = chain.make("version: 0-10, user: guest, password: guest")
    with connected(running.port(), credentials=pika.PlainCredentials("nobody", "")) as connection:
        round_trip(connection, 3)


def test_discovered(chain: Chain, embedded: int) -> None:
    """The embedded broker answers the header of 0-9-1 with that of 0-10."""
    running = chain.make("", port=embedded)
    for _ in range(2):
        with connected(running.port()) as connection:
            round_trip(connection)
    (endpoint,) = running.gateway.router.clusters["broker"].endpoints
    assert endpoint.version == "0-10"


def test_a_cluster_of_several_versions(rabbitmq: RabbitMQ, embedded: int) -> None:
    """Whichever it is, the client does not notice."""
    text = f"""
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams:
- name: broker
  order: weighted
  health: {{interval: 100ms}}
  endpoints: [{{address: "127.0.0.1:{rabbitmq.port}"}}, {{address: "127.0.0.1:{embedded}"}}]
"""
    with serving(text) as running:
        endpoints = running.gateway.router.clusters["broker"].endpoints
        eventually(lambda: [one.version for one in endpoints] == ["0-9-1", "0-10"])
        reached = set()
        for _ in range(20):
            with connected(running.port()) as connection:
                round_trip(connection, 1)
                (session,) = running.gateway.sessions.values()
                reached.add(session.facts.interpreters[1].version)
            running.wait_idle()
            if len(reached) == 2:
                break
        assert reached == {"AMQP 0-9-1", "AMQP 0-10"}


BY_USER = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: p}
spec: {routes: [{id: r, match: {user: guest}, upstream: {cluster: broker, version: 0-10}}]}
"""


def test_a_broker_that_is_chosen_by_the_login(chain: Chain, tmp_path: Path) -> None:
    """The upstream has no version of its own: it is asked for 0-9-1 what it offers, and told 0-10."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "route.yaml").write_text(BY_USER)
    text = SETTINGS.format(port=chain.port, more="") + "policies: policies\n"
    with serving(text, folder=tmp_path) as running:
        with connected(running.port()) as connection:
            round_trip(connection, 3)
            (session,) = running.gateway.sessions.values()
            assert session.facts.interpreters[1].version == "AMQP 0-10"
        with (
            pytest.raises(pika.exceptions.ProbableAccessDeniedError),
            connected(running.port(), virtual_host="nowhere"),
        ):
            pass
        (endpoint,) = running.gateway.router.clusters["broker"].endpoints
        assert endpoint.failures == 0


MIRRORED = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: p}
spec:
  routes:
  - id: r
    match: {listeners: [main]}
    upstream: {cluster: home, mirror: {cluster: mirror}}
"""


def test_a_mirror(rabbitmq: RabbitMQ, embedded: int, tmp_path: Path) -> None:
    """It is confirmed to, which is completion in 0-10."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "route.yaml").write_text(MIRRORED)
    text = f"""
listeners:
- {{name: main, upstream: home, bind: 127.0.0.1:0}}
- {{name: there, upstream: mirror, bind: 127.0.0.1:0}}
upstreams:
- {{name: home, url: "amqp://{rabbitmq.address}"}}
- {{name: mirror, host: 127.0.0.1, port: {embedded}, user: guest, password: guest}}
policies: policies
"""
    with (
        serving(text, folder=tmp_path) as running,
        connected(running.port()) as here,
        connected(running.port("there")) as there,
    ):
        ours, theirs = here.channel(), there.channel()
        for channel in (ours, theirs):
            channel.queue_declare("copied")
            channel.queue_purge("copied")
        for number in range(50):
            ours.basic_publish("", "copied", b"%d" % number)
        eventually(lambda: theirs.queue_declare("copied", passive=True).method.message_count == 50)
        for number in range(50):
            assert theirs.basic_get("copied", auto_ack=True)[2] == b"%d" % number
        ours.queue_delete("copied")


def test_over_tls(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert("localhost")
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (tmp_path / "key.pem").write_bytes(issued.private_key_pem.bytes())
    far = f"""
listeners: [{{name: main, bind: 127.0.0.1:0, tls: {{cert: cert.pem, key: key.pem}}}}]
upstreams: [{{name: rabbitmq, url: "amqp://{rabbitmq.address}"}}]
"""
    with serving(far, folder=tmp_path) as broker:
        more = ", version: 0-10, tls: {ca: ca.pem, serverName: localhost}"
        text = SETTINGS.format(port=broker.port(), more=more)
        with serving(text, folder=tmp_path) as running, connected(running.port()) as connection:
            round_trip(connection)
            channel = connection.channel()
            queue = channel.queue_declare("", auto_delete=False).method.queue
            channel.basic_publish("", queue, b"x" * 1_000_000)
            assert len(channel.basic_get(queue, auto_ack=True)[2]) == 1_000_000


def test_a_broker_that_is_killed_and_another_one_in_its_place(rabbitmq: RabbitMQ, chain: Chain) -> None:
    with running(FAR.format(rabbitmq=rabbitmq.address)) as first:
        port = first.port
        here = chain.make("health: {interval: 100ms, failures: 1}, version: 0-10", port=port)
        with connected(here.port()) as connection:
            round_trip(connection, 1)
            first.child.kill()
            with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
                connection.sleep(20)
            assert closed.value.reply_code == 320
        (endpoint,) = here.gateway.router.clusters["broker"].endpoints
        eventually(lambda: not endpoint.up)
    with embedded_broker_at(port):
        eventually(lambda: endpoint.up)
        with connected(here.port()) as connection:
            round_trip(connection)


@contextlib.contextmanager
def embedded_broker_at(port: int) -> Iterator[None]:
    """A gateway in front of an embedded broker, on this port."""
    with embedded_broker(versions=("0-10",)) as (_, inner):
        text = SETTINGS.format(port=inner, more="").replace("127.0.0.1:0", f"127.0.0.1:{port}")
        with serving(text):
            yield


def test_connections_that_would_be_shared(chain: Chain, embedded: int) -> None:
    running = chain.make("connections: pooled", port=embedded)
    with (
        pytest.raises(pika.exceptions.ProbableAuthenticationError, match="cannot share connections"),
        connected(running.port()),
    ):
        pass

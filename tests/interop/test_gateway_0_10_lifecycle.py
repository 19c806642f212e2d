"""Gateways of clients of AMQP 0-10 come and go: take-over, drain, reload, with TLS and without; before a
RabbitMQ, where sessions are translated, and before a broker of 0-10, where they pass as they came.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from attrs import define, field

from amqpgate.wire.generated import v0_10 as amqp
from tests.interop.clients_0_10 import ACCESS, queue
from tests.interop.test_gateway_drain import Place, amqpgate, over
from tests.interop.test_gateway_tls import papers
from tests.support.client_0_10 import (
    BYTES,
    INFINITE,
    MESSAGES,
    Client010,
    ClientSession,
    Closed,
    Gone,
    Refused,
)
from tests.support.embedded import embedded_broker
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

__all__ = ["queue"]

pytestmark = pytest.mark.slow

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"{tls}}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, version: {version}}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 3s, closeTimeout: 2s}}
policies: {policies}
watchPolicies: false
"""
RULES = ACCESS + "  rules: [%s]\n"
ANY = RULES % '{id: any, effect: allow, operations: ["*"]}'
#: Consuming is not among them.
LESS = RULES % "{id: some, effect: allow, operations: [queue.declare, queue.delete, basic.publish]}"


@define(eq=False)
class Setting:
    """Gateways on one port before one broker, and how clients reach them."""

    place: Place
    policies: Path
    context: ssl.SSLContext | None = None

    def client(self) -> tuple[Client010, ClientSession]:
        """A client that is logged in, and a session."""
        client = Client010.dial(self.place.now.port, tls=self.context)
        try:
            client.log_in()
            return client, client.session()
        except BaseException:
            client.close()
            raise


@pytest.fixture(params=["translated", "relayed"])
def broker(request: pytest.FixtureRequest) -> Iterator[tuple[int, str]]:
    """Port and version of a broker."""
    if request.param == "translated":
        rabbitmq: RabbitMQ = request.getfixturevalue("rabbitmq")
        yield rabbitmq.port, "0-9-1"
    else:
        with embedded_broker(versions=("0-10",)) as (_, port):
            yield port, "0-10"


@pytest.fixture(params=["plain", "tls"])
def setting(request: pytest.FixtureRequest, broker: tuple[int, str], tmp_path: Path) -> Iterator[Setting]:
    tls, context = "", None
    if request.param == "tls":
        ca = trustme.CA()
        papers(ca, tmp_path, "listener", "localhost")
        tls = f", tls: {{cert: {tmp_path}/listener.pem, key: {tmp_path}/listener.key}}"
        context = ssl.create_default_context()
        ca.configure_trust(context)
    port, version = broker
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(ANY)
    place = Place(CONFIG.format(tls=tls, port=port, version=version, policies=policies))
    place.now.start()
    try:
        yield Setting(place, policies, context)
    finally:
        if place.now._child is not None:
            ended = place.now.stop()
            assert "Traceback" not in ended.log


@define(eq=False)
class Publisher:
    """One that publishes numbers until it is told to stop, and connects again when it is sent away."""

    setting: Setting
    queue: str
    #: What was complete, and how often it was sent away.
    complete: set[int] = field(factory=set)
    said: int = 0
    ends: list[int] = field(factory=list)
    stop: threading.Event = field(factory=threading.Event)

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                client, session = self.setting.client()
            except (Closed, Gone, OSError):
                continue
            with client:
                try:
                    while not self.stop.is_set():
                        number = self.said
                        self.said += 1
                        session.publish(b"%d" % number, self.queue)
                        self.complete.add(number)
                except Closed as closed:
                    self.ends.append(closed.code)
                except (Gone, OSError):
                    self.ends.append(0)


def all_of(session: ClientSession, queue: str) -> list[bytes]:
    """What there is in the queue, a thousand at a time: nobody gets all of a long one unaccepted."""
    session.subscribe(queue, "all", credit=0)
    bodies: list[bytes] = []
    while True:
        session.send(amqp.MessageFlow(destination=b"all", unit=BYTES, value=INFINITE))
        session.send(amqp.MessageFlow(destination=b"all", unit=MESSAGES, value=1000))
        session.ask(amqp.MessageFlush(destination=b"all"))
        if not session.messages:
            break
        bodies += [message.body for message in session.messages]
        session.accept(*session.messages)
        session.messages.clear()
    session.ask(amqp.MessageCancel(destination=b"all"))
    return bodies


def test_a_take_over_loses_nothing(setting: Setting, queue: str) -> None:
    """The port is another process's from then on. Who is at the old one hears what is complete, and 320."""
    client, session = setting.client()
    with client:
        session.declare(queue, durable=True)
        for number in range(10):
            session.publish(b"held %d" % number, queue)
        session.subscribe(queue, credit=6)
        messages = [session.get() for _ in range(6)]
        session.accept(*messages[:4])
        publisher = Publisher(setting, queue)
        thread = threading.Thread(target=publisher.run)
        thread.start()
        try:
            eventually(lambda: len(publisher.complete) > 20)
            old = setting.place.take_over()
            assert client.expect_close().code == 320
            client.expect_end()
            assert over(old).code == 0
            before = len(publisher.complete)
            eventually(lambda: len(publisher.complete) > before + 20)
        finally:
            publisher.stop.set()
            thread.join()
    assert publisher.ends == [320]
    client, session = setting.client()
    with client:
        bodies = all_of(session, queue)
        held, published = bodies[:6], bodies[6:]
        assert sorted(held) == [b"held %d" % number for number in range(4, 10)]
        # What was not complete as the connection ended may be there or not.
        assert len(set(published)) == len(published)
        assert publisher.complete <= {int(body) for body in published} <= set(range(publisher.said))
        session.ask(amqp.QueueDelete(queue=queue.encode()))
        client.end()


def test_a_drain_tells_what_is_complete(setting: Setting, queue: str) -> None:
    client, session = setting.client()
    with client:
        session.declare(queue, durable=True)
        for number in range(500):
            session.publish(b"%d" % number, queue, sync=False)
        assert amqpgate(setting.place.now, "drain").exit_code == 0
        assert client.expect_close().code == 320
        client.expect_end()
        assert over(setting.place.now).code == 0
    setting.place.start_again()
    again, other = setting.client()
    with again:
        bodies = all_of(other, queue)
        # The first command was the declaration.
        assert bodies == [b"%d" % number for number in range(len(bodies))]
        assert {number - 1 for number in session.completed} - {-1} <= set(range(len(bodies)))
        other.ask(amqp.QueueDelete(queue=queue.encode()))
        again.end()


def test_a_reload_ends_who_may_not_go_on(setting: Setting, queue: str) -> None:
    """A subscription that is denied from now on ends its session; what it had goes back."""
    client, session = setting.client()
    with client:
        session.declare(queue, durable=True)
        other = client.session(1)
        for number in range(3):
            other.publish(b"%d" % number, queue)
        session.subscribe(queue, credit=2)
        messages = [session.get(), session.get()]
        session.accept(messages[0])
        (setting.policies / "policy.yaml").write_text(LESS)
        reload(setting)
        with contextlib.suppress(Refused):
            session.subscribe(queue, "again")
        assert session.refused().code in (403, 408)
        other.publish(b"3", queue)
        (setting.policies / "policy.yaml").write_text(ANY)
        reload(setting)
        assert all_of(client.session(2), queue) == [b"1", b"2", b"3"]
        other.ask(amqp.QueueDelete(queue=queue.encode()))
        client.end()


def reload(setting: Setting) -> None:
    said = amqpgate(setting.place.now, "reload")
    assert said.exit_code == 0, said.output


def test_large_messages_pass(setting: Setting, queue: str) -> None:
    client, session = setting.client()
    with client:
        session.declare(queue, durable=True)
        sizes = [0, 1, 16_384, 65_523, 65_524, 300_000, 2_000_000]
        for size in sizes:
            session.publish(bytes(size), queue)
        assert [len(body) for body in all_of(session, queue)] == sizes
        session.ask(amqp.QueueDelete(queue=queue.encode()))
        client.end()

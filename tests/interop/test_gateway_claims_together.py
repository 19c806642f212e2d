"""Bodies that RabbitMQ 4.3 refuses, for clients of each version, with a delay or a limit of the channel.

The store is OpenStack Swift; what is too large is what the broker says (16 MiB).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pika
import pika.exceptions
import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp_0_10
from amqpgate.wire.tables import Field, Table
from amqpgate.wire.v0_10.types import Map
from tests.interop.test_gateway_bridge import Client
from tests.interop.test_gateway_claims import CONFIG, MIB, PROFILE, body_of, connected, environment, swift
from tests.support.client_0_10 import Client010, text
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.swift import Swift
from tests.support.versions import SPOKEN, open_up

__all__ = ["environment", "swift"]

pytestmark = pytest.mark.slow

LARGE = 17 * MIB
DELAYING = Table.of({"x-delayed-type": "topic"})


@pytest.fixture(scope="module")
def gate(
    rabbitmq4: RabbitMQ, swift: Swift, environment: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("together")
    (folder / "policies").mkdir()
    profile = PROFILE.format(store=swift.port).replace("above: 1Mi", "above: 16Mi")
    profile += "  delayedExchanges: [{exchange: {prefix: later}}]\n"
    (folder / "policies" / "three.yaml").write_text(profile)
    with serving(CONFIG.format(port=rabbitmq4.port, connections="own"), folder=folder) as running:
        yield running


@pytest.fixture
def name(gate: InProcess) -> Iterator[str]:
    """An exchange that delays, and a queue of the same name that is bound to it."""
    name = f"later.{secrets.token_hex(4)}"
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.exchange_declare(
            name, "x-delayed-message", durable=True, arguments={"x-delayed-type": "topic"}
        )
        channel.queue_declare(name, durable=True)
        channel.queue_bind(name, name, "a.#")
        yield name
        channel.queue_delete(name)
        channel.exchange_delete(name)


def test_the_broker_refuses_it_directly(rabbitmq4: RabbitMQ, name: str) -> None:
    with connected(rabbitmq4.port) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="larger than configured max size"):
            channel.basic_publish("", name, body_of(LARGE))


@pytest.mark.parametrize("version", SPOKEN)
def test_it_is_delayed(gate: InProcess, name: str, version: str) -> None:
    """The consumer sees exchange, routing key and `x-delay` as the plugin shows them, and the body."""
    with gate.dial() as talker:
        open_up(talker, SPOKEN[version])
        client = Client(talker, SPOKEN[version])
        client.ask(amqp.ChannelOpen())
        client.ask(amqp.BasicConsume(queue=name, consumer_tag="c"))
        for delay, body in ((400, body_of(LARGE)), (100, b"small")):
            headers = Table((("x-delay", Field("I", delay)),))
            client.publish(amqp.BasicPublish(exchange=name, routing_key="a.b"), body, "a/b", None, headers)
        for delay, body in ((100, b"small"), (400, body_of(LARGE))):
            method, message = client.message(amqp.BasicDeliver)
            assert isinstance(method, amqp.BasicDeliver)
            assert (method.exchange, method.routing_key, method.redelivered) == (name, "a.b", False)
            headers = message.header.properties.headers  # type: ignore[attr-defined]
            assert headers.to_python() == {"x-delay": -delay}
            assert message.body == body
            client.say(amqp.BasicAck(method.delivery_tag))


def test_it_is_delayed_for_a_client_of_0_10(gate: InProcess, name: str) -> None:
    with Client010.opened(gate.port()) as client:
        session = client.session()
        session.subscribe(name)
        for delay, body in (("400", body_of(LARGE)), ("100", b"small")):
            said = Map(((b"x-delay", text(delay)),))
            session.publish(
                body, "a.b", exchange=name, properties=amqp_0_10.MessageProperties(application_headers=said)
            )
        small, large = session.get(), session.get()
        assert [one.delivery.exchange for one in (small, large)] == [name.encode()] * 2
        assert [one.delivery.routing_key for one in (small, large)] == [b"a.b"] * 2
        assert [one.headers for one in (small, large)] == [{"x-delay": -100}, {"x-delay": -400}]
        assert small.body == b"small"
        assert large.body == body_of(LARGE)
        session.accept(small, large)


def test_one_limit_for_two_consumers(gate: InProcess, name: str) -> None:
    """Two bodies are with the client at most, whoever of its consumers has them. The third one waits."""
    with connected(gate.port()) as connection:
        channel = connection.channel()
        for number in range(4):
            channel.basic_publish(name, "a.b", body_of(LARGE + number))
        channel.basic_qos(prefetch_count=2, global_qos=True)
        found: list[tuple[int, int]] = []
        for _ in range(2):
            channel.basic_consume(
                name, lambda _, method, __, body: found.append((method.delivery_tag, len(body)))
            )
        for count in (2, 3, 4):
            while len(found) < count:
                connection.process_data_events(time_limit=60)
            assert len(found) == count
            channel.basic_ack(found[count - 2][0])
        assert sorted(size for _, size in found) == [LARGE + number for number in range(4)]

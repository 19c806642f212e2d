"""kombu: serialisers, compression, retries and reconnection on top of py-amqp."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import kombu
import pytest

from tests.interop.steps import Setting

pytestmark = pytest.mark.usefixtures("litter")


@pytest.fixture
def at(setting: Callable[[str], Setting]) -> Setting:
    return setting("kombu")


@pytest.fixture
def connection(at: Setting) -> Iterator[kombu.Connection]:
    with kombu.Connection(
        hostname=at.host, port=at.port, userid=at.user, password=at.password, virtual_host=at.vhost
    ) as connection:
        yield connection


def drain(connection: kombu.Connection, until: Callable[[], bool]) -> None:
    while not until():
        connection.drain_events(timeout=20)


def test_serialisers_and_compression(connection: kombu.Connection) -> None:
    payload = {"text": "grün", "numbers": list(range(1000)), "none": None}
    tasks = kombu.Queue("tasks", kombu.Exchange("tasks", "topic", durable=False), "task.#", exclusive=True)
    got = []
    forms = [("json", None), ("json", "zlib"), ("yaml", "bzip2"), ("pickle", "lzma")]
    with (
        connection.Producer() as producer,
        connection.Consumer([tasks], accept=["json", "yaml", "pickle"]) as consumer,
    ):
        consumer.register_callback(lambda body, message: (got.append((body, message)), message.ack()))
        for number, (serializer, compression) in enumerate(forms):
            producer.publish(
                payload,
                exchange=tasks.exchange,
                routing_key=f"task.{number}",
                declare=[tasks],
                serializer=serializer,
                compression=compression,
                headers={"number": number},
                expiration=60,
                priority=number,
            )
        drain(connection, lambda: len(got) == len(forms))
    assert [body for body, _ in got] == [payload] * len(forms)
    assert [message.headers["number"] for _, message in got] == list(range(len(forms)))
    assert [message.properties["expiration"] for _, message in got] == ["60000"] * len(forms)
    assert [message.delivery_info["routing_key"] for _, message in got] == [f"task.{n}" for n in range(4)]


def test_simple_queue(connection: kombu.Connection) -> None:
    with connection.SimpleQueue("simple") as queue:
        for number in range(20):
            queue.put({"number": number})
        got = []
        for _ in range(20):
            message = queue.get(timeout=20)
            got.append(message.payload["number"])
            message.ack()
        assert got == list(range(20))
        with pytest.raises(queue.Empty):
            queue.get_nowait()
    connection.default_channel.queue_delete("simple")


def test_returned_message(connection: kombu.Connection) -> None:
    returned: list[tuple[object, ...]] = []

    def on_return(error: Exception, exchange: str, key: str, message: object) -> None:
        returned.append((error.reply_code, error.reply_text, exchange, key, message.body))

    with connection.Producer(on_return=on_return) as producer:
        producer.publish("lost", routing_key="nowhere", mandatory=True)
        drain(connection, lambda: bool(returned))
    assert returned == [(312, "NO_ROUTE", "", "nowhere", "lost")]


def test_reconnects_after_the_operator_closed_it(connection: kombu.Connection, at: Setting) -> None:
    errors: list[BaseException] = []
    queue = kombu.Queue("reconnect", durable=True)
    with connection.Producer() as producer:
        producer.publish("one", routing_key="reconnect", declare=[queue], delivery_mode=2)
        # The operator must not be faster than the message.
        while connection.default_channel.queue_declare("reconnect", passive=True).message_count == 0:
            pass
        at.ask("close")
        with pytest.raises(connection.connection_errors, match="CONNECTION_FORCED - maintenance tonight"):
            connection.drain_events(timeout=20)
        producer.publish(
            "two",
            routing_key="reconnect",
            declare=[queue],
            delivery_mode=2,
            retry=True,
            retry_policy={
                "max_retries": 20,
                "interval_start": 0.1,
                "interval_step": 0,
                "errback": lambda error, interval: errors.append(error),
            },
        )
    got = []
    with connection.Consumer([queue], callbacks=[lambda body, message: (got.append(body), message.ack())]):
        drain(connection, lambda: len(got) == 2)
    queue(connection.default_channel).delete()
    assert got == ["one", "two"]


def test_heartbeats_keep_a_silent_connection(at: Setting) -> None:
    with kombu.Connection(
        hostname=at.host,
        port=at.port,
        userid=at.user,
        password=at.password,
        virtual_host=at.vhost,
        heartbeat=1,
    ) as connection:
        connection.connect()
        for _ in range(16):
            connection.heartbeat_check(rate=4)
            with pytest.raises(socket.timeout):
                connection.drain_events(timeout=0.25)
        assert connection.default_channel.queue_declare("beat", exclusive=True).queue == "beat"

"""Established sessions: what passes, and which messages are looked at."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage


def test_methods_of_the_connection_pass_while_it_is_open(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(amqp.ConnectionBlocked("low on memory"))
    assert client.expect(amqp.ConnectionBlocked).reason == "low on memory"
    client.say(amqp.ConnectionUpdateSecret(b"\0new", "expired"))
    assert broker.expect(amqp.ConnectionUpdateSecret) == amqp.ConnectionUpdateSecret(b"\0new", "expired")
    broker.say(amqp.ConnectionUpdateSecretOk())
    client.expect(amqp.ConnectionUpdateSecretOk)
    broker.say(amqp.ConnectionUnblocked())
    client.expect(amqp.ConnectionUnblocked)


def test_a_content_header_larger_than_was_agreed_passes_downwards(stage: Stage) -> None:
    """As RabbitMQ sends it: it cuts bodies only."""
    client, broker = stage.opened(tune_ok=amqp.ConnectionTuneOk(2047, 4096, 0))
    broker.content(
        amqp.BasicDeliver("c", 1, False, "", "q"),
        b"b" * 10_000,
        properties=amqp.BasicProperties(message_id="m" * 255, headers=amqp.Table.of({"big": "h" * 20_000})),
    )
    message = client.expect_content(amqp.BasicDeliver)
    assert message.body == b"b" * 10_000
    assert message.header.properties.headers.get("big") == "h" * 20_000
    assert message.frames == 3

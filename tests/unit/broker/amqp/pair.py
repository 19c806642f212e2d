"""A client and a server of this room that talk to each other."""

from __future__ import annotations

import pytest

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import (
    Event,
    MethodReceived,
)
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.playbook import CHANNEL_OPEN, OPEN, START_OK, TUNE, TUNE_OK

START = amqp.ConnectionStart(version_minor=9, mechanisms=b"PLAIN", locales=b"en_US")
OPEN_OK = amqp.ConnectionOpenOk()
PROPERTIES = amqp.BasicProperties(content_type="text/plain")


class Pair:
    """A client and a server that are wired to each other; each ``say`` is heard at once."""

    def __init__(self) -> None:
        self.client = Connection("client")
        self.server = Connection("server")

    def client_says(self, data: bytes) -> list[Event]:
        return list(self.server.receive(data))

    def server_says(self, data: bytes) -> list[Event]:
        return list(self.client.receive(data))

    def up(self, channel: int, method: amqp.Method) -> None:
        assert self.client_says(self.client.send(channel, method)) == [MethodReceived(channel, method)]

    def down(self, channel: int, method: amqp.Method) -> None:
        assert self.server_says(self.server.send(channel, method)) == [MethodReceived(channel, method)]


def opened() -> Pair:
    pair = Pair()
    pair.client_says(pair.client.send_header())
    pair.down(0, START)
    pair.up(0, START_OK)
    pair.down(0, TUNE)
    pair.up(0, TUNE_OK)
    pair.up(0, OPEN)
    pair.down(0, OPEN_OK)
    return pair


def with_channel() -> Pair:
    pair = opened()
    pair.up(1, CHANNEL_OPEN)
    pair.down(1, amqp.ChannelOpenOk())
    return pair


def violation(connection: Connection, data: bytes) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        list(connection.receive(data))
    return caught.value

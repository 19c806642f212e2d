"""What a channel needs from the connection that it is on."""

from __future__ import annotations

from typing import Protocol

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.method import Method


class Peer(Protocol):
    """One connection, as its channels see it. Its identity is what exclusive queues belong to."""

    @property
    def user(self) -> str:
        """Who logged in."""

    @property
    def is_congested(self) -> bool:
        """The client reads too slowly, or not any more: no deliveries now."""

    @property
    def is_overloaded(self) -> bool:
        """So much is waiting for the client that even what cannot wait must be dropped."""

    @property
    def wants_cancel(self) -> bool:
        """Whether the client has the capability consumer_cancel_notify."""

    def send(self, channel: int, method: Method) -> None:
        """Send a method without content."""

    def send_content(self, channel: int, method: Method, properties: BasicProperties, body: bytes) -> None:
        """Send a method with content."""


def named(violation: ProtocolViolation, method: Method, channel: int) -> ProtocolViolation:
    """The same violation with the method that caused it and where."""
    return ProtocolViolation(
        violation.code,
        violation.text,
        class_id=method.CLASS_ID,
        method_id=method.METHOD_ID,
        channel=channel,
    )

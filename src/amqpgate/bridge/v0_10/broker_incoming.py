"""The broker's messages, put together: 0-9-1 says the size of a body before it, and 0-10 need not say it.

What the header says of it (content-length) is the publisher's word, which no broker has looked at.
"""

from __future__ import annotations

from typing import Final

from attrs import define, field

from amqpgate.bridge.v0_10.broker_link import Transferred
from amqpgate.bridge.v0_10.forms import QuickHeaders
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.events import (
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    IncomingMessage,
)
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.codec import decode_header
from amqpgate.wire.v0_10.structs import Struct, Unknown

#: Bytes of all messages of a connection that are not whole: one of RabbitMQ's own limit.
MOST_BODIES: Final = 128 * 1024 * 1024


@define
class _Partial:
    """A transfer whose content is not whole."""

    command_id: int
    destination: bytes
    structs: tuple[Struct | Unknown, ...] = ()
    chunks: list[bytes] = field(factory=list)
    size: int = 0


class IncomingMessages:
    """Those of one connection, one for each channel; ``most`` bytes in all."""

    __slots__ = ("_headers", "_most", "_partial", "_size")

    def __init__(self, most: int = MOST_BODIES) -> None:
        self._most = most
        self._headers = QuickHeaders()
        self._partial: dict[int, _Partial] = {}
        self._size = 0

    def take(self, event: IncomingCommand | IncomingHeader | IncomingBody) -> Transferred | None:
        """A transfer or its content: the message, if it is whole now. Violation 506 if it is too much."""
        if isinstance(event, IncomingCommand):
            self.drop(event.channel)
            command = event.command
            assert isinstance(command, amqp10.MessageTransfer)
            self._partial[event.channel] = _Partial(event.command_id, command.destination or b"")
            return None if event.has_content else self._whole(event.channel)
        partial = self._partial.get(event.channel)
        if partial is None:
            return None
        if isinstance(event, IncomingHeader):
            partial.structs = event.structs
            return None if event.has_body else self._whole(event.channel)
        self._size += len(event.chunk)
        partial.size += len(event.chunk)
        partial.chunks.append(event.chunk)
        if self._size > self._most:
            self.drop(event.channel)
            raise self._too_much()
        return self._whole(event.channel) if event.is_last else None

    def whole(self, event: IncomingMessage) -> Transferred:
        """A transfer that is whole. Violations as above, and those of a header that is malformed."""
        self.drop(event.channel)
        command, body = event.command, event.body
        assert isinstance(command, amqp10.MessageTransfer)
        if self._size + len(body) > self._most:
            raise self._too_much()
        quick = self._headers.of(event.header)
        structs = decode_header(event.header) if quick is None else ()
        return Transferred(event.command_id, command.destination or b"", structs, body, quick, event.header)

    def _too_much(self) -> ProtocolViolation:
        return ProtocolViolation(506, f"messages of more than {self._most} bytes at a time")

    def drop(self, channel: int) -> None:
        """What has come of a message is not kept any more."""
        partial = self._partial.pop(channel, None)
        if partial is not None:
            self._size -= partial.size

    def _whole(self, channel: int) -> Transferred:
        partial = self._partial[channel]
        self.drop(channel)
        return Transferred(partial.command_id, partial.destination, partial.structs, b"".join(partial.chunks))

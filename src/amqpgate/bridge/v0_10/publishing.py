"""Transfers from a client: published with confirms, and complete once they are confirmed.

basic.publish needs the size of a body before the body, and transfer tells none, so a transfer is kept until
it is whole. A transfer says that its sender wants to be told of its acceptance with an accept-mode of 0 that
is *there*: qpid-python leaves the field out, and fails on a message.accept.
"""

from __future__ import annotations

from typing import Final

from attrs import define, field, frozen

from amqpgate.bridge.v0_10.properties import to_canonical
from amqpgate.bridge.v0_10.steps import text_of
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode
from amqpgate.wire.v0_10.structs import Command, Struct, Unknown

#: Transfers that are not confirmed; the next ones wait.
MOST_UNCONFIRMED: Final = 65_536


@define(eq=False)
class Incoming:
    """A command, and what it carries, as far as it has come."""

    command_id: int
    command: Command
    structs: tuple[Struct | Unknown, ...] = ()
    chunks: list[bytes] = field(factory=list)
    #: Bytes of the body.
    size: int = 0
    #: The sender was told that no queue gets it.
    is_rejected: bool = False

    def add(self, chunk: bytes) -> None:
        """A piece of the body."""
        self.chunks.append(chunk)
        self.size += len(chunk)

    def reject(self) -> None:
        """The sender is told that no queue gets it."""
        self.is_rejected = True

    @property
    def is_explicit(self) -> bool:
        """Whether the sender is told that it is accepted, or not."""
        assert isinstance(self.command, amqp10.MessageTransfer)
        return self.command.accept_mode == AcceptMode.EXPLICIT


@frozen
class Publish:
    """A transfer as 0-9-1 has it."""

    method: amqp.BasicPublish
    properties: amqp.BasicProperties
    body: bytes


def publish_of(transfer: Incoming, *, login: str, reject_unroutable: bool) -> Publish:
    """The basic.publish that a transfer stands for.

    ``login`` is who the client is to the broker. With ``reject_unroutable`` the broker returns those explicit
    transfers that no queue gets.

    Violation 540 for fragments and immediate transfers, 542 and others for what cannot be said in 0-9-1.
    """
    command = transfer.command
    assert isinstance(command, amqp10.MessageTransfer)
    delivery = message = None
    for struct in transfer.structs:
        match struct:
            case amqp10.DeliveryProperties():
                delivery = struct
            case amqp10.MessageProperties():
                message = struct
            case amqp10.FragmentProperties(first=first, last=last) if not (first and last):
                raise ProtocolViolation(540, "fragments of messages")
    if delivery is None:
        delivery = amqp10.DeliveryProperties()
    if delivery.immediate:
        raise ProtocolViolation(540, "immediate")
    is_mandatory = reject_unroutable and transfer.is_explicit and not delivery.discard_unroutable
    return Publish(
        amqp.BasicPublish(
            exchange=text_of(command.destination, "the exchange"),
            routing_key=text_of(delivery.routing_key, "the routing key"),
            mandatory=is_mandatory,
        ),
        to_canonical(delivery, message, login=login),
        b"".join(transfer.chunks),
    )


class Unconfirmed:
    """What was published and is not confirmed, by the number that the broker gives each on its channel."""

    __slots__ = ("_next", "_transfers")

    def __init__(self) -> None:
        self._next = 1
        self._transfers: dict[int, Incoming] = {}

    def __len__(self) -> int:
        return len(self._transfers)

    @property
    def oldest(self) -> Incoming | None:
        """The one that was published first."""
        return next(iter(self._transfers.values()), None)

    def add(self, transfer: Incoming) -> None:
        """It was published. What it carries is not needed any more."""
        transfer.structs, transfer.chunks = (), []
        self._transfers[self._next] = transfer
        self._next += 1

    def confirm(self, tag: int, *, multiple: bool) -> list[Incoming]:
        """Those that the broker means, in their order."""
        if not multiple:
            one = self._transfers.pop(tag, None)
            return [] if one is None else [one]
        confirmed = []
        while self._transfers:
            first = next(iter(self._transfers))
            if first > tag > 0:
                break
            confirmed.append(self._transfers.pop(first))
        return confirmed

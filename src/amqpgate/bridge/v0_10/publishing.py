"""Transfers from a client: published with confirms, and complete once they are confirmed; or in transactions
that no client knows of, one after the other, and complete once these are committed.

basic.publish needs the size of a body before the body, and transfer tells none, so a transfer is kept until
it is whole. A transfer says that its sender wants to be told of its acceptance with an accept-mode of 0 that
is *there*: qpid-python leaves the field out, and fails on a message.accept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import define, frozen

from amqpgate.bridge.v0_10.channels import BridgedChannel, ChannelUse, OpenState
from amqpgate.bridge.v0_10.forms import PublishForms
from amqpgate.bridge.v0_10.link import BrokerLink
from amqpgate.bridge.v0_10.properties import to_canonical
from amqpgate.bridge.v0_10.steps import text_of
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.events import IncomingMessage
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode, RejectCode
from amqpgate.wire.v0_10.codec import encode_header
from amqpgate.wire.v0_10.sequences import ids_of, serial_add, sets_of
from amqpgate.wire.v0_10.structs import Command, Struct, Unknown

_OPEN: Final = OpenState.OPEN
#: Transfers that are not confirmed; the next ones wait.
MOST_UNCONFIRMED: Final = 65_536

_EXPLICIT: Final = int(AcceptMode.EXPLICIT)
#: Ranges of ids in one message.accept: it fits into the smallest frame that a client may ask for.
_MOST_ACCEPTED: Final = 500
#: Bytes that a waiting command counts for, and each byte of it that was decoded: a map of nothing but short
#: keys takes many times its bytes.
_COMMAND_WEIGHT: Final = 256
_DECODED_WEIGHT: Final = 16


@define(eq=False)
class Incoming:
    """A command, and what it carries, as far as it has come."""

    command_id: int
    command: Command
    structs: tuple[Struct | Unknown, ...] = ()
    #: Most come in one piece; of others there may be as many as bytes.
    body: bytes | bytearray = b""
    #: Bytes of the body.
    size: int = 0
    #: What it counts among those that wait (see `weigh`); 0 if it does not.
    weight: int = 0
    #: The sender was told that no queue gets it.
    is_rejected: bool = False

    def add(self, chunk: bytes) -> None:
        """A piece of the body."""
        if not self.size:
            self.body = chunk
        elif isinstance(self.body, bytes):
            self.body = bytearray(self.body) + chunk
        else:
            self.body += chunk
        self.size += len(chunk)

    def weigh(self) -> None:
        """It has to wait: it counts for about the memory that it takes, decoded."""
        decoded = len(self.command.encode()) + len(encode_header(self.structs))
        self.weight = _COMMAND_WEIGHT + _DECODED_WEIGHT * decoded + self.size

    def take_weight(self) -> int:
        """It waits no more: what it has counted for."""
        weight, self.weight = self.weight, 0
        return weight

    def forget_content(self) -> None:
        """What it carries is not needed any more."""
        self.structs, self.body = (), b""

    def reject(self) -> None:
        """The sender is told that no queue gets it."""
        self.is_rejected = True

    @property
    def is_explicit(self) -> bool:
        """Whether the sender is told that it is accepted, or not."""
        assert isinstance(self.command, amqp10.MessageTransfer)
        return self.command.accept_mode == _EXPLICIT


#: Reply codes of a message that is returned though nobody refuses it: no queue, or no consumer, takes it.
_UNROUTABLE: Final = frozenset({310, 312, 313})


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
        bytes(transfer.body),
    )


class Unconfirmed:
    """What was published and is not confirmed, by the number that the broker gives each on its channel."""

    __slots__ = ("_next", "transfers")

    def __init__(self) -> None:
        self._next = 1
        # The first of many goes quickly.
        self.transfers: OrderedDict[int, Incoming] = OrderedDict()

    def __len__(self) -> int:
        return len(self.transfers)

    @property
    def oldest(self) -> Incoming | None:
        """The one that was published first."""
        return next(iter(self.transfers.values()), None)

    @property
    def last(self) -> int | None:
        """The number of the one that was published last."""
        return next(reversed(self.transfers), None)

    def add(self, transfer: Incoming) -> None:
        """It was published."""
        self.transfers[self._next] = transfer
        self._next += 1

    def confirm(self, tag: int, *, multiple: bool) -> list[Incoming]:
        """Those that the broker means, in their order."""
        if not multiple:
            one = self.transfers.pop(tag, None)
            return [] if one is None else [one]
        confirmed = []
        while self.transfers:
            first = next(iter(self.transfers))
            if first > tag > 0:
                break
            confirmed.append(self.transfers.pop(first))
        return confirmed


class Publisher:
    """What one session publishes: on channel "pub", with confirms, or in a transaction on channel "main"."""

    __slots__ = (
        "_commit",
        "_forms",
        "_link",
        "_main",
        "_pub",
        "_refusal",
        "_session",
        "_stopped",
        "_unconfirmed",
    )

    def __init__(
        self, session: AttachedSession, link: BrokerLink, channels: Mapping[ChannelUse, BridgedChannel]
    ) -> None:
        #: None once it is detached.
        self._session: AttachedSession | None = session
        self._link = link
        self._main, self._pub = channels[ChannelUse.MAIN], channels[ChannelUse.PUB]
        self._unconfirmed = Unconfirmed()
        self._forms = PublishForms()
        #: Where the broker has no confirms: the number of what was published last before the commit that it
        #: has not answered; None: there is none. RabbitMQ takes nothing else on the channel until then.
        self._commit: int | None = None
        #: Why a message is returned that is refused with its nack, which follows.
        self._refusal: ProtocolViolation | None = None
        #: Where the broker takes no publishes.
        self._stopped: set[ChannelUse] = set()

    @property
    def is_quiet(self) -> bool:
        """Whether all is confirmed."""
        return not self._unconfirmed

    @property
    def oldest(self) -> Incoming | None:
        """What is not confirmed, and was published first."""
        return self._unconfirmed.oldest

    @property
    def only(self) -> Incoming | None:
        """What alone is not confirmed."""
        return self._unconfirmed.oldest if len(self._unconfirmed) == 1 else None

    def detached(self) -> None:
        """The client's side is gone."""
        self._session = None

    def drop(self) -> None:
        """Nothing is waited for any more."""
        self._session = None
        self._commit = None
        self._unconfirmed = Unconfirmed()

    def flow(self, use: ChannelUse, *, is_active: bool) -> None:
        """channel.flow of the broker's."""
        (self._stopped.discard if is_active else self._stopped.add)(use)

    def may_publish(self, *, in_transaction: bool) -> bool:
        """Whether the channel for it is open, which it is opened for, and not at its limits. Violation 506 if
        the broker grants no more channels.
        """
        channel = self._main if in_transaction else self._pub
        if not channel.is_open:
            channel.open()
            return False
        # What comes back must be known for the one that was published last.
        most = 1 if self._link.options.reject_unroutable else MOST_UNCONFIRMED
        if len(self._unconfirmed) >= most or (self._stopped and channel.use in self._stopped):
            return False
        return in_transaction or self._commit is None

    def publish(self, transfer: Incoming, *, in_transaction: bool) -> None:
        """Publish a transfer; in a transaction it is complete at once.

        Violations as for `publish_of`, and 506 if its header does not fit into a frame.
        """
        link = self._link
        link.let_go(transfer.size)
        publish = publish_of(transfer, login=link.login, reject_unroutable=link.options.reject_unroutable)
        channel = self._main if in_transaction else self._pub
        channel.publish(publish.method, link.no_local.marked(publish.properties), publish.body)
        if in_transaction:
            self._complete([transfer])
        else:
            # What it carries is not needed any more.
            transfer.forget_content()
            self._unconfirmed.add(transfer)

    def publish_at_once(self, message: IncomingMessage) -> bool:
        """Publish a transfer outside of a transaction. False, and nothing is done, where it has to wait, or
        is to be taken apart first (`publish`)."""
        link, pub, body = self._link, self._pub, message.body
        if (
            pub.state is not _OPEN
            or len(self._unconfirmed.transfers) >= MOST_UNCONFIRMED
            or self._stopped
            or self._commit is not None
            or link.options.reject_unroutable
            or link.no_local.is_marking
            or link.kept + len(body) > link.options.most_body
        ):
            return False
        command: Command = message.command
        assert isinstance(command, amqp10.MessageTransfer)
        form = self._forms.form(command.destination or b"", message.header, link.login)
        if form is None or not pub.writer.form(pub.number, form.method, form.header, body):
            return False
        self._unconfirmed.add(Incoming(message.command_id, command))
        return True

    def publish_last(self, transfer: Incoming) -> None:
        """Publish a transfer, outside of a transaction, of a client that is gone: it waits for no answer."""
        channel = self._pub
        channel.open()
        if channel.is_asked_for and self._commit is None:
            self.publish(transfer, in_transaction=False)

    def rest(self) -> None:
        """All of a read is published. Where the broker has no confirms, it is asked to commit that."""
        if self._link.numbers.has_confirms:
            return
        channel, last = self._pub, self._unconfirmed.last
        if channel.is_open and last is not None and self._commit is None:
            channel.send(amqp.TxCommit())
            self._commit = last

    def hear(
        self, method: amqp.BasicAck | amqp.BasicNack | amqp.BasicReturn | amqp.TxCommitOk
    ) -> Incoming | None:
        """What the broker says of what was published; the first one that it did not take, if any."""
        match method:
            case amqp.TxCommitOk() if self._commit is not None:
                committed, self._commit = self._commit, None
                self._complete(self._unconfirmed.confirm(committed, multiple=True))
            case amqp.BasicAck():
                self.confirmed(method.delivery_tag, multiple=method.multiple)
            case amqp.BasicNack(delivery_tag=tag, multiple=multiple):
                return next(iter(self._unconfirmed.confirm(tag, multiple=multiple)), None)
            case amqp.BasicReturn(reply_code=code, reply_text=text) if code not in _UNROUTABLE:
                self._refusal = ProtocolViolation(code, text)
            case amqp.BasicReturn() if self._link.options.reject_unroutable and self.oldest is not None:
                self._reject(self.oldest)
        return None

    def confirmed(self, tag: int, *, multiple: bool) -> None:
        """basic.ack: the broker has what was published."""
        if multiple:
            self._complete(self._unconfirmed.confirm(tag, multiple=True))
            return
        one = self._unconfirmed.transfers.pop(tag, None)
        if one is not None:
            self._complete([one])

    def take_refusal(self) -> ProtocolViolation:
        """Why a message is not taken that has a nack."""
        refusal, self._refusal = self._refusal, None
        return refusal or ProtocolViolation(506, "the broker could not take the message")

    def _complete(self, transfers: list[Incoming]) -> None:
        """The broker has them, in their order: who wants to hears that they are accepted; all are done."""
        if self._session is None:
            return
        if len(transfers) == 1 and not transfers[0].is_explicit:
            self._session.finish(transfers[0].command_id)
            return
        accepted = [one.command_id for one in transfers if one.is_explicit and not one.is_rejected]
        if accepted:
            for ids in sets_of(accepted, _MOST_ACCEPTED):
                self._session.send(amqp10.MessageAccept(transfers=ids))
        for first, last in _runs(transfers):
            self._session.finish(first, last)

    def _reject(self, transfer: Incoming) -> None:
        """The broker has returned it; its confirm follows."""
        if self._session is not None:
            transfer.reject()
            self._session.send(
                amqp10.MessageReject(
                    transfers=ids_of([transfer.command_id]), code=RejectCode.UNROUTABLE, text=b"unroutable"
                )
            )


def _runs(transfers: list[Incoming]) -> Iterator[tuple[int, int]]:
    """The first and the last id of each run of ids that follow each other."""
    if not transfers:
        return
    first = last = transfers[0].command_id
    for one in transfers[1:]:
        if one.command_id != serial_add(last, 1):
            yield first, last
            first = one.command_id
        last = one.command_id
    yield first, last

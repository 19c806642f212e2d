"""What is published on one channel: messages to transfers, completion to confirms.

A body is passed on piece by piece. A transfer is complete once the broker has the message where it is
to be; a broker says so when it is asked, which happens once for all that is published in a turn
(execution.sync). Confirms are sent in the order of publishing, as RabbitMQ's clients expect of tags that
are told with "multiple".

Memory
    The id of each transfer that is not confirmed, `MOST_UNCONFIRMED` at most, for then the channel waits; and
    what is kept to be returned (`broker_mandatory`).
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from struct import Struct
from typing import Final

from amqpgate.bridge.v0_10.broker_link import ChannelLink
from amqpgate.bridge.v0_10.broker_mandatory import KeptMessage, MandatoryMessages
from amqpgate.bridge.v0_10.forms import TransferForms
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode, AcquireMode
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet

#: Transfers of one channel that are not confirmed yet; qpidd and Broker-J tell at least as often.
MOST_UNCONFIRMED: Final = 65_536

_SIZE: Final = Struct(">Q")
#: Where a content header has the size of the body (AMQP 0-9-1, section 4.2.6.1).
_SIZE_AT: Final = 4


class Publishing:
    """See the module."""

    __slots__ = (
        "_done",
        "_forms",
        "_is_asked",
        "_keeping",
        "_link",
        "_mandatory",
        "_method",
        "_missing",
        "_next_tag",
        "_unconfirmed",
        "is_confirming",
        "is_stopped",
    )

    def __init__(self, link: ChannelLink) -> None:
        self._link = link
        #: Whether confirm.select was said.
        self.is_confirming = False
        #: Whether the broker wants nothing for the moment.
        self.is_stopped = False
        self._method = amqp.BasicPublish()
        self._forms = TransferForms()
        #: Bytes of the body that are to come.
        self._missing = 0
        #: The tag of the first of ``_unconfirmed``.
        self._next_tag = 1
        #: Ids of transfers, in the order of their tags.
        self._unconfirmed: deque[int] = deque()
        #: Those that are complete though one before them is not.
        self._done = RangeSet(MOST_UNCONFIRMED)
        #: Whether the broker was asked to tell of all that was published.
        self._is_asked = True
        self._mandatory = MandatoryMessages(link)
        #: What the body that comes is added to.
        self._keeping: KeptMessage | None = None

    @property
    def waits(self) -> bool:
        """Whether no message may be begun now."""
        return self.is_stopped or len(self._unconfirmed) >= MOST_UNCONFIRMED or self._mandatory.waits

    def select(self) -> None:
        """Confirm what is published from now on."""
        self.is_confirming = True

    def stop(self, *, is_stopped: bool) -> None:
        """The broker wants no messages, or wants them again."""
        self.is_stopped = is_stopped

    # What the client publishes.

    def begin(self, method: amqp.BasicPublish) -> None:
        """basic.publish: what it says goes into the header of the transfer."""
        self._method = method

    def header(self, header: bytes) -> None:
        """The payload of the message's header frame. Violation 506 if the broker takes none that large, and
        those of what is malformed."""
        method = self._method
        size: int = _SIZE.unpack_from(header, _SIZE_AT)[0]
        kept = self._keeping = self._ask(method, header, size) if method.mandatory else None
        segment = self._forms.form(
            header,
            method.routing_key,
            discard_unroutable=kept is None,
            immediate=method.immediate,
        ).header(size)
        transfer = _transfer(method.exchange, is_explicit=kept is not None)
        command_id = self._link.begin(transfer, segment, has_body=size > 0)
        self._missing = size
        if kept is not None:
            self._mandatory.keep(command_id, kept)
        if self.is_confirming:
            self._unconfirmed.append(command_id)
        if kept is not None or self.is_confirming:
            self._is_asked = False
            self._link.is_due()

    def _ask(self, method: amqp.BasicPublish, header: bytes, size: int) -> KeptMessage | None:
        properties = decode_header(header).properties
        assert isinstance(properties, amqp.BasicProperties)
        return self._mandatory.ask(method, properties, size)

    def body(self, chunk: bytes) -> None:
        """A piece of the body."""
        self._missing -= len(chunk)
        self._link.go_on(chunk, is_last=self._missing <= 0)
        if self._keeping is not None:
            self._keeping.chunks.append(chunk)

    def flush(self) -> None:
        """Before bytes leave: ask to be told of what was published since the last time."""
        if not self._is_asked:
            self._is_asked = True
            self._link.send(amqp10.ExecutionSync(), sync=True)

    # What the broker says.

    def completed(self, commands: SequenceSet) -> None:
        """Commands are complete: confirm them as far as those before them are."""
        self._mandatory.completed(commands)
        waiting = self._unconfirmed
        if not waiting:
            return
        for lower, upper in commands.ranges:
            self._done.add(lower, upper)
        count, last = 0, 0
        while waiting and waiting[0] in self._done:
            last = waiting.popleft()
            count += 1
        if count:
            self._next_tag += count
            self._link.say(amqp.BasicAck(self._next_tag - 1, multiple=count > 1))
        self._forget(last, is_moved=count > 0)

    def _forget(self, last: int, *, is_moved: bool) -> None:
        """Ids up to the last one that was confirmed are in nobody's way any more."""
        if not self._unconfirmed:
            self._done = RangeSet(MOST_UNCONFIRMED)
        elif is_moved:
            ranges = self._done.frozen().ranges
            self._done.discard(ranges[0][0], last)

    def result(self, result: amqp10.ExecutionResult) -> None:
        """execution.result. Violation 503 if it is malformed."""
        self._mandatory.result(result)

    def rejected(self, reject: amqp10.MessageReject) -> None:
        """message.reject: a message comes back. It is complete a moment later, and confirmed."""
        self._mandatory.rejected(reject)


@lru_cache(maxsize=64)
def _transfer(exchange: str, *, is_explicit: bool) -> bytes:
    """The command of a transfer to an exchange."""
    return amqp10.MessageTransfer(
        destination=exchange.encode(),
        accept_mode=AcceptMode.EXPLICIT if is_explicit else AcceptMode.NONE,
        acquire_mode=AcquireMode.PRE_ACQUIRED,
    ).encode()

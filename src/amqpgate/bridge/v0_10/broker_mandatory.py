"""Messages of one channel that are mandatory: what no queue takes comes back as basic.return.

0-10 has it: such a transfer is explicit, not to be discarded, and rejected. Broker-J does that. qpidd drops
it, so the broker is asked in front of each such transfer:

================  ==============================================================================
default exchange  queue.query: there is no such queue
direct            exchange.query, exchange.bound: nothing is bound by that key
others, key ""    not to be told: 0-10 asks for keys of bindings, not for what they match
================  ==============================================================================

Nobody waits for the answer: it comes before the transfer is complete. The message is sent nonetheless, for an
exchange may have an alternate one, of which 0-10 tells nothing.

Memory
    Messages are kept until they are complete. One of more than `MOST_KEPT` bytes is not, and is published as
    if it were not mandatory. While that much is kept the channel waits.
"""

from __future__ import annotations

from typing import Final

from attrs import define, field

from amqpgate.bridge.v0_10.broker_link import ChannelLink, among
from amqpgate.bridge.v0_10.codes import return_reply_of
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import RejectCode
from amqpgate.wire.v0_10.codec import decode_struct32
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command

#: Bytes of messages that are kept for one channel, and their number.
MOST_KEPT: Final = 1024 * 1024
_MOST_MESSAGES: Final = 4096

#: In a return they are always there.
_UNROUTABLE: Final = frozenset({RejectCode.UNROUTABLE, RejectCode.IMMEDIATE})


@define(eq=False)
class KeptMessage:
    """A message that may come back."""

    method: amqp.BasicPublish
    properties: amqp.BasicProperties
    size: int
    #: Ids of the commands that ask for it.
    questions: list[int] = field(factory=list, init=False)
    chunks: list[bytes] = field(factory=list, init=False)
    is_direct: bool = field(default=False, init=False)
    is_unroutable: bool = field(default=False, init=False)


class MandatoryMessages:
    """See the module."""

    __slots__ = ("_asked", "_kept", "_link", "_size")

    def __init__(self, link: ChannelLink) -> None:
        self._link = link
        #: By the id of the transfer.
        self._kept: dict[int, KeptMessage] = {}
        self._size = 0
        #: By the ids of questions that are not answered.
        self._asked: dict[int, KeptMessage] = {}

    @property
    def waits(self) -> bool:
        """Whether no message may be begun now."""
        return self._size >= MOST_KEPT or len(self._kept) >= _MOST_MESSAGES

    def ask(
        self, method: amqp.BasicPublish, properties: amqp.BasicProperties, size: int
    ) -> KeptMessage | None:
        """Ask the broker whether there is a queue for a message; None if that makes no difference.

        Its transfer must follow.
        """
        if not method.mandatory or size > MOST_KEPT:
            return None
        message = KeptMessage(method, properties, size)
        key = method.routing_key.encode()
        questions: list[Command] = []
        if not method.exchange:
            questions = [amqp10.QueueQuery(key)]
        elif key:
            exchange = method.exchange.encode()
            questions = [
                amqp10.ExchangeQuery(exchange),
                amqp10.ExchangeBound(exchange=exchange, binding_key=key),
            ]
        for question in questions:
            command_id = self._link.send(question)
            message.questions.append(command_id)
            self._asked[command_id] = message
        return message

    def keep(self, command_id: int, message: KeptMessage) -> None:
        """It is sent with that id."""
        self._kept[command_id] = message
        self._size += message.size

    def result(self, result: amqp10.ExecutionResult) -> None:
        """execution.result. Violation 503 if it is malformed."""
        message = self._asked.pop(result.command_id or 0, None)
        if message is None or result.value is None:
            return
        match decode_struct32(result.value):
            case amqp10.QueueQueryResult(queue=queue):
                message.is_unroutable = not queue
            case amqp10.ExchangeQueryResult(type=kind, not_found=not_found):
                # One that is not there ends the session.
                message.is_direct = kind == b"direct" and not not_found
            case amqp10.ExchangeBoundResult(key_not_matched=not_matched):
                message.is_unroutable = not_matched and message.is_direct

    def completed(self, commands: SequenceSet) -> None:
        """Commands are complete: messages come back, before they are confirmed, and are let go."""
        for command_id in among(self._kept, commands) if self._kept else ():
            message = self._take(command_id)
            if message.is_unroutable:
                self._return(message, RejectCode.UNROUTABLE)

    def rejected(self, reject: amqp10.MessageReject) -> None:
        """message.reject: what is kept comes back. It is complete a moment later, and confirmed."""
        if reject.code in _UNROUTABLE:
            for command_id in among(self._kept, reject.transfers or SequenceSet()):
                self._return(self._take(command_id), reject.code)

    def _take(self, command_id: int) -> KeptMessage:
        message = self._kept.pop(command_id)
        self._size -= message.size
        for question in message.questions:
            self._asked.pop(question, None)
        return message

    def _return(self, message: KeptMessage, reject_code: int | None) -> None:
        code, text = return_reply_of(reject_code)
        method = message.method
        self._link.say_message(
            amqp.BasicReturn(code, text, method.exchange, method.routing_key),
            message.properties,
            b"".join(message.chunks),
        )

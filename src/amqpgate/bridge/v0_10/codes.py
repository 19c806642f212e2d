"""What ends a session of 0-10, and what closes a channel of 0-9-1. The table is ``protocol.v0_10.codes``.

A message that no queue takes, or no consumer, ends neither: it is rejected, and returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.codes import TO_ERROR_CODE
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated.v0_10 import ErrorCode, RejectCode

#: How RabbitMQ begins to say (403) that a queue has a consumer who is, or would be, the only one.
_IN_EXCLUSIVE_USE: Final = "in exclusive use"

_RETURNS: Final[Mapping[RejectCode, tuple[int, str]]] = {
    RejectCode.UNROUTABLE: (312, "NO_ROUTE"),
    RejectCode.IMMEDIATE: (313, "NO_CONSUMERS"),
}


def violation_of_channel_close(close: amqp.ChannelClose) -> ProtocolViolation:
    """What ends the session whose channel a broker has closed; ``fail`` of a session takes it.

    A queue that somebody consumes exclusively is 405, as in the standard. Ids of class and method are those
    of 0-9-1, and left out. A code that 0-10 lacks stands before the text.
    """
    code = TO_ERROR_CODE.get(close.reply_code, ErrorCode.INTERNAL_ERROR)
    text = close.reply_text
    if close.reply_code == 403 and _IN_EXCLUSIVE_USE in text:
        return ProtocolViolation(405, text)
    return ProtocolViolation(code, text if code == close.reply_code else f"{close.reply_code} {text}")


def return_reply_of(reject_code: int | None) -> tuple[int, str]:
    """Reply code and text of basic.return, for a message that a broker has rejected."""
    known = {int(code): reply for code, reply in _RETURNS.items()}
    return known.get(reject_code or 0, (310, "NOT_DELIVERED"))

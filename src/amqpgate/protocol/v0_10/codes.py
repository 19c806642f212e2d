"""Reply codes of 0-10 and of the other versions, as tables both ways.

0-10 has two lists: a close-code (class "connection") ends a connection, an error-code (class "execution") a
session. 0-9-1 has one list for channels and connections (section 1.2, "Protocol constants"), and so have
violations, which may have 409, 531 and 542 of 0-10 besides.

Where a code becomes another one its number goes before the text, so that an operator still finds it: 541 is
``320 connection-forced`` with the text ``541 ...``. Not so 403 and 530: qpidd says 320 for those, too
(``connection-forced: Authentication failed``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from amqpgate.errors import REPLY_NAMES, ProtocolViolation, cut_reply
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import CloseCode, ErrorCode

#: What ends a connection of 0-10, by 0-9-1's code. Codes that are not here end it with ``CONNECTION_FORCED``,
#: and their number goes before the text.
TO_CLOSE_CODE: Final[Mapping[int, CloseCode]] = MappingProxyType(
    {
        200: CloseCode.NORMAL,
        320: CloseCode.CONNECTION_FORCED,
        402: CloseCode.INVALID_PATH,
        403: CloseCode.CONNECTION_FORCED,
        501: CloseCode.FRAMING_ERROR,
        504: CloseCode.FRAMING_ERROR,
        505: CloseCode.FRAMING_ERROR,
        530: CloseCode.CONNECTION_FORCED,
    }
)

#: What ends a session of 0-10, by 0-9-1's code or a violation's. Codes that are not here end no session
#: alone: 312 and 313 reject one message, and the others end the connection.
TO_ERROR_CODE: Final[Mapping[int, ErrorCode]] = MappingProxyType(
    {
        **{int(code): code for code in ErrorCode},
        311: ErrorCode.RESOURCE_LIMIT_EXCEEDED,
        502: ErrorCode.COMMAND_INVALID,
    }
)

#: The channel.close of 0-9-1 that stands for an execution.exception, by its code. What changes is told as an
#: error of the channel where 0-9-1 would end the connection: only the session is over.
FROM_ERROR_CODE: Final[Mapping[ErrorCode, int]] = MappingProxyType(
    {
        ErrorCode.UNAUTHORIZED_ACCESS: 403,
        ErrorCode.NOT_FOUND: 404,
        ErrorCode.RESOURCE_LOCKED: 405,
        ErrorCode.PRECONDITION_FAILED: 406,
        ErrorCode.RESOURCE_DELETED: 404,
        ErrorCode.ILLEGAL_STATE: 406,
        ErrorCode.COMMAND_INVALID: 406,
        ErrorCode.RESOURCE_LIMIT_EXCEEDED: 406,
        ErrorCode.NOT_ALLOWED: 406,
        ErrorCode.ILLEGAL_ARGUMENT: 406,
        ErrorCode.NOT_IMPLEMENTED: 540,
        ErrorCode.INTERNAL_ERROR: 541,
        ErrorCode.INVALID_ARGUMENT: 406,
    }
)

_SOURCE: Final = re.compile(r" \([^() ]{1,4096}\.(?:cpp|h):\d{1,6}\)\Z")

#: What stands for a code that a peer has made up, or left out.
_UNKNOWN: Final = 541

#: What ``CONNECTION_FORCED`` is in states in which a connection.close of the server's is its answer: to the
#: login, or to connection.open.
_ANSWERS: Final[Mapping[ConnectionState, int]] = MappingProxyType(
    {ConnectionState.SECURING: 403, ConnectionState.CHALLENGED: 403, ConnectionState.ASKED: 530}
)


def close_of(code: int, text: str) -> amqp.ConnectionClose:
    """The connection.close that tells a 0-10 peer of a violation, or of 0-9-1's connection.close."""
    close_code = TO_CLOSE_CODE.get(code)
    if close_code is None:
        close_code, text = CloseCode.CONNECTION_FORCED, f"{code} {text}"
    return amqp.ConnectionClose(reply_code=close_code, reply_text=cut_reply(text).encode())


def violation_of_close(close: amqp.ConnectionClose, state: ConnectionState) -> ProtocolViolation:
    """What a server's connection.close means to a client of 0-9-1; ``state`` is the one in which it came.

    In answer to a login 320 is 403, and in answer to connection.open 530: 0-10 has no codes of its own for
    those. What a client is refused for says nothing of the broker, where 320 elsewhere says that it is going.
    """
    code = _UNKNOWN if close.reply_code is None else int(close.reply_code)
    text = _readable(close.reply_text)
    if code == CloseCode.CONNECTION_FORCED and state in _ANSWERS:
        return ProtocolViolation(_ANSWERS[state], text)
    return _violation(code, code if code in REPLY_NAMES else _UNKNOWN, text)


def violation_of_exception(exception: amqp.ExecutionException, channel: int) -> ProtocolViolation:
    """What an execution.exception means to a client of 0-9-1, for a channel.close on ``channel``."""
    code = _UNKNOWN if exception.error_code is None else int(exception.error_code)
    text = _readable(exception.description)
    if code == ErrorCode.NOT_ALLOWED and "access" in text.lower():
        return _violation(code, 403, text, channel)
    known = FROM_ERROR_CODE.get(ErrorCode(code), _UNKNOWN) if code in set(ErrorCode) else _UNKNOWN
    return _violation(code, known, text, channel)


def _violation(code: int, translated: int, text: str, channel: int = 0) -> ProtocolViolation:
    return ProtocolViolation(translated, text if code == translated else f"{code} {text}", channel=channel)


def _readable(text: bytes | None) -> str:
    """A peer's text for people: no control characters, what is not UTF-8 escaped, and less the line of
    qpidd's source that it ends with.
    """
    decoded = _SOURCE.sub("", (text or b"").decode("utf-8", "backslashreplace"))
    return cut_reply("".join(letter if letter.isprintable() else "?" for letter in decoded))

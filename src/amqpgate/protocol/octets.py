"""How RabbitMQ writes octets in its reply texts, and where in the conversation a violation happened."""

from __future__ import annotations

from typing import Final

from amqpgate.errors import ProtocolViolation

#: RabbitMQ 3.10 quotes a payload whole up to this many octets, and no more than this of a longer one.
QUOTED_OCTETS: Final = 16

_ESCAPES: Final = {8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\e"}
_ESCAPES_AND_QUOTES: Final = {**_ESCAPES, 34: '\\"', 92: "\\\\"}


def erlang_binary(data: bytes) -> str:
    """``<<"text">>`` if all octets are printable ASCII, ``<<1,2,3>>`` otherwise.

    RabbitMQ takes Latin-1 for printable too and then sends a reply-text that is no UTF-8; such octets are
    written as numbers here.
    """
    if not data:
        return "<<>>"
    if all(32 <= octet < 127 or octet in _ESCAPES for octet in data):
        return '<<"' + "".join(_ESCAPES_AND_QUOTES.get(octet, chr(octet)) for octet in data) + '">>'
    return "<<" + ",".join(map(str, data)) + ">>"


def describe(frame_type: int, payload: bytes) -> str:
    """``type 3, all octets = <<"abc">>``: how RabbitMQ names a frame that it does not want."""
    which = "all" if len(payload) <= QUOTED_OCTETS else f"first {QUOTED_OCTETS}"
    return f"type {frame_type}, {which} octets = {erlang_binary(payload[:QUOTED_OCTETS])}"


def unexpected_frame(frame_type: int, channel: int, payload: bytes) -> ProtocolViolation:
    """505 for a frame of a known type that has no business on ``channel`` now."""
    return ProtocolViolation(505, describe(frame_type, payload), channel=channel)


def unknown_frame(frame_type: int, channel: int, payload: bytes) -> ProtocolViolation:
    """501 for a frame whose type is not known, or whose payload is too short to be one of that type."""
    return ProtocolViolation(501, f"{describe(frame_type, payload)}: unknown_frame", channel=channel)


def located(error: ProtocolViolation, channel: int) -> ProtocolViolation:
    """The same violation with the channel, which the wire room does not know."""
    return ProtocolViolation(
        error.code, error.text, class_id=error.class_id, method_id=error.method_id, channel=channel
    )

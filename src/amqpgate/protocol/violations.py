"""How a frame that is not wanted is named, and where in the conversation a violation happened.

RabbitMQ quotes what it does not want. Here no byte of it is quoted: a frame that could not be decoded may
be a login, and reply texts reach logs. Its type and its size are told.
"""

from __future__ import annotations

from amqpgate.errors import ProtocolViolation


def describe(frame_type: int, size: int) -> str:
    """``type 3, 17 bytes``: a frame by its type and the size of its payload in bytes."""
    return f"type {frame_type}, {size} bytes"


def unexpected_frame(frame_type: int, channel: int, payload: bytes) -> ProtocolViolation:
    """505 for a frame of a known type that has no business on ``channel`` now."""
    return ProtocolViolation(505, describe(frame_type, len(payload)), channel=channel)


def unknown_frame(frame_type: int, channel: int, payload: bytes) -> ProtocolViolation:
    """501 for a frame whose type is not known, or whose payload is too short to be one of that type."""
    return ProtocolViolation(501, f"{describe(frame_type, len(payload))}: unknown_frame", channel=channel)


def located(error: ProtocolViolation, channel: int) -> ProtocolViolation:
    """The same violation with the channel, which the wire room does not know."""
    return ProtocolViolation(
        error.code, error.text, class_id=error.class_id, method_id=error.method_id, channel=channel
    )

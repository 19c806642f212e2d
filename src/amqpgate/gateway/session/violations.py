"""What a client is told for each violation that the scanner finds, in RabbitMQ 3.10's codes and words, but
for the bytes that it quotes.

The words were measured; ``protocol.content``, ``protocol.channel`` and ``protocol.violations`` have the
tables. Every one of these closes the connection.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from amqpgate.datapath.tables import ScanResult
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.violations import describe, located, unexpected_frame, unknown_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.primitives import MALFORMED_UTF8

_HEAD = Struct(">BHI")
_CLOSES: Final = (amqp.ChannelClose, amqp.ConnectionClose)

#: Content out of sequence: always 505, with the ids of the method that is under way.
_SEQUENCE: dict[ScanResult, str] = {
    ScanResult.HEADER_DUE: "expected content header for class 60, got non content header frame instead",
    ScanResult.BODY_DUE: "expected content body, got non content body frame instead",
    ScanResult.NOT_OPEN: "expected method frame, got non method frame instead",
    ScanResult.HEADER_UNASKED: "expected method frame, got non method frame instead",
    ScanResult.BODY_UNASKED: "expected method frame, got non method frame instead",
    ScanResult.CLASS_DIFFERS: "expected content header for class 60, got one for class {class_id} instead",
    ScanResult.BODY_OVERRUN: "content body is longer than declared",
}
_UNDER_WAY = frozenset(
    {ScanResult.HEADER_DUE, ScanResult.BODY_DUE, ScanResult.CLASS_DIFFERS, ScanResult.BODY_OVERRUN}
)


def violation_of(result: ScanResult, frame: memoryview, frame_max: int) -> ProtocolViolation:
    """The error that ``result`` stands for.

    ``frame`` is where it happened, as far as it is there; ``frame_max`` is what its sender may send.
    """
    kind, channel, size = _HEAD.unpack_from(frame)
    payload = bytes(frame[7 : 7 + size])
    if result is ScanResult.TOO_LARGE:
        text = f"{describe(kind, size)}: {{frame_too_large,{size},{frame_max - 8}}}"
        return ProtocolViolation(501, text, channel=channel)
    if result is ScanResult.BAD_END:
        text = f"{describe(kind, size)}: invalid_frame_end_marker"
        return ProtocolViolation(501, text, channel=channel)
    if result is ScanResult.BAD_TYPE:
        return unknown_frame(kind, channel, payload)
    if result is ScanResult.BAD_HEARTBEAT:
        return (unexpected_frame if channel else unknown_frame)(kind, channel, payload)
    if result is ScanResult.UNSPLITTABLE:
        text = f"{describe(kind, size)}: more than the broker takes in one frame, and cannot be split"
        return ProtocolViolation(501, text, channel=channel)
    if result is ScanResult.MALFORMED or (result is ScanResult.NOT_OPEN and kind == amqp.FRAME_METHOD):
        return _malformed(kind, channel, payload)
    if kind != amqp.FRAME_METHOD and not channel:
        return unexpected_frame(kind, channel, payload)
    text = _SEQUENCE[result].format(class_id=int.from_bytes(payload[:2], "big"))
    if result in _UNDER_WAY:
        # basic.publish is the one method with content that a client sends.
        ids = amqp.BasicPublish
        return ProtocolViolation(505, text, class_id=ids.CLASS_ID, method_id=ids.METHOD_ID, channel=channel)
    return ProtocolViolation(505, text, channel=channel)


def _malformed(kind: int, channel: int, payload: bytes) -> ProtocolViolation:
    if kind == amqp.FRAME_METHOD:
        try:
            decode_method(payload)
        except ProtocolViolation as violation:
            return located(violation, channel)
    return unknown_frame(kind, channel, payload)


def check_text(channel: int, method: Method) -> None:
    """A client's close whose text is no UTF-8 is what RabbitMQ calls malformed; its own may be cut off."""
    if isinstance(method, _CLOSES):
        try:
            method.reply_text.encode()
        except UnicodeEncodeError:
            raise ProtocolViolation(501, MALFORMED_UTF8, channel=channel) from None


def not_open(channel: int, method: Method) -> ProtocolViolation:
    """A broker says something on a channel that it has been told nothing of, or that has been closed."""
    text = f"'{method.NAME}' on channel {channel}, which is not open"
    return ProtocolViolation(504, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=channel)


def unexpected(channel: int, method: Method) -> ProtocolViolation:
    """What a method is that its sender may not send there."""
    if channel == 0:
        code, text = 504, "unexpected method in connection state running"
    else:
        code, text = 503, "unimplemented method"
    return ProtocolViolation(
        code, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=channel
    )

"""The copy of a transfer: basic.publish or basic.deliver, with the message.

A message of which nothing but its body is new, or the body and the delivery tag, is not decoded again: what was made of
its command and header is kept, for the `MOST_KINDS` that came last.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from amqpgate.bridge.v0_10.native.copies import NAMELESS, is_silent, text
from amqpgate.bridge.v0_10.properties import to_canonical
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, FRAME_OVERHEAD
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.codec import decode_command, decode_header

#: Kinds of messages that are known. A kind is a command and a header, of some hundred bytes mostly.
MOST_KINDS: Final = 128
#: Bytes of a command and a header together that are kept; larger ones are decoded each time.
_LARGEST_KIND: Final = 2048

_HEAD: Final = Struct(">BHI")
_END: Final = b"\xce"
_SIZE: Final = Struct(">Q")
#: Where a content header has the size of the body (AMQP 0-9-1, section 4.2.6.1).
_SIZE_AT: Final = 4
_TAG_AT: Final = 4


class MessageKind:
    """What is equal of messages with the same command and header."""

    __slots__ = ("destination", "header", "is_silent", "method", "properties", "tag_at")

    def __init__(self, segment: bytes, header: bytes | None, *, is_delivery: bool) -> None:
        command, _ = decode_command(segment)
        assert isinstance(command, amqp10.MessageTransfer)
        delivery = message = None
        for struct in decode_header(header or b""):
            if isinstance(struct, amqp10.DeliveryProperties):
                delivery = struct
            elif isinstance(struct, amqp10.MessageProperties):
                message = struct
        routing_key = text(None if delivery is None else delivery.routing_key)
        self.destination = command.destination or b""
        self.is_silent = is_silent(command.accept_mode, command.acquire_mode)
        method: amqp.BasicDeliver | amqp.BasicPublish
        if is_delivery:
            tag = text(self.destination) or NAMELESS
            method = amqp.BasicDeliver(
                tag,
                0,
                delivery is not None and delivery.redelivered,
                text(None if delivery is None else delivery.exchange),
                routing_key,
            )
        else:
            method = amqp.BasicPublish(
                exchange=text(command.destination),
                routing_key=routing_key,
                immediate=delivery is not None and delivery.immediate,
            )
        #: Payload of the method frame, and where the delivery tag is in there.
        self.method = method.encode()
        self.tag_at = _TAG_AT + 1 + self.method[_TAG_AT] if is_delivery else 0
        #: Payload of the header frame, for an empty body.
        self.header = encode_header(
            ContentHeader(method.CLASS_ID, 0, to_canonical(delivery, message, lenient=True))
        )


class MessageCopier:
    """Copies of the messages of one direction. ``frame_max`` is that of the gateway's frames, in bytes."""

    __slots__ = ("_frame_max", "_is_delivery", "_kinds")

    def __init__(self, frame_max: int, *, is_delivery: bool) -> None:
        self._frame_max = frame_max
        self._is_delivery = is_delivery
        self._kinds: dict[tuple[bytes, bytes | None], MessageKind] = {}

    def kind(self, segment: bytes, header: bytes | None) -> MessageKind:
        """What a transfer is; violations as decoding has them, 506 if its copy does not fit into frames."""
        key = segment, header
        kind = self._kinds.get(key)
        if kind is None:
            kind = MessageKind(segment, header, is_delivery=self._is_delivery)
            if max(len(kind.header), len(kind.method)) + FRAME_OVERHEAD > self._frame_max:
                raise ProtocolViolation(506, "the header of a message is too large")
            if len(segment) + len(header or b"") <= _LARGEST_KIND:
                if len(self._kinds) >= MOST_KINDS:
                    del self._kinds[next(iter(self._kinds))]
                self._kinds[key] = kind
        return kind

    def delivery(
        self, number: int, kind: MessageKind, body: bytes | None, tag: int
    ) -> tuple[bytes, bytes, bytes]:
        """As `copy`, with the payload of the method frame, which has the delivery tag."""
        at = kind.tag_at
        method = b"".join((kind.method[:at], _SIZE.pack(tag), kind.method[at + 8 :]))
        frames, header = self.copy(number, kind, body, method)
        return frames, method, header

    def copy(
        self, number: int, kind: MessageKind, body: bytes | None, method: bytes | None = None
    ) -> tuple[bytes, bytes]:
        """The frames of a copy on channel ``number``, and the payload of its header frame."""
        header = kind.header
        if method is None:
            method = kind.method
        parts = [_HEAD.pack(FRAME_METHOD, number, len(method)), method]
        if body:
            size = len(body)
            header = b"".join((header[:_SIZE_AT], _SIZE.pack(size), header[_SIZE_AT + 8 :]))
            parts += (_END, _HEAD.pack(FRAME_HEADER, number, len(header)), header, _END)
            step = self._frame_max - FRAME_OVERHEAD
            if size <= step:
                parts += (_HEAD.pack(FRAME_BODY, number, size), body, _END)
            else:
                for start in range(0, size, step):
                    piece = body[start : start + step]
                    parts += (_HEAD.pack(FRAME_BODY, number, len(piece)), piece, _END)
        else:
            parts += (_END, _HEAD.pack(FRAME_HEADER, number, len(header)), header, _END)
        return b"".join(parts), header

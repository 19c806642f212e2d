"""The copy of a transfer: basic.publish or basic.deliver, with the message.

A message of which nothing but its body is new, or the body and the delivery tag, is not decoded again: what
was made of its command and header is kept, for the `MOST_FORMS` that came last.
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.v0_10.build import copy_frames, quick_header, tagged
from amqpgate.bridge.v0_10.forms import keep
from amqpgate.bridge.v0_10.native.copies import NAMELESS, is_silent
from amqpgate.bridge.v0_10.native.forms import KnownForms, MessageForm, TransferKind
from amqpgate.bridge.v0_10.properties import to_canonical
from amqpgate.bridge.v0_10.quick_header import QuickHeader
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_OVERHEAD
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.codec import decode_command, decode_header

#: How basic.publish, with a reserved number, and basic.deliver begin, and where their first name is.
_PUBLISH: Final = amqp.BasicPublish.INDEX.to_bytes(4, "big") + b"\0\0"
_DELIVER: Final = amqp.BasicDeliver.INDEX.to_bytes(4, "big")
_SHORT_AT: Final = 4
_NO_TAG: Final = bytes(8)
_NAMELESS: Final = NAMELESS.encode()


class MessageCopier:
    """Copies of the messages of one direction. ``frame_max`` is that of the gateway's frames, in bytes."""

    __slots__ = ("_forms", "_frame_max", "_is_delivery", "_transfers")

    def __init__(self, frame_max: int, forms: KnownForms, *, is_delivery: bool) -> None:
        self._frame_max = frame_max
        self._is_delivery = is_delivery
        self._forms = forms
        self._transfers: dict[bytes, TransferKind] = {}

    def kind(self, segment: bytes, header: bytes | None) -> MessageForm:
        """What a transfer is; violations as decoding has them, 506 if its copy does not fit into frames."""
        forms, read = self._forms, self._forms.read(header)
        form = forms.known.get((segment, read))
        if form is None:
            form = self._made(self._transfer(segment), quick_header(read or b""), read)
            if max(len(form.header), len(form.method)) + FRAME_OVERHEAD > self._frame_max:
                raise ProtocolViolation(506, "the header of a message is too large")
            forms.keep(segment, read, form)
        return form

    def _transfer(self, segment: bytes) -> TransferKind:
        transfer = self._transfers.get(segment)
        if transfer is None:
            command, _ = decode_command(segment)
            assert isinstance(command, amqp10.MessageTransfer)
            transfer = TransferKind(
                command.destination or b"", is_silent(command.accept_mode, command.acquire_mode)
            )
            keep(self._transfers, segment, transfer)
        return transfer

    def _made(self, transfer: TransferKind, quick: QuickHeader | None, header: bytes | None) -> MessageForm:
        if quick is None:
            quick = _read(header or b"")
        name = transfer.destination
        if self._is_delivery:
            name = name or _NAMELESS
            tag_at = _SHORT_AT + 1 + len(name)
            method = b"".join(
                (
                    _DELIVER,
                    bytes((len(name),)),
                    name,
                    _NO_TAG,
                    b"\1" if quick.redelivered else b"\0",
                    bytes((len(quick.exchange),)),
                    quick.exchange,
                    bytes((len(quick.routing_key),)),
                    quick.routing_key,
                )
            )
            return MessageForm(transfer, method, tag_at, quick.payload)
        method = b"".join(
            (
                _PUBLISH,
                bytes((len(name),)),
                name,
                bytes((len(quick.routing_key),)),
                quick.routing_key,
                b"\2" if quick.immediate else b"\0",
            )
        )
        return MessageForm(transfer, method, 0, quick.payload)

    def delivery(
        self, number: int, kind: MessageForm, body: bytes | None, tag: int
    ) -> tuple[bytes, bytes, bytes]:
        """As `copy`, with the payload of the method frame, which has the delivery tag."""
        method = tagged(kind.method, kind.tag_at, tag)
        frames, header = copy_frames(number, method, kind.header, body, self._frame_max)
        return frames, method, header

    def copy(self, number: int, kind: MessageForm, body: bytes | None) -> tuple[bytes, bytes]:
        """The frames of a copy on channel ``number``, and the payload of its header frame."""
        return copy_frames(number, kind.method, kind.header, body, self._frame_max)


def _read(header: bytes) -> QuickHeader:
    """What any header says. Violations as decoding has them."""
    delivery = message = None
    for struct in decode_header(header):
        if isinstance(struct, amqp10.DeliveryProperties):
            delivery = struct
        elif isinstance(struct, amqp10.MessageProperties):
            message = struct
    properties = to_canonical(delivery, message, lenient=True)
    payload = encode_header(ContentHeader(amqp.BasicPublish.CLASS_ID, 0, properties))
    if delivery is None:
        return QuickHeader(payload, b"", b"", False, False)
    return QuickHeader(
        payload,
        delivery.routing_key or b"",
        delivery.exchange or b"",
        delivery.redelivered,
        delivery.immediate,
    )

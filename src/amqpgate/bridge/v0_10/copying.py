"""Frames of messages for the gateway, of payloads that are made. Where it was compiled, ``_codec`` serves."""

from __future__ import annotations

from struct import Struct
from typing import Final

from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_END,
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)

_END: Final = bytes((FRAME_END,))
_SIZE: Final = Struct(">Q")
#: Where a content header has the size of the body (AMQP 0-9-1, section 4.2.6.1).
_SIZE_AT: Final = 4
#: A frame of basic.ack: kind, channel, size, class and method, delivery tag, bits, end; what of it is fixed.
_ACK: Final = Struct(">BHIIQBB")
_ACK_SAYS: Final = (FRAME_METHOD, 13, 0x003C_0050, FRAME_END)


def tagged(method: bytes, at: int, tag: int) -> bytes:
    """The payload of a basic.deliver with this delivery tag, which is at ``at``."""
    return b"".join((method[:at], _SIZE.pack(tag), method[at + 8 :]))


def basic_ack(frames: bytes) -> tuple[int, int, bool] | None:
    """What a frame of basic.ack says, if it is all there is: its channel, delivery tag, bit "multiple"."""
    if len(frames) != _ACK.size:
        return None
    kind, number, size, code, tag, bits, end = _ACK.unpack(frames)
    if (kind, size, code, end) != _ACK_SAYS:
        return None
    return number, tag, bits & 1 == 1


def copy_frames(
    number: int, method: bytes, header: bytes, body: bytes | None, frame_max: int
) -> tuple[bytes, bytes]:
    """The frames of a message on channel ``number``, each of at most ``frame_max`` bytes, and the payload of
    its header frame. Both payloads fit; ``header`` is that of an empty body."""
    parts = [FRAME_HEAD.pack(FRAME_METHOD, number, len(method)), method]
    if body:
        size = len(body)
        header = b"".join((header[:_SIZE_AT], _SIZE.pack(size), header[_SIZE_AT + 8 :]))
        parts += (_END, FRAME_HEAD.pack(FRAME_HEADER, number, len(header)), header, _END)
        step = frame_max - FRAME_OVERHEAD
        if size <= step:
            parts += (FRAME_HEAD.pack(FRAME_BODY, number, size), body, _END)
        else:
            for start in range(0, size, step):
                piece = body[start : start + step]
                parts += (FRAME_HEAD.pack(FRAME_BODY, number, len(piece)), piece, _END)
    else:
        parts += (_END, FRAME_HEAD.pack(FRAME_HEADER, number, len(header)), header, _END)
    return b"".join(parts), header

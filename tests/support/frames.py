"""Frames as peers send them."""

from __future__ import annotations

from amqpgate.protocol.frames import FRAME_HEADER, FRAME_MIN_SIZE, body_frames, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.method import Method, Properties


def content_frames(
    channel: int,
    method: Method,
    properties: Properties,
    body: bytes,
    frame_max: int = FRAME_MIN_SIZE,
    dialect: Dialect = RABBITMQ_0_9_1,
) -> bytes:
    """Method, content header and as many body frames as ``frame_max`` bytes ask for (0: one).

    A method or header larger than ``frame_max`` cannot be cut, and stays as it is.
    """
    header = ContentHeader(class_id=method.CLASS_ID, body_size=len(body), properties=properties)
    return b"".join(
        (
            method_frame(channel, method, dialect),
            encode_frame(FRAME_HEADER, channel, encode_header(header, dialect)),
            *body_frames(channel, body, frame_max),
        )
    )

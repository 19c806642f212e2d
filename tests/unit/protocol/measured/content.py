"""Messages that come in the wrong pieces."""

from __future__ import annotations

from amqpgate.protocol.frames import encode_frame
from tests.unit.broker.amqp.playbook import (
    CHANNEL_CLOSE,
    CHANNEL_OPEN,
    CLOSE,
    DECLARE,
    PUBLISH,
    body,
    header,
    m,
    raw,
)
from tests.unit.protocol.measured.case import NO_BODY, NO_HEADER, NO_METHOD, NOTHING, Case, closes

CONTENT = [
    Case("header without method", "channel", header(1, 0), NO_METHOD),
    Case("body without method", "channel", body(1, b"x"), NO_METHOD),
    *(
        Case(f"publish, {what}", "channel", m(1, PUBLISH) + frames, NO_HEADER)
        for what, frames in (
            ("body", body(1, b"x")),
            ("publish", m(1, PUBLISH)),
            ("declare", m(1, DECLARE)),
            ("close", m(1, CHANNEL_CLOSE)),
            ("header of weight 1", header(1, 0, weight=1)),
        )
    ),
    *(
        Case(
            f"publish, header of class {class_id}",
            "channel",
            m(1, PUBLISH) + header(1, 0, class_id),
            closes(
                505,
                (60, 40),
                "UNEXPECTED_FRAME - expected content header for class 60,"
                f" got one for class {class_id} instead",
            ),
        )
        for class_id in (50, 99)
    ),
    *(
        Case(f"publish, header, {what}", "channel", m(1, PUBLISH) + header(1, 3) + frames, NO_BODY)
        for what, frames in (
            ("header", header(1, 3)),
            ("declare", m(1, DECLARE)),
            ("publish", m(1, PUBLISH)),
        )
    ),
    Case(
        "body in one frame too long",
        "channel",
        m(1, PUBLISH) + header(1, 3) + body(1, b"abcd"),
        NOTHING,
        closes(505, (60, 40), "UNEXPECTED_FRAME - content body is 1 octets longer than declared"),
        "RabbitMQ waits for ever",
    ),
    Case(
        "body of no bytes where none is due",
        "channel",
        m(1, PUBLISH) + header(1, 0) + body(1, b""),
        NO_METHOD,
    ),
    Case(
        "body of no bytes where some are due",
        "channel",
        m(1, PUBLISH) + header(1, 3) + body(1, b"") + body(1, b"abc") + m(1, DECLARE),
        ("1 queue.declare-ok",),
    ),
    Case(
        "heartbeat within",
        "channel",
        m(1, PUBLISH) + encode_frame(8, 0, b"") + header(1, 0) + m(1, DECLARE),
        ("1 queue.declare-ok",),
    ),
    Case(
        "another channel within",
        "channel",
        m(1, PUBLISH) + header(1, 3) + m(2, CHANNEL_OPEN) + m(2, DECLARE) + body(1, b"abc"),
        ("2 channel.open-ok", "2 queue.declare-ok"),
    ),
    Case(
        "connection.close within",
        "channel",
        m(1, PUBLISH) + header(1, 3) + m(0, CLOSE),
        ("0 connection.close-ok",),
    ),
    Case(
        "header of four bytes",
        "channel",
        m(1, PUBLISH) + encode_frame(2, 1, b"\x00\x3c\x00\x00"),
        closes(501, (0, 0), "FRAME_ERROR - type 2, all octets = <<0,60,0,0>>: unknown_frame"),
    ),
    Case(
        "header of twelve bytes",
        "channel",
        m(1, PUBLISH) + encode_frame(2, 1, header(1, 0)[7:19]),
        ("0 connection.close 541 (0, 0) INTERNAL_ERROR",),
        ("0 connection.close 541 (0, 0) INTERNAL_ERROR - malformed content properties",),
        "RabbitMQ's parser crashes; the code is the same",
    ),
    Case(
        "publish with too little",
        "channel",
        raw(1, 60, 40, b"\x00\x00\x01"),
        closes(501, (60, 40), "FRAME_ERROR - cannot decode <<0,0,1>>"),
    ),
    Case(
        "publish with too much",
        "channel",
        raw(1, 60, 40, b"\x00\x00\x00\x00\x00zz"),
        closes(501, (60, 40), "FRAME_ERROR - cannot decode <<0,0,0,0,0,122,122>>"),
    ),
]

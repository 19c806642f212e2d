"""After the broker has asked to close a channel, or the connection."""

from __future__ import annotations

from amqpgate.protocol.frames import encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.playbook import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
    CLOSE,
    CLOSE_OK,
    DECLARE,
    MISSING,
    OPEN,
    PUBLISH,
    body,
    head,
    header,
    m,
    raw,
)
from tests.unit.protocol.measured.case import (
    GONE,
    NO_HEADER,
    NO_METHOD,
    NOTHING,
    SECOND_OPEN,
    Case,
    bad_end,
    closes,
    expected_open,
)

#: The broker has closed the channel with 404, and the client goes on.
CLOSING_CHANNEL = [
    Case(
        f"404, then {what}",
        "channel",
        m(1, MISSING) + frames,
        GONE + answer,
        None if ours is None else GONE + ours,
        why,
    )
    for what, frames, answer, ours, why in (
        ("nothing", b"", NOTHING, None, ""),
        (
            "declare, close-ok, open, declare",
            m(1, DECLARE) + m(1, CHANNEL_CLOSE_OK) + m(1, CHANNEL_OPEN) + m(1, DECLARE),
            ("1 channel.open-ok", "1 queue.declare-ok"),
            None,
            "",
        ),
        (
            "a whole publish, close-ok, open",
            m(1, PUBLISH) + header(1, 3) + body(1, b"abc") + m(1, CHANNEL_CLOSE_OK) + m(1, CHANNEL_OPEN),
            ("1 channel.open-ok",),
            None,
            "",
        ),
        ("publish, close-ok", m(1, PUBLISH) + m(1, CHANNEL_CLOSE_OK), NO_HEADER, None, ""),
        ("body", body(1, b"x"), NO_METHOD, None, ""),
        (
            "frame type 4",
            encode_frame(4, 1, b""),
            closes(501, (0, 0), "FRAME_ERROR - type 4, all octets = <<>>: unknown_frame"),
            None,
            "",
        ),
        (
            "heartbeat on 1",
            encode_frame(8, 1, b""),
            closes(505, (0, 0), "UNEXPECTED_FRAME - type 8, all octets = <<>>"),
            None,
            "",
        ),
        ("declare-ok", m(1, amqp.QueueDeclareOk()), NOTHING, None, ""),
        ("connection.open", m(1, OPEN), NOTHING, None, ""),
        (
            "declare with too little",
            raw(1, 50, 10, b"\x00"),
            closes(501, (50, 10), "FRAME_ERROR - cannot decode <<0>>"),
            NOTHING,
            "what is dropped is not decoded",
        ),
        ("open", m(1, CHANNEL_OPEN), SECOND_OPEN, None, ""),
        (
            "close (they cross), close-ok, open",
            m(1, CHANNEL_CLOSE) + m(1, CHANNEL_CLOSE_OK) + m(1, CHANNEL_OPEN),
            ("1 channel.close-ok", "1 channel.open-ok"),
            None,
            "",
        ),
        (
            "close (they cross), no close-ok, open",
            m(1, CHANNEL_CLOSE) + m(1, CHANNEL_OPEN),
            ("1 channel.close-ok", *SECOND_OPEN),
            None,
            "",
        ),
        (
            "close, close, close-ok, open",
            m(1, CHANNEL_CLOSE) * 2 + m(1, CHANNEL_CLOSE_OK) + m(1, CHANNEL_OPEN),
            ("1 channel.close-ok", "1 channel.close-ok", "1 channel.open-ok"),
            None,
            "",
        ),
        ("close-ok, close-ok", m(1, CHANNEL_CLOSE_OK) * 2, expected_open(20, 41), None, ""),
        ("close-ok, close", m(1, CHANNEL_CLOSE_OK) + m(1, CHANNEL_CLOSE), expected_open(20, 40), None, ""),
    )
]

#: The broker has closed the connection (a second channel.open), and the client goes on.
CLOSING_CONNECTION = [
    Case(f"504, then {what}", "channel", m(1, CHANNEL_OPEN) + frames, SECOND_OPEN + answer)
    for what, frames, answer in (
        ("nothing", b"", NOTHING),
        ("close", m(0, CLOSE), ("0 connection.close-ok",)),
        ("close, close-ok", m(0, CLOSE) + m(0, CLOSE_OK), ("0 connection.close-ok",)),
        ("declare", m(1, DECLARE), NOTHING),
        ("open", m(0, OPEN), NOTHING),
        ("close-ok on 1", m(1, CLOSE_OK), NOTHING),
        ("heartbeat, close-ok", encode_frame(8, 0, b"") + m(0, CLOSE_OK), NOTHING),
        ("content header on 0", header(0, 0), NOTHING),
        ("frame type 4 on 0", encode_frame(4, 0, b""), NOTHING),
        ("frame type 4 on 1", encode_frame(4, 1, b""), NOTHING),
        ("method of one octet", encode_frame(1, 0, b"\x00"), NOTHING),
        ("close with too little", raw(0, 10, 50), NOTHING),
        ("end octet", bad_end(raw(1, 0, 0)), NOTHING),
        ("payload above frame-max", head(3, 1, 200_000), NOTHING),
    )
]

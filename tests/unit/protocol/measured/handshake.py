"""Before the connection is open."""

from __future__ import annotations

from amqpgate.protocol.frames import encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.playbook import (
    CHANNEL_OPEN,
    CLOSE,
    CLOSE_OK,
    OPEN,
    PUBLISH,
    START_OK,
    TUNE_OK,
    body,
    head,
    header,
    m,
    raw,
    settings,
)
from tests.unit.protocol.measured.case import (
    CLIENT_MAY_CLOSE,
    NOTHING,
    REFUSED,
    RESET,
    UNKNOWN_IDS,
    Case,
    bad_end,
    closes,
    silence,
    silent_state_error,
    state_error,
)

HANDSHAKE = [
    *(
        Case(f"protocol header {data!r}", "new", data, REFUSED)
        for data in (
            b"AMQP\x01\x01\x00\x0a",
            b"AMQP\x00\x01\x00\x00",
            b"AMQP\x03\x01\x00\x00",
            b"AMQP\x02\x00\x00\x00",
            b"GET / HT",
        )
    ),
    Case("seven bytes of no header", "new", b"GET / H", NOTHING),
    *(
        Case(method.NAME, "start", m(0, method), silent_state_error(type(method), "starting"))
        for method in (TUNE_OK, OPEN, CLOSE_OK, amqp.ConnectionSecureOk(), amqp.ConnectionStart(), PUBLISH)
    ),
    Case(
        "connection.close",
        "start",
        m(0, CLOSE),
        silent_state_error(amqp.ConnectionClose, "starting"),
        ("0 connection.close-ok",),
        CLIENT_MAY_CLOSE,
    ),
    Case(
        "channel.open on 1",
        "start",
        m(1, CHANNEL_OPEN),
        silence(505, (0, 0), "type 1, all octets = <<0,20,0,10,0>>"),
    ),
    Case("heartbeat", "start", encode_frame(8, 0, b""), NOTHING),
    Case(
        "heartbeat with payload",
        "start",
        encode_frame(8, 0, b"abc"),
        silence(501, (0, 0), 'type 8, all octets = <<"abc">>: unknown_frame'),
    ),
    Case(
        "heartbeat on 1", "start", encode_frame(8, 1, b""), silence(505, (0, 0), "type 8, all octets = <<>>")
    ),
    Case(
        "content header on 0",
        "start",
        header(0, 0),
        silence(505, (0, 0), "type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,0,0,0>>"),
    ),
    Case(
        "frame type 4",
        "start",
        encode_frame(4, 0, b""),
        silence(501, (0, 0), "type 4, all octets = <<>>: unknown_frame"),
    ),
    Case(
        "end octet",
        "start",
        encode_frame(1, 0, b"\x00\x0a\x00\x0b")[:-1] + b"\x00",
        silence(501, (0, 0), "type 1, all octets = <<0,10,0,11>>: {invalid_frame_end_marker,0}"),
    ),
    Case("payload of 4096 bytes begins", "start", head(1, 0, 4096), NOTHING),
    Case(
        "payload of 4097 bytes begins",
        "start",
        head(1, 0, 4097),
        silence(501, (0, 0), "type 1, all octets = <<>>: {frame_too_large,4097,4088}"),
    ),
    Case(
        "method of one octet",
        "start",
        encode_frame(1, 0, b"\x00"),
        silence(501, (0, 0), "type 1, all octets = <<0>>: unknown_frame"),
    ),
    Case(
        "start-ok cut short",
        "start",
        raw(0, 10, 11, b"\x00\x00\x00\x05"),
        silence(501, (10, 11), "cannot decode <<0,0,0,5>>"),
    ),
    *(
        Case(
            f"no such method ({class_id}, {method_id})",
            "start",
            raw(0, class_id, method_id),
            RESET,
            silence(540, (class_id, method_id), f"unknown method {{{class_id},{method_id}}}"),
            UNKNOWN_IDS,
        )
        for class_id, method_id in ((10, 99), (99, 10))
    ),
    *(
        Case(method.NAME, "tune", m(0, method), silent_state_error(type(method), "tuning"))
        for method in (START_OK, OPEN, CLOSE_OK)
    ),
    Case(
        "channel.open on 1",
        "tune",
        m(1, CHANNEL_OPEN),
        silence(505, (0, 0), "type 1, all octets = <<0,20,0,10,0>>"),
    ),
    *(
        Case(f"tune-ok, {text}", "tune", settings(**answer), silence(530, (10, 31), f"negotiated {text}"))
        for answer, text in (
            ({"frame_max": 4095}, "frame_max = 4095 is lower than the minimum allowed value (4096)"),
            ({"frame_max": 131_073}, "frame_max = 131073 is higher than the maximum allowed value (131072)"),
            ({"channel_max": 2048}, "channel_max = 2048 is higher than the maximum allowed value (2047)"),
        )
    ),
    Case(
        "tune-ok, channel_max = 0",
        "tune",
        settings(channel_max=0),
        silence(
            530,
            (10, 31),
            "negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)",
        ),
        NOTHING,
        "0 means that the client has no limit of its own; old clients send it",
    ),
    *(
        Case(method.NAME, "tuned", m(0, method), state_error(type(method), "opening"))
        for method in (TUNE_OK, START_OK, CLOSE_OK, CHANNEL_OPEN, amqp.ConnectionSecureOk())
    ),
    Case(
        "connection.close",
        "tuned",
        m(0, CLOSE),
        state_error(amqp.ConnectionClose, "opening"),
        ("0 connection.close-ok",),
        CLIENT_MAY_CLOSE,
    ),
    Case(
        "channel.open on 1",
        "tuned",
        m(1, CHANNEL_OPEN),
        closes(505, (0, 0), "UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>>"),
    ),
    Case(
        "body on 0",
        "tuned",
        body(0, b"x"),
        closes(505, (0, 0), 'UNEXPECTED_FRAME - type 3, all octets = <<"x">>'),
    ),
    Case(
        "end octet",
        "tuned",
        bad_end(raw(0, 10, 40)),
        closes(501, (0, 0), "FRAME_ERROR - type 1, all octets = <<0,10,0,40>>: {invalid_frame_end_marker,1}"),
    ),
    Case(
        "frame type 4",
        "tuned",
        encode_frame(4, 0, b""),
        closes(501, (0, 0), "FRAME_ERROR - type 4, all octets = <<>>: unknown_frame"),
    ),
    Case(
        "all at once",
        "start",
        m(0, START_OK) + m(0, TUNE_OK) + m(0, OPEN) + m(1, CHANNEL_OPEN),
        (
            "0 connection.tune",
            "0 connection.open-ok",
            "1 channel.open-ok",
        ),
    ),
]

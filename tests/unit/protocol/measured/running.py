"""On an open connection, and on an open channel."""

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
    NO_METHOD,
    NOTHING,
    RESET,
    SECOND_OPEN,
    UNKNOWN_IDS,
    Case,
    bad_end,
    closes,
    expected_open,
    state_error,
    unimplemented,
)

OPEN_CONNECTION = [
    *(
        Case(method.NAME, "open", m(0, method), state_error(type(method), "running"))
        for method in (
            OPEN,
            START_OK,
            TUNE_OK,
            amqp.ConnectionSecureOk(),
            CLOSE_OK,
            amqp.ConnectionStart(),
            amqp.ConnectionBlocked(),
            amqp.ConnectionUpdateSecretOk(),
            CHANNEL_OPEN,
            PUBLISH,
        )
    ),
    Case(
        "connection.update-secret",
        "open",
        m(0, amqp.ConnectionUpdateSecret(new_secret=b"guest", reason="x")),
        ("0 connection.update-secret-ok",),
    ),
    Case(
        "content header on 0",
        "open",
        header(0, 0),
        closes(505, (0, 0), "UNEXPECTED_FRAME - type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,0,0,0>>"),
    ),
    Case(
        "a body with quotes on 0",
        "open",
        body(0, b'abc "q" \\'),
        closes(505, (0, 0), 'UNEXPECTED_FRAME - type 3, all octets = <<"abc \\"q\\" \\\\">>'),
    ),
    Case(
        "a body with control characters on 0",
        "open",
        body(0, b"a\x1bb\x08\x0c\x0b\r"),
        closes(505, (0, 0), 'UNEXPECTED_FRAME - type 3, all octets = <<"a\\eb\\b\\f\\v\\r">>'),
    ),
    Case(
        "a long body on 0",
        "open",
        body(0, b"abcdefghij" * 100),
        closes(505, (0, 0), 'UNEXPECTED_FRAME - type 3, first 16 octets = <<"abcdefghijabcdef">>'),
    ),
    *(
        Case(
            f"{method.NAME} on a closed channel",
            "open",
            m(1, method),
            expected_open(method.CLASS_ID, method.METHOD_ID),
        )
        for method in (
            DECLARE,
            CHANNEL_CLOSE,
            CHANNEL_CLOSE_OK,
            amqp.ChannelFlow(),
            amqp.ChannelOpenOk(),
            OPEN,
        )
    ),
    Case("publish on a closed channel", "open", m(1, PUBLISH) + header(1, 0), expected_open(60, 40)),
    Case(
        "publish on a closed channel, and no header yet",
        "open",
        m(1, PUBLISH),
        NOTHING,
        expected_open(60, 40),
        "RabbitMQ puts the message together before it looks for the channel",
    ),
    Case("content header on a closed channel", "open", header(1, 0), NO_METHOD),
    Case("body on a closed channel", "open", body(1, b"x"), NO_METHOD),
    Case(
        "heartbeat on 1",
        "open",
        encode_frame(8, 1, b""),
        closes(505, (0, 0), "UNEXPECTED_FRAME - type 8, all octets = <<>>"),
    ),
    Case(
        "heartbeat with payload",
        "open",
        encode_frame(8, 0, b"zz"),
        closes(501, (0, 0), 'FRAME_ERROR - type 8, all octets = <<"zz">>: unknown_frame'),
    ),
    Case("channel number above channel-max", "open", m(2048, CHANNEL_OPEN), ("2048 channel.open-ok",)),
    Case(
        "channel.open with too much",
        "open",
        raw(1, 20, 10, b"\x00zz"),
        closes(501, (20, 10), "FRAME_ERROR - cannot decode <<0,122,122>>"),
    ),
    Case(
        "channel.open with too little",
        "open",
        raw(1, 20, 10),
        closes(501, (20, 10), "FRAME_ERROR - cannot decode <<>>"),
    ),
    *(
        Case(
            f"frame type {kind} on {channel}",
            "open",
            encode_frame(kind, channel, b""),
            closes(501, (0, 0), f"FRAME_ERROR - type {kind}, all octets = <<>>: unknown_frame"),
        )
        for kind, channel in ((4, 0), (4, 1), (0, 0), (65, 0))
    ),
    Case(
        "end octet",
        "open",
        bad_end(raw(1, 20, 10, b"\x00")),
        closes(
            501, (0, 0), "FRAME_ERROR - type 1, all octets = <<0,20,0,10,0>>: {invalid_frame_end_marker,1}"
        ),
    ),
    *(
        Case(
            f"method of three bytes on {channel}",
            "open",
            encode_frame(1, channel, b"\x00\x00\x00"),
            closes(501, (0, 0), "FRAME_ERROR - type 1, all octets = <<0,0,0>>: unknown_frame"),
        )
        for channel in (0, 1)
    ),
    Case(
        "payload above frame-max",
        "open",
        head(3, 1, 131_073),
        closes(501, (0, 0), "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}"),
    ),
    Case("payload of frame-max bytes begins", "open", head(3, 1, 131_072), NOTHING),
    *(
        Case(
            f"no such method on {channel}",
            "open",
            raw(channel, 60, 199),
            RESET,
            closes(540, (60, 199), "NOT_IMPLEMENTED - unknown method {60,199}"),
            UNKNOWN_IDS,
        )
        for channel in (0, 1)
    ),
    Case("close", "open", m(0, CLOSE), ("0 connection.close-ok",)),
]

OPEN_CHANNEL = [
    Case("open again", "channel", m(1, CHANNEL_OPEN), SECOND_OPEN),
    *(
        Case(method.NAME, "channel", m(1, method), unimplemented(type(method)))
        for method in (
            amqp.ChannelOpenOk(),
            CHANNEL_CLOSE_OK,
            OPEN,
            CLOSE,
            CLOSE_OK,
            START_OK,
            amqp.QueueDeclareOk(),
            amqp.BasicConsumeOk(),
            amqp.BasicGetEmpty(),
            amqp.BasicCancelOk(),
            amqp.TxSelectOk(),
            amqp.ConfirmSelectOk(),
            amqp.AccessRequestOk(),
            amqp.BasicRecoverOk(),
            amqp.BasicQosOk(),
            amqp.ExchangeDeclareOk(),
            amqp.ExchangeUnbindOk(),
        )
    ),
    *(
        Case(
            f"{method.NAME} with its header",
            "channel",
            m(1, method) + header(1, 0),
            unimplemented(type(method)),
        )
        for method in (amqp.BasicDeliver(), amqp.BasicReturn(), amqp.BasicGetOk())
    ),
    Case(
        "channel.flow-ok",
        "channel",
        m(1, amqp.ChannelFlowOk()),
        unimplemented(amqp.ChannelFlowOk),
        NOTHING,
        "RabbitMQ never sends the flow that it would answer; other brokers do",
    ),
    Case("channel.flow", "channel", m(1, amqp.ChannelFlow(active=True)), ("1 channel.flow-ok",)),
    Case("basic.recover-async", "channel", m(1, amqp.BasicRecoverAsync(requeue=True)), NOTHING),
    Case(
        "access.request",
        "channel",
        m(1, amqp.AccessRequest(realm="/", active=True)),
        ("1 access.request-ok",),
    ),
    # Where the declare comes before RabbitMQ's close-ok has left, it is dropped: a matter of timing.
    Case(
        "close, and a declare behind it",
        "channel",
        m(1, CHANNEL_CLOSE) + m(1, DECLARE),
        ("1 channel.close-ok", *expected_open(50, 10)),
    ),
]
TWO_CHANNELS = Case(
    "a third channel where two were agreed",
    "tune",
    settings(channel_max=2) + m(0, OPEN) + m(1, CHANNEL_OPEN) + m(2, CHANNEL_OPEN) + m(3, CHANNEL_OPEN),
    (
        "0 connection.open-ok",
        "1 channel.open-ok",
        "2 channel.open-ok",
        *closes(
            530,
            (0, 0),
            "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)",
        ),
    ),
)

"""What is agreed by tune, and what else bounds a peer."""

from __future__ import annotations

import pytest

from amqpgate.broker.amqp.connection import Connection, LocalProtocolError
from amqpgate.broker.amqp.events import (
    MethodReceived,
)
from amqpgate.broker.amqp.limits import ConnectionLimits
from amqpgate.protocol.frames import Frame, encode_frame
from amqpgate.protocol.handshake import Tune
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.pair import OPEN_OK, PROPERTIES, START, Pair, violation, with_channel
from tests.unit.broker.amqp.playbook import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
    DECLARE,
    HEADER,
    OPEN,
    PUBLISH,
    START_OK,
    TUNE,
    broker_at,
    lines,
    m,
)


def test_the_owner_may_override_tune() -> None:
    pair = with_channel()
    pair.server.tuned(frame_max=4096, channel_max=1, heartbeat=0)
    assert pair.server.tune == Tune(frame_max=4096, channel_max=1)
    assert violation(pair.server, encode_frame(3, 1, bytes(4097))).code == 501
    pair = with_channel()
    pair.server.tuned(frame_max=4096, channel_max=1, heartbeat=0)
    assert violation(pair.server, m(2, CHANNEL_OPEN)).code == 530


def test_frame_max_0_is_no_limit_for_what_is_sent() -> None:
    pair = with_channel()
    pair.client.tuned(frame_max=0, channel_max=1, heartbeat=0)
    data = pair.client.send_content(1, PUBLISH, PROPERTIES, bytes(200_000))
    assert lines(data)[2:] == [str(Frame(3, 1, bytes(200_000)))]


def test_frames_before_tune_are_small_unless_the_limits_say_otherwise() -> None:
    token = amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0user\0" + b"t" * 6000)
    server = broker_at("start").connection
    assert violation(server, m(0, token)).code == 501
    server = broker_at("start", ConnectionLimits(frame_max_before_tune=16_384)).connection
    assert list(server.receive(m(0, token))) == [MethodReceived(0, token)]


def test_what_is_sent_ahead_of_the_handshake_is_bounded() -> None:
    server = Connection("server", limits=ConnectionLimits(ahead=100))
    list(server.receive(HEADER + bytes(100)))
    error = violation(server, b"\x00")
    assert (error.code, error.scope) == (506, "connection")


def test_channel_numbers_are_checked_on_demand() -> None:
    limits = ConnectionLimits(strict_channel_numbers=True)
    server = broker_at("open", limits).connection
    assert list(server.receive(m(2047, CHANNEL_OPEN))) == [MethodReceived(2047, CHANNEL_OPEN)]
    error = violation(server, m(2048, CHANNEL_OPEN))
    assert (error.code, error.channel, error.scope) == (504, 2048, "connection")


def test_channel_max_counts_what_is_open() -> None:
    pair = Pair()
    pair.client_says(pair.client.send_header())
    pair.down(0, START)
    pair.up(0, START_OK)
    pair.down(0, TUNE)
    pair.up(0, amqp.ConnectionTuneOk(channel_max=2, frame_max=4096))
    pair.up(0, OPEN)
    pair.down(0, OPEN_OK)
    for _ in range(3):
        pair.up(1, CHANNEL_OPEN)
        pair.up(900, CHANNEL_OPEN)
        pair.up(900, DECLARE)
        with pytest.raises(LocalProtocolError, match="number of channels opened"):
            pair.client.send(3, CHANNEL_OPEN)
        pair.down(1, amqp.ChannelOpenOk())
        pair.down(900, amqp.ChannelOpenOk())
        for number in (1, 900):
            pair.up(number, CHANNEL_CLOSE)
            pair.down(number, CHANNEL_CLOSE_OK)
    pair.up(3, CHANNEL_OPEN)

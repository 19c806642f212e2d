"""What the owner of a connection may not do, and that nothing has changed afterwards."""

from __future__ import annotations

import pytest

from amqpgate.broker.amqp.connection import Connection, LocalProtocolError
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.pair import PROPERTIES, START, Pair, with_channel
from tests.unit.broker.amqp.playbook import (
    CHANNEL_CLOSE,
    CLOSE,
    CLOSE_OK,
    DECLARE,
    PUBLISH,
    START_OK,
    TUNE,
    TUNE_OK,
)


def test_only_a_client_sends_a_header_and_only_once() -> None:
    with pytest.raises(LocalProtocolError):
        Connection("server").send_header()
    client = Connection("client")
    client.send_header()
    with pytest.raises(LocalProtocolError):
        client.send_header()


def test_no_turn_is_taken_from_the_peer() -> None:
    pair = Pair()
    with pytest.raises(LocalProtocolError, match="pre_init"):
        pair.client.send(0, START_OK)
    pair.client_says(pair.client.send_header())
    with pytest.raises(LocalProtocolError, match="greeted"):
        pair.server.send(0, TUNE)
    with pytest.raises(LocalProtocolError, match="greeted"):
        pair.server.send(1, CHANNEL_CLOSE)
    pair.down(0, START)


def test_no_method_of_the_other_side() -> None:
    pair = with_channel()
    with pytest.raises(LocalProtocolError, match="unimplemented"):
        pair.client.send(1, amqp.QueueDeclareOk())
    with pytest.raises(LocalProtocolError, match="unimplemented"):
        pair.server.send(1, DECLARE)
    with pytest.raises(LocalProtocolError, match="unexpected method"):
        pair.client.send(0, DECLARE)
    pair.up(1, DECLARE)


def test_content_where_it_belongs() -> None:
    pair = with_channel()
    with pytest.raises(LocalProtocolError, match="carries content"):
        pair.client.send(1, PUBLISH)
    with pytest.raises(LocalProtocolError, match="carries no content"):
        pair.client.send_content(1, DECLARE, PROPERTIES, b"")
    with pytest.raises(LocalProtocolError, match="carries no content"):
        pair.client.send_content(0, PUBLISH, PROPERTIES, b"")
    with pytest.raises(LocalProtocolError, match="expected 'channel"):
        pair.client.send_content(2, PUBLISH, PROPERTIES, b"")


def test_nothing_but_closing_after_a_close() -> None:
    pair = with_channel()
    pair.up(1, CHANNEL_CLOSE)
    with pytest.raises(LocalProtocolError, match="closing"):
        pair.client.send(1, DECLARE)
    with pytest.raises(LocalProtocolError, match="closing"):
        pair.server.send_content(1, amqp.BasicDeliver(), PROPERTIES, b"")
    pair.up(0, CLOSE)
    with pytest.raises(LocalProtocolError, match="closing"):
        pair.client.send(0, CLOSE)
    with pytest.raises(LocalProtocolError, match="closing"):
        pair.client.send(1, DECLARE)
    pair.down(0, CLOSE_OK)
    with pytest.raises(LocalProtocolError):
        pair.client.send(0, CLOSE)
    with pytest.raises(LocalProtocolError):
        pair.client.send_heartbeat()


def test_nothing_that_does_not_fit_into_a_frame() -> None:
    pair = with_channel()
    pair.client.tuned(frame_max=4096, channel_max=10, heartbeat=0)
    large = amqp.QueueDeclare(arguments=amqp.Table.of({"x": "y" * 4096}))
    with pytest.raises(LocalProtocolError, match="frame-max is 4096"):
        pair.client.send(1, large)
    with pytest.raises(LocalProtocolError, match="frame-max is 4096"):
        pair.client.send_content(1, PUBLISH, amqp.BasicProperties(headers=large.arguments), b"")
    fitting = amqp.QueueDeclare(arguments=amqp.Table.of({"x": "y" * (4096 - 8 - 20 + 1)}))
    assert len(pair.client.send(1, fitting)) <= 4096


def test_no_tune_ok_above_the_offer() -> None:
    pair = Pair()
    pair.client_says(pair.client.send_header())
    pair.down(0, START)
    pair.up(0, START_OK)
    pair.down(0, TUNE)
    with pytest.raises(LocalProtocolError, match="higher than the maximum"):
        pair.client.send(0, amqp.ConnectionTuneOk(channel_max=2047, frame_max=200_000))
    assert pair.client.tune is None
    pair.up(0, TUNE_OK)

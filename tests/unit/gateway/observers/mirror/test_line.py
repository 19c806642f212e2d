"""What is said on a connection to a mirror, and what its answers count for."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from amqpgate.gateway.observers.mirror.line import (
    CHANNELS,
    FIRST_PENALTY,
    WINDOW,
    MirrorFaultError,
    MirrorLine,
)
from amqpgate.gateway.observers.mirror.queue import MirroredMessage
from amqpgate.protocol.frames import FrameDecoder, method_frame
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.metrics import sample_value


class Stand:
    """A line that is open, as user `me`, and the test as its broker."""

    def __init__(self, *, frame_max: int = 4096, channel_max: int = 2047) -> None:
        self.registry = CollectorRegistry()
        account = MirrorMetrics(self.registry).account("m")
        self.line = MirrorLine("m", "me", frame_max, channel_max, account)

    def count(self, name: str, **labels: str) -> float:
        return sample_value(self.registry, f"amqpgate_mirror_{name}", {"upstream": "m"} | labels) or 0

    def refused(self) -> float:
        return self.count("dropped_messages_total", reason="refused")

    def publish(
        self,
        exchange: str = "e",
        body: bytes = b"",
        *,
        user: str | None = None,
        now: float = 0.0,
        key: str = "k",
    ) -> list[tuple[int, Method | bytes]]:
        """What is said: methods, and payloads of other frames, with their channels."""
        properties = amqp.BasicProperties(user_id=user, message_id="x")
        message = MirroredMessage(
            exchange, key, encode_header(ContentHeader(60, len(body), properties)), len(body), user
        )
        message.body.extend(body)
        decoder = FrameDecoder(0)
        decoder.feed(self.line.encode(message, now))
        said: list[tuple[int, Method | bytes]] = []
        while (frame := decoder.next()) is not None:
            said.append((frame.channel, decode_method(frame.payload) if frame.type == 1 else frame.payload))
        return said

    def hear(self, method: Method, channel: int, now: float = 0.0) -> None:
        decoder = FrameDecoder(0)
        decoder.feed(method_frame(channel, method))
        frame = decoder.next()
        assert frame is not None
        self.line.take(frame, now)


def test_a_channel_is_opened_with_its_first_message() -> None:
    stand = Stand()
    said = stand.publish(body=bytes(5000))
    assert [type(one) for _, one in said[:3]] == [amqp.ChannelOpen, amqp.ConfirmSelect, amqp.BasicPublish]
    assert [len(one) for _, one in said[4:] if isinstance(one, bytes)] == [4088, 912]
    assert len(stand.publish()) == 2
    assert {channel for channel, _ in said} == {1}
    assert {channel for channel, _ in stand.publish("other")} == {2}


def test_a_publish_is_neither_mandatory_nor_of_another_user() -> None:
    stand = Stand()
    stand.publish()
    for user, told in ((None, None), ("me", "me"), ("bob", None)):
        (_, method), (_, header) = stand.publish(user=user)
        assert method == amqp.BasicPublish(exchange="e", routing_key="k")
        assert isinstance(header, bytes)
        properties = decode_header(header).properties
        assert isinstance(properties, amqp.BasicProperties)
        assert (properties.user_id, properties.message_id) == (told, "x")


def test_confirms_of_one_and_of_many() -> None:
    stand = Stand()
    for _ in range(10):
        stand.publish(body=b"abc")
    stand.hear(amqp.BasicAck(3), 1)
    stand.hear(amqp.BasicAck(5, multiple=True), 1)
    assert (stand.count("messages_total"), stand.count("bytes_total")) == (5, 15)
    stand.hear(amqp.BasicNack(7), 1)
    stand.hear(amqp.BasicAck(5, multiple=True), 1)
    assert (stand.count("messages_total"), stand.refused(), stand.line.in_flight) == (5, 1, 4)
    stand.hear(amqp.BasicAck(0, multiple=True), 1)
    assert (stand.count("messages_total"), stand.line.in_flight) == (9, 0)


def test_a_channel_that_is_closed_costs_its_exchange_only_and_opens_again() -> None:
    stand = Stand()
    for exchange in ("missing", "e", "missing"):
        stand.publish(exchange)
    stand.hear(amqp.ChannelClose(404, "NOT_FOUND", 60, 40), 1, now=10.0)
    assert stand.line.take_control() == method_frame(1, amqp.ChannelCloseOk())
    assert (stand.refused(), stand.line.in_flight) == (2, 1)
    assert stand.publish("missing", now=10.0 + FIRST_PENALTY / 2) == []
    assert stand.refused() == 3
    assert len(stand.publish("e", now=10.5)) == 2
    again = stand.publish("missing", now=10.0 + FIRST_PENALTY)
    assert isinstance(again[0][1], amqp.ChannelOpen)
    # It waits longer the next time, until something is taken.
    stand.hear(amqp.ChannelClose(404, "NOT_FOUND", 60, 40), 1, now=20.0)
    assert stand.publish("missing", now=20.0 + 1.5 * FIRST_PENALTY) == []
    stand.publish("missing", now=20.0 + 2 * FIRST_PENALTY)
    stand.hear(amqp.BasicAck(1), 1)
    stand.hear(amqp.ChannelClose(404, "NOT_FOUND", 60, 40), 1, now=30.0)
    assert stand.publish("missing", now=30.0 + FIRST_PENALTY)


def test_what_fits_no_frame_is_dropped() -> None:
    stand = Stand()
    assert stand.publish(key="k" * 200)
    line = MirrorLine("m", "me", 200, 10, stand.line.account)
    message = MirroredMessage("e", "k" * 250, b"", 0, None)
    assert line.encode(message, 0.0) == b""
    assert stand.count("dropped_messages_total", reason="too_large") == 1


def test_a_window_and_a_block() -> None:
    stand = Stand()
    assert stand.line.takes(0)
    assert not stand.line.takes(WINDOW)
    stand.hear(amqp.ConnectionBlocked("memory"), 0)
    assert not stand.line.takes(0)
    stand.hear(amqp.ConnectionUnblocked(), 0)
    assert stand.line.takes(0)


def test_more_exchanges_than_channels() -> None:
    stand = Stand(channel_max=3)
    channels = {stand.publish(f"e{number}")[0][0] for number in range(50)}
    assert channels == {1, 2, 3}
    # A name that is no UTF-8 stays as it was.
    assert stand.publish("\udcff")[0][0] in channels
    many = Stand()
    assert max(many.publish(f"e{number}")[0][0] for number in range(2 * CHANNELS)) == CHANNELS


def test_what_was_not_answered_is_lost() -> None:
    stand = Stand()
    for exchange in ("a", "b", "b"):
        stand.publish(exchange)
    stand.hear(amqp.BasicAck(1), 2)
    stand.line.lost()
    assert stand.count("dropped_messages_total", reason="lost") == 2
    assert stand.line.in_flight == 0


def test_a_close_of_the_connection_is_a_fault() -> None:
    stand = Stand()
    with pytest.raises(MirrorFaultError, match="320 CONNECTION_FORCED"):
        stand.hear(amqp.ConnectionClose(320, "CONNECTION_FORCED", 0, 0), 0)
    with pytest.raises(MirrorFaultError, match="on channel 9"):
        stand.hear(amqp.BasicAck(1), 9)

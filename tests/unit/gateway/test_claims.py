"""What a content header declares is a claim: the control plane's part, and what happens when that fails."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import attrs
import pytest

from amqpgate.config import Audit
from amqpgate.datapath import tables
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Channels, Lane, Meter
from amqpgate.datapath.tables import Side
from amqpgate.gateway.limits.token_buckets import SharedBucket, TokenBuckets
from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.operation_limits import Happened, OperationLimits, Turn
from amqpgate.gateway.session.publish_denial import LARGEST_RETURN
from amqpgate.policy import SharedLimit
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.records import Origin
from amqpgate.telemetry.audit.rows import AuditRow, Sums
from amqpgate.telemetry.faults import FAULTS, PARTS
from amqpgate.telemetry.readings import PUBLISHED, REFUSED, Traffic
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.audit import records
from tests.support.frames import content_frames
from tests.support.talker import Talker
from tests.unit.gateway.observers.mirror.test_session import Stand

from .audited import ACCESS, MakeStage, audited, confirming, told
from .tapped import of, tap

__all__ = ["audited"]

SMALL = "maxMessageBytes: 10"


def claim(size: int, channel: int = 1, exchange: str = "") -> bytes:
    """A publish up to its header, which declares so much."""
    method = method_frame(channel, amqp.BasicPublish(exchange=exchange, routing_key="a"))
    return method + encode_frame(2, channel, encode_header(ContentHeader(60, size, amqp.BasicProperties())))


def closed(client: Talker, broker: Talker, size: int, most: int) -> None:
    """The channel is closed for that, and the broker has seen nothing else of it."""
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    text = f"PRECONDITION_FAILED - message size {size} is larger than configured max size {most}"
    assert close.reply_text == text
    client.say(amqp.ChannelCloseOk(), 1)


@pytest.mark.parametrize("size", [11, 1 << 40, (1 << 62) - 1, 1 << 62, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("how", ["whole", "bytes", "apart"])
def test_a_message_that_is_too_large_closes_its_channel_and_no_other(
    make_stage: MakeStage, size: int, how: str
) -> None:
    stage = make_stage(limits=SMALL)
    client, broker = stage.opened(channels=2)
    data = claim(size)
    if how == "apart":
        half = data.index(b"\x02\x00\x01")
        client.raw(data[:half] + method_frame(2, amqp.BasicQos()) + data[half:])
        broker.expect(amqp.BasicQos, 2)
    elif how == "bytes":
        for at in range(len(data)):
            client.raw(data[at : at + 1])
    else:
        client.raw(data)
    closed(client, broker, size, 10)
    client.publish(b"0123456789", "a", channel=2)
    assert broker.expect_content(amqp.BasicPublish, 2).body == b"0123456789"
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)
    traffic = stage.running.ask(stage.running.gateway.totals).traffic
    assert (traffic[PUBLISHED], traffic[REFUSED]) == (Traffic(1, 10), Traffic(1, 0))


@pytest.mark.parametrize("size", [11, (1 << 64) - 1])
def test_a_message_that_is_too_large_is_recorded_and_tapped(
    audited: MakeStage, tmp_path: Path, size: int
) -> None:
    stage = audited(limits=SMALL)
    client, broker = stage.opened()
    watch = tap(stage)
    client.raw(claim(size, exchange="x"))
    closed(client, broker, size, 10)
    [shown] = [one for one in watch.items() if one["operation"] == "basic.publish"]
    assert of(shown, "verdict", "rule", "exchange") == ("deny", "maxMessageBytes", "x")
    [event] = told(stage, tmp_path, "events", kind="denied")
    assert (event["operation"], event["exchange"], event["routing_key"]) == ("basic.publish", "x", "a")
    assert (event["rule"], event["reply_code"]) == ("maxMessageBytes", 406)
    assert event["body_size"] == min(size, (1 << 63) - 1)
    assert event["reason"] == f"message size {size} is larger than configured max size 10"
    [row] = [one for one in records(tmp_path / "audit", "usage") if one["operation"] == "basic.publish"]
    assert (row["verdict"], row["rule"], row["requests"], row["bytes"]) == ("deny", "maxMessageBytes", 1, 0)


@pytest.mark.parametrize("how", ["nack", "drop", "return", "channel-close"])
@pytest.mark.parametrize("exchange", ["x", "y"])
def test_what_a_policy_refuses_is_no_exception(make_stage: MakeStage, how: str, exchange: str) -> None:
    """At its header (x), and at its method (y), where what follows is told or dropped."""
    stage = make_stage(policies=ACCESS % how, limits=SMALL)
    client, broker = stage.opened()
    confirming(client, broker)
    client.raw(claim(1 << 60, exchange=exchange))
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    if exchange == "y" and how in ("nack", "drop"):
        client.expect(amqp.BasicNack if how == "nack" else amqp.BasicAck, 1)
    at_method = exchange == "y" and how == "channel-close"
    assert client.expect(amqp.ChannelClose, 1).reply_code == (403 if at_method else 406)


def test_what_is_declared_and_does_not_come_is_in_no_record(audited: MakeStage, tmp_path: Path) -> None:
    stage = audited()
    client, broker = stage.opened(channels=3)
    for channel in (1, 2):
        client.raw(claim(128 << 20, channel))
    client.publish(b"12345", "a", channel=3)
    broker.expect(amqp.BasicPublish, 1)
    assert [broker.frame().type, broker.frame().type, broker.frame().type] == [2, 1, 2]
    assert broker.expect_content(amqp.BasicPublish, 3).body == b"12345"
    [row] = told(stage, tmp_path, "usage", operation="basic.publish")
    assert (row["messages"], row["bytes"]) == (1, 5)


@pytest.mark.parametrize(("more", "comes_back"), [(0, True), (1, False)])
@pytest.mark.parametrize("exchange", ["x", "y"])
def test_the_largest_message_that_is_returned(
    make_stage: MakeStage, exchange: str, more: int, comes_back: bool
) -> None:
    """It is refused at its header (x), or at its method (y)."""
    stage = make_stage(policies=ACCESS % "return")
    client, broker = stage.opened()
    body = b"r" * (LARGEST_RETURN + more)
    method = amqp.BasicPublish(exchange=exchange, routing_key="a")
    data = content_frames(1, method, amqp.BasicProperties(), body, 131072)
    if comes_back:
        client.raw(data)
        assert client.expect_content(amqp.BasicReturn).body == body
        return
    client.raw(data[: data.index(b"\x03\x00\x01")])
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 403


# -- limits --------------------------------------------------------------------------------------------------


@attrs.define
class Ration:
    """The limits of a session, whose buckets do not fill while a test lasts."""

    limit: SharedLimit
    told: list[Happened] = attrs.field(factory=list)
    share: SharedBucket = attrs.field(init=False)
    operation_limits: OperationLimits = attrs.field(init=False)
    channels: Channels = attrs.field(factory=Channels)

    def __attrs_post_init__(self) -> None:
        self.channels.open(1)
        limits = TokenBuckets().take((self.limit,), time.monotonic())
        [self.share] = limits.shares
        channels = SessionChannels(cast("Relay", None), self.channels)
        lane = Lane(Side.CLIENT, 4096, 4096, self.channels)
        self.operation_limits = OperationLimits(limits, channels, self, lane)

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        self.told.append(happened)


def test_an_operation_that_waits_is_reported_once() -> None:
    it = Ration(SharedLimit("p", "l", (), (("consumers", 1e-6),), 1.0))
    [bucket] = it.share.buckets.values()
    for number in (1, 2):
        assert it.operation_limits.turn(1, amqp.BasicConsume()) is Turn.GO
        for _ in range(3):
            assert it.operation_limits.turn(1, amqp.BasicConsume()) is Turn.WAIT
            # The one that waits, however often it is looked at.
            assert it.told == [Happened.DELAYED] * number
        bucket.tokens = 1.0
    # What draws on nothing is not delayed.
    assert it.operation_limits.turn(1, amqp.BasicQos()) is Turn.GO


@pytest.mark.parametrize("action", ["reject", "close"])
def test_a_limit_that_judges_takes_what_comes(action: str) -> None:
    limit = SharedLimit("p", "l", (), (("bytes", 1e-6), ("messages", 1e-6)), 1e8, action=action)  # type: ignore[arg-type]
    it = Ration(limit)
    byte_count, messages = it.share.buckets["bytes"], it.share.buckets["messages"]
    full = byte_count.tokens, messages.tokens
    it.channels.expect_header(Side.CLIENT, 1, None, tables.Show.HEADER)
    assert it.operation_limits.publish(1) is None
    assert (byte_count.tokens, messages.tokens) == (full[0], full[1] - 1)
    it.channels.close(1)
    assert byte_count.tokens == full[0]


# -- mirrors -------------------------------------------------------------------------------------------------


def test_what_is_declared_takes_no_room_from_other_copies() -> None:
    stand = Stand(buffer=10_000, max_body_bytes=8_000)
    stand.begin(8_000)
    held = stand.queue.held
    assert held < 2_000
    stand.body(b"x" * 3_000)
    assert stand.queue.held == held + 3_000
    stand.body(b"x" * 5_000)
    [message] = [stand.queue.take()]
    assert message is not None
    assert len(message.body) == 8_000
    stand.queue.release(message)
    assert stand.queue.held == 0


def test_a_copy_for_which_there_is_no_room_any_more_is_dropped() -> None:
    stand = Stand(buffer=10_000, max_body_bytes=8_000)
    stand.begin(8_000)
    stand.queue.most = 4_000
    stand.body(b"x" * 5_000)
    assert (stand.queue.held, stand.dropped("full"), len(stand.queue)) == (0, 1, 0)
    stand.body(b"x" * 3_000)


# -- faults --------------------------------------------------------------------------------------------------

NOBODY = Origin(session="s", user=None, vhost=None, source=None, listener=None)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = dict.fromkeys(PARTS, 0)
    monkeypatch.setattr(FAULTS, "counts", counts)
    return cast("dict[str, int]", counts)


def test_sums_stop_at_what_a_column_holds() -> None:
    sums, row, most = Sums(), AuditRow(origin=NOBODY, operation="basic.publish"), (1 << 63) - 1
    for number in (most, 1, 1 << 70):
        sums.add(row, number, number, number, 1.0, 2.0)
    sums.add(AuditRow(origin=NOBODY, operation="basic.get"), 1 << 70, 0, 1 << 70, 1.0, 2.0)
    assert list(sums.requests) == list(sums.byte_count) == [most, most]
    assert list(sums.messages) == [most, 0]


def test_a_row_that_fails_costs_a_window_no_other(
    monkeypatch: pytest.MonkeyPatch, faults: dict[str, int], tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    auditing = AuditTrail.of(Audit(format="json"), lambda: None)
    good, bad = AuditRow(origin=NOBODY, operation="basic.publish"), "no row"
    closed: list[float] = []
    monkeypatch.setattr(auditing.log, "close_window", lambda _, end: closed.append(end))
    summed: list[tuple[AuditRow, int]] = []
    monkeypatch.setattr(
        auditing.log, "usage", lambda row, count, messages, byte_count, *_: summed.append((row, byte_count))
    )
    for row in (good, bad, good):
        Meter(row, auditing.book).count(1, 7, time.monotonic())
    auditing.close_window()
    assert (summed, auditing.book, len(closed)) == ([(good, 7), (good, 7)], [], 1)
    assert faults["audit"] == 1
    assert auditing.log.counts().dropped == (0, 1)


def test_a_window_that_cannot_be_handed_over_is_summed_on(
    monkeypatch: pytest.MonkeyPatch, faults: dict[str, int]
) -> None:
    auditing = AuditTrail.of(Audit(format="json"), lambda: None)
    writer = auditing.log._writer
    Meter(AuditRow(origin=NOBODY, operation="basic.publish"), auditing.book).count(1, 7, time.monotonic())
    put = writer.put_window

    def fails(sums: Sums) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(writer, "put_window", fails)
    auditing.close_window()
    assert (faults["audit"], len(writer.windows)) == (1, 0)
    monkeypatch.setattr(writer, "put_window", put)
    auditing.close_window()
    [window] = writer.windows
    assert list(window.byte_count) == [7]


def test_a_session_outlives_its_audit(
    audited: MakeStage, monkeypatch: pytest.MonkeyPatch, faults: dict[str, int]
) -> None:
    stage = audited()

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("on purpose")

    client, broker = stage.opened()
    auditing = stage.running.gateway.observers.audit
    assert auditing is not None
    monkeypatch.setattr(auditing.log, "event", fails)
    client.say(amqp.QueueDeclare(queue="q"), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    assert faults["audit"] == 1
    client.publish(b"12345", "a")
    assert broker.expect_content(amqp.BasicPublish).body == b"12345"

"""Publishes whose bodies go to a store, with a broker that is played."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from amqpgate.datapath.tables import HELD_NEXT, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.claim_publish import LEAST_RATE, PublishClaim
from amqpgate.gateway.session.claim_reference import BODY, CLAIM
from amqpgate.protocol.frames import body_frames, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import eventually
from tests.unit.gateway.claiming import LARGE, ClaimStage, make
from tests.unit.gateway.conftest import Stage


@pytest.fixture
def claims(make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> ClaimStage:
    return make(make_stage, monkeypatch)


def test_the_broker_gets_a_reference_and_the_store_the_body(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    properties = amqp.BasicProperties(headers=Table.of({"x": 1}), priority=4)
    client.publish(LARGE, "k", exchange="e", properties=properties, mandatory=True)
    message = broker.expect_content(amqp.BasicPublish)
    assert message.method == amqp.BasicPublish(0, "e", "k", True)
    assert message.body == BODY
    said = message.header.properties
    assert isinstance(said, amqp.BasicProperties)
    assert said.priority == 4
    assert said.headers is not None
    assert [name for name, _ in said.headers] == ["x", CLAIM]
    (body,) = claims.store.objects.values()
    assert body == LARGE


def test_what_is_not_too_large_passes_as_it_is(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    client.publish(LARGE[: 64 * 1024], "k")
    assert broker.expect_content(amqp.BasicPublish).body == LARGE[: 64 * 1024]
    assert claims.store.asked == []


def test_the_channel_waits_and_others_do_not(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened(2)
    claims.store.gate.clear()
    client.publish(LARGE, "large")
    client.publish(b"small", "behind")
    client.say(amqp.BasicAck(7), 1)
    client.publish(b"other", "other", channel=2)
    assert broker.expect_content(amqp.BasicPublish, 2).body == b"other"
    claims.store.gate.set()
    assert broker.expect_content(amqp.BasicPublish).body == BODY
    assert broker.expect_content(amqp.BasicPublish).body == b"small"
    assert broker.expect(amqp.BasicAck, 1) == amqp.BasicAck(7)


def test_more_than_is_kept_waits_as_a_whole(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    claims.store.gate.clear()
    client.publish(LARGE, "large")
    for number in range(30):
        client.publish(bytes(60_000) + b"%d" % number, "small")
    claims.store.gate.set()
    assert broker.expect_content(amqp.BasicPublish).body == BODY
    for number in range(30):
        assert broker.expect_content(amqp.BasicPublish).body[60_000:] == b"%d" % number


def test_closes_wait_for_what_was_published(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    claims.store.gate.clear()
    client.publish(LARGE, "large")
    client.say(amqp.ConnectionClose(200, "bye"))
    claims.store.gate.set()
    assert broker.expect_content(amqp.BasicPublish).body == BODY
    broker.expect(amqp.ConnectionClose)


def test_what_the_store_does_not_take_is_nacked_and_numbers_stay(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    client.say(amqp.ConfirmSelect(), 1)
    broker.expect(amqp.ConfirmSelect, 1)
    broker.say(amqp.ConfirmSelectOk(), 1)
    client.expect(amqp.ConfirmSelectOk, 1)
    claims.store.fails = {"put"}
    client.publish(LARGE, "large")
    client.publish(b"small", "behind")
    assert client.expect(amqp.BasicNack, 1).delivery_tag == 1
    assert broker.expect_content(amqp.BasicPublish).body == b"small"
    broker.say(amqp.BasicAck(1), 1)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 2


@pytest.mark.parametrize("transacts", [False, True])
def test_without_confirms_the_channel_is_closed(claims: ClaimStage, transacts: bool) -> None:
    client, broker = claims.stage.opened()
    if transacts:
        client.say(amqp.TxSelect(), 1)
        broker.expect(amqp.TxSelect, 1)
        broker.say(amqp.TxSelectOk(), 1)
        client.expect(amqp.TxSelectOk, 1)
    claims.store.fails = {"put"}
    client.publish(LARGE, "large")
    client.publish(b"small", "behind")
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    assert "the object store does not take it: cannot put" in close.reply_text


def test_what_exceeds_the_settings_is_rejected_as_ever(
    make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = make(make_stage, monkeypatch, "maxMessageBytes: 100Ki")
    client, broker = claims.stage.opened()
    client.publish(LARGE, "large")
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert close.reply_code == 406
    assert "larger than configured max size 102400" in close.reply_text
    assert claims.store.asked == []


def test_a_client_that_sends_more_than_it_said_is_a_violation(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    header = ContentHeader(amqp.BasicPublish.CLASS_ID, 100_000, amqp.BasicProperties())
    client.raw(
        method_frame(1, amqp.BasicPublish(routing_key="k"))
        + encode_frame(amqp.FRAME_HEADER, 1, encode_header(header))
        + b"".join(body_frames(1, bytes(100_001), 120_000))
    )
    assert client.expect(amqp.ConnectionClose).reply_code in (501, 505)
    assert claims.store.objects == {}
    broker.expect(amqp.ConnectionClose)


def test_a_channel_that_is_closed_meanwhile_gets_no_reference_when_it_is_open_again(
    claims: ClaimStage,
) -> None:
    client, broker = claims.stage.opened()
    claims.store.gate.clear()
    client.publish(LARGE, "large")
    client.publish(b"kept", "behind")
    (session,) = claims.stage.running.gateway.sessions.values()
    why = ProtocolViolation(406, "enough", channel=1)
    wait_until(lambda: session.relay.channels.due(Side.CLIENT, 1) == HELD_NEXT)
    claims.stage.running.call(lambda: session.channels.refuse(1, why))
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.ChannelCloseOk(), 1)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)
    broker.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk, 1)
    client.publish(b"new", "k")
    assert broker.expect_content(amqp.BasicPublish).body == b"new"
    claims.store.gate.set()
    wait_until(lambda: "delete" in claims.store.asked)
    client.publish(LARGE, "again")
    assert broker.expect_content(amqp.BasicPublish).method == amqp.BasicPublish(routing_key="again")
    assert len(claims.store.objects) == 1


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_who_gives_a_byte_now_and_then_is_late(claims: ClaimStage) -> None:
    """Or sixteen of them would keep the places of all others."""
    client, _ = claims.stage.opened()
    header = encode_header(ContentHeader(amqp.BasicProperties.CLASS_ID, len(LARGE), amqp.BasicProperties()))
    client.raw(method_frame(1, amqp.BasicPublish(routing_key="k")) + encode_frame(2, 1, header))
    running = claims.stage.running
    slots = running.gateway.registry.claim_checks.stores.slots
    eventually(lambda: bool(slots._taken))

    def play() -> None:
        (one,) = slots._taken
        assert isinstance(one, PublishClaim)
        begun = one.heard_at
        # At the least rate nobody is late, however long it takes.
        for second in range(1, 21):
            one.take(memoryview(bytes(LEAST_RATE)), begun + second)
            assert not one.is_late(begun + second + 4.9)
        begun += 20
        for second in range(1, 5):
            one.take(memoryview(b"x"), begun + second)
            assert not one.is_late(begun + second)
        one.take(memoryview(b"x"), begun + 5.1)
        assert one.is_late(begun + 5.1)
        one.on_room()
        assert not one.is_late(time.monotonic() + 4.9)

    running.call(play)

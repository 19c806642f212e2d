"""References that wait on a channel: the body is asked for when its client may have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Channels
from amqpgate.datapath.tables import Side
from amqpgate.gateway.session import held_deliveries
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.channel_consumers import SessionConsumer
from amqpgate.gateway.session.channel_flow import ChannelFlows
from amqpgate.gateway.session.claim_reference import BODY, CLAIM
from amqpgate.gateway.session.delivery_holder import DeliveryHolder
from amqpgate.gateway.session.held_deliveries import HeldDelivery
from amqpgate.wire.dialects import LEGACY_CLIENT, RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.unit.gateway.claiming import LARGE, ClaimStage, make
from tests.unit.gateway.conftest import Opens, Stage
from tests.unit.gateway.session.test_claim_delivery import refer
from tests.unit.gateway.session.test_prefetch import Pair


@pytest.fixture
def claims(make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> ClaimStage:
    monkeypatch.setattr(held_deliveries, "ROOM", 3 * len(LARGE))
    return make(make_stage, monkeypatch)


def is_large(body: bytes) -> bool:
    """Whether it is `LARGE`, without a comparison that pytest explains for minutes."""
    return body == LARGE


@attrs.define
class ClaimPair(Pair):
    """An old client, a RabbitMQ, and bodies in a store."""

    claims: ClaimStage = attrs.field(repr=False)

    def refer(self, *numbers: int, tag: str = "c", channel: int = 1) -> None:
        for number in numbers:
            self.broker.content(
                amqp.BasicDeliver(tag, number), BODY, properties=refer(self.claims), channel=channel
            )

    def takes_bodies(self, *numbers: int, tag: str = "c", channel: int = 1) -> None:
        for number in numbers:
            message = self.client.expect_content(v0_8.BasicDeliver, channel)
            assert isinstance(message.method, v0_8.BasicDeliver)
            assert (message.method.consumer_tag, message.method.delivery_tag) == (tag, number)
            assert is_large(message.body)

    @property
    def fetched(self) -> int:
        return self.claims.store.asked.count("read")


@pytest.fixture
def pair(claims: ClaimStage, opens: Opens) -> ClaimPair:
    """With consumers "c" and "d", a limit of 2 for both, and channel 2."""
    pair = ClaimPair(*opens(claims.stage, LEGACY_CLIENT, RABBITMQ_0_9_1), claims)
    pair.client.say(v0_8.ChannelOpen(), 2)
    pair.broker.expect(amqp.ChannelOpen, 2)
    pair.broker.say(amqp.ChannelOpenOk(), 2)
    pair.client.expect(v0_8.ChannelOpenOk, 2)
    pair.limit(2)
    pair.consume("c")
    pair.consume("d")
    return pair


def test_more_wait_than_there_is_room_for_bodies(pair: ClaimPair) -> None:
    """In their order, with small ones among them; and no body is got before its client may have it."""
    pair.refer(1, 2)
    pair.takes_bodies(1, 2)
    pair.refer(*range(3, 9), tag="d")
    pair.deliver(9)
    pair.refer(10)
    pair.fence()
    assert pair.fetched == 2
    for number in range(3, 9):
        pair.ack(number - 2)
        pair.takes_bodies(number, tag="d")
        pair.fence()
        assert pair.fetched == number
    pair.ack(8, multiple=True)
    pair.takes(9)
    pair.takes_bodies(10)


def test_an_ack_of_all_means_what_the_client_has(pair: ClaimPair) -> None:
    pair.refer(1, 2, 3, 4)
    pair.takes_bodies(1, 2)
    pair.fence()
    pair.claims.store.gate.clear()
    pair.ack(1)
    pair.fence(2)
    pair.client.say(v0_8.BasicAck(0, multiple=True), 1)
    assert pair.broker.hear() == (1, amqp.BasicAck(2, multiple=True))
    pair.claims.store.gate.set()
    pair.takes_bodies(3, 4)


@pytest.mark.parametrize("number", [3, 4])
def test_one_whose_body_is_on_its_way_cannot_be_acknowledged(pair: ClaimPair, number: int) -> None:
    pair.refer(1, 2, 3, 4)
    pair.takes_bodies(1, 2)
    pair.fence()
    pair.claims.store.gate.clear()
    pair.ack(1)
    pair.client.say(v0_8.BasicAck(number), 1)
    assert pair.broker.expect(amqp.ChannelClose, 1).reply_code == 406
    pair.claims.store.gate.set()


def test_a_channel_that_stops_meanwhile_gets_it_later(pair: ClaimPair) -> None:
    pair.claims.store.gate.clear()
    pair.refer(1)
    pair.fence(2)
    pair.client.say(v0_8.ChannelFlow(False), 1)
    pair.fence(2)
    pair.claims.store.gate.set()
    pair.client.expect(v0_8.ChannelFlowOk, 1)
    pair.deliver(2)
    pair.fence()
    pair.client.say(v0_8.ChannelFlow(True), 1)
    pair.takes_bodies(1)
    pair.client.expect(v0_8.ChannelFlowOk, 1)
    pair.takes(2)


def test_of_one_that_stops_as_its_first_message_comes(claims: ClaimStage, opens: Opens) -> None:
    """It was neither stopped nor limited when the reference came."""
    pair = ClaimPair(*opens(claims.stage, LEGACY_CLIENT, RABBITMQ_0_9_1), claims)
    pair.client.say(v0_8.ChannelOpen(), 2)
    pair.broker.expect(amqp.ChannelOpen, 2)
    pair.broker.say(amqp.ChannelOpenOk(), 2)
    pair.client.expect(v0_8.ChannelOpenOk, 2)
    pair.consume("c")
    claims.store.gate.clear()
    pair.refer(1)
    pair.fence(2)
    pair.client.say(v0_8.ChannelFlow(False), 1)
    pair.fence(2)
    claims.store.gate.set()
    pair.client.expect(v0_8.ChannelFlowOk, 1)
    pair.fence()
    pair.client.say(v0_8.ChannelFlow(True), 1)
    pair.takes_bodies(1)
    pair.client.expect(v0_8.ChannelFlowOk, 1)
    pair.ack(1)


def test_one_that_came_before_a_second_consumer_is_got_once(claims: ClaimStage, opens: Opens) -> None:
    """With the second one the gateway keeps the channel's limit."""
    pair = ClaimPair(*opens(claims.stage, LEGACY_CLIENT, RABBITMQ_0_9_1), claims)
    pair.limit(1)
    pair.consume("c")
    claims.store.gate.clear()
    pair.refer(1, 2)
    pair.client.say(v0_8.BasicConsume(queue="q", consumer_tag="d"), 1)
    while not isinstance(pair.broker.hear()[1], amqp.BasicConsume):
        pair.broker.say(amqp.BasicQosOk(), 1)
    claims.store.gate.set()
    pair.takes_bodies(1)
    pair.broker.say(amqp.BasicConsumeOk("d"), 1)
    pair.client.expect(v0_8.BasicConsumeOk, 1)
    pair.fence()
    pair.ack(1)
    pair.takes_bodies(2)
    assert pair.fetched == 2


def test_what_waits_of_a_consumer_that_ends_the_broker_has_again(pair: ClaimPair) -> None:
    """The one whose body is on its way comes: the broker's answer waits behind it."""
    pair.refer(1, 2)
    pair.takes_bodies(1, 2)
    pair.refer(3, 4)
    pair.refer(5, tag="d")
    pair.claims.store.gate.clear()
    pair.ack(1)
    pair.client.say(v0_8.BasicCancel("c"), 1)
    pair.broker.expect(amqp.BasicCancel, 1)
    pair.broker.say(amqp.BasicCancelOk("c"), 1)
    pair.claims.store.gate.set()
    pair.takes_bodies(3)
    assert pair.broker.expect(amqp.BasicNack, 1) == amqp.BasicNack(4, requeue=True)
    assert pair.client.expect(v0_8.BasicCancelOk, 1)
    pair.ack(2)
    pair.takes_bodies(5, tag="d")


@pytest.mark.parametrize("wrong", ["missing", "forged"])
def test_one_that_is_lost_is_rejected_when_its_turn_comes(pair: ClaimPair, wrong: str) -> None:
    pair.refer(1, 2)
    pair.takes_bodies(1, 2)
    if wrong == "missing":
        pair.refer(3)
    else:
        forged = amqp.BasicProperties(headers=Table.of({CLAIM: "1;x;5;y;0;z"}))
        pair.broker.content(amqp.BasicDeliver("c", 3), BODY, properties=forged)
    pair.deliver(4)
    pair.fence()
    pair.claims.store.objects.clear()
    pair.ack(1)
    assert pair.broker.expect(amqp.BasicReject, 1) == amqp.BasicReject(3, requeue=False)
    pair.takes(4)


def test_a_limit_of_the_connection(pair: ClaimPair) -> None:
    pair.limit(2, is_global=True)
    pair.client.say(v0_8.BasicConsume(queue="q", consumer_tag="e"), 2)
    while not isinstance(method := pair.broker.hear()[1], amqp.BasicConsume):
        pair.broker.say(amqp.BasicQosOk(), 2)
    pair.broker.say(amqp.BasicConsumeOk(method.consumer_tag), 2)
    pair.client.expect(v0_8.BasicConsumeOk, 2)
    pair.refer(1, 2)
    pair.takes_bodies(1, 2)
    pair.refer(1, 2, tag="e", channel=2)
    pair.fence(2)
    assert pair.fetched == 2
    pair.ack(2, multiple=True)
    pair.takes_bodies(1, 2, tag="e", channel=2)


def test_a_message_that_is_got_does_not_wait(pair: ClaimPair) -> None:
    pair.refer(1, 2)
    pair.takes_bodies(1, 2)
    pair.refer(3)
    pair.client.say(v0_8.BasicGet(queue="q"), 1)
    pair.broker.expect(amqp.BasicGet, 1)
    pair.broker.content(amqp.BasicGetOk(4, False, "e", "k", 0), BODY, properties=refer(pair.claims))
    message = pair.client.expect_content(v0_8.BasicGetOk, 1)
    assert is_large(message.body)
    pair.ack(1)
    pair.takes_bodies(3)


def test_consumers_of_a_client_of_0_9_1_are_not_made_narrower(claims: ClaimStage) -> None:
    client, broker = claims.stage.opened()
    client.say(amqp.BasicQos(prefetch_count=4, global_=True), 1)
    broker.expect(amqp.BasicQos, 1)
    broker.say(amqp.BasicQosOk(), 1)
    client.expect(amqp.BasicQosOk, 1)
    for tag in ("c", "d"):
        client.say(amqp.BasicConsume(queue="q", consumer_tag=tag), 1)
        while not isinstance(broker.hear()[1], amqp.BasicConsume):
            broker.say(amqp.BasicQosOk(), 1)
        broker.say(amqp.BasicConsumeOk(tag), 1)
        client.expect(amqp.BasicConsumeOk, 1)
    for number in range(1, 17):
        method = amqp.BasicDeliver("cd"[number % 2], number)
        broker.content(method, BODY, properties=refer(claims))
    for number in range(1, 17):
        message = client.expect_content(amqp.BasicDeliver)
        assert isinstance(message.method, amqp.BasicDeliver)
        assert message.method.delivery_tag == number
        assert is_large(message.body)
        client.say(amqp.BasicAck(number), 1)
        assert broker.hear() == (1, amqp.BasicAck(number)), "nothing else"


# -- any order of what happens -------------------------------------------------------------------------


@attrs.define(eq=False)
class Play:
    """Channel 1 with one consumer, a limit, and what the client has got."""

    limit: int
    table: Channels = attrs.field(factory=Channels)
    flows: ChannelFlows = attrs.field(init=False)
    holder: DeliveryHolder = attrs.field(init=False)
    got: list[int] = attrs.field(factory=list)
    unacked: list[int] = attrs.field(factory=list)
    given_back: bytes = b""
    fetching: list[HeldDelivery] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        channels = SessionChannels(cast(Relay, self), self.table)
        self.table.open(1)
        consumer = SessionConsumer((), 0, no_ack=False)
        channels.states.of(1).consumers().add(consumer, "c", is_answered=True)
        self.flows = ChannelFlows(channels, lambda: None)
        self.holder = DeliveryHolder(
            self.flows, amqp.BasicNack, lambda _, frames: None, lambda _: None, lambda _: False
        )
        self.flows.limit_to(1, self.limit)

    def shown(self, passed: bytes) -> None:
        for number in passed:
            self.got.append(number)
            self.unacked.append(number)

    def deliver(self, number: int, *, is_reference: bool) -> None:
        method = amqp.BasicDeliver("c", number, False, "", "q")
        if is_reference:
            self.holder.references.keep(1, method, memoryview(b"header"), self._fetch)
            self.shown(self.holder.kept(1) + self.holder.release(1))
        else:
            self.shown(self.holder.on_method(1, method, bytes([number])) + self.holder.on_content(1, b""))

    def _fetch(self, one: HeldDelivery) -> None:
        self.table.hold(Side.UPSTREAM, 1)
        self.fetching.append(one)

    def fetched(self) -> None:
        if not self.fetching:
            return
        one = self.fetching.pop()
        if self.holder.references.shows(1, one):
            self.shown(bytes([one.number]))
        self.table.let_go(Side.UPSTREAM, 1)
        self.shown(self.holder.release(1))

    def ack(self, *, of_all: bool) -> None:
        if not self.unacked:
            return
        ack = amqp.BasicAck(0 if of_all else self.unacked[0], multiple=of_all)
        told = list(self.holder.settles(1, ack))
        top = self.unacked[-1] if of_all else self.unacked[0]
        assert all(one.delivery_tag in (0, top) for one in told)
        if any(one.delivery_tag == 0 for one in told):
            assert not self.holder.flows.get(1).kept.waiting  # type: ignore[union-attr]
        self.unacked = [] if of_all else self.unacked[1:]
        self.shown(self.holder.release(1))

    def stop(self) -> None:
        self.flows.stop(1)

    def resume(self) -> None:
        if self.flows.is_off(1):
            self.shown(self.holder.resume(1))


def test_one_whose_body_is_on_its_way_counts_on_other_channels() -> None:
    play = Play(1)
    play.flows.limit_all(1)
    play.table.open(2)
    consumer = SessionConsumer((), 0, no_ack=False)
    play.flows.channels.states.of(2).consumers().add(consumer, "c", is_answered=True)
    play.flows.limit_to(2, 0)
    play.deliver(1, is_reference=True)
    assert play.flows.room(2) <= 0


STEPS = st.sampled_from(["reference", "small", "fetched", "ack", "ack all", "stop", "resume"])


@given(limit=st.integers(1, 4), steps=st.lists(STEPS, max_size=60))
@settings(max_examples=300)
def test_in_order_each_once_and_no_more_than_the_limit(limit: int, steps: list[str]) -> None:
    play, count = Play(limit), 0
    for step in steps:
        before, is_off = len(play.got), play.flows.is_off(1)
        if step in ("reference", "small"):
            if play.fetching:
                continue  # The channel is held.
            count += 1
            play.deliver(count, is_reference=step == "reference")
        elif step in ("ack", "ack all"):
            play.ack(of_all=step == "ack all")
        else:
            {"fetched": play.fetched, "stop": play.stop, "resume": play.resume}[step]()
        assert len(play.fetching) <= 1
        assert len(play.unacked) + len(play.fetching) <= limit
        assert not is_off or step == "resume" or len(play.got) == before
    play.resume()
    while len(play.got) < count:
        known = len(play.got), len(play.fetching)
        play.fetched()
        play.ack(of_all=False)
        assert (len(play.got), len(play.fetching)) != known, "it stands still"
    assert play.got == list(range(1, count + 1))

"""What passes on a channel that is stopped or limited; as conversations it is in `test_channel_flow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, cast

import attrs
import pytest

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Channels
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session import delivery_holder
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.channel_consumers import SessionConsumer
from amqpgate.gateway.session.channel_flow import ChannelFlows
from amqpgate.gateway.session.delivery_holder import DeliveryHolder
from amqpgate.gateway.session.held_deliveries import HeldDelivery
from amqpgate.gateway.session.settlement import Settling
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp


@attrs.define(eq=False)
class Play:
    """Channels 1 and 2 of a session, with a consumer each; and the relay as far as it is needed."""

    changes: list[bool] = attrs.field(factory=list)
    sent: list[tuple[Side, bytes]] = attrs.field(factory=list)
    narrowed: list[int] = attrs.field(factory=list)
    flows: ChannelFlows = attrs.field(init=False)
    holder: DeliveryHolder = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        table = Channels()
        channels = SessionChannels(cast(Relay, self), table)
        for number in (1, 2):
            table.open(number)
            consumer = SessionConsumer((), 0, no_ack=False)
            channels.states.of(number).consumers().add(consumer, "c", is_answered=True)
        self.flows = ChannelFlows(channels, lambda: self.changes.append(bool(self.flows)))
        self.holder = self.giving_back(amqp.BasicNack)

    def giving_back(self, kind: type[amqp.BasicNack | amqp.BasicReject]) -> DeliveryHolder:
        return DeliveryHolder(
            self.flows,
            kind,
            lambda _, frames: self.send(Side.UPSTREAM, frames),
            self.narrowed.append,
            lambda _: False,
        )

    def send(self, side: Side, data: bytes) -> None:
        self.sent.append((side, data))

    def deliver(self, channel: int, number: int) -> bytes:
        """What goes to the client of a delivery without a body."""
        method = amqp.BasicDeliver("c", number, False, "", "q")
        passed = self.holder.on_method(channel, method, b"%d" % number)
        return passed + self.holder.on_content(channel, b"h")


def test_what_a_stopped_channel_keeps_goes_on_in_order() -> None:
    play = Play()
    play.flows.stop(1)
    play.flows.stop(2)
    assert play.changes == [True, True]
    assert [play.deliver(1, number) for number in (1, 2)] == [b"", b""]
    assert play.deliver(2, 1) == b""
    assert play.holder.release(1) == b"", "the client has not asked for more"
    assert play.holder.resume(1) == b"1h2h"
    assert 1 not in play.flows
    assert play.holder.end_all() == b"1h"
    assert play.changes == [True, True, True, False]


def test_one_more_passes_for_each_that_is_acknowledged() -> None:
    play = Play()
    play.flows.limit_to(1, 2)
    assert [play.deliver(1, number) for number in (1, 2, 3, 4)] == [b"1h", b"2h", b"", b""]
    for number, passes in ((1, b"3h"), (2, b"4h"), (3, b""), (4, b"")):
        ack = amqp.BasicAck(number)
        assert list(play.holder.settles(1, ack)) == [ack]
        assert play.holder.release(1) == passes
    play.flows.lift(1)
    assert play.holder.release(1) == b""
    assert not play.flows


@attrs.define
class Counted(HeldDelivery):
    """One whose attributes are counted as they are looked at."""

    looks: ClassVar[int] = 0

    def __getattribute__(self, name: str) -> object:
        Counted.looks += 1
        return super().__getattribute__(name)


@pytest.mark.parametrize("settling", [amqp.BasicAck, amqp.BasicNack, amqp.BasicReject])
def test_who_settles_one_has_not_all_that_are_kept_looked_at(
    settling: Callable[[int], Settling], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait meanwhile: of 8,000 that was 9 ms for each."""
    monkeypatch.setattr(delivery_holder, "HeldDelivery", Counted)
    play, most = Play(), 1000
    play.flows.limit_to(1, most)
    for number in range(1, 3 * most + 1):
        play.deliver(1, number)
    Counted.looks = 0
    for number in range(1, most + 1):
        assert list(play.holder.settles(1, settling(number)))
        assert play.holder.release(1) == b"%dh" % (number + most)
    assert Counted.looks < 30 * most


def test_a_limit_of_the_connection_counts_all_channels() -> None:
    play = Play()
    play.flows.limit_all(2)
    for channel in (1, 2):
        play.flows.limit_to(channel, 0)
    assert (play.deliver(1, 1), play.deliver(2, 1)) == (b"1h", b"1h")
    assert play.flows.room(1) <= 0
    assert play.deliver(1, 2) == b""
    assert list(play.holder.settles(2, amqp.BasicAck(1)))
    assert play.flows.room(1) > 0
    assert play.holder.release(1) == b"2h"


def test_what_is_kept_cannot_be_acknowledged() -> None:
    play = Play()
    play.flows.limit_to(1, 1)
    assert (play.deliver(1, 1), play.deliver(1, 2)) == (b"1h", b"")
    with pytest.raises(ProtocolViolation, match="unknown delivery tag 2"):
        list(play.holder.settles(1, amqp.BasicAck(2)))
    assert list(play.holder.settles(1, amqp.BasicAck(0, multiple=True))) == [amqp.BasicAck(1, multiple=True)]


@pytest.mark.parametrize("kind", [amqp.BasicNack, amqp.BasicReject])
def test_of_a_cancelled_consumer_the_broker_has_it_again(
    kind: type[amqp.BasicNack | amqp.BasicReject],
) -> None:
    """By basic.nack where the broker has that: for quorum queues of RabbitMQ 4 nobody has failed then."""
    play = Play()
    play.holder = play.giving_back(kind)
    play.flows.limit_to(1, 1)
    play.deliver(1, 1)
    play.deliver(1, 2)
    assert play.holder.on_method(1, amqp.BasicCancelOk("c"), b"ok") == b"ok"
    assert play.sent == [(Side.UPSTREAM, method_frame(1, kind(2, requeue=True)))]

"""What hops settle on is what the conversation would settle on, and is made once."""

from __future__ import annotations

import pytest

from amqpgate.bridge import NATIVE
from amqpgate.config import Address, Listener, Upstream
from amqpgate.gateway.handshake.agreements import Agreements, offer_of, settled
from amqpgate.gateway.upstream.broker_side import tune_for
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp

LISTENER = Listener(name="main", bind=Address("127.0.0.1", 5672), channel_max=100)
UPSTREAM = Upstream(name="broker", host="there")
ASKED = amqp.ConnectionTune(2047, 131072, 60)


def test_it_is_what_each_part_says() -> None:
    offer = Agreements(LISTENER).offer(ASKED, UPSTREAM)
    assert offer is not None
    assert offer.tune == offer_of(ASKED, LISTENER, UPSTREAM)
    assert offer.tune.channel_max == 100
    said = amqp.ConnectionTune(100, 131072, 60)
    assert offer.frame == method_frame(0, said)
    answer = amqp.ConnectionTuneOk(10, 4096, 5)
    agreement = offer.agreed(answer)
    assert agreement is not None
    client = settled(offer.tune, answer)
    broker = tune_for(ASKED, UPSTREAM, client, NATIVE)
    assert agreement.tunes == (client, broker)
    told = amqp.ConnectionTuneOk(broker.channel_max, broker.frame_max, broker.heartbeat)
    assert agreement.frame == method_frame(0, told)


def test_it_is_made_once() -> None:
    agreements, answer = Agreements(LISTENER), amqp.ConnectionTuneOk(10, 4096, 5)
    one, two = agreements.offer(ASKED, UPSTREAM), agreements.offer(ASKED, UPSTREAM)
    assert one is two
    assert one is not None
    assert one.agreed(answer) is one.agreed(answer)


def test_other_settings_are_another_offer() -> None:
    agreements = Agreements(LISTENER)
    small = Upstream(name="broker", host="there", frame_max=8192)
    one, two = agreements.offer(ASKED, UPSTREAM), agreements.offer(ASKED, small)
    assert one is not None
    assert two is not None
    assert (one.tune.frame_max, two.tune.frame_max) == (131072, 8192)


def test_as_many_as_are_kept() -> None:
    agreements = Agreements(LISTENER)
    for heartbeat in range(1000):
        offer = agreements.offer(amqp.ConnectionTune(2047, 131072, heartbeat), UPSTREAM)
        assert offer is not None
        assert offer.tune.heartbeat == heartbeat
    assert len(agreements._offers) <= 64


@pytest.mark.parametrize("answer", [(2000, 131072, 0), (10, 200000, 0), (10, 100, 0)])
def test_who_wants_more_has_no_agreement(answer: tuple[int, int, int]) -> None:
    offer = Agreements(LISTENER).offer(ASKED, UPSTREAM)
    assert offer is not None
    assert offer.agreed(amqp.ConnectionTuneOk(*answer)) is None


def test_a_broker_whose_frames_hold_nothing_is_offered_to_nobody() -> None:
    assert Agreements(LISTENER).offer(amqp.ConnectionTune(2047, 100, 60), UPSTREAM) is None

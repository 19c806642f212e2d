"""Rate limits on sessions: who shares a bucket, what waits, and what a change of policies does."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from amqpgate.gateway.limits import token_buckets
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.policy import PolicySet, SharedLimit, Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

#: Two and a half tokens, so three messages: the last one may go below zero. The next one in half a minute.
THREE = SharedLimit("p", "l", (), (("messages", 1 / 60),), 150)
RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: slow}
spec:
  subjects: [{user: guest}]
  limits: [{id: few, per: [%s], %s, burst: 150s}]
"""
SHARED, OWN, BYTES = (
    RATES % ("user", "messages: 1/m"),
    RATES % ("connection", "messages: 1/m"),
    RATES % ("user", "bytes: 100/m"),
)
DENY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: none}
spec:
  subjects: [{user: guest}]
  rules: []
"""


def policies(text: str) -> PolicySet:
    return build([Source("p.yaml", text.encode())])


def use(stage: Stage, text: str | None) -> None:
    new = PolicySet.empty() if text is None else policies(text)
    stage.running.call(lambda: stage.running.gateway.use(new))


def arrives(broker: Talker, *keys: str) -> None:
    for key in keys:
        assert broker.expect_content(amqp.BasicPublish).method == amqp.BasicPublish(routing_key=key)


# -- buckets -------------------------------------------------------------------------------------------------


def test_equal_limits_share_and_others_do_not() -> None:
    buckets = TokenBuckets()
    other = SharedLimit("p", "l", ("bob",), (("messages", 5), ("bytes", 1000)), 1)
    both = buckets.take((THREE, other), 1.0)
    one = buckets.take((THREE,), 1.0)
    assert one.buckets("messages") == both.buckets("messages")[:1]
    assert buckets.take((THREE,), 1.0) is one
    assert [(bucket.rate, bucket.burst) for bucket in both.buckets("messages")] == [(1 / 60, 2.5), (5, 5)]
    assert [bucket.burst for bucket in both.buckets("bytes")] == [1000]
    assert len(buckets) == 2


def test_a_bucket_outlives_its_sessions_until_it_is_full() -> None:
    buckets = TokenBuckets()
    first = buckets.take((THREE,), 1.0)
    (bucket,) = first.buckets("messages")
    bucket.tokens, bucket.stamp = 1.0, 1.0
    buckets.give_back(first, 1.0)
    again = buckets.take((THREE,), 2.0)
    assert again.buckets("messages") == (bucket,)
    buckets.give_back(again, 2.0)
    buckets.take((), 90.0)
    assert len(buckets) == 1
    buckets.take((), 92.0)
    assert len(buckets) == 0
    (fresh,) = buckets.take((THREE,), 92.0).buckets("messages")
    assert fresh is not bucket
    assert fresh.tokens == 2.5


def test_a_lease_is_kept_for_who_comes_again() -> None:
    buckets = TokenBuckets()
    shared = SharedLimit("p", "l", ("bob",), (("logins", 0.01),), 3600, shared=True)
    first = buckets.take((shared,), 1.0)
    (share,) = first.shares
    share.buckets["logins"].tokens = 1.0
    buckets.give_back(first, 5.0)
    assert buckets.shared() == [], "it asks for no more"
    again = buckets.take((shared,), 14.9)
    assert again.shares == (share,)
    buckets.give_back(again, 15.0)
    buckets.take((), 25.0)
    assert len(buckets) == 0


def test_what_somebody_still_uses_is_not_forgotten() -> None:
    buckets = TokenBuckets()
    other = SharedLimit("p", "l", ("bob",), (("messages", 5), ("bytes", 1000)), 1)
    one, both = buckets.take((THREE,), 1.0), buckets.take((THREE, other), 1.0)
    assert buckets.take((THREE,), 1.0) is one
    buckets.give_back(one, 1.0)
    assert buckets.take((THREE,), 1e9) is one
    buckets.give_back(one, 1.0)
    buckets.give_back(one, 1.0)
    buckets.take((), 1e9)
    assert buckets.take((THREE,), 1e9).buckets("messages") == both.buckets("messages")[:1]
    assert len(buckets) == 2


def test_who_comes_back_finds_all_as_it_was() -> None:
    buckets, whole = TokenBuckets(), SharedLimit("p", "whole", (), (("messages", 5),), 1)
    first = buckets.take((THREE, whole), 1.0)
    buckets.give_back(first, 1.0)
    # Its buckets are full, which is no reason to make others.
    assert buckets.take((THREE, whole), 2.0) is first
    assert first.sessions == 1
    # One of them is another bucket by now.
    buckets.give_back(first, 2.0)
    buckets.take((), 3.0)
    assert len(buckets) == 0
    assert buckets.take((THREE, whole), 3.0).shares != first.shares


@pytest.mark.parametrize("is_first_alone", [True, False])
def test_what_sessions_have_in_common_goes_with_their_buckets(is_first_alone: bool) -> None:
    buckets, other = TokenBuckets(), SharedLimit("p", "other", (), (("messages", 5),), 1)
    one, both = buckets.take((THREE,), 1.0), buckets.take((THREE, other), 1.0)
    for taken in (one, both) if is_first_alone else (both, one):
        buckets.give_back(taken, 1.0)
    gone = [weakref.ref(one), weakref.ref(both)]
    del one, both, taken
    buckets.take((), 2.0)
    gc.collect()
    assert [left() for left in gone] == [None, None]


def test_too_many_that_were_left_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_buckets, "MOST_LEFT", 2)
    buckets = TokenBuckets()
    gone = []
    for number in range(4):
        taken = buckets.take((SharedLimit("p", str(number), (), (("messages", 1 / 60),), 150),), 1.0)
        (bucket,) = taken.buckets("messages")
        bucket.tokens, bucket.stamp = 0.0, 1.0
        buckets.give_back(taken, 1.0)
        gone.append(weakref.ref(taken))
    del taken
    gc.collect()
    assert len(buckets) == 2
    assert [left() is None for left in gone] == [True, True, False, False]


# -- sessions ------------------------------------------------------------------------------------------------


def test_messages_that_are_all_different_are_no_way_around(make_stage: MakeStage) -> None:
    stage = make_stage(policies=SHARED)
    client, broker = stage.opened()
    for n in range(5):
        client.publish(b"x", f"key.{n}")
    arrives(broker, "key.0", "key.1", "key.2")
    broker.hear_nothing(0.3)
    # The other direction goes on.
    broker.content(amqp.BasicDeliver(consumer_tag="c", delivery_tag=1), b"y")
    assert client.expect_content(amqp.BasicDeliver).body == b"y"


def test_sessions_share_a_limit_and_what_comes_behind_waits_too(make_stage: MakeStage) -> None:
    stage = make_stage(policies=SHARED)
    one, one_broker = stage.opened()
    two, two_broker = stage.opened()
    one.publish(b"x", "a")
    one.publish(b"x", "a")
    arrives(one_broker, "a", "a")
    two.publish(b"x", "b")
    arrives(two_broker, "b")
    for client, broker in ((one, one_broker), (two, two_broker)):
        client.publish(b"x", "a")
        client.say(amqp.BasicQos(prefetch_count=1), 1)
        broker.hear_nothing(0.2)


def test_a_limit_per_connection(make_stage: MakeStage) -> None:
    stage = make_stage(policies=OWN)
    for _ in range(2):
        client, broker = stage.opened()
        for _ in range(4):
            client.publish(b"x", "a")
        arrives(broker, "a", "a", "a")
        broker.hear_nothing(0.2)


def test_a_limit_of_bytes(make_stage: MakeStage) -> None:
    stage = make_stage(policies=BYTES)
    client, broker = stage.opened()
    for size in (249, 0, 5000, 1):
        client.publish(b"x" * size, "a")
    arrives(broker, "a", "a", "a")
    broker.hear_nothing(0.2)


def test_closing_and_coming_back_gains_nothing(make_stage: MakeStage) -> None:
    stage = make_stage(policies=SHARED)
    client, broker = stage.opened()
    for _ in range(3):
        client.publish(b"x", "a")
    arrives(broker, "a", "a", "a")
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    stage.running.wait_idle()
    client, broker = stage.opened()
    client.publish(b"x", "a")
    broker.hear_nothing(0.3)


# -- other policies ------------------------------------------------------------------------------------------


def test_other_policies_hold_for_open_sessions_at_once(make_stage: MakeStage) -> None:
    stage = make_stage()
    client, broker = stage.opened(channels=3)
    client.publish(b"x", "a")
    arrives(broker, "a")
    use(stage, DENY)
    client.publish(b"x", "a")
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 403
    use(stage, None)
    client.publish(b"x", "a", channel=2)
    assert broker.expect_content(amqp.BasicPublish, 2).body == b"x"
    assert stage.running.call(
        lambda: [s.relay.up.flows for s in stage.running.gateway.sessions.values()]
    ) == [None]


def test_who_waits_goes_on_when_the_limit_is_lifted(make_stage: MakeStage) -> None:
    stage = make_stage(policies=SHARED)
    client, broker = stage.opened()
    for _ in range(4):
        client.publish(b"x", "a")
    arrives(broker, "a", "a", "a")
    broker.hear_nothing(0.2)
    use(stage, SHARED)
    broker.hear_nothing(0.2)
    use(stage, None)
    arrives(broker, "a")


def test_a_message_under_way_ends_as_it_began(make_stage: MakeStage) -> None:
    stage = make_stage(policies=SHARED)
    client, broker = stage.opened()
    whole = bytearray()
    client.sock, sock = _Recorder(whole), client.sock  # type: ignore[assignment]
    client.publish(b"12345", "a")
    client.sock = sock
    client.raw(whole[:-6])
    broker.expect(amqp.BasicPublish, 1)
    use(stage, DENY)
    client.raw(whole[-6:])
    broker.frame()
    assert broker.frame().payload == b"12345"
    client.publish(b"x", "a")
    broker.expect(amqp.ChannelClose, 1)


class _Recorder:
    def __init__(self, into: bytearray) -> None:
        self.sendall = into.extend


def test_limits_are_given_back(make_stage: MakeStage) -> None:
    stage = make_stage(policies=SHARED)
    gateway = stage.running.gateway
    client, _broker = stage.opened()
    use(stage, OWN)
    use(stage, OWN)
    assert stage.running.call(lambda: len(gateway.registry.token_buckets)) == 1, (
        "the first was full: nothing passed"
    )
    client.close()
    eventually(lambda: stage.running.call(lambda: not gateway.registry.token_buckets._used))


@pytest.mark.parametrize("text", [SHARED, OWN, BYTES, DENY])
def test_the_documents_of_this_test_are_right(text: str) -> None:
    assert policies(text)

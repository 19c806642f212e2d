"""Order of messages, turns of consumers."""

from __future__ import annotations

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from amqpgate.broker.messages import BrokerMessage, Memory
from amqpgate.broker.queues import BrokerConsumer, BrokerQueue, Entry
from amqpgate.wire.generated.v0_9_1 import BasicProperties

from .client import EMPTY


@define(eq=False)
class FakeChannel:
    """Takes what it gets; `limit` is how many messages it takes at all."""

    limit: int = 1_000_000
    got: list[tuple[str, bytes]] = field(factory=list)
    entries: list[Entry] = field(factory=list)
    waits: bool = False
    lost_tags: list[str] = field(factory=list)

    def may_receive(self, consumer: BrokerConsumer) -> bool:
        return consumer.has_credit and len(self.got) < self.limit

    def deliver(self, consumer: BrokerConsumer, entry: Entry) -> None:
        consumer.unsettled += not consumer.no_ack
        self.got.append((consumer.tag, entry.message.body))
        self.entries.append(entry)

    def held_back(self, queue: BrokerQueue) -> None:
        self.waits = True

    def lost(self, tags: list[str]) -> None:
        self.lost_tags = tags


def _message(body: bytes = b"") -> BrokerMessage:
    return BrokerMessage("", ("q",), BasicProperties(), body)


def _queue(*bodies: bytes) -> BrokerQueue:
    queue = BrokerQueue("q", Memory(1_000_000))
    for body in bodies:
        queue.publish(_message(body))
    return queue


def _consumer(
    queue: BrokerQueue, channel: FakeChannel, tag: str, prefetch: int = 0, priority: int = 0
) -> BrokerConsumer:
    consumer = BrokerConsumer(channel, tag, queue, prefetch=prefetch, priority=priority)
    queue.add(consumer)
    return consumer


class QueueMachine(RuleBasedStateMachine):
    """Whatever is taken and put back, the oldest message comes first, and all memory is accounted for."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory(10**9)
        self.queue = BrokerQueue("q", self.memory)
        self.ready: list[int] = []
        self.taken: dict[int, Entry] = {}
        self.returned: set[int] = set()
        self.count = 0

    @rule()
    def publish(self) -> None:
        self.queue.publish(_message(b"%d" % self.count))
        self.ready.append(self.count)
        self.count += 1

    @rule()
    def take(self) -> None:
        entry = self.queue.take()
        if not self.ready:
            assert entry is None
            return
        assert entry is not None
        number = self.ready.pop(0)
        assert entry.message.body == b"%d" % number
        assert entry.redelivered == (number in self.returned)
        self.taken[number] = entry

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        for number in (
            data.draw(st.lists(st.sampled_from(sorted(self.taken)), unique=True)) if self.taken else ()
        ):
            self.queue.requeue(self.taken.pop(number))
            self.returned.add(number)
            self.ready = sorted([*self.ready, number])

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        if self.taken:
            self.queue.drop(self.taken.pop(data.draw(st.sampled_from(sorted(self.taken)))))

    @rule()
    def purge(self) -> None:
        assert self.queue.purge() == len(self.ready)
        self.ready.clear()

    @invariant()
    def adds_up(self) -> None:
        assert len(self.queue) == len(self.ready)
        held = [*self.ready, *self.taken]
        assert self.memory.used == sum(EMPTY + len(str(number)) for number in held)


TestOrder = QueueMachine.TestCase
# An example is a whole life of a queue.
TestOrder.settings = settings(max_examples=50)


@given(st.integers(0, 30), st.integers(1, 5))
def test_consumers_share_evenly(messages: int, consumers: int) -> None:
    queue, channel = _queue(*(b"%d" % n for n in range(messages))), FakeChannel()
    for number in range(consumers):
        _consumer(queue, channel, str(number))
    queue.run()
    assert channel.got == [(str(n % consumers), b"%d" % n) for n in range(messages)]


def test_a_consumer_without_credit_is_passed_over() -> None:
    queue, channel = _queue(b"1", b"2", b"3", b"4"), FakeChannel()
    _consumer(queue, channel, "one", prefetch=1)
    _consumer(queue, channel, "all")
    queue.run()
    assert channel.got == [("one", b"1"), ("all", b"2"), ("all", b"3"), ("all", b"4")]
    assert channel.waits


def test_who_waited_joins_the_end_of_the_round() -> None:
    queue, channel = _queue(b"1", b"2", b"3"), FakeChannel()
    waiting = _consumer(queue, channel, "w", prefetch=1)
    _consumer(queue, channel, "x")
    queue.run()
    assert not queue.unblock(channel)
    waiting.unsettled = 0
    assert queue.unblock(channel)
    for body in (b"4", b"5", b"6"):
        queue.publish(_message(body))
    queue.run()
    assert channel.got[3:] == [("x", b"4"), ("w", b"5"), ("x", b"6")]


def test_a_channel_that_stops_stops_only_itself() -> None:
    queue, slow, quick = _queue(*[b"x"] * 6), FakeChannel(limit=1), FakeChannel()
    _consumer(queue, slow, "slow")
    _consumer(queue, quick, "quick")
    queue.run()
    assert (len(slow.got), len(quick.got)) == (1, 5)
    assert queue.unblock(quick)
    slow.limit = 2
    assert queue.unblock(slow)
    queue.publish(_message())
    queue.publish(_message())
    queue.run()
    assert (len(slow.got), len(quick.got)) == (2, 6)


def test_messages_wait_when_nobody_can_take_any() -> None:
    queue, channel = _queue(b"1", b"2"), FakeChannel(limit=1)
    _consumer(queue, channel, "t")
    queue.run()
    queue.run()
    assert len(queue) == 1
    assert [consumer.tag for consumer in queue.consumers] == ["t"]


def test_priorities() -> None:
    queue, channel = _queue(b"1", b"2", b"3"), FakeChannel()
    _consumer(queue, channel, "low", priority=-1)
    _consumer(queue, channel, "high", prefetch=1, priority=5)
    _consumer(queue, channel, "middle", prefetch=1)
    queue.run()
    assert channel.got == [("high", b"1"), ("middle", b"2"), ("low", b"3")]


def test_a_consumer_leaves_from_the_round_or_while_it_waits() -> None:
    queue, channel = _queue(b"1", b"2"), FakeChannel(limit=1)
    first, second = _consumer(queue, channel, "1"), _consumer(queue, channel, "2", priority=3)
    queue.remove(second)
    queue.run()
    assert channel.got == [("1", b"1")]
    queue.remove(first)
    assert queue.is_unused
    assert queue.consumers == []


def test_delete_tells_each_channel_once_and_frees_the_memory() -> None:
    queue, one, two = _queue(b"1", b"2", b"3"), FakeChannel(limit=1), FakeChannel(limit=0)
    _consumer(queue, one, "b")
    _consumer(queue, one, "a")
    _consumer(queue, two, "c")
    queue.run()
    assert queue.delete() == 2
    assert (one.lost_tags, two.lost_tags) == (["a", "b"], ["c"])
    assert queue.memory.used == EMPTY + 1
    queue.requeue(one.entries[0])
    assert (len(queue), queue.memory.used) == (0, 0)

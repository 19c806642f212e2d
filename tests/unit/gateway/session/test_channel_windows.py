"""basic.qos with global on a session whose policy keeps it: who has what, between a client and a broker."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from itertools import count

import attrs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from amqpgate.gateway.session import held_deliveries
from amqpgate.policy import Source, build
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.support.metrics import sample_value
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.policy.kinds.test_compatibility import document

MakeStage = Callable[..., Stage]

#: In the place of a consumer tag: of consumers that were cancelled.
FORMER = "former"


@attrs.define
class Consumer:
    """One at the broker."""

    queue: str
    prefetch: int
    is_silent: bool


@attrs.define
class Broker:
    """Channel 1 of a RabbitMQ 4: each consumer has a limit of its own, which is what was said last before it,
    whether global or not."""

    talker: Talker
    #: Bodies of messages, and whether they were delivered before.
    queues: dict[str, deque[tuple[bytes, bool]]] = attrs.field(factory=dict)
    consumers: dict[str, Consumer] = attrs.field(factory=dict)
    #: Delivery tags with the consumer, its queue, and the message; of basic.get without a consumer.
    unacked: dict[int, tuple[str, str, bytes]] = attrs.field(factory=dict)
    prefetch: int = 0
    told: list[Method] = attrs.field(factory=list)
    tags: count[int] = attrs.field(factory=lambda: count(1))

    def queue(self, name: str) -> deque[tuple[bytes, bool]]:
        return self.queues.setdefault(name, deque())

    def hears(self, method: Method) -> None:
        self.told.append(method)
        match method:
            case amqp.BasicQos():
                self.prefetch = method.prefetch_count
                self.say(amqp.BasicQosOk())
            case amqp.BasicConsume():
                assert method.consumer_tag not in self.consumers, "it would end the connection"
                self.consumers[method.consumer_tag] = Consumer(method.queue, self.prefetch, method.no_ack)
                if not method.no_wait:
                    self.say(amqp.BasicConsumeOk(method.consumer_tag))
            case amqp.BasicCancel(consumer_tag=tag):
                self.consumers.pop(tag, None)
                # They do not count for another consumer of that tag.
                for number, (one, queue, body) in self.unacked.items():
                    if one == tag:
                        self.unacked[number] = FORMER, queue, body
                self.say(amqp.BasicCancelOk(tag))
            case amqp.BasicGet():
                tag, (body, again) = next(self.tags), self.queue(method.queue).popleft()
                self.unacked[tag] = "", method.queue, body
                self.talker.content(
                    amqp.BasicGetOk(tag, again), body, properties=amqp.BasicProperties(), channel=1
                )
            case amqp.BasicAck():
                for tag in self.settled(method.delivery_tag, method.multiple):
                    del self.unacked[tag]
            case amqp.BasicNack() | amqp.BasicReject():
                assert method.requeue
                multiple = isinstance(method, amqp.BasicNack) and method.multiple
                for tag in reversed(self.settled(method.delivery_tag, multiple)):
                    _, queue, body = self.unacked.pop(tag)
                    self.queue(queue).appendleft((body, True))
            case _:
                pytest.fail(f"unexpected {method}")

    def settled(self, tag: int, multiple: bool) -> list[int]:
        if multiple:
            return [one for one in sorted(self.unacked) if one <= (tag or one)]
        assert tag in self.unacked, "it would close the channel"
        return [tag]

    def say(self, method: Method) -> None:
        self.talker.say(method, 1)

    def deliver(self) -> None:
        """All that consumers have room for."""
        for tag, consumer in self.consumers.items():
            queue = self.queue(consumer.queue)
            while queue:
                has = sum(one == tag for one, _, _ in self.unacked.values())
                if consumer.prefetch and has >= consumer.prefetch and not consumer.is_silent:
                    break
                body, again = queue.popleft()
                number = next(self.tags)
                if not consumer.is_silent:
                    self.unacked[number] = tag, consumer.queue, body
                self.talker.content(
                    amqp.BasicDeliver(tag, number, again),
                    body,
                    properties=amqp.BasicProperties(),
                    channel=1,
                )


@attrs.define
class Conversation:
    """A client and that broker."""

    client: Talker
    broker: Broker
    #: Delivery tags with the consumer and the message.
    has: dict[int, tuple[str, bytes]] = attrs.field(factory=dict)
    seen: list[bytes] = attrs.field(factory=list)
    #: The window that the client may rely on, for limits that it has asked for, oldest first.
    limit: int = 0
    asked: deque[int] = attrs.field(factory=deque)
    #: Consumers that acknowledge, with their own limits.
    consumers: dict[str, int] = attrs.field(factory=dict)
    each: int = 0
    heard: list[Method] = attrs.field(factory=list)
    #: By tag, those of consumers whose end is not answered yet: what comes until then is theirs.
    leaving: dict[str, deque[int]] = attrs.field(factory=dict)

    def limits(self, number: int, *, is_global: bool = True) -> None:
        if not is_global:
            self.each = number
        self.asked.append(number if is_global else 0)
        self.client.say(amqp.BasicQos(prefetch_count=number, global_=is_global), 1)

    def consume(self, tag: str, *, no_ack: bool = False) -> None:
        if not no_ack:
            self.consumers[tag] = self.each
        self.client.say(amqp.BasicConsume(queue=tag, consumer_tag=tag, no_ack=no_ack), 1)

    def cancel(self, tag: str) -> None:
        self.leaving.setdefault(tag, deque()).append(self.consumers.pop(tag, 0))
        self.client.say(amqp.BasicCancel(tag), 1)

    def publish(self, queue: str, *bodies: bytes) -> None:
        self.broker.queue(queue).extend((body, False) for body in bodies)

    def settle(self, method: amqp.BasicAck | amqp.BasicNack | amqp.BasicReject) -> None:
        tag = method.delivery_tag
        multiple = not isinstance(method, amqp.BasicReject) and method.multiple
        for one in [one for one in self.has if one == tag or (multiple and one <= (tag or one))]:
            del self.has[one]
        self.client.say(method, 1)

    def sync(self) -> None:
        """Until nobody has anything to say."""
        told = -1
        while told != len(self.broker.told) + len(self.heard) + len(self.seen):
            told = len(self.broker.told) + len(self.heard) + len(self.seen)
            for _ in range(2):
                self.exchange()

    def exchange(self) -> None:
        self.client.say(amqp.QueueDeclare(queue="fence"), 1)
        while not isinstance(method := self.broker.talker.hear()[1], amqp.QueueDeclare):
            self.broker.hears(method)
        self.broker.deliver()
        self.broker.say(amqp.QueueDeclareOk("fence"))
        while not isinstance(method := self.client.hear()[1], amqp.QueueDeclareOk):
            match method:
                case amqp.BasicQosOk():
                    self.limit = self.asked.popleft()
                case amqp.BasicDeliver(consumer_tag=tag, delivery_tag=number):
                    self.comes(tag, number, self.client.content_of(method, 1).body)
                case amqp.BasicGetOk(delivery_tag=number):
                    self.has[number] = "", self.client.content_of(method, 1).body
                case amqp.BasicCancelOk(consumer_tag=tag):
                    self.heard.append(method)
                    self.leaving[tag].popleft()
                    for number, (one, body) in self.has.items():
                        if one == tag:
                            self.has[number] = FORMER, body
                case _:
                    self.heard.append(method)

    def comes(self, tag: str, number: int, body: bytes) -> None:
        self.seen.append(body)
        if tag == "silent":
            return
        assert number not in self.has
        counts = Counter(one for one, _ in self.has.values() if one)
        assert not self.limit or counts.total() < self.limit, "it has as many as the channel may"
        leaving = self.leaving.get(tag)
        own = leaving[0] if leaving else self.consumers.get(tag, 0)
        assert not own or counts[tag] < own, "it has as many as the consumer may"
        self.has[number] = tag, body

    @property
    def is_stuck(self) -> bool:
        """Whether the client has room, and a queue has something for it."""
        counts = Counter(one for one, _ in self.has.values() if one)
        if self.limit and counts.total() >= self.limit:
            return False
        return any(
            self.broker.queues.get(tag) and (not own or counts[tag] < own)
            for tag, own in self.consumers.items()
        )


@pytest.fixture
def talk(make_stage: MakeStage) -> Conversation:
    client, broker = make_stage(policies=document("three")).opened()
    return Conversation(client, Broker(broker))


def bodies(queue: str, number: int = 5) -> list[bytes]:
    return [f"{queue}{one}".encode() for one in range(number)]


@pytest.fixture
def full(talk: Conversation) -> Conversation:
    """Two consumers that share a limit of two, and have it."""
    talk.limits(2)
    talk.consume("a")
    talk.consume("b")
    for queue in "ab":
        talk.publish(queue, *bodies(queue))
    talk.sync()
    assert sorted(talk.has) == [1, 2]
    return talk


def test_two_consumers_share_a_limit(full: Conversation) -> None:
    full.settle(amqp.BasicAck(1))
    full.sync()
    assert len(full.has) == 2
    while full.has:
        full.settle(amqp.BasicAck(0, multiple=True))
        full.sync()
    assert sorted(full.seen) == bodies("a") + bodies("b")
    assert [method for method in full.broker.told if isinstance(method, amqp.BasicQos)] == [
        amqp.BasicQos(prefetch_count=2)
    ]


def test_a_wider_limit_reaches_a_consumer_that_is_there(full: Conversation) -> None:
    full.limits(7)
    full.sync()
    assert len(full.has) == 7
    assert {tag for tag, _ in full.has.values()} == {"a", "b"}
    assert [type(method) for method in full.heard] == [amqp.BasicConsumeOk] * 2


def test_a_limit_behind_a_consumer_holds_from_then_on(talk: Conversation) -> None:
    talk.consume("a")
    talk.publish("a", *bodies("a", 3))
    talk.sync()
    talk.limits(2)
    talk.publish("a", *bodies("b", 3))
    talk.sync()
    assert len(talk.has) == 3, "what it has stays"
    for tag, number in ((1, 2), (2, 2), (3, 2)):
        talk.settle(amqp.BasicAck(tag))
        talk.sync()
        assert len(talk.has) == number


def test_what_is_got_does_not_count(full: Conversation) -> None:
    full.settle(amqp.BasicAck(0, multiple=True))
    full.client.say(amqp.BasicGet(queue="b"), 1)
    full.sync()
    assert Counter(tag for tag, _ in full.has.values()).total() == 3


@pytest.mark.parametrize("is_first", [True, False])
def test_nor_what_was_got_before_there_was_a_consumer(talk: Conversation, *, is_first: bool) -> None:
    talk.publish("a", *bodies("a"))
    talk.publish("b", *bodies("b"))
    for step in (1, 2) if is_first else (2, 1):
        if step == 1:
            talk.client.say(amqp.BasicGet(queue="a"), 1)
        else:
            talk.limits(2)
        talk.sync()
    talk.consume("a")
    talk.consume("b")
    talk.sync()
    assert len(talk.has) == 3


def test_of_a_cancelled_consumer_the_broker_has_what_was_kept(full: Conversation) -> None:
    full.cancel("b")
    full.sync()
    given = [method for method in full.broker.told if isinstance(method, amqp.BasicNack | amqp.BasicReject)]
    assert given == [amqp.BasicNack(3, requeue=True), amqp.BasicNack(4, requeue=True)]
    assert sorted(body for body, _ in full.broker.queue("b")) == bodies("b")


def test_and_not_in_the_middle_of_a_message(full: Conversation) -> None:
    publish = method_frame(1, amqp.BasicPublish(routing_key="q"))
    header = encode_frame(2, 1, encode_header(ContentHeader(60, 6, amqp.BasicProperties())))
    full.client.say(amqp.BasicCancel("b"), 1)
    full.client.raw(publish + header + encode_frame(3, 1, b"one"))
    broker = full.broker.talker
    assert isinstance(broker.hear()[1], amqp.BasicCancel)
    broker.expect(amqp.BasicPublish, 1)
    assert [broker.frame().type, broker.frame().payload] == [2, b"one"]
    broker.say(amqp.BasicCancelOk("b"), 1)
    full.client.expect(amqp.BasicCancelOk, 1)
    full.client.raw(encode_frame(3, 1, b"two"))
    assert broker.frame().payload == b"two"
    assert broker.expect(amqp.BasicNack, 1).delivery_tag == 3


def test_and_not_when_the_broker_has_closed_the_channel(full: Conversation) -> None:
    """On the next one of that number its tags are other messages'."""
    client, broker = full.client, full.broker.talker
    whole = content_frames(1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), b"onetwo", 11)
    client.say(amqp.BasicCancel("b"), 1)
    client.raw(whole[:-11])
    broker.expect(amqp.BasicCancel, 1)
    broker.expect(amqp.BasicPublish, 1)
    assert [broker.frame().type, broker.frame().payload] == [2, b"one"]
    broker.say(amqp.BasicCancelOk("b"), 1)
    client.expect(amqp.BasicCancelOk, 1)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND - no", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    client.raw(whole[-11:])
    assert broker.frame().payload == b"two"
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    client.raw(whole)
    broker.expect(amqp.BasicPublish, 1)
    assert [broker.frame().type for _ in range(3)] == [2, 3, 3]
    client.say(amqp.QueueDeclare(queue="q"), 1)
    assert isinstance(broker.hear()[1], amqp.QueueDeclare)


def test_the_client_ends_the_consumer_that_is_there_now(full: Conversation) -> None:
    full.limits(9)
    full.sync()
    full.cancel("a")
    full.sync()
    assert full.heard[-1] == amqp.BasicCancelOk("a")
    assert [consumer.queue for consumer in full.broker.consumers.values()] == ["b"]
    full.consume("a")
    full.sync()
    assert full.heard[-1] == amqp.BasicConsumeOk("a")


def test_the_broker_ends_it_by_the_clients_name(full: Conversation) -> None:
    full.limits(9)
    full.sync()
    (tag,) = [tag for tag, one in full.broker.consumers.items() if one.queue == "a"]
    assert tag != "a"
    del full.broker.consumers[tag]
    full.broker.say(amqp.BasicCancel(tag, no_wait=True))
    full.sync()
    assert full.heard[-1] == amqp.BasicCancel("a", no_wait=True)


def test_a_policy_that_changes_ends_it_by_the_brokers_name(make_stage: MakeStage) -> None:
    stage = make_stage(policies=document("three"))
    client, broker = stage.opened()
    talk = Conversation(client, Broker(broker))
    talk.limits(1)
    talk.consume("a")
    talk.sync()
    talk.limits(2)
    talk.sync()
    (tag,) = talk.broker.consumers
    access = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: none}
spec: {subjects: [{}], rules: [{id: declares, operations: [queue.declare], effect: allow}]}
---
"""
    others = build([Source("p.yaml", (access + document("three")).encode())])
    stage.running.call(lambda: stage.running.gateway.use(others))
    talk.sync()
    assert talk.broker.told[-1] == amqp.BasicCancel(tag)
    assert talk.heard[-1] == amqp.BasicCancel("a", no_wait=True)


def test_a_consumer_without_a_name_gets_one(talk: Conversation) -> None:
    talk.limits(1)
    talk.consumers[""] = 0
    talk.client.say(amqp.BasicConsume(queue="a"), 1)
    talk.sync()
    (told,) = [method for method in talk.heard if isinstance(method, amqp.BasicConsumeOk)]
    assert told.consumer_tag.startswith("amq.ctag-")
    talk.publish("a", *bodies("a"))
    talk.limits(3)
    talk.sync()
    assert {tag for tag, _ in talk.has.values()} == {told.consumer_tag}
    assert len(talk.has) == 3


def test_the_deliveries_of_one_consumer_stay_on_the_data_path(make_stage: MakeStage) -> None:
    """And so do those of other channels of a session that has one with more."""
    stage = make_stage(policies=document("three"))
    client, broker = stage.opened(channels=2)
    talk = Conversation(client, Broker(broker))
    counters = stage.running.gateway.pump.counters

    def upcalls(channel: int) -> int:
        def say(number: int) -> None:
            message = amqp.BasicDeliver("other", number)
            broker.content(message, b"x", properties=amqp.BasicProperties(), channel=channel)
            client.expect_content(amqp.BasicDeliver, channel)
            client.say(amqp.BasicAck(number), channel)
            broker.expect(amqp.BasicAck, channel)

        say(1)
        before = stage.running.call(lambda: counters.upcalls)
        for number in range(2, 10):
            say(number)
        return stage.running.call(lambda: counters.upcalls) - before

    relayed(
        client, broker, amqp.BasicConsume(queue="q", consumer_tag="other"), amqp.BasicConsumeOk("other"), 2
    )
    talk.limits(100)
    talk.consume("other")
    talk.sync()
    assert (upcalls(1), upcalls(2)) == (0, 0)
    talk.consume("a")
    talk.sync()
    assert upcalls(2) == 0


def test_publishes_of_such_a_session_stay_on_the_data_path(make_stage: MakeStage) -> None:
    """Also those that rules on headers judge."""
    access = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: mine}
spec:
  subjects: [{}]
  rules:
  - {id: mine, operations: [basic.publish], properties: {appId: mine}, effect: allow}
  - {id: rest, operations: [queue.declare, basic.consume, basic.qos], effect: allow}
---
"""
    stage = make_stage(policies=access + document("three"))
    client, broker = stage.opened()
    talk = Conversation(client, Broker(broker))
    talk.limits(2)
    talk.consume("a")
    talk.consume("b")
    talk.sync()
    counters = stage.running.gateway.pump.counters

    def publish() -> int:
        client.publish(b"x", "q", properties=amqp.BasicProperties(app_id="mine"))
        broker.expect_content(amqp.BasicPublish)
        return stage.running.call(lambda: counters.upcalls)

    before = publish()
    assert [publish() for _ in range(5)] == [before] * 5


def test_it_is_told(make_stage: MakeStage) -> None:
    stage = make_stage(policies=document("three"))
    client, broker = stage.opened()
    talk = Conversation(client, Broker(broker))
    talk.limits(2)
    talk.limits(3, is_global=False)
    talk.sync()
    labels = {"policy": "three", "item": "global-prefetch"}
    registry = stage.running.gateway.metrics.registry
    assert sample_value(registry, "amqpgate_compatibility_changes_total", labels) == 1


@pytest.mark.parametrize("policy", [None, document("three", "globalPrefetch: keep")])
def test_without_the_item_the_broker_gets_what_the_client_says(
    make_stage: MakeStage, policy: str | None
) -> None:
    client, broker = make_stage(policies=policy).opened()
    for method, answer in (
        (amqp.BasicQos(prefetch_count=2, global_=True), amqp.BasicQosOk()),
        (amqp.BasicConsume(queue="a"), amqp.BasicConsumeOk("given")),
    ):
        client.say(method, 1)
        assert broker.hear() == (1, method)
        broker.say(answer, 1)
        assert client.hear() == (1, answer)


def test_a_session_gets_it_with_its_policies(make_stage: MakeStage) -> None:
    """Consumers that were there before are not known, and are limited all the same."""
    stage = make_stage()
    client, broker = stage.opened()
    talk = Conversation(client, Broker(broker))
    talk.consume("a")
    talk.sync()
    others = build([Source("p.yaml", document("three").encode())])
    stage.running.call(lambda: stage.running.gateway.use(others))
    talk.limits(1)
    talk.publish("a", *bodies("a"))
    talk.sync()
    assert len(talk.has) == 1
    stage.running.call(lambda: stage.running.gateway.use(build([])))
    talk.settle(amqp.BasicAck(1))
    talk.sync()
    assert len(talk.has) == 1, "a channel keeps what it has"


def test_what_is_kept_is_bounded_and_nobody_is_closed(
    full: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consumers are made narrower, and the broker has the rest again."""
    monkeypatch.setattr(held_deliveries, "ROOM", 10_000)
    full.settle(amqp.BasicAck(0, multiple=True))
    full.limits(16)
    full.sync()
    large = [b"%d" % number + b"x" * 3000 for number in range(30)]
    full.publish("a", *large)
    full.publish("b", *large)
    full.sync()
    widths = [consumer.prefetch for consumer in full.broker.consumers.values()]
    assert max(widths) < 16
    while full.has:
        full.settle(amqp.BasicAck(0, multiple=True))
        full.sync()
    assert sorted(full.seen) == sorted(bodies("a") + bodies("b") + large + large)


def test_one_message_may_be_larger_than_what_is_kept(
    full: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_deliveries, "ROOM", 1000)
    full.publish("a", b"x" * 9000)
    full.publish("b", b"x" * 9000)
    while full.has:
        full.settle(amqp.BasicAck(0, multiple=True))
        full.sync()
    assert len(full.seen) == 12


def test_but_not_any_number_of_times(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what cannot be narrower; before that it waits."""
    monkeypatch.setattr(held_deliveries, "ROOM", 1000)
    monkeypatch.setattr(held_deliveries, "MOST", 8000)
    talk.client.say(amqp.BasicConsume(queue="a", consumer_tag="a", exclusive=True), 1)
    talk.sync()
    talk.limits(1)
    talk.publish("a", b"x", b"x" * 4000)
    talk.sync()
    assert len(talk.has) == 1
    talk.publish("a", b"x" * 4000)
    talk.broker.deliver()
    while not isinstance(method := talk.broker.talker.hear()[1], amqp.ChannelClose):
        talk.broker.hears(method)
    assert method.reply_code == 406


COMMANDS = st.lists(
    st.one_of(
        st.tuples(st.just("limit"), st.sampled_from([0, 1, 2, 3, 9, 30])),
        st.tuples(st.just("each"), st.integers(0, 4)),
        st.tuples(st.just("publish"), st.sampled_from(["a", "b", "silent"])),
        st.tuples(st.just("consume"), st.sampled_from(["a", "b", "silent"])),
        st.tuples(st.just("cancel"), st.sampled_from(["a", "b"])),
        st.tuples(
            st.sampled_from(["ack", "ack through", "nack", "nack through", "reject"]), st.integers(0, 6)
        ),
        st.tuples(st.just("get"), st.sampled_from(["a", "b"])),
        st.tuples(st.just("sync"), st.just(0)),
    ),
    max_size=40,
)


@given(commands=COMMANDS)
@example(commands=[("publish", "a"), ("get", "a"), ("limit", 1)])
@example(commands=[("limit", 1), ("consume", "a"), ("limit", 0), ("publish", "a"), ("sync", 0)])
@example(
    commands=[("publish", "b"), ("consume", "b"), ("limit", 1), ("sync", 0), ("each", 1), ("cancel", "b")]
)
@example(commands=[("each", 1), ("publish", "a"), ("get", "a"), ("consume", "a"), ("limit", 1)])
# Each example is a conversation over sockets.
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_client_never_has_more_than_its_limit_and_gets_everything(
    stage: Stage, commands: list[tuple[str, str | int]]
) -> None:
    others = build([Source("p.yaml", document("three").encode())])
    stage.running.call(lambda: stage.running.gateway.use(others))
    client, broker = stage.opened()
    talk = Conversation(client, Broker(broker))
    published: list[bytes] = []
    numbers = count()
    is_silent = has_consumed = False
    for what, which in commands:
        has_consumed |= what == "consume"
        # Where a limit comes behind a consumer, what was got before counts.
        is_late = has_consumed and not talk.limit and any(not tag for tag, _ in talk.has.values())
        match what, which:
            case "limit", int() if not is_late:
                talk.limits(which)
            case "each", int():
                talk.limits(which, is_global=False)
            case "publish", str():
                published += (more := [b"%d" % next(numbers) for _ in range(4)])
                talk.publish(which, *more)
            case "consume", "silent" if not is_silent:
                is_silent = True
                # Of both kinds at once the data path does not know what is to be acknowledged.
                talk.sync()
                talk.consume("silent", no_ack=True)
                talk.sync()
            case "consume", str() if which != "silent" and which not in talk.consumers:
                talk.consume(which)
            case "cancel", str() if which in talk.consumers:
                talk.cancel(which)
                if is_silent:
                    talk.sync()
            case "get", str() if talk.broker.queues.get(which):
                # The queue is known once nothing is under way.
                talk.sync()
                # What was got after a consumer counts where the limit comes later.
                if talk.broker.queues[which] and (talk.limit or not has_consumed):
                    talk.client.say(amqp.BasicGet(queue=which), 1)
                    talk.sync()
            case "sync", _:
                talk.sync()
                assert not talk.is_stuck
            case _, int() if talk.has:
                tag = list(talk.has)[which % len(talk.has)]
                multiple = what.endswith("through")
                match what.split()[0]:
                    case "ack":
                        talk.settle(amqp.BasicAck(tag, multiple))
                    case "nack":
                        talk.settle(amqp.BasicNack(tag, multiple, requeue=True))
                    case "reject":
                        talk.settle(amqp.BasicReject(tag, requeue=True))
    for queue in ("a", "b", "silent"):
        if queue == "silent" and not is_silent:
            talk.consume(queue, no_ack=True)
        elif queue != "silent" and queue not in talk.consumers:
            talk.consume(queue)
    talk.sync()
    assert not talk.is_stuck
    while talk.has:
        talk.settle(amqp.BasicAck(0, multiple=True))
        talk.sync()
    assert not any(talk.broker.queues.values())
    assert not talk.broker.unacked
    assert set(talk.seen) <= set(published)
    client.close()
    broker.close()

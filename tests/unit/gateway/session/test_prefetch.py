"""Limits that the broker does not keep to: deliveries of old clients wait here, and no ack reaches them."""

from __future__ import annotations

from itertools import count

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amqpgate.gateway.session import held_deliveries
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.dialects import LEGACY_CLIENT, RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Opens, Stage, open_channel


@attrs.define
class Pair:
    """An old client and a RabbitMQ, with channel 1 open."""

    client: Talker
    broker: Talker

    def consume(self, tag: str, *, no_ack: bool = False, channel: int = 1) -> None:
        self.client.say(v0_8.BasicConsume(queue="q", consumer_tag=tag, no_ack=no_ack), channel)
        self.client.say(v0_8.QueueDeclare(queue="fence"), channel)
        while not isinstance(method := self.broker.hear()[1], amqp.QueueDeclare):
            is_qos = isinstance(method, amqp.BasicQos)
            self.broker.say(amqp.BasicQosOk() if is_qos else amqp.BasicConsumeOk(tag), channel)
        self.broker.say(amqp.QueueDeclareOk("fence"), channel)
        self.client.expect(v0_8.BasicConsumeOk, channel)
        self.client.expect(v0_8.QueueDeclareOk, channel)

    def limit(self, number: int, *, channel: int = 1, is_global: bool = False) -> None:
        self.client.say(v0_8.BasicQos(prefetch_count=number, global_=is_global), channel)
        self.answer_limits(channel)

    def answer_limits(self, channel: int = 1) -> None:
        """The client hears of its own one, and of none that the gateway has asked for."""
        self.client.say(v0_8.QueueDeclare(queue="fence"), channel)
        while not isinstance(method := self.broker.hear()[1], amqp.QueueDeclare):
            assert isinstance(method, amqp.BasicQos)
            self.broker.say(amqp.BasicQosOk(), channel)
        self.broker.say(amqp.QueueDeclareOk("fence"), channel)
        self.client.expect(v0_8.BasicQosOk, channel)
        self.client.expect(v0_8.QueueDeclareOk, channel)

    def deliver(self, *numbers: int, tag: str = "c", body: bytes | None = None, channel: int = 1) -> None:
        for number in numbers:
            content = str(number).encode() if body is None else body
            self.broker.content(
                amqp.BasicDeliver(tag, number), content, properties=amqp.BasicProperties(), channel=channel
            )

    def takes(self, *numbers: int, tag: str = "c", channel: int = 1) -> None:
        for number in numbers:
            message = self.client.expect_content(v0_8.BasicDeliver, channel)
            method = message.method
            assert isinstance(method, v0_8.BasicDeliver)
            assert (method.consumer_tag, method.delivery_tag) == (tag, number)
            assert message.body == str(number).encode()

    def fence(self, channel: int = 1) -> None:
        """All that the broker has said until now has come, but for what is kept."""
        self.client.say(v0_8.QueueDeclare(queue="fence"), channel)
        self.broker.expect(amqp.QueueDeclare, channel)
        self.broker.say(amqp.QueueDeclareOk("fence"), channel)
        self.client.expect(v0_8.QueueDeclareOk, channel)

    def ack(self, number: int, *, multiple: bool = False, channel: int = 1) -> None:
        """An ack that reaches the broker."""
        self.client.say(v0_8.BasicAck(number, multiple), channel)
        assert self.broker.hear() == (channel, amqp.BasicAck(number, multiple))


@pytest.fixture
def pair(stage: Stage, opens: Opens) -> Pair:
    return Pair(*opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1))


@pytest.fixture
def limited(pair: Pair) -> Pair:
    """With a consumer "c", and a limit of 2 behind it."""
    pair.consume("c")
    pair.limit(2)
    return pair


def test_a_limit_holds_for_a_consumer_that_is_there(limited: Pair) -> None:
    limited.deliver(1, 2, 3, 4)
    limited.takes(1, 2)
    limited.fence()
    limited.ack(1)
    limited.takes(3)
    limited.fence()
    limited.ack(3, multiple=True)
    limited.takes(4)


def test_two_consumers_share_a_limit(pair: Pair) -> None:
    pair.limit(2)
    pair.consume("c")
    pair.consume("d")
    pair.deliver(1, 2)
    pair.deliver(3, 4, tag="d")
    pair.takes(1, 2)
    pair.fence()
    pair.ack(2, multiple=True)
    pair.takes(3, 4, tag="d")


def test_a_prefetch_size_holds_too(pair: Pair) -> None:
    pair.consume("c")
    pair.client.say(v0_8.BasicQos(prefetch_size=4096), 1)
    pair.answer_limits()
    pair.deliver(1, 2)
    pair.takes(1)
    pair.fence()
    pair.ack(1)
    pair.takes(2)


def test_what_was_delivered_before_counts(pair: Pair) -> None:
    pair.consume("c")
    pair.deliver(1, 2, 3)
    pair.takes(1, 2, 3)
    pair.limit(2)
    pair.deliver(4)
    pair.fence()
    pair.ack(1)
    pair.fence()
    pair.ack(3)
    pair.takes(4)


def test_a_wider_limit_lets_more_pass(limited: Pair) -> None:
    limited.deliver(1, 2, 3, 4, 5)
    limited.takes(1, 2)
    limited.client.say(v0_8.BasicQos(prefetch_count=4), 1)
    limited.takes(3, 4)
    limited.answer_limits()
    limited.client.say(v0_8.BasicQos(), 1)
    limited.takes(5)
    limited.answer_limits()
    limited.deliver(6, 7)
    limited.takes(6, 7)


def test_consumers_that_do_not_acknowledge_are_not_limited(limited: Pair) -> None:
    limited.consume("free", no_ack=True)
    limited.deliver(1, 2, 3)
    limited.deliver(4, tag="free")
    limited.takes(1, 2)
    limited.takes(4, tag="free")
    limited.ack(1)
    limited.takes(3)


@pytest.mark.parametrize("others", [False, True])
def test_a_limit_holds_while_its_consumer_is_cancelled(limited: Pair, others: bool) -> None:
    """Until the broker answers. What is kept then is for others."""
    if others:
        limited.consume("silent", no_ack=True)
    limited.client.say(v0_8.BasicCancel("c"), 1)
    limited.broker.expect(amqp.BasicCancel, 1)
    limited.deliver(1, 2, 3)
    limited.takes(1, 2)
    limited.fence()
    limited.broker.say(amqp.BasicCancelOk("c"), 1)
    limited.client.expect(v0_8.BasicCancelOk, 1)
    assert limited.broker.hear() == (1, amqp.BasicNack(3, multiple=False, requeue=True))


def test_deliveries_of_one_consumer_with_its_own_limit_stay_on_the_data_path(
    pair: Pair, stage: Stage
) -> None:
    pair.limit(100)
    pair.consume("c")
    pair.deliver(1)
    pair.takes(1)
    counters = stage.running.gateway.pump.counters
    before = stage.running.call(lambda: counters.upcalls)
    for number in range(2, 20):
        pair.deliver(number)
        pair.takes(number)
    assert stage.running.call(lambda: counters.upcalls) == before


class TestAcks:
    """What the client does not have, it does not acknowledge."""

    def test_of_all_are_of_all_that_it_has(self, limited: Pair) -> None:
        limited.deliver(1, 2, 3, 4)
        limited.takes(1, 2)
        limited.client.say(v0_8.BasicAck(0, multiple=True), 1)
        assert limited.broker.hear() == (1, amqp.BasicAck(2, multiple=True))
        limited.takes(3, 4)
        limited.client.say(v0_8.BasicAck(0, multiple=True), 1)
        assert limited.broker.hear() == (1, amqp.BasicAck(0, multiple=True))

    def test_of_all_are_of_none_where_it_has_none(self, limited: Pair) -> None:
        limited.client.say(v0_8.ChannelFlow(active=False), 1)
        limited.client.expect(v0_8.ChannelFlowOk, 1)
        limited.deliver(1)
        limited.fence()
        limited.client.say(v0_8.BasicAck(0, multiple=True), 1)
        limited.fence()
        limited.client.say(v0_8.ChannelFlow(active=True), 1)
        limited.takes(1)

    def test_of_one_that_was_kept_is_of_one_that_does_not_exist(self, limited: Pair) -> None:
        """In RabbitMQ's words."""
        limited.deliver(1, 2, 3)
        limited.takes(1, 2)
        limited.client.say(v0_8.BasicAck(3), 1)
        assert limited.broker.expect(amqp.ChannelClose, 1).reply_code == 406
        limited.broker.say(amqp.ChannelCloseOk(), 1)
        close = limited.client.expect(v0_8.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 80)
        assert close.reply_text == "PRECONDITION_FAILED - unknown delivery tag 3"

    def test_of_several_after_a_get_give_back_what_was_kept(self, limited: Pair) -> None:
        """Which of them it means is not known: the client has some with higher tags."""
        limited.deliver(1, 2, 3)
        limited.takes(1, 2)
        limited.client.say(v0_8.BasicGet(queue="q"), 1)
        limited.broker.expect(amqp.BasicGet, 1)
        limited.broker.content(amqp.BasicGetOk(4), b"got")
        assert limited.client.expect_content(v0_8.BasicGetOk).body == b"got"
        limited.client.say(v0_8.BasicAck(4, multiple=True), 1)
        assert limited.broker.hear() == (1, amqp.BasicNack(3, requeue=True))
        assert limited.broker.hear() == (1, amqp.BasicAck(4, multiple=True))
        limited.deliver(5)
        limited.takes(5)

    def test_a_message_that_is_given_back_while_it_comes_does_not_go_on(self, limited: Pair) -> None:
        limited.deliver(1, 2)
        limited.takes(1, 2)
        limited.client.say(v0_8.BasicGet(queue="q"), 1)
        limited.broker.expect(amqp.BasicGet, 1)
        limited.broker.say(amqp.BasicGetEmpty(), 1)
        limited.client.expect(v0_8.BasicGetEmpty, 1)
        begin(limited, 3)
        limited.client.say(v0_8.BasicAck(0, multiple=True), 1)
        assert limited.broker.hear() == (1, amqp.BasicNack(3, requeue=True))
        assert limited.broker.hear() == (1, amqp.BasicAck(0, multiple=True))
        limited.broker.raw(encode_frame(3, 1, b"two"))
        limited.deliver(4)
        limited.takes(4)

    def test_in_a_transaction_count_from_its_commit_on(self, limited: Pair) -> None:
        def asks(question: Method, reached: type[Method], answer: Method, told: type[Method]) -> None:
            limited.client.say(question, 1)
            limited.broker.expect(reached, 1)
            limited.broker.say(answer, 1)
            limited.client.expect(told, 1)

        asks(v0_8.TxSelect(), amqp.TxSelect, amqp.TxSelectOk(), v0_8.TxSelectOk)
        limited.deliver(1, 2, 3, 4)
        limited.takes(1, 2)
        limited.ack(2, multiple=True)
        limited.fence()
        asks(v0_8.TxRollback(), amqp.TxRollback, amqp.TxRollbackOk(), v0_8.TxRollbackOk)
        limited.fence()
        limited.ack(1)
        limited.fence()
        limited.client.say(v0_8.TxCommit(), 1)
        limited.takes(3)
        limited.broker.expect(amqp.TxCommit, 1)
        limited.fence()

    @pytest.mark.parametrize("acked", [0, 1])
    def test_count_from_a_limit_within_a_transaction_on(self, pair: Pair, acked: int) -> None:
        """What is rolled back is known by its tags, or where some was acknowledged before, by number."""
        pair.consume("c")
        pair.client.say(v0_8.TxSelect(), 1)
        pair.broker.expect(amqp.TxSelect, 1)
        pair.broker.say(amqp.TxSelectOk(), 1)
        pair.client.expect(v0_8.TxSelectOk, 1)
        pair.deliver(*range(1, 7))
        pair.takes(*range(1, 7))
        for number in range(1, acked + 1):
            pair.ack(number)
        pair.limit(3)
        pair.ack(5)
        pair.client.say(v0_8.TxRollback(), 1)
        pair.broker.expect(amqp.TxRollback, 1)
        pair.broker.say(amqp.TxRollbackOk(), 1)
        pair.client.expect(v0_8.TxRollbackOk, 1)
        pair.deliver(7)
        if acked:
            # It is all of them that count then, by whatever tags.
            for number in (1, 2, 3):
                pair.ack(number)
        else:
            pair.ack(2, multiple=True)
            pair.ack(3)
        pair.fence()
        pair.client.say(v0_8.TxCommit(), 1)
        pair.broker.expect(amqp.TxCommit, 1)
        pair.broker.say(amqp.TxCommitOk(), 1)
        pair.client.expect(v0_8.TxCommitOk, 1)
        pair.fence()
        pair.ack(4)
        pair.client.say(v0_8.TxCommit(), 1)
        pair.takes(7)

    def test_go_back_again_behind_a_rollback(self, limited: Pair) -> None:
        """Till then the broker takes them for delivered, and an ack of several would be one of them, too."""
        cancel_in_a_transaction(limited)
        back = [(1, amqp.BasicNack(number, requeue=True)) for number in (3, 4)]
        assert [limited.broker.hear() for _ in back] == back
        limited.client.say(v0_8.TxRollback(), 1)
        limited.client.say(v0_8.BasicAck(0, multiple=True), 1)
        limited.broker.expect(amqp.TxRollback, 1)
        assert [limited.broker.hear() for _ in back] == back
        assert limited.broker.hear() == (1, amqp.BasicAck(0, multiple=True))
        limited.broker.say(amqp.TxRollbackOk(), 1)
        limited.client.expect(v0_8.TxRollbackOk, 1)
        limited.client.say(v0_8.TxCommit(), 1)
        limited.broker.expect(amqp.TxCommit, 1)
        limited.broker.say(amqp.TxCommitOk(), 1)
        limited.client.expect(v0_8.TxCommitOk, 1)
        limited.client.say(v0_8.TxRollback(), 1)
        limited.broker.expect(amqp.TxRollback, 1)
        limited.broker.say(amqp.TxRollbackOk(), 1)
        limited.client.expect(v0_8.TxRollbackOk, 1)
        limited.fence()

    def test_not_too_many_go_back_in_one_transaction(
        self, limited: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("amqpgate.gateway.session.delivery_holder.MOST_GIVEN", 1)
        cancel_in_a_transaction(limited)
        for number in (3, 4):
            assert limited.broker.hear() == (1, amqp.BasicNack(number, requeue=True))
        limited.broker.expect(amqp.ChannelClose, 1)
        limited.broker.say(amqp.ChannelCloseOk(), 1)
        assert limited.client.expect(v0_8.ChannelClose, 1).reply_code == 406


def cancel_in_a_transaction(limited: Pair) -> None:
    """The client has two of four deliveries, and cancels: the others go back."""
    limited.client.say(v0_8.TxSelect(), 1)
    limited.broker.expect(amqp.TxSelect, 1)
    limited.broker.say(amqp.TxSelectOk(), 1)
    limited.client.expect(v0_8.TxSelectOk, 1)
    limited.deliver(1, 2, 3, 4)
    limited.takes(1, 2)
    limited.client.say(v0_8.BasicCancel("c"), 1)
    limited.broker.expect(amqp.BasicCancel, 1)
    limited.broker.say(amqp.BasicCancelOk("c"), 1)
    limited.client.expect(v0_8.BasicCancelOk, 1)


def begin(pair: Pair, number: int) -> None:
    """A delivery of two bodies, "one" and "two", without its second one; the gateway has the rest."""
    header = encode_frame(2, 1, encode_header(ContentHeader(60, 6, amqp.BasicProperties())))
    pair.broker.raw(method_frame(1, amqp.BasicDeliver("c", number)) + header + encode_frame(3, 1, b"one"))
    pair.client.say(v0_8.ChannelOpen(), 2)
    pair.broker.expect(amqp.ChannelOpen, 2)
    pair.broker.say(amqp.ChannelOpenOk(), 2)
    pair.client.expect(v0_8.ChannelOpenOk, 2)


def test_a_message_that_is_kept_may_go_on_before_it_is_whole(limited: Pair) -> None:
    limited.deliver(1, 2)
    limited.takes(1, 2)
    begin(limited, 3)
    limited.ack(1)
    limited.client.expect(v0_8.BasicDeliver, 1)
    assert limited.client.frame().type == 2
    assert limited.client.frame().payload == b"one"
    limited.broker.raw(encode_frame(3, 1, b"two"))
    assert limited.client.frame().payload == b"two"


def test_nothing_is_put_into_the_middle_of_another_message(limited: Pair) -> None:
    limited.consume("free", no_ack=True)
    limited.deliver(1, 2, 3)
    limited.takes(1, 2)
    header = encode_frame(2, 1, encode_header(ContentHeader(60, 6, amqp.BasicProperties())))
    limited.broker.raw(method_frame(1, amqp.BasicDeliver("free", 4)) + header + encode_frame(3, 1, b"one"))
    limited.client.expect(v0_8.BasicDeliver, 1)
    assert limited.client.frame().type == 2
    assert limited.client.frame().payload == b"one"
    limited.ack(1)
    limited.broker.raw(encode_frame(3, 1, b"two"))
    assert limited.client.frame().payload == b"two"
    limited.takes(3)


def test_a_limit_of_the_connection_is_shared_by_channels(pair: Pair) -> None:
    open_channel(pair.client, pair.broker, 2)
    pair.consume("c")
    pair.consume("c", channel=2)
    pair.limit(2, is_global=True)
    pair.deliver(1)
    pair.deliver(1, 2, channel=2)
    pair.takes(1)
    pair.takes(1, channel=2)
    pair.fence()
    pair.fence(2)
    pair.ack(1)
    pair.takes(2, channel=2)


class TestEnds:
    def test_a_consumer_that_ends_gives_back_what_it_did_not_get(self, limited: Pair) -> None:
        limited.deliver(1, 2, 3)
        limited.takes(1, 2)
        limited.client.say(v0_8.BasicCancel("c"), 1)
        limited.broker.expect(amqp.BasicCancel, 1)
        limited.broker.say(amqp.BasicCancelOk("c"), 1)
        limited.client.expect(v0_8.BasicCancelOk, 1)
        assert limited.broker.hear() == (1, amqp.BasicNack(3, requeue=True))

    def test_the_broker_has_it_again_when_the_channel_closes(self, limited: Pair) -> None:
        limited.deliver(1, 2, 3)
        limited.takes(1, 2)
        limited.fence()
        limited.broker.say(amqp.ChannelClose(404, "gone"), 1)
        limited.client.expect(v0_8.ChannelClose, 1)

    def test_and_when_the_connection_does(self, limited: Pair) -> None:
        limited.deliver(1, 2, 3)
        limited.takes(1, 2)
        limited.fence()
        limited.broker.say(amqp.ConnectionClose(320, "shutdown"))
        limited.client.expect(v0_8.ConnectionClose)

    def test_and_when_it_recovers(self, limited: Pair) -> None:
        limited.deliver(1, 2, 3)
        limited.takes(1, 2)
        limited.client.say(v0_8.BasicRecoverAsync(requeue=True), 1)
        limited.broker.expect(amqp.BasicRecover, 1)
        limited.broker.say(amqp.BasicRecoverOk(), 1)
        limited.deliver(4, 5, 6)
        limited.takes(4, 5)
        limited.fence()

    def test_a_channel_that_is_opened_again_is_not_limited(self, limited: Pair) -> None:
        limited.deliver(1, 2, 3)
        limited.takes(1, 2)
        limited.client.say(v0_8.ChannelClose(200, "bye"), 1)
        limited.broker.expect(amqp.ChannelClose, 1)
        limited.broker.say(amqp.ChannelCloseOk(), 1)
        limited.client.expect(v0_8.ChannelCloseOk, 1)
        open_channel(limited.client, limited.broker, 1)
        limited.consume("c")
        limited.deliver(1, 2, 3)
        limited.takes(1, 2, 3)

    def test_what_is_kept_is_bounded(self, limited: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        """More than that closes the channel, and the broker has it again: it is not for the client."""
        monkeypatch.setattr(held_deliveries, "ROOM", 10_000)
        limited.deliver(1, 2)
        limited.takes(1, 2)
        for number in range(3, 8):
            limited.deliver(number, body=b"x" * 3000)
        assert limited.broker.expect(amqp.ChannelClose, 1).reply_code == 406
        limited.deliver(8)
        limited.broker.say(amqp.ChannelCloseOk(), 1)
        close = limited.client.expect(v0_8.ChannelClose, 1)
        assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 10)

    def test_the_channel_is_closed_behind_the_message_that_its_client_publishes(
        self, limited: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(held_deliveries, "ROOM", 10_000)
        client, broker = limited.client, limited.broker
        limited.deliver(1, 2)
        limited.takes(1, 2)
        whole = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"a body", 4096)
        client.sock.sendall(whole[:-14])
        assert broker.expect(amqp.BasicPublish, 1)
        assert broker.frame().payload[:2] == b"\0\x3c"
        for number in range(3, 12):
            limited.deliver(number, body=b"x" * 3000)
        open_channel(client, broker, 2)
        client.sock.sendall(whole[-14:])
        assert broker.frame().payload == b"a body"
        assert broker.expect(amqp.ChannelClose, 1).reply_code == 406
        broker.say(amqp.ChannelCloseOk(), 1)
        assert client.expect(v0_8.ChannelClose, 1).reply_code == 406


COMMANDS = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.sampled_from("cde")),
        st.tuples(st.just("ack"), st.integers(0, 6)),
        st.tuples(st.just("ack through"), st.integers(0, 6)),
        st.tuples(st.just("ack all"), st.just(0)),
        st.tuples(st.just("limit"), st.integers(0, 4)),
        st.tuples(st.sampled_from(["off", "on"]), st.just(0)),
    ),
    max_size=30,
)


@given(commands=COMMANDS)
# Each example is a conversation over sockets: 40 take seconds.
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_client_never_has_more_than_its_limit_and_loses_none(
    stage: Stage, opens: Opens, commands: list[tuple[str, str | int]]
) -> None:
    """Two consumers that acknowledge, and one that does not ("e"), whatever limits there are when."""
    pair = Pair(*opens(stage, LEGACY_CLIENT, RABBITMQ_0_9_1))
    tags = count(1)
    at_broker: dict[int, str] = {}
    has: list[int] = []
    heard: list[int] = []
    limit, is_off = 0, False

    def sync() -> None:
        """What each has said until now, the other has heard."""
        pair.client.say(v0_8.QueueDeclare(queue="fence"), 1)
        while not isinstance(method := pair.broker.hear()[1], amqp.QueueDeclare):
            if isinstance(method, amqp.BasicQos):
                pair.broker.say(amqp.BasicQosOk(), 1)
            elif isinstance(method, amqp.BasicAck):
                acked = [tag for tag in at_broker if tag <= (method.delivery_tag or tag)]
                if not method.multiple:
                    acked = [method.delivery_tag]
                for tag in acked:
                    assert tag in heard, "the client has never had it"
                    del at_broker[tag]
        pair.broker.say(amqp.QueueDeclareOk("fence"), 1)
        while not isinstance(method := pair.client.hear()[1], v0_8.QueueDeclareOk):
            if isinstance(method, v0_8.BasicDeliver):
                pair.client.content_of(method)
                heard.append(method.delivery_tag)
                if method.consumer_tag != "e":
                    has.append(method.delivery_tag)

    try:
        for tag in "cde":
            pair.consume(tag, no_ack=tag == "e")
        for command, value in [*commands, ("on", 0), ("limit", 0)]:
            before = len(has)
            if command == "deliver":
                tag = next(tags)
                if value != "e":
                    at_broker[tag] = str(value)
                pair.deliver(tag, tag=str(value))
            elif command == "ack all" and has:
                pair.client.say(v0_8.BasicAck(0, multiple=True), 1)
                has.clear()
            elif command.startswith("ack") and isinstance(value, int) and value < len(has):
                pair.client.say(v0_8.BasicAck(has[value], multiple=command == "ack through"), 1)
                has[:] = has[value + 1 :] if command == "ack through" else has[:value] + has[value + 1 :]
            elif command == "limit" and isinstance(value, int):
                pair.client.say(v0_8.BasicQos(prefetch_count=value), 1)
                limit = value
            elif command in ("off", "on"):
                pair.client.say(v0_8.ChannelFlow(active=command == "on"), 1)
                is_off = command == "off"
            sync()
            grown = len(has) - before
            assert not (is_off and grown > 0)
            assert grown <= 0 or not limit or len(has) <= limit
        assert sorted(heard) == list(range(1, next(tags)))
        assert sorted(has) == sorted(at_broker)
    finally:
        pair.client.close()
        pair.broker.close()

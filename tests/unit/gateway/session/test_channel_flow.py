"""channel.flow(active=false) of a client: deliveries wait, none is lost, and what is kept is bounded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amqpgate.gateway.session import held_deliveries
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage

OFF, ON = amqp.ChannelFlow(active=False), amqp.ChannelFlow(active=True)
OFF_OK, ON_OK = amqp.ChannelFlowOk(active=False), amqp.ChannelFlowOk(active=True)


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    """With a listener that does for clients of 0-9-1 what it does for older ones."""
    return make_stage(listener="channelFlow: gateway")


def consume(client: Talker, broker: Talker, tag: str, *, no_ack: bool = False, channel: int = 1) -> None:
    client.say(amqp.BasicConsume(queue="q", consumer_tag=tag, no_ack=no_ack), channel)
    broker.expect(amqp.BasicConsume, channel)
    broker.say(amqp.BasicConsumeOk(tag), channel)
    client.expect(amqp.BasicConsumeOk, channel)


def deliver(broker: Talker, number: int, tag: str = "c", body: bytes | None = None, channel: int = 1) -> None:
    properties = amqp.BasicProperties(headers=Table.of({"n": number}))
    content = str(number).encode() if body is None else body
    broker.content(amqp.BasicDeliver(tag, number), content, properties=properties, channel=channel)


def takes(client: Talker, number: int, tag: str = "c", channel: int = 1) -> bytes:
    message = client.expect_content(amqp.BasicDeliver, channel)
    assert isinstance(message.method, amqp.BasicDeliver)
    assert (message.method.consumer_tag, message.method.delivery_tag) == (tag, number)
    assert message.header.properties == amqp.BasicProperties(headers=Table.of({"n": number}))
    return message.body


def fence(client: Talker, broker: Talker, channel: int = 1) -> None:
    """What the broker has said until now has come, whatever of it was kept."""
    client.say(amqp.BasicQos(prefetch_count=9), channel)
    broker.expect(amqp.BasicQos, channel)
    broker.say(amqp.BasicQosOk(), channel)
    client.expect(amqp.BasicQosOk, channel)


@pytest.fixture
def pair(stage: Stage) -> tuple[Talker, Talker]:
    """With a consumer "c" that acknowledges, on channel 1, which is stopped after its first message."""
    client, broker = stage.opened(channels=2)
    consume(client, broker, "c")
    deliver(broker, 1)
    assert takes(client, 1) == b"1"
    assert client.ask(OFF, amqp.ChannelFlowOk, 1) == OFF_OK
    return client, broker


def test_deliveries_wait_and_come_in_order(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    for number in range(2, 12):
        deliver(broker, number, body=b"%d" % number * 20_000)
    fence(client, broker)
    client.say(ON, 1)
    for number in range(2, 12):
        assert takes(client, number) == b"%d" % number * 20_000
    assert client.expect(amqp.ChannelFlowOk, 1) == ON_OK
    deliver(broker, 12)
    assert takes(client, 12) == b"12"


def test_the_broker_is_not_asked(pair: tuple[Talker, Talker]) -> None:
    """RabbitMQ would close the connection with 540; a flow that is on already is its own to answer."""
    client, broker = pair
    assert client.ask(OFF, amqp.ChannelFlowOk, 1) == OFF_OK
    assert client.ask(ON, amqp.ChannelFlowOk, 1) == ON_OK
    client.say(ON, 1)
    assert broker.hear() == (1, ON)
    broker.say(ON_OK, 1)
    assert client.hear() == (1, ON_OK)


@pytest.mark.parametrize("listener", ["", "channelFlow: broker"])
def test_a_client_of_0_9_1_has_what_its_broker_does(make_stage: Callable[..., Stage], listener: str) -> None:
    client, broker = make_stage(listener=listener).opened()
    client.say(OFF, 1)
    assert broker.hear() == (1, OFF)
    broker.say(amqp.ConnectionClose(540, "NOT_IMPLEMENTED - active=false", 20, 20))
    assert client.expect(amqp.ConnectionClose).reply_code == 540


def test_a_broker_may_stop_deliveries_itself(make_stage: Callable[..., Stage]) -> None:
    client, broker = make_stage().opened()
    for flow, answer in ((OFF, OFF_OK), (ON, ON_OK)):
        client.say(flow, 1)
        assert broker.hear() == (1, flow)
        broker.say(answer, 1)
        assert client.hear() == (1, answer)


def test_an_ack_of_all_is_not_of_what_was_kept(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    deliver(broker, 2)
    fence(client, broker)
    client.say(amqp.BasicAck(0, multiple=True), 1)
    assert broker.hear() == (1, amqp.BasicAck(1, multiple=True))
    client.say(ON, 1)
    takes(client, 2)
    client.expect(amqp.ChannelFlowOk, 1)
    client.say(amqp.BasicAck(2), 1)
    assert broker.hear() == (1, amqp.BasicAck(2))


def test_other_channels_are_not_stopped(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    consume(client, broker, "c", channel=2)
    deliver(broker, 2)
    deliver(broker, 1, channel=2)
    assert takes(client, 1, channel=2) == b"1"
    client.say(ON, 1)
    takes(client, 2)


def test_a_message_under_way_goes_to_its_end(stage: Stage) -> None:
    client, broker = stage.opened()
    consume(client, broker, "c")
    header = encode_frame(2, 1, encode_header(ContentHeader(60, 6, amqp.BasicProperties())))
    broker.raw(method_frame(1, amqp.BasicDeliver("c", 1)) + header + encode_frame(3, 1, b"one"))
    client.expect(amqp.BasicDeliver, 1)
    assert client.frame().type == 2
    assert client.frame().payload == b"one"
    client.say(OFF, 1)
    client.say(amqp.QueueDeclare(queue="behind"), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.raw(encode_frame(3, 1, b"two"))
    deliver(broker, 2)
    assert client.frame().payload == b"two"
    assert client.hear() == (1, OFF_OK)
    fence(client, broker)
    client.say(ON, 1)
    assert takes(client, 2) == b"2"


def test_a_stop_may_end_within_a_message(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    header = encode_frame(2, 1, encode_header(ContentHeader(60, 6, amqp.BasicProperties())))
    broker.raw(method_frame(1, amqp.BasicDeliver("c", 2)) + header + encode_frame(3, 1, b"one"))
    fence(client, broker, channel=2)
    client.say(ON, 1)
    client.expect(amqp.BasicDeliver, 1)
    assert client.frame().type == 2
    assert client.frame().payload == b"one"
    broker.raw(encode_frame(3, 1, b"two"))
    assert client.frame().payload == b"two"
    assert client.hear() == (1, ON_OK)


def test_a_get_is_answered_behind_what_was_kept(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    deliver(broker, 2)
    client.say(amqp.BasicGet(queue="q"), 1)
    broker.expect(amqp.BasicGet, 1)
    broker.content(amqp.BasicGetOk(3, False, "", "q", 0), b"got")
    assert takes(client, 2) == b"2"
    assert client.expect_content(amqp.BasicGetOk).body == b"got"
    deliver(broker, 4)
    fence(client, broker)
    client.say(ON, 1)
    takes(client, 4)


def test_nothing_comes_after_the_consumers_end(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    consume(client, broker, "d")
    deliver(broker, 2)
    deliver(broker, 3, "d")
    client.say(amqp.BasicCancel("c"), 1)
    broker.expect(amqp.BasicCancel, 1)
    broker.say(amqp.BasicCancelOk("c"), 1)
    assert takes(client, 2) == b"2"
    client.expect(amqp.BasicCancelOk, 1)
    client.say(ON, 1)
    takes(client, 3, "d")


class TestRecover:
    """The broker takes back what was delivered and kept here: it comes again with another tag."""

    def test_drops_what_the_broker_has_again(self, pair: tuple[Talker, Talker]) -> None:
        client, broker = pair
        consume(client, broker, "free", no_ack=True)
        deliver(broker, 2)
        deliver(broker, 3, "free")
        client.say(amqp.BasicRecover(requeue=True), 1)
        broker.expect(amqp.BasicRecover, 1)
        broker.say(amqp.BasicRecoverOk(), 1)
        client.expect(amqp.BasicRecoverOk, 1)
        deliver(broker, 4)
        fence(client, broker)
        client.say(ON, 1)
        assert takes(client, 3, "free") == b"3"
        assert takes(client, 4) == b"4"

    def test_without_an_answer_is_waited_for_all_the_same(self, pair: tuple[Talker, Talker]) -> None:
        client, broker = pair
        deliver(broker, 2)
        client.say(amqp.BasicRecoverAsync(requeue=True), 1)
        client.say(ON, 1)
        assert broker.hear() == (1, amqp.BasicRecover(requeue=True))
        deliver(broker, 3)
        broker.say(amqp.BasicRecoverOk(), 1)
        deliver(broker, 4)
        assert client.hear() == (1, ON_OK)
        assert takes(client, 4) == b"4"


def test_what_is_kept_is_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it goes to the client, all of it, and the channel is closed."""
    monkeypatch.setattr(held_deliveries, "ROOM", 10_000)
    client, broker = stage.opened()
    consume(client, broker, "c", no_ack=True)
    client.ask(OFF, amqp.ChannelFlowOk, 1)
    for number in range(1, 5):
        deliver(broker, number, body=b"x" * 3000)
    close = broker.expect(amqp.ChannelClose, 1)
    assert close.reply_code == 406
    deliver(broker, 5)
    broker.say(amqp.ChannelCloseOk(), 1)
    for number in range(1, 5):
        assert takes(client, number) == b"x" * 3000
    assert takes(client, 5) == b"5"
    told = client.expect(amqp.ChannelClose, 1)
    assert (told.reply_code, told.class_id, told.method_id) == (406, 20, 20)
    assert "prefetch" in told.reply_text


def test_the_channel_is_closed_behind_the_message_that_its_client_publishes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within it the broker would end the connection (505)."""
    monkeypatch.setattr(held_deliveries, "ROOM", 10_000)
    client, broker = stage.opened(2)
    consume(client, broker, "c", no_ack=True)
    client.ask(OFF, amqp.ChannelFlowOk, 1)
    whole = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"a body", 4096)
    client.sock.sendall(whole[:-14])
    assert broker.expect(amqp.BasicPublish, 1)
    assert broker.frame().payload[:2] == b"\0\x3c"
    for number in range(1, 5):
        deliver(broker, number, body=b"x" * 3000)
    for number in range(1, 5):
        assert takes(client, number) == b"x" * 3000
    fence(client, broker, 2)
    client.sock.sendall(whole[-14:])
    assert broker.frame().payload == b"a body"
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 406
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).class_id == 20


def test_what_has_gone_on_counts_no_more(
    pair: tuple[Talker, Talker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_deliveries, "ROOM", 10_000)
    client, broker = pair
    for number in range(2, 7):
        deliver(broker, number, body=b"x" * 6000)
        fence(client, broker)
        client.say(ON, 1)
        takes(client, number)
        client.expect(amqp.ChannelFlowOk, 1)
        client.ask(OFF, amqp.ChannelFlowOk, 1)


def test_a_close_of_the_brokers_comes_behind_what_was_kept(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    deliver(broker, 2)
    broker.say(amqp.ChannelClose(404, "gone"), 1)
    assert takes(client, 2) == b"2"
    client.expect(amqp.ChannelClose, 1)


def test_a_close_of_the_connection_comes_behind_what_was_kept(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    deliver(broker, 2)
    broker.say(amqp.ConnectionClose(320, "shutdown"))
    assert takes(client, 2) == b"2"
    client.expect(amqp.ConnectionClose)


def test_the_gateways_own_close_comes_behind_it_too(pair: tuple[Talker, Talker], stage: Stage) -> None:
    """Of consumers that do not acknowledge the broker does not have it any more."""
    client, broker = pair
    for number in (2, 3):
        deliver(broker, number)
    fence(client, broker)
    stage.running.call(lambda: stage.running.gateway.drain(0))
    for number in (2, 3):
        assert takes(client, number) == b"%d" % number
    assert client.expect(amqp.ConnectionClose).reply_code == 320


def test_it_comes_when_the_broker_is_gone(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    deliver(broker, 2)
    fence(client, broker)
    broker.close()
    assert takes(client, 2) == b"2"
    assert client.expect(amqp.ConnectionClose).reply_code == 320


def test_a_channel_that_is_opened_again_is_not_stopped(pair: tuple[Talker, Talker]) -> None:
    client, broker = pair
    deliver(broker, 2)
    client.say(amqp.ChannelClose(200, "bye"), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelCloseOk, 1)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    consume(client, broker, "c")
    deliver(broker, 1)
    assert takes(client, 1) == b"1"


def test_deliveries_are_on_the_data_path_again_afterwards(pair: tuple[Talker, Talker], stage: Stage) -> None:
    client, broker = pair
    deliver(broker, 2)
    fence(client, broker)
    client.say(ON, 1)
    takes(client, 2)
    client.expect(amqp.ChannelFlowOk, 1)
    deliver(broker, 3)
    takes(client, 3)
    counters = stage.running.gateway.pump.counters
    before = stage.running.call(lambda: counters.upcalls)
    for number in range(4, 20):
        deliver(broker, number)
        takes(client, number)
    assert stage.running.call(lambda: counters.upcalls) == before


COMMANDS = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.sampled_from([0, 5, 9_000, "off", "on", "get"])), max_size=25
)


@given(commands=COMMANDS)
# Each example is a conversation over sockets: 30 take seconds.
@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_each_message_comes_once_and_in_order(stage: Stage, commands: list[tuple[int, int | str]]) -> None:
    """Whatever is stopped when: deliveries of two channels, none while its channel is stopped."""
    client, broker = stage.opened(channels=2, tune_ok=amqp.ConnectionTuneOk(2047, 4096, 0))
    stopped: set[int] = set()
    said: dict[int, list[int]] = {1: [], 2: []}
    heard: dict[int, list[int]] = {1: [], 2: []}
    try:
        for channel in (1, 2):
            consume(client, broker, "c", channel=channel)
        for channel, command in [*commands, (1, "on"), (2, "on")]:
            asked: list[amqp.ChannelFlowOk] = []
            if command == "get":
                # What is kept goes first, so the stop does not hold for that.
                said[channel].append(len(said[channel]) + 1)
                broker.content(amqp.BasicGetOk(len(said[channel])), b"got", channel=channel)
            elif isinstance(command, int):
                said[channel].append(len(said[channel]) + 1)
                deliver(broker, said[channel][-1], body=b"x" * command, channel=channel)
            elif command == "off" or channel in stopped:
                client.say(amqp.ChannelFlow(active=command == "on"), channel)
                asked.append(amqp.ChannelFlowOk(active=command == "on"))
                (stopped.add if command == "off" else stopped.discard)(channel)
            before = len(heard[channel])
            for fenced in (1, 2):
                client.say(amqp.BasicQos(prefetch_count=9), fenced)
                broker.expect(amqp.BasicQos, fenced)
                broker.say(amqp.BasicQosOk(), fenced)
            waits = 2
            while waits:
                number, method = client.hear()
                match method:
                    case amqp.BasicDeliver(delivery_tag=tag) | amqp.BasicGetOk(delivery_tag=tag):
                        client.content_of(method, number)
                        heard[number].append(tag)
                    case amqp.ChannelFlowOk():
                        assert (number, method) == (channel, asked.pop())
                    case _:
                        assert isinstance(method, amqp.BasicQosOk)
                        waits -= 1
            assert not asked
            if channel in stopped and command != "get":
                assert len(heard[channel]) == before
        assert heard == said
    finally:
        client.close()
        broker.close()

"""Subscriptions: what each command of class message does, and what the broker is asked for it."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10 import subscriptions as rules
from amqpgate.bridge.v0_10.frames import FromBroker
from amqpgate.bridge.v0_10.topology import KnownQueue
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import Map, Value
from tests.unit.bridge.v0_10.scripted import (
    Consumer,
    Stage,
    byte_credit,
    ids,
    messages,
    mode,
    plain_header,
    subscribe,
)

CREDIT, WINDOW = 0, 1
INFINITE = 0xFFFF_FFFF
EXPLICIT, NONE = 0, 1


def stage_with(*bodies: bytes, **more: object) -> Stage:
    """A subscription without credit for messages, and these in the queue."""
    stage = Stage()
    stage.publish(*bodies)
    stage.do(subscribe(**more), byte_credit())
    stage.take_asked()
    return stage


def names(stage: Stage) -> list[str]:
    return [method.NAME for method in stage.take_asked()]


def bodies(stage: Stage) -> list[bytes]:
    return [one.body for one in stage.client.transfers]


def refused(stage: Stage, *commands: Command) -> int:
    stage.do(*commands)
    assert stage.client.violation is not None
    return stage.client.violation.code


# subscribe


def test_subscribe_looks_for_the_queue_and_consumes_nothing() -> None:
    stage = Stage()
    stage.publish(b"1")
    stage.do(subscribe())
    assert names(stage) == ["channel.open", "queue.declare"]
    assert bodies(stage) == []


def test_transfer_has_the_modes_of_its_subscription() -> None:
    for accept_mode in (EXPLICIT, NONE):
        stage = stage_with(b"1", accept_mode=accept_mode)
        stage.do(messages(1))
        [transfer] = stage.client.transfers
        assert transfer.command == amqp10.MessageTransfer(b"d", accept_mode, 0)
        [delivery] = transfer.structs
        assert isinstance(delivery, amqp10.DeliveryProperties)
        assert (delivery.exchange, delivery.routing_key, delivery.redelivered) == (b"", b"q", False)


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (404, amqp10.MessageSubscribe(queue=b"other", destination=b"x")),
        (530, subscribe()),
        (540, subscribe(b"x", acquire_mode=1)),
        (540, subscribe(b"x", arguments=Map(((b"x-filter-jms-selector", Value(0x95, b"a = 1")),)))),
        (531, amqp10.MessageSubscribe(queue=b"", destination=b"x")),
        (404, amqp10.MessageFlow(destination=b"x", unit=0, value=1)),
        (404, amqp10.MessageStop(destination=b"x")),
        (404, amqp10.MessageFlush(destination=b"x")),
        (404, amqp10.MessageCancel(destination=b"x")),
        (404, amqp10.MessageSetFlowMode(destination=b"x", flow_mode=0)),
        (542, amqp10.MessageFlow(destination=b"d", unit=2, value=1)),
        (542, amqp10.MessageSetFlowMode(destination=b"d", flow_mode=2)),
        (540, amqp10.MessageResume(destination=b"d", resume_id=b"r")),
    ],
)
def test_what_is_refused(code: int, command: Command) -> None:
    assert refused(stage_with(), command) == code


def test_destination_may_be_empty_and_is_free_after_cancel() -> None:
    stage = Stage()
    stage.do(subscribe(b""), amqp10.MessageCancel(destination=None), subscribe(b""))
    assert stage.client.violation is None


def test_exclusive_consumes_at_once_and_once() -> None:
    stage = Stage()
    stage.publish(*[b"m"] * 3)
    stage.do(subscribe(exclusive=True))
    consumes = [method for method in stage.take_asked() if isinstance(method, amqp.BasicConsume)]
    assert [method.exclusive for method in consumes] == [True]
    assert bodies(stage) == []
    assert stage.do(byte_credit(), messages(2)) == [b"m", b"m"]
    assert names(stage) == []


def test_exclusive_is_refused_if_somebody_consumes() -> None:
    stage = stage_with()
    stage.queue.consumers.append(Consumer("theirs", 1))
    assert refused(stage, subscribe(b"x", exclusive=True)) == 405


def test_arguments_are_the_consumers() -> None:
    stage = Stage()
    stage.do(subscribe(arguments=Map(((b"x-priority", Value(0x21, 5)),))), byte_credit(), messages(1))
    [consume] = [method for method in stage.take_asked() if isinstance(method, amqp.BasicConsume)]
    [(name, argument)] = consume.arguments.entries
    assert (name, argument.value) == ("x-priority", 5)


def test_subscriptions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_SUBSCRIPTIONS", 3)
    stage = Stage()
    for number in range(3):
        stage.do(subscribe(b"%d" % number))
    assert refused(stage, subscribe(b"x")) == 506


# Credit and prefetch


@pytest.mark.parametrize("first", [messages(1), byte_credit(10)])
def test_nothing_is_consumed_before_both_units_have_credit(first: Command) -> None:
    stage = Stage()
    stage.publish(b"1")
    stage.do(subscribe())
    stage.take_asked()
    stage.do(first)
    assert names(stage) == []
    assert bodies(stage) == []


@pytest.mark.parametrize(
    ("credit", "prefetch"),
    [(1, 1), (7, 7), (256, 256), (257, 256), (INFINITE - 1, 256), (INFINITE, 1000), (None, 1000)],
)
def test_prefetch_is_the_first_credit(credit: int | None, prefetch: int) -> None:
    stage = stage_with()
    stage.do(amqp10.MessageFlow(destination=b"d", unit=0, value=credit))
    [qos, consume] = stage.take_asked()[-2:]
    assert qos == amqp.BasicQos(prefetch_count=prefetch)
    assert consume == amqp.BasicConsume(queue="q", consumer_tag="c1")


def test_window_comes_back_with_completion_alone() -> None:
    stage = stage_with(*[b"%d" % number for number in range(5)])
    assert stage.do(messages(2)) == [b"0", b"1"]
    stage.do(amqp10.MessageAccept(transfers=ids(0, 1)))
    assert len(bodies(stage)) == 2
    stage.complete(1)
    stage.hear()
    assert bodies(stage) == [b"0", b"1", b"2"]
    stage.complete(0, 2)
    stage.hear()
    assert bodies(stage) == [b"0", b"1", b"2", b"3", b"4"]


def test_credit_mode_gives_nothing_back() -> None:
    stage = stage_with(*[b"%d" % number for number in range(5)])
    assert stage.do(mode(CREDIT), messages(2)) == [b"0", b"1"]
    stage.complete(0, 1)
    stage.do(amqp10.MessageAccept(transfers=ids(0, 1)))
    assert len(bodies(stage)) == 2
    assert stage.do(messages(1)) == [b"2"]


@pytest.mark.parametrize("accept_mode", [EXPLICIT, NONE])
@pytest.mark.parametrize("flow_mode", [CREDIT, WINDOW])
def test_bytes_are_those_of_header_and_body(flow_mode: int, accept_mode: int) -> None:
    probe = stage_with(b"x" * 100)
    probe.do(messages(1))
    size = probe.client.transfers[0].size
    assert size > 100
    stage = Stage()
    stage.publish(*[b"x" * 100] * 4)
    stage.do(subscribe(accept_mode=accept_mode), mode(flow_mode), messages(INFINITE))
    assert len(stage.do(byte_credit(2 * size - 1))) == 1
    assert len(stage.do(byte_credit(1))) == 1
    stage.complete(0)
    stage.hear()
    assert len(bodies(stage)) == (3 if flow_mode == WINDOW else 2)


def test_message_larger_than_all_credit_waits_and_what_follows_it() -> None:
    stage = Stage()
    stage.publish(b"x" * 1000, b"y")
    stage.do(subscribe(), messages(2))
    assert stage.do(byte_credit(900)) == []
    assert stage.do(byte_credit(900)) == [b"x" * 1000, b"y"]


def test_what_is_not_complete_counts_after_stop_too() -> None:
    stage = stage_with(*[b"m"] * 9)
    stage.do(messages(3))
    assert stage.do(amqp10.MessageStop(destination=b"d"), byte_credit(), messages(4)) == [b"m"]
    stage.complete(0)
    stage.hear()
    assert len(bodies(stage)) == 5


def test_infinite_stays_until_stop() -> None:
    stage = stage_with()
    stage.do(messages(INFINITE), messages(1))
    assert len(stage.publish(*[b"m"] * 3)) == 3
    stage.do(amqp10.MessageStop(destination=b"d"))
    assert stage.publish(b"m") == []
    assert stage.do(byte_credit(), messages(1)) == [b"m"]


def test_client_that_accepts_nothing_gets_all_it_has_credit_for() -> None:
    stage = stage_with(*[b"m"] * 40)
    for _ in range(40):
        stage.do(mode(CREDIT), messages(1))
    assert len(bodies(stage)) == 40
    # Twice as large each time: 1, 2, 4, 8, 16, 32.
    consumes = [method for method in stage.take_asked() if isinstance(method, amqp.BasicConsume)]
    assert len(consumes) == 6
    assert len(stage.queue.consumers) == 1
    # What is ahead of the credit is never more than it had.
    assert len(stage.queue.unacked) <= 80


def test_next_consumer_is_there_before_the_last_one_ends() -> None:
    stage = stage_with(b"1", b"2")
    stage.do(mode(CREDIT), messages(1))
    stage.take_asked()
    assert stage.do(messages(1)) == [b"2"]
    assert names(stage) == ["basic.qos", "basic.consume", "basic.cancel"]


def test_client_that_settles_keeps_its_consumer() -> None:
    stage = stage_with(*[b"m"] * 20)
    for number in range(20):
        assert stage.do(mode(CREDIT), messages(1)) == [b"m"]
        stage.do(amqp10.MessageAccept(transfers=ids(number)))
    assert names(stage).count("basic.consume") == 1


def test_accepted_by_the_gateway_if_nobody_accepts() -> None:
    stage = stage_with(*[b"m"] * 5, accept_mode=NONE)
    assert stage.do(mode(CREDIT), messages(3)) == [b"m"] * 3
    assert stage.queue.accepted == [1, 2, 3]
    assert stage.do(messages(2)) == [b"m"] * 2
    assert names(stage).count("basic.consume") == 1
    # They are nobody's any more.
    stage.do(amqp10.MessageRelease(transfers=ids(0, 4)))
    assert (stage.queue.accepted, stage.queue.ready) == ([1, 2, 3, 4, 5], [])


# stop, cancel


def test_what_comes_after_stop_is_held() -> None:
    stage = stage_with()
    stage.do(messages(3))
    stage.do(amqp10.MessageStop(destination=b"d"))
    assert stage.publish(b"1", b"2", b"3", b"4") == []
    assert len(stage.queue.unacked) == 3
    assert stage.do(byte_credit(), messages(2)) == [b"1", b"2"]


def test_cancel_gives_back_what_was_held_in_its_order() -> None:
    stage = stage_with()
    stage.do(messages(3))
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.publish(b"1", b"2", b"3", b"4")
    stage.take_asked()
    stage.do(amqp10.MessageCancel(destination=b"d"))
    assert stage.take_asked() == [
        amqp.BasicCancel("c1"),
        *[amqp.BasicReject(tag, requeue=True) for tag in (1, 2, 3)],
    ]
    assert [message.body for message in stage.queue.ready] == [b"1", b"2", b"3", b"4"]


def test_what_was_sent_before_cancel_is_still_the_clients() -> None:
    stage = stage_with(b"1", b"2")
    stage.do(messages(2))
    stage.do(amqp10.MessageCancel(destination=b"d"))
    stage.do(amqp10.MessageAccept(transfers=ids(0)), amqp10.MessageReject(transfers=ids(1)))
    assert (stage.queue.accepted, stage.queue.rejected) == ([1], [2])


def test_nothing_is_sent_after_cancel_and_what_is_on_its_way_goes_back() -> None:
    stage = stage_with()
    stage.do(messages(3))
    stage.say(amqp10.MessageCancel(destination=b"d"))
    stage.queue.publish(b"late")
    stage.hear()
    assert bodies(stage) == []
    [message] = stage.queue.ready
    stage.queue.unacked[99] = message, None
    deliver = amqp.BasicDeliver("c1", 99, False, "", "q")
    stage.said.append((2, FromBroker(2, deliver, plain_header(b"late"), b"late")))
    stage.hear()
    assert stage.take_asked()[-1] == amqp.BasicReject(99, requeue=True)


# flush


def test_flush_at_once_gets_and_consumes_nothing() -> None:
    stage = stage_with(b"1", b"2", b"3")
    assert stage.do(messages(2), amqp10.MessageFlush(destination=b"d")) == [b"1", b"2"]
    assert names(stage) == ["channel.open", "basic.get", "basic.get"]
    assert [message.body for message in stage.queue.ready] == [b"3"]


def test_flush_consumes_of_a_queue_that_has_nothing_to_be_got() -> None:
    """A quorum queue with a single active consumer. The consumer is there until the flush is complete."""
    stage = Stage(has_nacks=True, has_single_active=True)
    stage.publish(b"1", b"2", b"3")
    stage.do(subscribe(), mode(CREDIT), byte_credit())
    stage.take_asked()
    assert stage.do(messages(2), amqp10.MessageFlush(destination=b"d")) == [b"1", b"2"]
    assert len(stage.queue.consumers) == 0
    assert "queue.declare" in names(stage)
    assert stage.do(byte_credit(), messages(2), amqp10.MessageFlush(destination=b"d")) == [b"3"]
    assert len(stage.queue.consumers) == 0
    # What it is is asked for once.
    assert "queue.declare" not in names(stage)
    stage.publish(b"4")
    assert [message.body for message in stage.queue.ready] == [b"4"]


def test_flush_consumes_nothing_of_a_queue_of_which_it_may_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """An auto-delete queue would go with the consumer."""
    stage = Stage(has_nacks=True)
    hear = stage.queue.hear

    def denied(channel: int, method: Method) -> None:
        if isinstance(method, amqp.QueueDeclare) and not method.passive:
            close = amqp.ChannelClose(403, "ACCESS_REFUSED", 50, 10)
            stage.said.append((channel, FromBroker(channel, close)))
        else:
            hear(channel, method)

    monkeypatch.setattr(stage.queue, "hear", denied)
    stage.publish(b"1", b"2")
    stage.do(subscribe(), byte_credit())
    stage.take_asked()
    assert stage.do(messages(2), amqp10.MessageFlush(destination=b"d")) == [b"1", b"2"]
    assert "basic.consume" not in names(stage)


def test_flush_of_an_empty_queue_takes_the_credit() -> None:
    stage = stage_with()
    assert stage.do(messages(2), amqp10.MessageFlush(destination=b"d")) == []
    assert stage.publish(b"1") == []
    assert stage.do(byte_credit(), messages(1)) == [b"1"]


def test_flush_without_credit_asks_nothing() -> None:
    stage = stage_with(b"1")
    assert stage.do(amqp10.MessageFlush(destination=b"d")) == []
    assert names(stage) == []


def test_flush_waits_for_what_is_on_its_way() -> None:
    stage = Stage(is_lazy=True)
    stage.do(subscribe(), byte_credit(), messages(5))
    stage.take_asked()
    stage.queue.publish(b"1")
    flush = stage.say(amqp10.MessageFlush(destination=b"d"))
    # The queue's answer comes before the delivery.
    stage.hear(1)
    assert bodies(stage) == []
    assert flush not in stage.client.finished
    stage.hear()
    assert bodies(stage) == [b"1"]
    assert flush in stage.client.finished
    assert names(stage) == [*["queue.declare", "basic.qos"] * 2, "basic.get", "basic.qos"]


@pytest.mark.parametrize("more", [[b"3"], [b"3", b"4"], [b"3", b"4", b"5", b"6"]])
def test_flush_waits_for_what_settlements_make_the_queue_give(more: list[bytes]) -> None:
    """It was full, and the queue answers before it looks at settlements."""
    stage = Stage(is_lazy=True)
    stage.do(subscribe(), mode(CREDIT), byte_credit(), messages(2))
    for body in (b"1", b"2", *more):
        stage.queue.publish(body)
    stage.hear()
    assert bodies(stage) == [b"1", b"2"]
    stage.say(amqp10.MessageAccept(transfers=ids(0, 1)))
    stage.take_asked()
    assert stage.do(byte_credit(), messages(9), amqp10.MessageFlush(destination=b"d")) == more
    # Nothing is got before: what a queue gives to a consumer is older, and RabbitMQ's give 200 at once.
    assert names(stage)[:3] == ["queue.declare", "queue.declare", "basic.qos"]


@pytest.mark.parametrize("accept_mode", [EXPLICIT, NONE])
def test_flush_waits_for_what_the_queue_gives_before_it_is_found_empty(
    accept_mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes behind the answer to basic.get."""
    stage = Stage(is_lazy=True)
    stage.do(subscribe(accept_mode=accept_mode), byte_credit(), messages(2))
    hear, coming = stage.queue.hear, [b"1"]

    def asked(channel: int, method: Method) -> None:
        if isinstance(method, amqp.BasicGet) and coming:
            stage.queue.publish(coming.pop())
        hear(channel, method)

    monkeypatch.setattr(stage.queue, "hear", asked)
    flush = stage.say(amqp10.MessageFlush(destination=b"d"))
    found: list[bool] = []
    stage.client.on_transfer = lambda _: found.append(flush in stage.client.finished)
    stage.hear()
    assert bodies(stage) == [b"1"]
    assert found == [False]


def test_flush_gets_nothing_before_what_is_on_its_way() -> None:
    stage = Stage(is_lazy=True)
    stage.do(subscribe(), byte_credit(), messages(1))
    for body in (b"1", b"2", b"3"):
        stage.queue.publish(body)
    assert stage.do(messages(4), amqp10.MessageFlush(destination=b"d")) == [b"1", b"2", b"3"]


def test_flush_waits_no_more_for_a_consumer_that_became_full() -> None:
    stage = Stage(is_lazy=True)
    stage.do(subscribe(), mode(CREDIT), byte_credit(), messages(2))
    for body in (b"1", b"2", b"3", b"4"):
        stage.queue.publish(body)
    stage.take_asked()
    assert stage.do(messages(9), amqp10.MessageFlush(destination=b"d")) == [b"1", b"2", b"3", b"4"]
    assert names(stage) == ["queue.declare", "basic.qos", *["basic.get"] * 3]


def test_accepting_what_came_behind_a_message_that_was_got_does_not_accept_that_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a quorum queue does it: it gives to a consumer that has room again, and the channel hears of that
    only after it has answered basic.get. So what was got has the lowest tag, and is the youngest message.
    """
    stage = Stage(is_lazy=True)
    stage.do(subscribe(), mode(CREDIT), byte_credit(), messages(2))
    hear = stage.queue.hear

    def asked(channel: int, method: Method) -> None:
        if isinstance(method, amqp.BasicGet):
            for body in (b"1", b"2", b"3"):
                stage.queue.publish(body)
        hear(channel, method)

    monkeypatch.setattr(stage.queue, "hear", asked)
    assert stage.do(amqp10.MessageFlush(destination=b"d")) == [b"1", b"2"]
    stage.do(amqp10.MessageAccept(transfers=ids(0, 1)))
    assert stage.queue.accepted == [1, 2]
    assert [message.body for message, _ in stage.queue.unacked.values()] == [b"3"]
    assert stage.do(byte_credit(), messages(1)) == [b"3"]
    stage.do(amqp10.MessageAccept(transfers=ids(2)))
    assert stage.queue.accepted == [1, 2, 3]


def test_flush_gets_nothing_before_what_settlements_that_wait_make_a_queue_give() -> None:
    """A quorum queue is told of few settlements at once. What it gives for these is older than what
    basic.get answers, what it gives for the others is younger, and all of it may come behind the answer.
    """
    stage = Stage(is_lazy=True, soft_limit=2)
    stage.do(subscribe(), mode(CREDIT), byte_credit(), messages(4))
    numbers = [b"%02d" % number for number in range(1, 13)]
    assert stage.publish(*numbers) == numbers[:4]
    got = [amqp10.MessageAccept(transfers=ids(number)) for number in range(4)]
    assert stage.do(*got, messages(8), amqp10.MessageFlush(destination=b"d")) == numbers[4:]


def test_flush_gives_back_what_may_be_older_than_what_has_come() -> None:
    """There is no second exclusive consumer, for which no settlement would wait."""
    stage = Stage(is_lazy=True, soft_limit=2)
    stage.do(subscribe(exclusive=True), mode(CREDIT), byte_credit(), messages(2000))
    numbers = [b"%04d" % number for number in range(1, 2005)]
    assert stage.publish(*numbers) == numbers[:2000]
    accepts = [amqp10.MessageAccept(transfers=ids(number)) for number in range(4)]
    flush = amqp10.MessageFlush(destination=b"d")
    assert stage.do(*accepts, messages(3), flush) == [b"2001", b"2002", b"2004"]
    assert stage.do(byte_credit(), messages(3), flush) == [b"2003"]
    [delivery] = stage.client.transfers[-1].structs
    assert isinstance(delivery, amqp10.DeliveryProperties)
    assert delivery.redelivered


def test_flush_takes_what_is_held_and_then_what_the_prefetch_does_not_let_through() -> None:
    stage = stage_with()
    stage.do(mode(CREDIT), messages(2))
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.publish(b"1", b"2", b"3", b"4")
    got = stage.do(byte_credit(), messages(9), amqp10.MessageFlush(destination=b"d"))
    assert got == [b"1", b"2", b"3", b"4"]


def test_flush_leaves_what_does_not_fit() -> None:
    stage = Stage()
    stage.publish(b"x" * 500)
    stage.do(subscribe(), byte_credit(100), messages(1), amqp10.MessageFlush(destination=b"d"))
    assert bodies(stage) == []
    assert stage.do(byte_credit(), messages(1)) == [b"x" * 500]


def test_what_comes_before_the_answer_to_cancel_is_sent_within_the_credit() -> None:
    stage = stage_with(b"1", b"2", b"3")
    # The broker has heard of the consumer when the client cancels it.
    stage.say(mode(CREDIT), messages(2))
    stage.hear(4)
    stage.say(amqp10.MessageCancel(destination=b"d"))
    stage.hear()
    assert bodies(stage) == [b"1", b"2"]
    assert [message.body for message in stage.queue.ready] == [b"3"]


def test_what_comes_behind_the_answer_to_cancel_is_sent_too() -> None:
    stage = Stage(is_lazy=True)
    stage.do(subscribe(), byte_credit(), messages(2))
    stage.queue.publish(b"1")
    stage.do(amqp10.MessageCancel(destination=b"d"))
    assert bodies(stage) == [b"1"]
    assert names(stage)[-2:] == ["basic.cancel", "basic.qos"]


def known_queue(stage: Stage, *, auto_delete: bool) -> None:
    stage.link.topology.put_queue("q", KnownQueue(False, False, auto_delete, None, None))


def test_last_cancel_deletes_an_auto_delete_queue_that_never_had_a_consumer() -> None:
    stage = Stage()
    known_queue(stage, auto_delete=True)
    stage.do(subscribe(), subscribe(b"e"))
    stage.do(amqp10.MessageCancel(destination=b"d"))
    stage.take_asked()
    stage.do(amqp10.MessageCancel(destination=b"e"))
    assert stage.take_asked() == [amqp.QueueDelete(queue="q", if_unused=True)]


@pytest.mark.parametrize("auto_delete", [True, False])
def test_cancel_deletes_nothing_that_is_to_stay_or_that_the_broker_deletes(auto_delete: bool) -> None:
    stage = Stage()
    known_queue(stage, auto_delete=auto_delete)
    stage.do(subscribe())
    if auto_delete:
        stage.do(byte_credit(), messages(1))
    stage.do(amqp10.MessageCancel(destination=b"d"))
    assert "queue.delete" not in names(stage)


@pytest.mark.parametrize(("auto_delete", "deletes"), [(True, 1), (False, 0)])
def test_end_of_the_session_is_the_end_of_its_subscriptions(auto_delete: bool, deletes: int) -> None:
    stage = Stage()
    known_queue(stage, auto_delete=auto_delete)
    stage.do(subscribe())
    stage.take_asked()
    stage.end()
    assert names(stage).count("queue.delete") == deletes
    assert not stage.link.subscribers.has("q")


@pytest.mark.parametrize("first", [True, False])
def test_exclusive_subscription_is_the_only_one(first: bool) -> None:
    stage = Stage()
    stage.do(subscribe(exclusive=first))
    assert refused(stage, subscribe(b"e", exclusive=not first)) == 405


def test_message_costs_as_many_bytes_as_with_qpidd() -> None:
    stage = stage_with(b"abcdefgh", b"abcdefgh")
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.do(mode(CREDIT), byte_credit(2 * 19 - 1), messages(9))
    assert bodies(stage) == [b"abcdefgh"]
    stage.do(byte_credit(1))
    assert bodies(stage) == [b"abcdefgh"] * 2


# accept, release, reject, acquire


def test_what_is_released_without_credit_is_for_others() -> None:
    stage = stage_with(b"1", b"2")
    known_queue(stage, auto_delete=False)
    stage.do(messages(2))
    stage.do(amqp10.MessageAccept(transfers=ids(0)))
    stage.take_asked()
    stage.do(amqp10.MessageRelease(transfers=ids(1)))
    assert names(stage) == ["basic.cancel", "basic.reject"]
    stage.do(subscribe(b"e"), byte_credit(name=b"e"))
    assert stage.do(messages(1, b"e")) == [b"2"]
    # With credit there is a consumer again.
    stage.complete(0, 1)
    stage.hear()
    assert stage.publish(b"3") == [b"3"]


def test_only_what_the_client_has_tried_counts_as_its_failure() -> None:
    """With RabbitMQ 4 a message that is rejected is gone after some rounds; what is given back is not."""
    stage = Stage(has_nacks=True)
    known_queue(stage, auto_delete=False)
    stage.do(subscribe(), byte_credit(), messages(4))
    stage.publish(b"1", b"2")
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.publish(b"3", b"4")
    stage.take_asked()
    stage.do(amqp10.MessageRelease(transfers=ids(0)))
    assert stage.take_asked() == [
        amqp.BasicCancel("c1"),
        *[amqp.BasicNack(tag, requeue=True) for tag in (1, 3, 4)],
    ]
    stage.do(amqp10.MessageRelease(transfers=ids(1), set_redelivered=True))
    assert stage.take_asked() == [amqp.BasicReject(2, requeue=True)]


def test_what_is_released_with_credit_may_come_again() -> None:
    stage = stage_with(b"1")
    known_queue(stage, auto_delete=False)
    stage.do(messages(2))
    assert stage.do(amqp10.MessageRelease(transfers=ids(0))) == [b"1"]
    assert "basic.cancel" not in names(stage)


def test_released_message_of_an_auto_delete_queue_does_not_cost_it() -> None:
    stage = stage_with(b"1")
    known_queue(stage, auto_delete=True)
    stage.do(messages(1))
    stage.take_asked()
    stage.do(amqp10.MessageRelease(transfers=ids(0)))
    assert names(stage) == ["basic.reject"]


def test_oldest_are_accepted_at_once_the_others_one_by_one() -> None:
    stage = stage_with(*[b"m"] * 6)
    stage.do(messages(6))
    stage.take_asked()
    stage.do(amqp10.MessageAccept(transfers=SequenceSet(((0, 2), (4, 4)))))
    assert stage.take_asked() == [amqp.BasicAck(3, multiple=True), amqp.BasicAck(5)]
    stage.do(amqp10.MessageAccept(transfers=ids(0, 5)))
    assert stage.take_asked() == [amqp.BasicAck(6, multiple=True)]


def test_what_is_held_is_not_accepted_with_the_others() -> None:
    stage = stage_with(b"1", b"2", b"3")
    stage.do(subscribe(b"e"), byte_credit(name=b"e"), messages(3, b"e"))
    stage.do(amqp10.MessageRelease(transfers=ids(0, 2)), amqp10.MessageStop(destination=b"e"))
    stage.do(messages(3))
    stage.do(amqp10.MessageAccept(transfers=ids(0, 9)))
    left = {message.position for message, _ in stage.queue.unacked.values()}
    assert left | set(stage.queue.accepted) | {message.position for message in stage.queue.ready} == {1, 2, 3}
    assert len(stage.queue.accepted) == len(bodies(stage)) - 3


def test_released_come_again_in_order_before_what_was_held() -> None:
    stage = stage_with(*[b"%d" % number for number in range(6)])
    stage.do(messages(4))
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.do(amqp10.MessageAccept(transfers=ids(0, 1)))
    # 4 and 5 are held now.
    assert len(stage.queue.unacked) == 4
    stage.do(amqp10.MessageRelease(transfers=ids(2, 3), set_redelivered=True))
    stage.complete(0, 1, 2, 3)
    assert stage.do(byte_credit(), messages(4)) == [b"2", b"3", b"4", b"5"]
    redelivered = [transfer.structs[0].redelivered for transfer in stage.client.transfers[4:]]  # type: ignore[attr-defined]
    assert redelivered == [True] * 4


def test_rejected_do_not_come_again() -> None:
    stage = stage_with(b"1", b"2")
    stage.do(messages(1))
    stage.complete(0)
    stage.do(amqp10.MessageReject(transfers=ids(0), code=1))
    stage.hear()
    assert (stage.queue.rejected, bodies(stage)) == ([1], [b"1", b"2"])


def test_all_that_is_sent_is_acquired() -> None:
    stage = stage_with(b"1")
    stage.do(messages(1))
    stage.do(amqp10.MessageAcquire(transfers=ids(0)))
    [result] = stage.client.results
    assert isinstance(result, amqp10.ExecutionResult)
    assert result.value == amqp10.Acquired(transfers=SequenceSet()).encode()


def test_ids_start_anew_after_the_last_one() -> None:
    stage = Stage(first_id=0xFFFF_FFFE)
    stage.publish(*[b"m"] * 4)
    stage.do(subscribe(), byte_credit(), messages(4))
    stage.do(amqp10.MessageAccept(transfers=ids(0xFFFF_FFFE, 0)))
    assert stage.queue.accepted == [1, 2, 3]


# A queue that is deleted


def test_deleted_queue_is_an_error_with_credit() -> None:
    stage = stage_with()
    stage.do(messages(1))
    stage.queue.delete()
    stage.hear()
    assert stage.client.violation is not None
    assert stage.client.violation.code == 408


def test_deleted_queue_is_none_without_and_cancel_is_quiet() -> None:
    stage = stage_with()
    stage.do(messages(1), amqp10.MessageStop(destination=b"d"))
    stage.do(byte_credit())
    stage.queue.delete()
    stage.hear()
    stage.do(amqp10.MessageCancel(destination=b"d"))
    assert stage.client.violation is None


def test_deleted_queue_is_an_error_once_there_is_credit() -> None:
    stage = stage_with()
    stage.do(messages(1))
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.queue.delete()
    stage.hear()
    assert stage.client.violation is None
    assert refused(stage, byte_credit(), messages(1)) == 408


# Bounds


def test_nobody_has_more_than_so_many_unsettled() -> None:
    stage = stage_with(*[b"%d" % number for number in range(rules.MOST_UNSETTLED + 10)])
    stage.do(mode(CREDIT), messages(INFINITE))
    assert len(bodies(stage)) == rules.MOST_UNSETTLED
    assert stage.do(amqp10.MessageAccept(transfers=ids(0, 3))) == [b"5000", b"5001", b"5002", b"5003"]


def test_nobody_has_more_than_so_many_in_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_UNCOMPLETED", 20)
    stage = stage_with(*[b"m"] * 30, accept_mode=NONE)
    stage.do(messages(25))
    assert len(bodies(stage)) == 20
    stage.complete(4, 5)
    stage.hear()
    assert len(bodies(stage)) == 22


def test_held_bytes_are_bounded_and_what_is_shed_comes_again_in_order() -> None:
    stage = stage_with()
    stage.do(mode(CREDIT), messages(200))
    stage.do(amqp10.MessageStop(destination=b"d"))
    large = [b"%03d" % number + bytes(50_000) for number in range(200)]
    stage.publish(*large)
    subscriptions = stage.session._commands.subscriptions
    [subscription] = subscriptions._by_name.values()
    held = sum(len(delivery.body) for delivery in (*subscription.held, *subscription.shed))
    assert rules.MOST_HELD // 2 < held <= rules.MOST_HELD
    assert len(subscription.held) + len(subscription.shed) == 200
    got = [one for _ in range(5) for one in stage.do(byte_credit(), messages(40))]
    assert [body[:3] for body in got] == [body[:3] for body in large]


def test_one_message_is_held_however_large() -> None:
    stage = stage_with()
    stage.do(messages(2))
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.publish(bytes(rules.MOST_HELD * 2), b"next")
    assert [len(body) for body in stage.do(byte_credit(), messages(2))] == [rules.MOST_HELD * 2, 4]


def test_shed_message_that_does_not_fit_does_not_go_round_and_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_HELD", 100)
    stage = stage_with()
    stage.do(mode(CREDIT), messages(3))
    stage.do(amqp10.MessageStop(destination=b"d"))
    stage.publish(b"1", bytes(1000), b"3")
    stage.take_asked()
    # Enough for the first one alone.
    assert stage.do(byte_credit(200), messages(3)) == [b"1"]
    assert names(stage) == []
    assert [len(body) for body in stage.do(byte_credit(2000))] == [1000, 1]


@pytest.mark.parametrize("settle", [amqp10.MessageAccept, amqp10.MessageRelease, amqp10.MessageReject])
def test_ranges_of_a_client_cost_what_it_has(settle: type[Command]) -> None:
    stage = stage_with(*[b"m"] * 10)
    stage.do(mode(CREDIT), messages(10))
    everything = SequenceSet(((0, 0x7FFF_FFFF),))
    many = SequenceSet(tuple((at, at) for at in range(1, 16_000, 2)))
    stage.take_asked()
    stage.do(settle(transfers=many))
    assert len(stage.take_asked()) == 5
    stage.do(settle(transfers=everything))
    # What was released is held again, and goes back with the others.
    told = {amqp10.MessageAccept: 1, amqp10.MessageRelease: 10, amqp10.MessageReject: 5}
    assert len(stage.take_asked()) == told[settle]
    # Nothing of it is known any more, and ids that are not known are passed over.
    for ids_ in (everything, many, ids(99), SequenceSet(), None):
        stage.do(settle(transfers=ids_))
    assert stage.take_asked() == []
    assert stage.client.violation is None


def test_each_settled_alone_in_any_order() -> None:
    count = 3000
    stage = stage_with(*[b"m"] * count)
    stage.do(mode(CREDIT), messages(INFINITE))
    stage.do(*[amqp10.MessageAccept(transfers=ids(at)) for at in (*range(1, count, 2), *range(0, count, 2))])
    assert sorted(stage.queue.accepted) == list(range(1, count + 1))


# Transactions: a rollback makes the broker forget what it was told.


def test_what_nobody_asked_for_waits_for_the_end_of_a_transaction() -> None:
    stage = stage_with(*[b"m"] * 4, accept_mode=NONE)
    settling = stage.session._commands.subscriptions.settling
    settling.begin_transactions()
    assert stage.do(mode(CREDIT), messages(2)) == [b"m"] * 2
    stage.do(amqp10.MessageCancel(destination=b"d"))
    assert stage.queue.accepted == []
    assert stage.session._commands.subscriptions.end_transaction()
    stage.say()
    assert stage.queue.accepted == [1, 2]
    assert not stage.session._commands.subscriptions.end_transaction()

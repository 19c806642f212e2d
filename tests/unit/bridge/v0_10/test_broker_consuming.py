"""What a 0-10 broker delivers: credit, deliveries, acknowledgements, basic.get."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.broker_consumer import MOST_OUT, UNLIMITED
from amqpgate.bridge.v0_10.broker_consuming import MOST_GETS
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode, CreditUnit, FlowMode
from amqpgate.wire.v0_10.codec import encode_struct32
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.support.talk_0_10 import control
from tests.unit.bridge.v0_10.broker_lab import BrokerLab, Heard, queue

BYTES = amqp10.MessageFlow(b"tag", CreditUnit.BYTE, UNLIMITED)


def lab(**kwargs) -> BrokerLab:
    return BrokerLab(**kwargs).login().open()


def consuming(prefetch: int = 0, *, no_ack: bool = False) -> BrokerLab:
    made = lab()
    if prefetch:
        assert made.call(amqp.BasicQos(prefetch_count=prefetch)) == amqp.BasicQosOk()
    consume = amqp.BasicConsume(queue="q", consumer_tag="tag", no_ack=no_ack)
    assert made.call(consume) == amqp.BasicConsumeOk("tag")
    return made


def credit(count: int) -> amqp10.MessageFlow:
    return amqp10.MessageFlow(b"tag", CreditUnit.MESSAGE, count)


def ids(*numbers: int) -> SequenceSet:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return SequenceSet(tuple(ranges))


@pytest.mark.parametrize(
    ("prefetch", "no_ack", "mode", "granted"),
    [
        (0, False, AcceptMode.EXPLICIT, MOST_OUT),
        (10, False, AcceptMode.EXPLICIT, 10),
        (0, True, AcceptMode.NONE, UNLIMITED),
        (10, True, AcceptMode.NONE, UNLIMITED),
    ],
)
def test_a_consumer_is_a_subscription_with_credit(
    prefetch: int, no_ack: bool, mode: AcceptMode, granted: int
) -> None:
    made = consuming(prefetch, no_ack=no_ack)
    assert made.commands() == [
        amqp10.MessageSubscribe(b"q", b"tag", mode, 0),
        amqp10.MessageSetFlowMode(b"tag", FlowMode.CREDIT),
        BYTES,
        credit(granted),
    ]


def test_no_message_may_come_before_consume_ok() -> None:
    made = lab(is_live=False)
    assert made.say(1, amqp.BasicConsume(queue="q", consumer_tag="tag")) == []
    assert [asked.command.NAME for asked in made.asked] == ["message.subscribe", "message.set-flow-mode"]
    assert made.finish(0, 1) == [Heard(1, amqp.BasicConsumeOk("tag"))]
    assert [asked.command for asked in made.asked][2:] == [BYTES, credit(MOST_OUT)]


def test_a_tag_is_made_up_and_one_in_use_is_refused() -> None:
    made = lab()
    tag = made.call(amqp.BasicConsume(queue="q")).consumer_tag
    assert tag.startswith("amq.ctag-")
    close = made.call(amqp.BasicConsume(queue="q", consumer_tag=tag))
    assert (close.reply_code, close.class_id, close.method_id) == (530, 60, 20)


def test_a_transfer_is_a_delivery() -> None:
    made = consuming()
    delivery = amqp10.DeliveryProperties(
        redelivered=True, priority=3, delivery_mode=2, exchange=b"amq.topic", routing_key=b"a.b"
    )
    content = amqp10.MessageProperties(content_length=1234, content_type=b"text/plain")
    heard = made.transfer("tag", b"x" * 200_000, delivery, content)
    assert heard == [
        Heard(
            1,
            amqp.BasicDeliver("tag", 1, redelivered=True, exchange="amq.topic", routing_key="a.b"),
            amqp.BasicProperties(content_type="text/plain", delivery_mode=2, priority=3),
            b"x" * 200_000,
        )
    ]
    assert made.transfer("tag")[0].method.delivery_tag == 2


def test_acknowledgements_are_said_once_a_turn_and_give_credit_back() -> None:
    made = consuming(5)
    for _ in range(5):
        made.transfer("tag", b"x")
    made.commands()
    assert made.say(1, amqp.BasicAck(1), amqp.BasicAck(3), amqp.BasicAck(2)) == []
    assert made.commands() == [amqp10.MessageAccept(ids(0, 1, 2)), credit(3)]
    made.say(1, amqp.BasicAck(5, multiple=True))
    assert made.commands() == [amqp10.MessageAccept(ids(3, 4)), credit(2)]


def test_credit_of_a_consumer_without_prefetch_comes_back_by_and_by() -> None:
    made = consuming()
    for _ in range(3):
        made.transfer("tag", b"x")
    made.commands()
    made.say(1, amqp.BasicAck(0, multiple=True))
    assert made.commands() == [amqp10.MessageAccept(ids(0, 1, 2))]


@pytest.mark.parametrize(
    ("method", "command"),
    [
        (amqp.BasicNack(2, multiple=True, requeue=True), amqp10.MessageRelease(ids(0, 1), True)),
        (amqp.BasicNack(2, requeue=False), amqp10.MessageReject(ids(1), 0)),
        (amqp.BasicReject(1, requeue=True), amqp10.MessageRelease(ids(0), True)),
        (amqp.BasicReject(1), amqp10.MessageReject(ids(0), 0)),
        (amqp.BasicRecoverAsync(requeue=True), amqp10.MessageRelease(ids(0, 1, 2), True)),
    ],
)
def test_what_is_refused_is_released_or_rejected(method, command) -> None:
    made = consuming(3)
    for _ in range(3):
        made.transfer("tag", b"x")
    made.commands()
    assert made.say(1, method) == []
    (first, second) = made.commands()
    assert first == command
    assert second == credit(sum(upper - lower + 1 for lower, upper in command.transfers.ranges))


def test_recover_is_answered_and_needs_requeue() -> None:
    made = consuming()
    assert made.call(amqp.BasicRecover(requeue=True)) == amqp.BasicRecoverOk()
    close = made.call(amqp.BasicRecover())
    assert (close.reply_code, close.class_id, close.method_id) == (540, 60, 110)


@pytest.mark.parametrize(
    "method", [amqp.BasicAck(7), amqp.BasicAck(7, multiple=True), amqp.BasicAck(0), amqp.BasicNack(7)]
)
def test_an_unknown_tag_closes_the_channel(method) -> None:
    made = consuming()
    made.transfer("tag")
    close = made.call(method)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, method.METHOD_ID)


def test_cancel_is_answered_when_nothing_more_can_come() -> None:
    made = consuming()
    made.transfer("tag")
    made.is_live = False
    made.commands()
    assert made.say(1, amqp.BasicCancel("tag")) == []
    # On its way already.
    assert made.transfer("tag")[0].method.delivery_tag == 2
    cancel = made.asked[0]
    assert cancel.command == amqp10.MessageCancel(b"tag")
    assert cancel.sync
    assert made.finish(cancel.command_id) == [Heard(1, amqp.BasicCancelOk("tag"))]
    # What was delivered may still be acknowledged.
    made.commands()
    assert made.say(1, amqp.BasicAck(2, multiple=True)) == []
    assert made.commands() == [amqp10.MessageAccept(ids(0, 1))]


def test_a_message_for_nobody_goes_back() -> None:
    made = consuming()
    made.commands()
    assert made.transfer("somebody") == []
    assert made.commands() == [amqp10.MessageRelease(ids(0))]


def test_cancel_of_what_is_not_there_is_no_error() -> None:
    made = lab()
    assert made.call(amqp.BasicCancel("tag")) == amqp.BasicCancelOk("tag")
    assert made.asked == []


def test_channel_flow_takes_credit_away_and_gives_it_back() -> None:
    made = consuming(5)
    made.transfer("tag")
    made.transfer("tag")
    made.commands()
    assert made.call(amqp.ChannelFlow(active=False)) == amqp.ChannelFlowOk(active=False)
    assert made.commands() == [amqp10.MessageStop(b"tag")]
    made.say(1, amqp.BasicAck(1))
    assert made.commands() == [amqp10.MessageAccept(ids(0))]
    assert made.call(amqp.ChannelFlow(active=True)) == amqp.ChannelFlowOk(active=True)
    assert made.commands() == [amqp10.MessageStop(b"tag"), BYTES, credit(4)]


def test_every_transfer_is_complete_at_once() -> None:
    made = consuming()
    for _ in range(3):
        made.transfer("tag")
    asked = []
    made.session().sender.completed(amqp10.SessionCompleted(commands=ids(0, 1)))
    asked.append(len(made.session().sender._outstanding))
    # The broker flushes, as qpidd does before its first transfer.
    made.translator.from_peer(b"")
    made.translator.from_peer(control(amqp10.SessionFlush(completed=True)))
    made.settle()
    assert asked == [1]
    assert len(made.session().sender._outstanding) == 0


# -- basic.get


def get(
    made: BrokerLab, body: bytes | None, *, no_ack: bool = False, left: int = 0, auto_delete: bool = False
) -> list[Heard]:
    made.is_live = False
    made.commands()
    assert made.say(1, amqp.BasicGet(queue="q", no_ack=no_ack)) == []
    *_, flush, query = made.asked
    assert query.sync
    assert isinstance(flush.command, amqp10.MessageFlush)
    destination = flush.command.destination
    if body is not None:
        assert made.transfer(destination.decode(), body) == []
    known = queue(b"q", left, auto_delete=auto_delete)
    result = amqp10.ExecutionResult(query.command_id, encode_struct32(known))
    assert made.tell(result) == []
    return made.finish(0, query.command_id)


def test_get_of_an_empty_queue() -> None:
    made = lab()
    assert get(made, None) == [Heard(1, amqp.BasicGetEmpty())]
    subscribe, mode, in_bytes, messages, flush, query, cancel = made.commands()
    name = subscribe.destination
    assert subscribe == amqp10.MessageSubscribe(b"q", name, AcceptMode.EXPLICIT, 0)
    assert mode == amqp10.MessageSetFlowMode(name, FlowMode.CREDIT)
    assert in_bytes == amqp10.MessageFlow(name, CreditUnit.BYTE, UNLIMITED)
    assert messages == amqp10.MessageFlow(name, CreditUnit.MESSAGE, 1)
    assert flush == amqp10.MessageFlush(name)
    assert query == amqp10.QueueQuery(b"q")
    # It would be in use, and whoever deletes it would end the session.
    assert cancel == amqp10.MessageCancel(name)


def test_get_of_a_message_and_its_acknowledgement() -> None:
    made = lab()
    (heard,) = get(made, b"body", left=7)
    assert heard.method == amqp.BasicGetOk(1, message_count=7)
    assert heard.body == b"body"
    made.commands()
    made.say(1, amqp.BasicAck(1))
    assert made.commands() == [amqp10.MessageAccept(ids(0))]


def test_the_subscription_to_a_queue_that_is_auto_delete_stays() -> None:
    """With its last subscription it would be deleted."""
    made = lab()
    get(made, b"body", auto_delete=True)
    assert "message.cancel" not in [command.NAME for command in made.commands()]
    (heard,) = get(made, b"more", auto_delete=True)
    assert heard.method.delivery_tag == 2
    assert [command.NAME for command in made.commands()] == [
        "message.flow",
        "message.flow",
        "message.flush",
        "queue.query",
    ]


def test_get_without_acknowledgement_has_a_subscription_of_its_own() -> None:
    made = lab()
    get(made, b"body", auto_delete=True)
    get(made, b"body", no_ack=True)
    assert made.asked[0].command.accept_mode == AcceptMode.NONE


def test_gets_from_many_queues_keep_a_few_subscriptions() -> None:
    made = lab()
    for number in range(MOST_GETS + 5):
        made.results[b"q%d" % number] = queue(b"q%d" % number, auto_delete=True)
        assert made.call(amqp.BasicGet(queue=f"q{number}")) == amqp.BasicGetEmpty()
    names = [command.NAME for command in made.commands()]
    assert names.count("message.subscribe") - names.count("message.cancel") == MOST_GETS


def test_two_messages_for_one_get_end_the_session() -> None:
    made = lab(is_live=False)
    made.say(1, amqp.BasicGet(queue="q"))
    destination = made.asked[0].command.destination.decode()
    made.transfer(destination)
    (heard,) = made.transfer(destination)
    assert heard.method.reply_code == 541


# -- transactions


def test_a_transaction_that_is_rolled_back_leaves_all_unacknowledged() -> None:
    made = consuming(3)
    assert made.call(amqp.TxSelect()) == amqp.TxSelectOk()
    for _ in range(3):
        made.transfer("tag")
    made.commands()
    made.say(1, amqp.BasicAck(2, multiple=True))
    assert made.commands() == [amqp10.MessageAccept(ids(0, 1))]
    assert made.call(amqp.TxRollback()) == amqp.TxRollbackOk()
    assert made.commands() == [amqp10.TxRollback()]
    made.say(1, amqp.BasicAck(3, multiple=True))
    assert made.call(amqp.TxCommit()) == amqp.TxCommitOk()
    assert made.commands() == [amqp10.MessageAccept(ids(0, 1, 2)), amqp10.TxCommit(), credit(3)]


def test_acknowledgements_go_before_the_commit_of_the_same_turn() -> None:
    made = consuming()
    made.call(amqp.TxSelect())
    made.transfer("tag")
    made.commands()
    assert made.say(1, amqp.BasicAck(1), amqp.TxCommit()) == [Heard(1, amqp.TxCommitOk())]
    assert made.commands() == [amqp10.MessageAccept(ids(0)), amqp10.TxCommit()]


@pytest.mark.parametrize("method", [amqp.TxCommit(), amqp.TxRollback()])
def test_no_transaction_without_select(method) -> None:
    close = lab().call(method)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 90, method.METHOD_ID)


def test_confirms_and_transactions_exclude_each_other() -> None:
    made = lab()
    made.call(amqp.TxSelect())
    assert made.call(amqp.ConfirmSelect()).reply_code == 406
    made = lab()
    made.call(amqp.ConfirmSelect())
    assert made.call(amqp.TxSelect()).reply_code == 406


def test_prefetch_size_is_refused() -> None:
    assert lab().call(amqp.BasicQos(prefetch_size=1)).reply_code == 540

"""The table of crossings, line by line."""

from __future__ import annotations

import pytest

from amqpgate.bridge import Crossing, UnsupportedInVersion, canonical, interpreter_for
from amqpgate.protocol.methods import Role
from amqpgate.wire import dialects
from amqpgate.wire.dialects import LEGACY_CLIENT, RABBITMQ_0_8, RABBITMQ_0_9_1, STANDARD_0_9_1, Dialect
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

OLD_BROKERS = [RABBITMQ_0_8, dialects.QPID_0_8, dialects.LEGACY_BROKER, dialects.LEGACY_BROKER_0_9]


def crossing(client: Dialect = RABBITMQ_0_9_1, broker: Dialect = RABBITMQ_0_9_1) -> Crossing:
    return Crossing(interpreter_for(client), interpreter_for(broker))


def to_broker(*methods: Method) -> tuple[tuple[Role, Method], ...]:
    return tuple((Role.SERVER, method) for method in methods)


def to_client(*methods: Method) -> tuple[tuple[Role, Method], ...]:
    return tuple((Role.CLIENT, method) for method in methods)


@pytest.mark.parametrize("client", [RABBITMQ_0_9_1, LEGACY_CLIENT, dialects.LEGACY_CLIENT_0_9])
@pytest.mark.parametrize("broker", [RABBITMQ_0_9_1, RABBITMQ_0_8, dialects.LEGACY_BROKER_0_9])
def test_what_both_have_passes(client: Dialect, broker: Dialect) -> None:
    table = crossing(client, broker)
    for method in (
        amqp.ChannelOpen(),
        amqp.ExchangeDeclare(exchange="e"),
        amqp.QueueDeclare(queue="q"),
        amqp.BasicQos(prefetch_count=3),
        amqp.BasicConsume(queue="q"),
        amqp.ChannelFlow(active=True),
        amqp.BasicRecoverAsync(requeue=True),
        amqp.TxSelect(),
        amqp.ChannelClose(200, "bye"),
    ):
        assert table.to_broker(1, method) == to_broker(method)
    for method in (amqp.ChannelOpenOk(), amqp.ChannelFlowOk(active=True), amqp.BasicCancel("c")):
        assert table.to_client(1, method) == to_client(method)


def test_a_ticket_is_given_where_the_broker_has_none() -> None:
    request = amqp.AccessRequest("/data")
    ticket = to_client(amqp.AccessRequestOk(1))
    assert crossing(broker=STANDARD_0_9_1).to_broker(1, request) == ticket
    assert crossing(LEGACY_CLIENT).to_broker(1, request) == ticket
    assert crossing(LEGACY_CLIENT, dialects.QPID_0_9_1).to_broker(1, request) == ticket
    assert crossing().to_broker(1, request) == to_broker(request)
    assert crossing(LEGACY_CLIENT, RABBITMQ_0_8).to_broker(1, request) == to_broker(request)


@pytest.mark.parametrize(
    ("method", "refusing"),
    [
        (amqp.ConfirmSelect(), OLD_BROKERS),
        (amqp.ExchangeBind(destination="d", source="s"), OLD_BROKERS),
        (amqp.ExchangeUnbind(destination="d", source="s"), OLD_BROKERS),
        (amqp.BasicNack(7, multiple=True), OLD_BROKERS),
        (amqp.QueueUnbind(queue="q"), [dialects.QPID_0_8, dialects.LEGACY_BROKER]),
        (canonical.ChannelResume(b"id"), [RABBITMQ_0_8, RABBITMQ_0_9_1]),
        (v0_8.FileOpen("f", 1), [RABBITMQ_0_9_1, STANDARD_0_9_1]),
        (v0_8.TestInteger(), [dialects.LEGACY_BROKER_0_9]),
    ],
    ids=lambda value: getattr(value, "NAME", ""),
)
def test_what_cannot_be_done_is_refused(method: Method, refusing: list[Dialect]) -> None:
    for broker in refusing:
        with pytest.raises(UnsupportedInVersion) as caught:
            crossing(broker=broker).to_broker(1, method)
        why = caught.value
        assert (why.code, why.class_id, why.method_id) == (540, method.CLASS_ID, method.METHOD_ID)


def test_a_nack_of_one_message_is_a_reject() -> None:
    nack = amqp.BasicNack(7, multiple=False, requeue=True)
    assert crossing(broker=RABBITMQ_0_8).to_broker(1, nack) == to_broker(amqp.BasicReject(7, requeue=True))
    assert crossing().to_broker(1, nack) == to_broker(nack)


class TestPrefetchSize:
    """A count of 1 keeps to any size: the size never keeps a single message back (basic.qos)."""

    def test_is_a_count_of_one_for_old_clients(self) -> None:
        asked = amqp.BasicQos(prefetch_size=65536, prefetch_count=10)
        done = amqp.BasicQos(prefetch_count=1)
        for broker in (RABBITMQ_0_9_1, RABBITMQ_0_8):
            assert crossing(LEGACY_CLIENT, broker).to_broker(1, asked) == to_broker(done)

    def test_is_the_brokers_where_it_may_have_it(self) -> None:
        asked = amqp.BasicQos(prefetch_size=65536)
        assert crossing(LEGACY_CLIENT, dialects.QPID_0_8).to_broker(1, asked) == to_broker(asked)
        assert crossing().to_broker(1, asked) == to_broker(asked)


class TestRecover:
    """Whoever waits for an answer gets it when the broker has done it, and nobody else."""

    def test_with_an_answer_on_both_sides(self) -> None:
        for broker in (RABBITMQ_0_9_1, RABBITMQ_0_8, dialects.QPID_0_8, dialects.QPID_0_9):
            table = crossing(broker=broker)
            assert table.to_broker(1, amqp.BasicRecover(requeue=True)) == to_broker(
                amqp.BasicRecover(requeue=True)
            )
            assert table.to_client(1, amqp.BasicRecoverOk()) == to_client(amqp.BasicRecoverOk())

    @pytest.mark.parametrize("broker", [dialects.LEGACY_BROKER, dialects.LEGACY_BROKER_0_9])
    def test_where_the_broker_does_not_answer(self, broker: Dialect) -> None:
        """A channel.flow behind it is answered when recover is done; the client's own is told apart."""
        table = crossing(broker=broker)
        flow, flow_ok = amqp.ChannelFlow(active=True), amqp.ChannelFlowOk(active=True)
        table.to_broker(1, flow)
        assert table.to_broker(1, amqp.BasicRecover(requeue=True)) == to_broker(
            amqp.BasicRecoverAsync(requeue=True), flow
        )
        table.to_broker(1, flow)
        table.to_broker(2, flow)
        assert table.to_client(2, flow_ok) == to_client(flow_ok)
        assert table.to_client(1, flow_ok) == to_client(flow_ok)
        assert table.is_recovering(1)
        assert table.to_client(1, flow_ok) == to_client(amqp.BasicRecoverOk())
        assert not table.is_recovering(1)
        assert table.to_client(1, flow_ok) == to_client(flow_ok)

    def test_where_the_client_does_not_wait_and_the_broker_answers(self) -> None:
        table = crossing(RABBITMQ_0_9_1, dialects.QPID_0_8)
        asked = amqp.BasicRecoverAsync(requeue=True)
        assert table.to_broker(1, asked) == to_broker(asked)
        table.to_broker(1, amqp.BasicRecover(requeue=True))
        assert table.to_client(1, amqp.BasicRecoverOk()) == ()
        assert table.to_client(1, amqp.BasicRecoverOk()) == to_client(amqp.BasicRecoverOk())

    def test_who_waits_and_who_does_not_are_told_apart_in_order(self) -> None:
        """Qpid's 0-8 answers each: the client hears of those that it waits for, of each channel."""
        table = crossing(RABBITMQ_0_9_1, dialects.QPID_0_8)
        for tells in (True, False, False, True):
            method = amqp.BasicRecover if tells else amqp.BasicRecoverAsync
            table.to_broker(1, method(requeue=True))
        table.to_broker(2, amqp.BasicRecoverAsync(requeue=True))
        answer = amqp.BasicRecoverOk()
        told = [table.to_client(1, answer) for _ in range(4)]
        assert told == [to_client(answer), (), (), to_client(answer)]
        assert table.to_client(2, answer) == ()
        assert not table.is_recovering(1)
        assert not table.is_recovering(2)

    def test_a_channel_that_is_opened_again_has_asked_nothing(self) -> None:
        table = crossing(broker=dialects.LEGACY_BROKER)
        table.to_broker(1, amqp.BasicRecover(requeue=True))
        table.to_broker(1, amqp.ChannelOpen())
        flow_ok = amqp.ChannelFlowOk(active=True)
        assert table.to_client(1, flow_ok) == to_client(flow_ok)

    def test_is_told_to_who_keeps_deliveries(self) -> None:
        told: list[int] = []
        table = Crossing(interpreter_for(LEGACY_CLIENT), interpreter_for(RABBITMQ_0_9_1), told.append)
        assert table.recover(3, requeue=True, tells=False) == to_broker(amqp.BasicRecover(requeue=True))
        assert told == []
        assert table.to_client(3, amqp.BasicRecoverOk()) == ()
        assert told == [3]


@pytest.mark.parametrize("sender", Role)
def test_pings_are_answered_on_each_hop(sender: Role) -> None:
    table = crossing(dialects.LEGACY_CLIENT_0_9, dialects.QPID_0_9)
    assert table.answered(1, sender, canonical.ChannelPing()) == (
        canonical.ChannelOk(),
        canonical.ChannelPong(),
    )
    assert table.answered(1, sender, canonical.ChannelPong()) == (canonical.ChannelOk(),)
    assert table.answered(1, sender, canonical.ChannelOk()) == ()
    assert table.answered(1, sender, amqp.QueueDeclare()) is None


def test_a_resume_passes_between_those_that_have_it_and_its_ok_too() -> None:
    table = crossing(dialects.LEGACY_CLIENT_0_9, dialects.QPID_0_9)
    resume = canonical.ChannelResume(b"id")
    assert table.answered(1, Role.CLIENT, resume) is None
    assert table.to_broker(1, resume) == to_broker(resume)
    assert table.answered(1, Role.CLIENT, canonical.ChannelOk()) == ()
    assert table.answered(1, Role.SERVER, canonical.ChannelOk()) is None
    assert table.answered(1, Role.SERVER, canonical.ChannelOk()) == ()


def test_what_an_old_client_can_do_without_is_left_out() -> None:
    alert = canonical.ChannelAlert(311, "slow down")
    old, new = crossing(LEGACY_CLIENT), crossing(broker=dialects.QPID_0_8)
    assert old.to_client(0, amqp.ConnectionBlocked("low on memory")) == ()
    assert old.to_client(0, amqp.ConnectionUnblocked()) == ()
    assert old.to_client(1, alert) == to_client(alert)
    assert new.to_client(1, alert) == ()
    assert new.to_client(0, amqp.ConnectionUnblocked()) == to_client(amqp.ConnectionUnblocked())


def test_arguments_of_a_consume_are_not_lost() -> None:
    """It passes the table, and is refused by the interpreter, who knows whether there is a place for them."""
    consume = amqp.BasicConsume(queue="q", arguments=Table.of({"x-priority": 1}))
    assert crossing(broker=RABBITMQ_0_8).to_broker(1, consume) == to_broker(consume)
    with pytest.raises(UnsupportedInVersion):
        interpreter_for(RABBITMQ_0_8).from_canonical(consume)

"""What is under way on a session's channel: who is to hear an answer, and what may still be said."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.channel_mapping import MOST_UNANSWERED, ChannelMapping, PendingDeclare
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

QUORUM = Table.of({"x-queue-type": "quorum"})


def mapping() -> ChannelMapping:
    return ChannelMapping(7, is_spare=True, is_open=True)


# -- use -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "is_used"),
    [
        (amqp.ChannelOpen(), False),
        (amqp.ConfirmSelect(), False),
        (amqp.ChannelClose(200, "", 0, 0), False),
        (amqp.QueueDeclare(queue="q"), True),
        (amqp.BasicQos(), True),
    ],
)
def test_it_is_used_once_the_broker_has_something_to_do(method: Method, is_used: bool) -> None:
    it = mapping()
    it.passes(method)
    assert (it.is_used, it.asked) == (is_used, method.INDEX)
    it.passes(amqp.ConfirmSelect())
    assert it.is_used is is_used


def test_what_was_asked_last_is_answered_by_whatever_comes() -> None:
    """So a close of the connection that comes then is for somebody else's request."""
    it = mapping()
    it.passes(amqp.QueueDeclare(queue="q"))
    assert it.hears(amqp.QueueDeclareOk("q", 0, 0))
    assert it.asked == 0


@pytest.mark.parametrize("is_traceless", [True, False])
def test_a_channel_with_confirms_is_no_spare_one(is_traceless: bool) -> None:
    it = mapping()
    it.selects(is_traceless=is_traceless)
    assert (it.is_spare, it.is_used) == (False, not is_traceless)


# -- limits --------------------------------------------------------------------------------------------------


def test_each_limit_is_kept_and_its_answer_is_the_clients() -> None:
    it = mapping()
    for limit in (amqp.BasicQos(0, 5), amqp.BasicQos(0, 9, global_=True), amqp.BasicQos(0, 6)):
        it.requests(limit)
    assert (it.each, it.all) == (amqp.BasicQos(0, 6), amqp.BasicQos(0, 9, global_=True))
    assert it.repeat_limit() == amqp.BasicQos(0, 9, global_=True)
    it.requests(amqp.BasicQos(0, 1))
    heard = [it.hears(amqp.BasicQosOk()) for _ in range(5)]
    # The one that was told once more is nobody's.
    assert heard == [True, True, True, False, True]
    assert not it.limits_due
    assert it.hears(amqp.BasicQosOk())


def test_where_there_is_no_limit_none_is_told_once_more() -> None:
    assert mapping().repeat_limit() == amqp.BasicQos(0, 0, global_=True)


@pytest.mark.parametrize(
    ("limits", "has_prefetch", "is_limited"),
    [
        ([], False, False),
        ([amqp.BasicQos(0, 1)], True, False),
        ([amqp.BasicQos(0, 1, global_=True)], True, True),
        ([amqp.BasicQos(0, 1, global_=True), amqp.BasicQos(0, 0, global_=True)], False, False),
        ([amqp.BasicQos(0, 1), amqp.BasicQos(0, 0)], False, False),
    ],
)
def test_zero_is_no_limit(limits: list[amqp.BasicQos], has_prefetch: bool, is_limited: bool) -> None:
    it = mapping()
    for limit in limits:
        it.requests(limit)
    assert (it.has_prefetch, it.is_limited) == (has_prefetch, is_limited)


# -- what the broker asks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asks", "answer"),
    [
        (amqp.ChannelFlow(active=False), amqp.ChannelFlowOk(active=False)),
        (amqp.BasicCancel("c"), amqp.BasicCancelOk("c")),
    ],
)
def test_a_client_answers_as_often_as_it_was_asked(asks: Method, answer: Method) -> None:
    it = mapping()
    assert not it.answers(answer)
    for _ in range(2):
        assert it.hears(asks)
    assert [it.answers(answer) for _ in range(3)] == [True, True, False]


def test_one_answer_is_none_to_another_question_and_no_wait_wants_none() -> None:
    it = mapping()
    it.hears(amqp.BasicCancel("c", no_wait=True))
    assert not it.answers(amqp.BasicCancelOk("c"))
    it.hears(amqp.ChannelFlow(active=True))
    assert not it.answers(amqp.BasicCancelOk("c"))
    assert it.answers(amqp.BasicGet(queue="q"))
    assert it.answers(amqp.ChannelFlowOk(active=True))


# -- consumers -----------------------------------------------------------------------------------------------


def test_a_consumer_may_be_cancelled_once_the_broker_has_named_it() -> None:
    it = mapping()
    it.requests(amqp.BasicConsume(queue="q", consumer_tag="c"))
    assert it.awaits_name(amqp.BasicCancel("c"))
    assert not it.awaits_name(amqp.BasicCancel("other"))
    assert not it.names("amq.ctag-1")
    assert it.names("c")
    assert not it.awaits_name(amqp.BasicCancel("c"))
    # A broker that says it twice.
    assert not it.names("c")


def test_nobody_waits_for_a_name_that_will_not_come() -> None:
    it = mapping()
    it.requests(amqp.BasicConsume(queue="q", consumer_tag=""))
    it.requests(amqp.BasicConsume(queue="q", consumer_tag="quiet", no_wait=True))
    assert not any(it.awaits_name(amqp.BasicCancel(tag)) for tag in ("", "quiet"))
    it.requests(amqp.BasicConsume(queue="q", consumer_tag="c"))
    it.closes()
    assert not it.awaits_name(amqp.BasicCancel("c"))


# -- queues --------------------------------------------------------------------------------------------------


def test_the_type_of_a_queue_is_known_before_the_broker_has_agreed() -> None:
    it = mapping()
    assert (it.is_pending("q"), it.pending_type("q")) == (False, None)
    it.requests(amqp.QueueDeclare(queue="q", durable=True, arguments=QUORUM))
    it.requests(amqp.QueueDeclare(queue="classic"))
    it.requests(amqp.QueueDeclare(queue="there", passive=True))
    it.requests(amqp.QueueDeclare(queue="quiet", no_wait=True))
    assert [it.is_pending(name) for name in ("q", "classic", "there", "quiet")] == [True, True, False, False]
    assert (it.pending_type("q"), it.pending_type("classic")) == ("quorum", None)


def test_of_several_that_are_asked_for_by_one_name_the_first_counts() -> None:
    """The broker answers in order, and closes the channel for one that differs."""
    it = mapping()
    first = amqp.QueueDeclare(queue="q", durable=True, arguments=QUORUM)
    asked = [first, amqp.QueueDeclare(queue="q"), amqp.QueueDeclare(queue="q", passive=True)]
    for declare in asked:
        it.requests(declare)
    assert it.pending_type("q") == "quorum"
    assert it.declares_due is not None
    pending = [PendingDeclare.of(declare) for declare in asked]
    assert list(it.declares_due) == pending
    assert it.declares_due.answered() == pending[0]
    assert (it.is_pending("q"), it.pending_type("q")) == (True, None)
    assert [it.declares_due.answered() for _ in range(3)] == [*pending[1:], None]
    assert not it.is_pending("q")


def test_long_arguments_are_not_kept_until_the_broker_answers() -> None:
    """But those of an exclusive queue, of which the broker has as many: it is declared again elsewhere."""
    long = Table.of({"x-queue-type": "quorum", "x": "x" * 100_000})
    it = mapping()
    it.requests(amqp.QueueDeclare(queue="q", arguments=long))
    exclusive = amqp.QueueDeclare(queue="mine", exclusive=True, arguments=long)
    it.requests(exclusive)
    assert it.declares_due is not None
    assert list(it.declares_due) == [
        PendingDeclare("q", passive=False, type="quorum", exclusive=None),
        PendingDeclare("mine", passive=False, type="quorum", exclusive=exclusive),
    ]


class Name(str):
    """A queue's name that counts what it is compared with."""

    compared = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str(self) == other

    __hash__ = str.__hash__


def test_how_many_declares_the_broker_owes_costs_other_requests_nothing() -> None:
    it = mapping()
    for number in range(1000):
        it.requests(amqp.QueueDeclare(queue=f"q{number}"))
    assert it.is_pending(Name("q999"))
    assert not it.is_pending(Name("none"))
    assert Name.compared <= 2


def test_names_of_queues_that_are_deleted_are_kept_in_order() -> None:
    it = mapping()
    for name, no_wait in (("a", False), ("b", True), ("c", False)):
        it.requests(amqp.QueueDelete(queue=name, no_wait=no_wait))
    assert it.deletes_due is not None
    assert list(it.deletes_due) == ["a", "c"]


def test_it_may_become_another_channel_of_the_connection() -> None:
    it = mapping()
    it.move(12)
    assert it.number == 12


# -- bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        amqp.BasicQos(prefetch_count=1),
        amqp.QueueDeclare(queue="q"),
        amqp.QueueDelete(queue="q"),
        amqp.BasicConsume(queue="q", consumer_tag="c"),
    ],
    ids=lambda method: method.NAME,
)
def test_what_is_not_answered_is_bounded(method: Method) -> None:
    """Its channel is closed; other methods, and other channels, go on."""
    it = mapping()
    for _ in range(MOST_UNANSWERED):
        it.check(3, method)
        it.requests(method)
    with pytest.raises(ProtocolViolation, match="are not answered") as told:
        it.check(3, method)
    assert (told.value.code, told.value.scope, told.value.channel) == (406, "channel", 3)
    it.check(3, amqp.QueuePurge(queue="q"))

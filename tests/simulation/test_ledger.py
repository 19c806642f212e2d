"""Each lie is found when it is told."""

from __future__ import annotations

import attrs
import pytest

from tests.simulation.entries import Delivery, Lane, Message, Source
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.talk import Content


def published(ledger: Ledger, lane: Lane, *, denied: str = "") -> Message:
    return ledger.publish(lane, "x", "open.q0", 100, mandatory=False, denied=denied)


def arrive(ledger: Ledger, message: Message) -> None:
    ledger.arrive("a", message.exchange, message.key, message.content)


def confirming(ledger: Ledger) -> Lane:
    lane = ledger.lane("lane")
    lane.confirms = True
    return lane


def delivered(ledger: Ledger, count: int = 1) -> tuple[Lane, list[Delivery]]:
    source, lane = Source("source"), ledger.lane("publisher")
    made = []
    for _ in range(count):
        message = published(ledger, lane)
        arrive(ledger, message)
        made.append(ledger.deliver(message, "q0", source, len(made) + 1, redelivered=False, no_ack=False))
    return ledger.lane("consumer"), made


def test_what_is_true_passes() -> None:
    ledger = Ledger()
    lane = confirming(ledger)
    message = published(ledger, lane)
    arrive(ledger, message)
    message.confirmed = "ack"
    ledger.confirm(lane, 1, "ack", multiple=False)
    ledger.closed(lane)
    consumer, (delivery,) = delivered(ledger)
    ledger.hear(consumer, "c", "q0", 1, False, ledger.content_of(delivery))
    ledger.answer(consumer, 1, "ack", multiple=False)
    ledger.settle(delivery, "ack", "a")
    ledger.closed(consumer)


def test_messages_come_once_whole_and_in_order() -> None:
    ledger = Ledger()
    lane = ledger.lane("lane")
    first, second = published(ledger, lane), published(ledger, lane)
    with pytest.raises(Violation, match="before it did not"):
        arrive(ledger, second)
    with pytest.raises(Violation, match="not what was published"):
        ledger.arrive("a", "x", "open.q0", Content(first.content.properties, second.content.body))
    arrive(ledger, first)
    with pytest.raises(Violation, match="before"):
        arrive(ledger, first)
    with pytest.raises(Violation, match="did not arrive"):
        ledger.closed(lane)


def test_what_is_denied_does_not_pass() -> None:
    ledger = Ledger()
    lane = ledger.lane("lane")
    denied, behind = published(ledger, lane, denied="close"), published(ledger, lane)
    with pytest.raises(Violation, match="is denied and came"):
        arrive(ledger, denied)
    with pytest.raises(Violation, match="behind message"):
        arrive(ledger, behind)


def test_confirms_are_not_invented() -> None:
    ledger = Ledger()
    lane = confirming(ledger)
    message = published(ledger, lane)
    with pytest.raises(Violation, match="the broker said nothing"):
        ledger.confirm(lane, 1, "ack", multiple=False)
    message.confirmed = "ack"
    with pytest.raises(Violation, match="nothing is unconfirmed"):
        ledger.confirm(lane, 2, "ack", multiple=False)


def test_deliveries_come_in_order_with_their_tags() -> None:
    ledger = Ledger()
    consumer, (first, second) = delivered(ledger, 2)
    with pytest.raises(Violation, match="is due"):
        ledger.hear(consumer, "c", "q0", 1, False, ledger.content_of(second))
    changed = attrs.evolve(ledger.content_of(first).properties, type="other")
    with pytest.raises(Violation, match="is changed"):
        ledger.hear(consumer, "c", "q0", 1, False, Content(changed, first.message.content.body))


def test_a_tag_is_not_skipped() -> None:
    ledger = Ledger()
    consumer, (first,) = delivered(ledger)
    with pytest.raises(Violation, match="has tag 2"):
        ledger.hear(consumer, "c", "q0", 2, False, ledger.content_of(first))


def test_acks_are_neither_invented_nor_lost() -> None:
    ledger = Ledger()
    consumer, (first,) = delivered(ledger)
    ledger.hear(consumer, "c", "q0", 1, False, ledger.content_of(first))
    with pytest.raises(Violation, match="said nothing"):
        ledger.settle(first, "ack", "a")
    ledger.answer(consumer, 1, "requeue", multiple=False)
    with pytest.raises(Violation, match="did not arrive"):
        ledger.closed(consumer)
    with pytest.raises(Violation, match="said requeue"):
        ledger.settle(first, "ack", "a")


def transacting() -> tuple[Ledger, Lane, list[Message]]:
    """Two messages that a broker has, in a transaction that goes on."""
    ledger = Ledger()
    lane = ledger.lane("tx")
    lane.transacts = True
    messages = [ledger.publish(lane, "x", "open.q", 10, mandatory=False, denied="") for _ in range(2)]
    for message in messages:
        ledger.arrive("a", "x", "open.q", message.content)
    return ledger, lane, messages


def test_what_is_acknowledged_is_not_in_its_queue_when_the_broker_has_closed_the_channel() -> None:
    ledger = Ledger()
    consumer, (delivery,) = delivered(ledger)
    ledger.hear(consumer, "c", "q0", 1, False, ledger.content_of(delivery))
    ledger.answer(consumer, 1, "ack", multiple=False)
    ledger.given_back(delivery)
    # Who answers in the broker's place does so before that has heard all.
    ledger.closed(consumer)
    with pytest.raises(Violation, match="did not arrive"):
        ledger.closed(consumer, by_broker=True)


def test_a_transaction_that_comes_whole() -> None:
    ledger, lane, messages = transacting()
    transaction = ledger.end_transaction(lane, is_commit=True)
    ledger.transacted("broker a", messages, [], is_commit=True)
    ledger.transaction_ended(lane, transaction)
    ledger.closed(lane)
    assert (ledger.commits, ledger.rollbacks) == (1, 0)


def test_a_rollback_that_becomes_a_commit() -> None:
    ledger, lane, messages = transacting()
    ledger.end_transaction(lane, is_commit=False)
    with pytest.raises(Violation, match="heard commit"):
        ledger.transacted("broker a", messages, [], is_commit=True)


def test_a_commit_without_one_of_its_messages() -> None:
    ledger, lane, messages = transacting()
    ledger.end_transaction(lane, is_commit=True)
    with pytest.raises(Violation, match="and not commit of messages"):
        ledger.transacted("broker a", messages[:1], [], is_commit=True)


def test_a_commit_that_no_broker_has_heard() -> None:
    ledger, lane, _ = transacting()
    transaction = ledger.end_transaction(lane, is_commit=True)
    with pytest.raises(Violation, match="no broker has heard"):
        ledger.transaction_ended(lane, transaction)


def test_what_policies_add_has_to_be_there() -> None:
    ledger = Ledger({"x-by": "gate"}, {"x": "y"})
    message = ledger.publish(ledger.lane("l"), "x", "open.q", 10, mandatory=False, denied="")
    with pytest.raises(Violation, match="not 'y'"):
        ledger.arrive("a", "x", "open.q", message.passed)
    with pytest.raises(Violation, match="is not what was published"):
        ledger.arrive("a", "y", "open.q", message.content)
    ledger.arrive("a", "y", "open.q", message.passed)


def test_only_an_old_client_s_cancelled_consumer_gives_back_what_it_has_not_got() -> None:
    ledger = Ledger()
    consumer, (first, second) = delivered(ledger, 2)
    first.source.tag = "c"
    ledger.hear(consumer, "c", "q0", 1, False, ledger.content_of(first))
    with pytest.raises(Violation, match="has not got it"):
        ledger.settle(second, "requeue", "a")
    consumer.cancelled.add("c")
    with pytest.raises(Violation, match="said nothing"):
        ledger.settle(first, "requeue", "a")
    ledger.settle(second, "requeue", "a")
    third = ledger.deliver(
        second.message, "q0", Source("other", "d", first.source.tags), 3, redelivered=True, no_ack=False
    )
    with pytest.raises(Violation, match="has tag 4"):
        ledger.hear(consumer, "d", "q0", 4, True, ledger.content_of(third))


def test_tags_skip_what_was_given_back_and_nothing_else() -> None:
    ledger = Ledger()
    consumer, (first, _) = delivered(ledger, 2)
    first.source.tag = "c"
    ledger.hear(consumer, "c", "q0", 1, False, ledger.content_of(first))
    source = Source("other", "d", first.source.tags)
    third = ledger.deliver(first.message, "q0", source, 3, redelivered=True, no_ack=False)
    with pytest.raises(Violation, match="has tag 3"):
        ledger.hear(consumer, "d", "q0", 3, True, ledger.content_of(third))
    third.source.heard = 0
    consumer.cancelled.add("c")
    ledger.hear(consumer, "d", "q0", 3, True, ledger.content_of(third))


def test_a_session_may_be_committed_for_but_not_rolled_back() -> None:
    ledger = Ledger()
    lane = confirming(ledger)
    lane.is_session = True
    message = published(ledger, lane)
    arrive(ledger, message)
    with pytest.raises(Violation, match="rollback"):
        ledger.transacted("a", [message], [], is_commit=False)
    ledger.transacted("a", [message], [], is_commit=True)
    ledger.confirm(lane, 1, "ack", multiple=False)

"""What has really been said, by both models: every message, delivery and answer, and what must hold of them.

The models write into it what they do, and ask it whether what they hear can be true. It knows nothing of the
gateway's. What cannot be true is a `Violation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from uuid import UUID

import attrs

from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.tables import Table
from tests.simulation.entries import Delivery, Lane, Message, Source, Transaction
from tests.simulation.talk import Content

#: What the gateway itself says of a publish that is denied.
_CONFIRMED_AS = {"drop": "ack", "nack": "nack", "return": "nack"}

#: The header by which the model broker names a delivery.
DELIVERY = "x-delivery"


class Violation(Exception):
    """The gateway has done what it must not."""


def body_of(number: int, size: int) -> bytes:
    """Of a message; no two are alike, nor are their parts."""
    return Random(number).randbytes(size)


class Ledger:
    """All of one world."""

    def __init__(
        self, added: Mapping[str, str] | None = None, exchanges: Mapping[str, str] | None = None
    ) -> None:
        """``added`` are headers that policies add; ``exchanges`` are brokers' names, by those of clients."""
        self.added, self.exchanges = added or {}, exchanges or {}
        self.messages: list[Message] = []
        self.deliveries: list[Delivery] = []
        self.lanes: list[Lane] = []
        self.confirms = self.settlements = self.returns = self.commits = self.rollbacks = 0

    def lane(self, name: str) -> Lane:
        lane = Lane(name)
        self.lanes.append(lane)
        return lane

    # -- publishes ---------------------------------------------------------------------------------

    def publish(
        self, lane: Lane, exchange: str, key: str, size: int, *, mandatory: bool, denied: str
    ) -> Message:
        """A client is about to publish."""
        number = len(self.messages) + 1
        properties = BasicProperties(
            content_type="application/octet-stream",
            headers=Table.of({"x-of": lane.name}),
            delivery_mode=2,
            message_id=str(UUID(int=number)) if lane.is_session else f"m{number}",
            app_id="secret" if key.startswith("secret.") else None,
        )
        content = Content(properties, body_of(number, size))
        passed = self._transformed(content)
        place = len(lane.messages) + 1
        message = Message(number, lane, place, exchange, key, content, mandatory, denied, passed)
        self.messages.append(message)
        if lane.transacts:
            lane.published.append(message)
        lane.messages.append(message)
        if lane.confirms:
            lane.unsettled[message.place] = message
        return message

    def _transformed(self, content: Content) -> Content:
        properties = content.properties
        headers = properties.headers
        if not self.added or headers is None:
            return content
        for name, value in self.added.items():
            headers = headers.with_(name, value)
        return Content(attrs.evolve(properties, headers=headers), content.body)

    def arrive(self, broker: str, exchange: str, key: str, content: Content) -> Message:
        """A broker has got a message whole."""
        message = self._named(content, f"broker {broker}")
        what = f"message {message.number} of {message.lane.name}"
        if message.arrived:
            raise Violation(f"{what} came to broker {broker}, and had come to {message.arrived} before")
        if message.denied:
            raise Violation(f"{what}, key {message.key!r}, is denied and came to broker {broker}")
        due = self.exchange_of(message)
        if (exchange, key) != (due, message.key):
            raise Violation(f"{what} came for {exchange!r} {key!r}, not {due!r} {message.key!r}")
        if content != message.passed:
            raise Violation(f"{what} is not what was published: {_difference(content, message.passed)}")
        lane = message.lane
        for before in lane.messages[lane.passed : message.place - 1]:
            if not before.denied:
                raise Violation(
                    f"{what} came to broker {broker}, and message {before.number} before it did not"
                )
            # A session that a nack ends, the gateway's or the broker's, has gone on meanwhile.
            if before.ends_channel and not (lane.is_session and before.denied != "close"):
                raise Violation(
                    f"{what} came to broker {broker} behind message {before.number}, which is denied"
                )
        if message.place <= lane.passed:
            raise Violation(f"{what} came to broker {broker} out of order")
        lane.passed = message.place
        message.arrived = broker
        return message

    def exchange_of(self, message: Message) -> str:
        """As brokers call it."""
        return self.exchanges.get(message.exchange, message.exchange)

    def _named(self, content: Content, where: str) -> Message:
        name = content.properties.message_id or ""
        if "-" in name:
            number = UUID(name).int
        else:
            number = int(name[1:]) if name[1:].isdecimal() else 0
        if not 0 < number <= len(self.messages):
            raise Violation(f"{where} got a message that nobody published: {name!r}")
        return self.messages[number - 1]

    def confirm(self, lane: Lane, tag: int, verdict: str, *, multiple: bool) -> None:
        """A client hears a confirm."""
        pending = lane.unsettled
        tags = (
            [one for one in pending if one <= tag or not tag] if multiple else [tag] if tag in pending else []
        )
        if not tags:
            raise Violation(f"{lane.name} heard {verdict} of publish {tag}, of which nothing is unconfirmed")
        for one in tags:
            message = pending.pop(one)
            said = message.confirmed or _CONFIRMED_AS.get(message.denied, "")
            if said != verdict:
                raise Violation(
                    f"{lane.name} heard {verdict} of publish {one}, message {message.number}: "
                    f"the broker said {said or 'nothing'}"
                )
            if (message.returned or message.denied == "return") and not message.told_return:
                raise Violation(f"message {message.number} was confirmed before it came back")
            message.told = verdict
            self.confirms += 1

    def come_back(self, lane: Lane, code: int, content: Content) -> None:
        """A client hears basic.return."""
        message = self._named(content, lane.name)
        if message.lane is not lane or message.told_return:
            raise Violation(f"{lane.name} got message {message.number} back, which is not its own, or twice")
        if not message.returned and message.denied != "return":
            raise Violation(f"{lane.name} got message {message.number} back ({code}), which nobody returned")
        due = message.passed if message.returned else message.content
        if content != due:
            raise Violation(f"message {message.number} came back changed: {_difference(content, due)}")
        message.told_return = True
        self.returns += 1

    def closed(self, lane: Lane, *, by_broker: bool = False) -> None:
        """A client has asked for the channel's close, and it is closed: all had arrived by then.

        ``by_broker``: the broker has said so itself, which had its client's answers before it was asked.
        """
        for message in lane.messages[lane.passed :]:
            if not message.denied:
                raise Violation(
                    f"{lane.name} is closed in order, and message {message.number} did not arrive"
                )
        for message in lane.messages:
            if message.ends_channel or (message.denied == "return" and not message.told_return):
                raise Violation(f"{lane.name} was not told that message {message.number} is denied")
        for transaction in lane.ended:
            raise Violation(f"{lane.name} is closed in order, and {_said(transaction)} did not arrive")
        for delivery in lane.answered.values():
            # The end of a session gives back what was released, too.
            is_back = lane.is_session and delivery.answer == "requeue"
            is_due = not delivery.is_over or (by_broker and delivery.is_back and delivery.answer != "requeue")
            if is_due and not is_back and delivery not in lane.uncommitted.values():
                raise Violation(
                    f"{lane.name} is closed in order, and its {delivery.answer} of delivery "
                    f"{delivery.number} did not arrive"
                )

    # -- transactions ------------------------------------------------------------------------------

    def end_transaction(self, lane: Lane, *, is_commit: bool) -> Transaction:
        """A client is about to say tx.commit or tx.rollback."""
        transaction = Transaction(is_commit, lane.published, lane.uncommitted)
        lane.published, lane.uncommitted = [], {}
        for message in transaction.messages:
            message.transaction = transaction
        lane.ended.append(transaction)
        return transaction

    def transacted(
        self, where: str, messages: list[Message], answers: list[tuple[Delivery, str]], *, is_commit: bool
    ) -> None:
        """A broker hears the end of a transaction with these publishes and answers."""
        answers = [(one, answer) for one, answer in answers if not self._is_given_back(one, answer)]
        lanes = {
            id(lane): lane
            for lane in [one.lane for one in messages] + [one.lane for one, _ in answers]
            if lane
        }
        if not lanes:
            # What was in it was denied, or nothing was: whose it is nobody knows here.
            return
        lane = next(iter(lanes.values()))
        if lane.is_session and is_commit and len(lanes) == 1 and not answers:
            # As long as it is not known whether the broker confirms, it is asked to commit.
            for message in messages:
                message.confirmed = "ack"
            return
        due = lane.ended.popleft() if lane.ended else None
        while due is not None and not any(not one.denied for one in due.messages) and not due.answered:
            due.is_done, due = True, lane.ended.popleft() if lane.ended else None
        said = "commit" if is_commit else "rollback"
        if len(lanes) > 1 or due is None or due.is_commit is not is_commit:
            raise Violation(f"{where} heard {said} of {lane.name}, which has said {_said(due)}")
        if messages != [one for one in due.messages if not one.denied]:
            numbers = [one.number for one in messages]
            raise Violation(f"{where} heard {said} of messages {numbers}, and not {_said(due)}")
        if {one.number for one, _ in answers} != {one.number for one in due.answered.values()}:
            numbers = [one.number for one, _ in answers]
            raise Violation(f"{where} heard {said} of answers to {numbers}, and not {_said(due)}")
        due.is_done = True

    def transaction_ended(self, lane: Lane, transaction: Transaction) -> None:
        """A client hears that its transaction is over."""
        has_some = bool(transaction.answered) or any(not one.denied for one in transaction.messages)
        if has_some and not transaction.is_done:
            raise Violation(
                f"{lane.name} heard that {_said(transaction)} is done, of which no broker has heard"
            )
        if not has_some and transaction in lane.ended:
            lane.ended.remove(transaction)
        if transaction.is_commit:
            self.commits += 1
            for message in transaction.messages:
                if message.returned and not message.told_return:
                    raise Violation(f"message {message.number} was committed before it came back")
            return
        self.rollbacks += 1
        for tag, delivery in transaction.answered.items():
            # It is not settled after all.
            delivery.answer = ""
            lane.answered.pop(delivery.number, None)
            lane.held[tag] = delivery

    # -- deliveries --------------------------------------------------------------------------------

    def deliver(
        self, message: Message, queue: str, source: Source, tag: int, *, redelivered: bool, no_ack: bool
    ) -> Delivery:
        """A broker is about to deliver."""
        delivery = Delivery(len(self.deliveries) + 1, message, queue, source, redelivered, no_ack)
        self.deliveries.append(delivery)
        source.sent.append(delivery)
        source.tags[tag] = delivery
        return delivery

    def content_of(self, delivery: Delivery) -> Content:
        """As it is delivered: with the delivery's number."""
        if delivery.content is None:
            properties, body = delivery.message.passed
            assert properties.headers is not None
            headers = properties.headers.with_(DELIVERY, delivery.number)
            delivery.content = Content(attrs.evolve(properties, headers=headers), body)
        return delivery.content

    def hear(
        self, lane: Lane, consumer: str, queue: str, tag: int, redelivered: bool, content: Content
    ) -> Delivery:
        """A client gets a delivery. ``consumer`` is its tag, "" for an answer to basic.get."""
        headers = content.properties.headers
        number = headers.get(DELIVERY) if headers is not None else None
        if not isinstance(number, int) or not 0 < number <= len(self.deliveries):
            raise Violation(f"{lane.name} got a delivery that no broker has made: {content.properties}")
        delivery = self.deliveries[number - 1]
        source = delivery.source
        what = f"delivery {number} of {source.name}"
        if source.target is None:
            source.target = lane, consumer
        if source.target != (lane, consumer):
            raise Violation(
                f"{what} came to {lane.name} {consumer!r}, others of it to {source.target[0].name}"
            )
        if source.heard >= len(source.sent) or source.sent[source.heard] is not delivery:
            due = source.sent[source.heard].number if source.heard < len(source.sent) else "none"
            raise Violation(f"{what} came to {lane.name}, and {due} is due")
        source.heard += 1
        if content != self.content_of(delivery):
            raise Violation(f"{what} is changed: {_difference(content, self.content_of(delivery))}")
        delivery.content = None
        if (queue, redelivered) != (delivery.queue, delivery.redelivered):
            raise Violation(
                f"{what} is of {delivery.queue}, redelivered {delivery.redelivered}: not as heard"
            )
        skipped = [source.tags[one] for one in range(lane.last_tag + 1, tag) if one in source.tags]
        is_next = tag > lane.last_tag and all(self._is_given_back(one, "requeue") for one in skipped)
        if tag != lane.last_tag + 1 and not (is_next and len(skipped) == tag - lane.last_tag - 1):
            raise Violation(f"{what} has tag {tag} on {lane.name}, {lane.last_tag} came before it")
        lane.last_tag = tag
        delivery.lane = lane
        if not delivery.no_ack and not lane.is_silent:
            lane.held[tag] = delivery
        return delivery

    def answer(self, lane: Lane, tag: int, answer: str, *, multiple: bool) -> None:
        """A client settles what it holds."""
        for one in [held for held in lane.held if held <= tag] if multiple else [tag]:
            delivery = lane.held.pop(one)
            delivery.answer = answer
            lane.answered[delivery.number] = delivery
            if lane.transacts:
                lane.uncommitted[one] = delivery

    def settle(self, delivery: Delivery, answer: str, where: str) -> None:
        """A broker hears that a delivery is settled."""
        if self._is_given_back(delivery, answer):
            delivery.source.sent.remove(delivery)
            delivery.is_over = True
            return
        if answer == "ack" and any(
            lane.is_session and lane.is_silent for lane in self._lanes_of(delivery.source)
        ):
            delivery.answer = answer
        if delivery.answer != answer:
            raise Violation(
                f"{where} heard {answer} of delivery {delivery.number}, whose client "
                f"({delivery.lane.name if delivery.lane else 'which has not got it'}) said "
                f"{delivery.answer or 'nothing'}"
            )
        self.over(delivery)
        self.settlements += 1

    def _is_given_back(self, delivery: Delivery, answer: str) -> bool:
        """Whether the session has ended, or the consumer of an old client, before it got this."""
        source = delivery.source
        return (
            answer == "requeue"
            and delivery.lane is None
            and any(lane.is_session or source.tag in lane.cancelled for lane in self._lanes_of(source))
        )

    def _lanes_of(self, source: Source) -> list[Lane]:
        """The channel or session that a consumer is; all of them where none has got anything of it."""
        return self.lanes if source.target is None else [source.target[0]]

    def given_back(self, delivery: Delivery) -> None:
        """It is in its queue again."""
        delivery.is_over = delivery.is_back = True

    def over(self, delivery: Delivery) -> None:
        """It is settled."""
        delivery.is_over = True
        if delivery.lane is not None:
            delivery.lane.answered.pop(delivery.number, None)


def _said(transaction: Transaction | None) -> str:
    if transaction is None:
        return "nothing of the kind"
    said = "commit" if transaction.is_commit else "rollback"
    messages = [one.number for one in transaction.messages if not one.denied]
    answers = [one.number for one in transaction.answered.values()]
    return f"{said} of messages {messages} and answers to {answers}"


def _difference(heard: Content, meant: Content) -> str:
    if heard.body != meant.body:
        at = next(
            (i for i, pair in enumerate(zip(heard.body, meant.body, strict=False)) if pair[0] != pair[1]), -1
        )
        return f"{len(heard.body)} bytes of body, not {len(meant.body)}; the first that differs is {at}"
    return f"{heard.properties} is not {meant.properties}"

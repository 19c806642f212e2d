"""What a ledger keeps of each message, delivery, channel and transaction."""

from __future__ import annotations

from collections import deque

import attrs

from tests.simulation.talk import Content


@attrs.define(eq=False)
class Message:
    """One publish of one client."""

    number: int
    lane: Lane
    #: The how-manieth of its channel, from 1.
    place: int
    exchange: str
    key: str
    content: Content
    mandatory: bool
    #: What policies say of it: "" it may pass, else what is to be done.
    denied: str
    #: As a broker gets it: what policies add is in it.
    passed: Content
    #: The transaction that it is part of, once that has been ended.
    transaction: Transaction | None = None
    #: It came to this broker.
    arrived: str = ""
    #: What the broker said of it: "ack", "nack".
    confirmed: str = ""
    returned: bool = False
    #: What the client heard of it.
    told: str = ""
    told_return: bool = False

    @property
    def ends_channel(self) -> bool:
        """Its channel is closed since it is denied. In a transaction nothing else would be heard of."""
        if self.lane.is_session:
            return bool(self.denied) and self.denied != "drop"
        if self.denied == "nack":
            return not self.lane.confirms
        return self.denied == "close" or (bool(self.denied) and self.lane.transacts)


@attrs.define(eq=False)
class Transaction:
    """What a client has ended by tx.commit or tx.rollback: publishes, and answers to deliveries."""

    #: What the client said.
    is_commit: bool
    messages: list[Message]
    #: By tag.
    answered: dict[int, Delivery]
    #: What the broker has heard.
    is_done: bool = False


@attrs.define(eq=False)
class Lane:
    """A client's channel, from its open to its end."""

    name: str
    confirms: bool = False
    transacts: bool = False
    #: A session of AMQP 0-10: what is complete is confirmed, and what is denied ends it.
    is_session: bool = False
    #: Its messages are settled once they are sent: the gateway says so to the broker.
    is_silent: bool = False
    messages: list[Message] = attrs.field(factory=list)
    #: Of the transaction that is under way: publishes, and answers by tag.
    published: list[Message] = attrs.field(factory=list)
    uncommitted: dict[int, Delivery] = attrs.field(factory=dict)
    #: Which the client has ended, and the broker has not heard of.
    ended: deque[Transaction] = attrs.field(factory=deque)
    #: How many of them are known to have arrived, or to have been denied.
    passed: int = 0
    #: How many the client has been told of, beginning with the first.
    settled: int = 0
    unsettled: dict[int, Message] = attrs.field(factory=dict)
    #: Deliveries that the client has not settled, by tag.
    held: dict[int, Delivery] = attrs.field(factory=dict)
    #: What it has settled, and the broker has not heard of.
    answered: dict[int, Delivery] = attrs.field(factory=dict)
    last_tag: int = 0
    #: Consumers of an old client's that it has cancelled: of what waits beyond its limit the gateway gives
    #: the broker back what they do not get.
    cancelled: set[str] = attrs.field(factory=set)
    #: The client's or the gateway's close was said: what is on its way may be lost.
    is_over: bool = False


@attrs.define(eq=False)
class Delivery:
    """One delivery of one message by a broker."""

    number: int
    message: Message
    queue: str
    source: Source
    redelivered: bool
    no_ack: bool
    #: Where the client got it.
    lane: Lane | None = None
    #: What the client said: "ack", "requeue", "discard".
    answer: str = ""
    #: It is settled, or its channel is over.
    is_over: bool = False
    #: It is in its queue again: what its client has said of it has not arrived.
    is_back: bool = False
    #: As it is delivered, while that is asked for.
    content: Content | None = None


@attrs.define(eq=False)
class Source:
    """A broker's consumer, or its answers to basic.get on a channel: what it sends comes in that order."""

    name: str
    #: The consumer's.
    tag: str = ""
    #: All that was delivered on its channel, by delivery tag.
    tags: dict[int, Delivery] = attrs.field(factory=dict)
    sent: list[Delivery] = attrs.field(factory=list)
    heard: int = 0
    #: The client's consumer that it turned out to be: lane and tag.
    target: tuple[Lane, str] | None = None

"""What limits say to single operations of one session: channels, consumers, declares, and messages that are
judged one by one.

Delays of messages are the data path's, by the buckets in the flows. Here is the rest. An operation that must
wait is looked at again when its bucket has something, and all that its client sends behind it waits, too.
What is refused costs the client what RabbitMQ 3.10 asks at limits of its own, where it has such a limit:

=================  =======================  =====================================
over               ``reject``               model
=================  =======================  =====================================
messages, bytes    basic.nack, or 406       a full queue with overflow reject-publish
channels           connection.close 530     max-channels of a user
queueDeclares      channel.close 406        max-queues of a virtual host
consumers          channel.close 406        none; as the line before
=================  =======================  =====================================
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import Protocol

import attrs

from amqpgate.datapath.scanner import Bucket, Lane
from amqpgate.datapath.tables import Side
from amqpgate.errors import OverLimit
from amqpgate.gateway.limits.token_buckets import SessionLimits, SharedBucket
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.policy import Quantity, SharedLimit, Verdict
from amqpgate.policy.kinds.rate import DELIVERED, PUBLISHED
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What a method of the client draws from. A basic.get asks for a message; its size is not known yet.
DRAWS: dict[int, Quantity] = {
    amqp.ChannelOpen.INDEX: "channels",
    amqp.BasicConsume.INDEX: "consumers",
    amqp.QueueDeclare.INDEX: "queue_declares",
    amqp.BasicGet.INDEX: "deliver_messages",
}


class Turn(Enum):
    """What becomes of an operation."""

    GO = "go"
    #: Look again at ``Lane.ready_at``.
    WAIT = "wait"
    #: The client has been told.
    REFUSED = "refused"


class Happened(Enum):
    """What a limit did, for metrics."""

    DELAYED = "delayed"
    REFUSED = "refused"
    #: A session has waited a second for it, on the data path.
    WAITED = "waited"


#: Told of a limit that did something, or would have (if it is not enforced).
Report = Callable[[SharedLimit, Happened], None]


class LimitListener(Protocol):
    """Who is told of one session's limits: an object, for its bound method would be another one."""

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        """As `Report`."""


def drawn(limits: SessionLimits, method: Method) -> list[SharedBucket]:
    """The limits that count such an operation of a client's."""
    quantity = DRAWS.get(method.INDEX)
    return [] if quantity is None else [share for share in limits.shares if quantity in share.buckets]


@define(eq=False, weakref_slot=False)
class OperationLimits:
    """Of one session, under one set of limits: made anew when the policies change."""

    limits: SessionLimits
    channels: SessionChannels
    listener: LimitListener
    #: From the client.
    lane: Lane
    #: The operation that waits was counted as delayed already.
    _is_waiting: bool = attrs.field(default=False, init=False)

    def turn(self, channel: int, method: Method) -> Turn:
        """May the client do this now? Raises `OverLimit` where that ends the connection."""
        shares = drawn(self.limits, method)
        if not shares:
            return Turn.GO
        quantity = DRAWS[method.INDEX]
        now = time.monotonic()
        ready = now
        for share in shares:
            at = share.ready_at(quantity, now)
            if at <= now:
                continue
            if not share.limit.enforced:
                self.listener.limited(share.limit, _kind(share.limit))
            elif share.limit.action == "delay":
                if not self._is_waiting:
                    self.listener.limited(share.limit, Happened.DELAYED)
                ready = max(ready, at)
            else:
                self.listener.limited(share.limit, Happened.REFUSED)
                return self._refuse(channel, method, share.limit)
        self._is_waiting = ready > now
        if self._is_waiting:
            self.lane.ready_at = ready
            return Turn.WAIT
        for share in shares:
            _spend(share.buckets[quantity], 1)
        return Turn.GO

    def _refuse(self, channel: int, method: Method, limit: SharedLimit) -> Turn:
        ids = {"class_id": method.CLASS_ID, "method_id": method.METHOD_ID, "channel": channel}
        if limit.action == "close":
            raise OverLimit(506, f"rate limit reached by '{method.NAME}'", **ids)
        if isinstance(method, amqp.ChannelOpen):
            # RabbitMQ names no method here.
            text = "number of channels opened has reached the maximum allowed rate"
            raise OverLimit(530, text, channel=channel)
        if channel not in self.channels.states:
            return Turn.GO  # A channel that is not open is another error.
        self.channels.refuse(channel, OverLimit(406, f"rate limit reached by '{method.NAME}'", **ids))
        return Turn.REFUSED

    def publish(self, channel: int) -> Verdict | None:
        """A message that the data path has let pass, by its header: a refusal, if any.

        Its bytes are taken as they come. Raises `OverLimit` where the connection is to be closed.
        """
        limit = self._judge(Side.CLIENT, channel, PUBLISHED)
        if limit is None:
            return None
        if limit.action == "close":
            raise OverLimit(506, "rate limit of messages reached", class_id=60, method_id=40, channel=channel)
        return Verdict("deny", limit.policy, limit.limit, on_denied="nack")

    def delivered(self, channel: int) -> None:
        """A message for the client, judged for show, by its header."""
        self._judge(Side.UPSTREAM, channel, DELIVERED)

    def _judge(self, side: Side, channel: int, quantities: tuple[Quantity, Quantity]) -> SharedLimit | None:
        messages, byte_count = quantities
        now = time.monotonic()
        passing: list[SharedBucket] = []
        for share in self.limits.per_message(quantities):
            if all(share.ready_at(name, now) <= now for name in quantities if name in share.buckets):
                passing.append(share)
                continue
            self.listener.limited(share.limit, _kind(share.limit))
            if share.limit.enforced:
                return share.limit
        for share in passing:
            if messages in share.buckets:
                _spend(share.buckets[messages], 1)
        debited = tuple([share.buckets[byte_count] for share in passing if byte_count in share.buckets])
        if debited:
            # What the header declares is a claim: the data path takes what comes.
            self.channels.table.debits(side, channel, debited)
        return None


def message_refusal(channel: int) -> OverLimit:
    """Where a message over the limit cannot be refused by a nack."""
    return OverLimit(406, "rate limit of messages reached", class_id=60, method_id=40, channel=channel)


def _kind(limit: SharedLimit) -> Happened:
    return Happened.DELAYED if limit.action == "delay" else Happened.REFUSED


def _spend(bucket: Bucket, amount: float) -> None:
    bucket.take(amount)

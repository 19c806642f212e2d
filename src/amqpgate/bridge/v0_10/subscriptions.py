"""Subscriptions of one session: consumers and gets on channel "main", sent to the client within its credit.

The session's owner gives it commands of class "message" (`Subscriptions.steps`), what the broker says on
``main`` (`hear`), and what the client has completed (`completed`). Once what was read is dealt with, it asks
for `work`: what is to be asked of the broker besides.

=================  ==========================================================================================
subscribe          the queue must be there; an exclusive one consumes at once, to see that nobody else does
flow               credit; basic.consume is `work`, so if a flush follows at once, nothing is consumed
flush              what is held, what is on its way to the consumer, then basic.get while there is credit; on
                   get-empty the credit is 0. Of a queue without basic.get (``gets``) what a consumer has got
                   when it is ended
stop               the credit is 0; what the broker has sent is held
                   a queue that was deleted is 408 as soon as there is credit, as with qpidd
cancel             basic.cancel; what comes before its answer is sent within the credit; what was held goes
                   back. The last one of a queue that is auto-delete, and had no consumer, deletes it
accept             basic.ack
release, reject    basic.reject; a subscription without credit has no consumer then, who would get it again
acquire            nothing: all that is sent is acquired
=================  ==========================================================================================

The prefetch of a consumer stays as it is made. If a client has as many messages as that, accepts none, and
has credit, another consumer with a larger one takes over.

A message goes back to the place that it had. For what the client releases to come again in order, what is
held behind it goes back, too. All that goes back is "redelivered" then, whether a client saw it or not, and
what the broker has sent in the meantime comes before it.

Without accepting (accept-mode none) messages are acknowledged when they are sent: prefetch needs that.

Memory
    `MOST_UNSETTLED` messages that are not settled, and `MOST_UNCOMPLETED` that count against windows: then no
    more is sent. `MOST_HELD` bytes that are held, or one message that is larger, within `link.MOST_HELD` for
    all sessions of a connection; and the tags of all that the broker has sent ahead. `MOST_SUBSCRIPTIONS`
    subscriptions, else 506.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from amqpgate.bridge.v0_10.arguments import consume_arguments
from amqpgate.bridge.v0_10.channels import BridgedChannel, ChannelUse
from amqpgate.bridge.v0_10.consumers import SessionConsumers
from amqpgate.bridge.v0_10.credit import Spent
from amqpgate.bridge.v0_10.deliveries import ById, Consumer, HeldTransfer, Settling, delivery_of
from amqpgate.bridge.v0_10.forms import TransferForms
from amqpgate.bridge.v0_10.frames import FromBroker
from amqpgate.bridge.v0_10.gets import takes_gets
from amqpgate.bridge.v0_10.link import BrokerLink
from amqpgate.bridge.v0_10.steps import Answer, Call, Part, Steps, ask, insist, queue_of
from amqpgate.bridge.v0_10.subscription import Subscription
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcquireMode
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command

#: As qpidd's ``--session-max-unacked``.
MOST_UNSETTLED: Final = 5000
MOST_UNCOMPLETED: Final = 65_536
MOST_HELD: Final = 1024 * 1024
MOST_SUBSCRIPTIONS: Final = 1024


class Subscriptions:
    """See the module."""

    __slots__ = (
        "_by_name",
        "_consumers",
        "_forms",
        "_held",
        "_link",
        "_session",
        "_uncompleted",
        "_unsettled",
        "restless",
        "settling",
    )

    def __init__(self, session: AttachedSession, main: BridgedChannel, link: BrokerLink) -> None:
        #: None once it is detached.
        self._session: AttachedSession | None = session
        self._link = link
        self.settling = Settling(main, has_nacks=link.has_nacks)
        self._by_name: dict[bytes, Subscription] = {}
        self._consumers = SessionConsumers()
        self._forms = TransferForms()
        #: Those that may need a consumer: `work` looks at them.
        self.restless: dict[Subscription, None] = {}
        self._unsettled: ById[HeldTransfer] = ById(MOST_UNSETTLED)
        self._uncompleted: ById[tuple[Subscription, Spent]] = ById(MOST_UNCOMPLETED)
        #: Bytes of bodies and headers that are held.
        self._held = 0

    # What is told.

    def detached(self) -> None:
        """The client's side is gone. What it has goes back with the channel."""
        if self._session is not None:
            self._link.hold(-self._held)
        self._session = None
        for subscription in self._by_name.values():
            self._link.subscribers.retire(subscription)

    def end(self) -> list[str]:
        """No subscription is left. The queues that may have had nobody else, and no consumer, and are
        auto-delete.
        """
        subscribers = self._link.subscribers
        unused = [one.queue for one in self._by_name.values() if subscribers.leave(one)]
        self._by_name.clear()
        return unused

    @property
    def consuming(self) -> list[Subscription]:
        """Those that have a consumer."""
        return [one for one in self._by_name.values() if one.consumer is not None and not one.is_gone]

    def completed(self, ids: SequenceSet) -> None:
        """The client has completed transfers: what they cost comes back to windows."""
        if not self._uncompleted:
            return
        was_full = self._uncompleted.is_full
        moved: dict[Subscription, None] = {}
        for subscription, spent in self._uncompleted.take(ids):
            subscription.credit.restore(spent)
            moved[subscription] = None
        self._send_to(self._by_name.values() if was_full else moved)

    def hear(self, told: FromBroker) -> None:
        """A delivery, or the end of a consumer.

        The queue was deleted then: violation 408 from whatever follows, as soon as there is credit.
        """
        match told.method:
            case amqp.BasicDeliver(consumer_tag=tag):
                subscription, consumer = self._consumers.at(tag)
                if subscription is None:
                    delivery = delivery_of(told.method, told.header, told.body, "", consumer, self._forms)
                    self.settling.delivered(delivery)
                    self.settling.give_back([delivery])
                else:
                    self._receive(subscription, told, consumer)
            case amqp.BasicCancel(consumer_tag=tag):
                subscription = self._consumers.lose(tag)
                if subscription is not None:
                    self._watch(subscription)

    def work(self) -> Steps | None:
        """What is to be asked of the broker without a command, None if nothing is: a consumer for the next
        subscription that has credit and gets nothing.
        """
        while self.restless:
            subscription, _ = self.restless.popitem()
            is_served = (
                self._session is not None
                and subscription.needs_consumer
                and not self._is_full
                and self._by_name.get(subscription.name) is subscription
            )
            if is_served:
                return self._consumers.begin(subscription)
            subscription.stop_inheriting()
        return None

    # Commands.

    def steps(self, command: Command) -> Steps | None:
        """A command of class message, but for transfer: what is to be done, None if it is done.

        Violations: 404 for a destination that has no subscription, 530 for one that has, 506 for too many of
        them; 540 for browsing, resuming, and what consumers of the broker's cannot do.
        """
        match command:
            case amqp10.MessageSubscribe():
                return self._subscribe(command)
            case amqp10.MessageCancel(destination=name):
                return self._cancel(self._at(name))
            case amqp10.MessageFlush(destination=name):
                return self._flush(self._at(name))
            case amqp10.MessageAcquire():
                return self._acquire()
            case amqp10.MessageSetFlowMode(destination=name, flow_mode=mode):
                self._at(name).credit.set_mode(mode)
                self._send_to([self._at(name)])
            case amqp10.MessageFlow(destination=name, unit=unit, value=value):
                self._at(name).credit.grant(unit, value)
                self._send_to([self._at(name)])
            case amqp10.MessageStop(destination=name):
                self._at(name).credit.clear()
            case amqp10.MessageAccept(transfers=ids):
                self._settle(ids, amqp10.MessageAccept)
            case amqp10.MessageRelease(transfers=ids, set_redelivered=failed):
                return self._release(ids, failed=failed)
            case amqp10.MessageReject(transfers=ids):
                self._settle(ids, amqp10.MessageReject)
            case _:
                raise ProtocolViolation(540, f"{command.NAME} on a broker of AMQP 0-9-1")
        return None

    def end_transaction(self) -> bool:
        """The transaction ends: what has waited for that goes to the broker. Whether there was anything."""
        for subscription in self._by_name.values():
            self.settling.give_back(subscription.shed)
            subscription.shed.clear()
        was_full = self._is_full
        had_own = self.settling.settle_own()
        if was_full:
            self._send_to(self._by_name.values())
        return had_own

    def end_consumers(self, queue: str) -> Part[None]:
        """Nothing more of the queue is to come; what was on its way is held."""
        for subscription in self.consuming:
            if subscription.queue == queue and subscription.consumer is not None:
                subscription.credit.clear()
                yield from self._consumers.end(subscription.consumer, awaits=True)
                subscription.rest()

    def give_up(self, queue: str) -> int:
        """The queue ends: what the session has of it is rejected, and nothing more of it is sent. How many
        messages that was; in a transaction none, for it would count too late.
        """
        if not self.settling.is_immediate:
            return 0
        deliveries = self._unsettled.take_where(lambda delivery: delivery.queue == queue)
        for subscription in self._by_name.values():
            if subscription.queue == queue:
                subscription.credit.clear()
                deliveries += self._take_held(subscription)
        self.settling.reject(deliveries)
        return len(deliveries)

    def _at(self, name: bytes | None) -> Subscription:
        subscription = self._by_name.get(name or b"")
        if subscription is None:
            raise ProtocolViolation(
                404, f"no subscription {(name or b'').decode('utf-8', 'backslashreplace')!r}"
            )
        return subscription

    def _subscribe(self, command: amqp10.MessageSubscribe) -> Steps:
        name = command.destination or b""
        queue = queue_of(command.queue)
        if name in self._by_name:
            raise ProtocolViolation(530, "the destination is in use")
        if len(self._by_name) >= MOST_SUBSCRIPTIONS:
            raise ProtocolViolation(506, f"more than {MOST_SUBSCRIPTIONS} subscriptions of a session")
        if command.acquire_mode == AcquireMode.NOT_ACQUIRED:
            raise ProtocolViolation(540, "browsing")
        arguments = consume_arguments(command, ignore_qpid=self._link.options.ignore_qpid_arguments)
        yield from insist(amqp.QueueDeclare(queue=queue, passive=True))
        subscription = Subscription(command, queue, arguments)
        self._link.subscribers.join(subscription, self._watch)
        self._by_name[name] = subscription
        if command.exclusive:
            yield from self._consumers.begin(subscription)
        return None

    def _cancel(self, subscription: Subscription) -> Steps:
        consumer = subscription.consumer
        if consumer is not None:
            heir = self._link.subscribers.heir(subscription, ())
            if heir is not None and self._by_name.get(heir.name) is heir:
                yield from self._consumers.begin(heir)
            elif heir is not None:
                yield from self._link.subscribers.hand_over(heir)
            yield from self._consumers.end(consumer, awaits=subscription.credit.is_there)
        subscription.credit.clear()
        del self._by_name[subscription.name]
        is_unused = self._link.subscribers.leave(subscription)
        self.settling.give_back(self._take_held(subscription))
        if is_unused:
            yield from ask(amqp.QueueDelete(queue=subscription.queue, if_unused=True))
        return None

    def _flush(self, subscription: Subscription) -> Steps:
        self._send_to([subscription])
        had_consumer = subscription.consumer is not None
        while self._session is not None and not self._is_full:
            if subscription.held or not subscription.credit.is_there:
                break
            if subscription.takes_gets is None:
                # Who has no basic.nack has no quorum queues. What is not told may be any queue: one that is
                # auto-delete would go with its consumer.
                answer: bool | None = True
                if self._link.has_nacks:
                    answer = yield from takes_gets(subscription.queue, self._link.topology)
                subscription.learn(takes_gets=answer is not False)
                continue
            consumer = subscription.consumer
            # To a full one nothing is on its way: the broker counts what it has sent, too.
            if not subscription.takes_gets:
                goes_on = yield from self._drain(subscription, consumer)
            elif consumer is None or consumer.is_full:
                goes_on = yield from self._get(subscription)
            elif (yield from self._arrives(subscription, consumer)):
                continue
            elif consumer.is_fresh or subscription.is_exclusive:
                goes_on = yield from self._get_behind(subscription, consumer)
            else:
                # A quorum queue is told of 32 settlements, and of the rest once it has applied those. To
                # another consumer it gives at once, in the order of the queue.
                yield from self._consumers.begin(subscription, awaits=True)
                continue
            if not goes_on:
                break
        subscription.credit.clear()
        if subscription.consumer is not None and not had_consumer:
            yield from self._consumers.end(subscription.consumer, awaits=True)
            subscription.rest()
            self.settling.give_back(self._take_held(subscription))
        return None

    def _drain(self, subscription: Subscription, consumer: Consumer | None) -> Part[bool]:
        """Whether anything has come, or may come yet, of a queue that has nothing for basic.get.

        A consumer that may get all that there is has got it when it has ended.
        """
        if consumer is None or consumer.is_full or not consumer.is_fresh:
            yield from self._consumers.begin(subscription, awaits=True)
            return True
        before = consumer.received
        yield from self._consumers.end(consumer, awaits=True)
        subscription.rest()
        return consumer.received != before

    def _get(self, subscription: Subscription) -> Part[bool]:
        """Whether the queue had a message."""
        answer: Answer = yield Call(ChannelUse.MAIN, amqp.BasicGet(queue=subscription.queue))
        if not isinstance(answer.method, amqp.BasicGetOk):
            return False
        self._receive(subscription, answer, None)
        return True

    def _get_behind(self, subscription: Subscription, consumer: Consumer) -> Part[bool]:
        """Whether anything has come of a queue whose consumer has room, as far as it is known here.

        Such a queue has nothing for basic.get. If it has, it has filled the consumer by then, with what is
        older than what was got, but comes behind it. What cannot be seen to be so goes back.
        """
        before, is_fresh = consumer.received, consumer.is_fresh
        room = consumer.prefetch - consumer.unsettled
        answer: Answer = yield Call(ChannelUse.MAIN, amqp.BasicGet(queue=subscription.queue))
        is_got = isinstance(answer.method, amqp.BasicGetOk)
        # Its tag is lower than those of all that is heard from now on.
        got = self._take(subscription, answer, None) if is_got else None
        yield Call(ChannelUse.MAIN, amqp.BasicQos(prefetch_count=consumer.prefetch))
        came = consumer.received - before
        if got is None:
            return False
        if is_fresh and came >= room:
            self._place(subscription, answer, got)
            return True
        self.settling.give_back([got])
        return came > 0

    def _arrives(self, subscription: Subscription, consumer: Consumer) -> Part[bool]:
        """Whether messages were on their way to a consumer that has room.

        They come before what is got: a queue gives to consumers first, but the channel looks at what it was
        given once it has answered. A classic queue of RabbitMQ answers queue.declare before it looks at
        settlements, but at those that it had when it answered the last one.
        """
        before = consumer.received
        declare = Call(ChannelUse.MAIN, amqp.QueueDeclare(queue=subscription.queue, passive=True))
        if self.settling.take_told():
            yield declare
        # The queue answers this one, and the channel the next, behind what the queue gave.
        yield declare
        yield Call(ChannelUse.MAIN, amqp.BasicQos(prefetch_count=consumer.prefetch))
        return consumer.received != before

    def _acquire(self) -> Steps:
        yield from ()
        return amqp10.Acquired(transfers=SequenceSet())

    def _settle(self, ids: SequenceSet | None, command: type[Command]) -> None:
        """Those that are not the client's, or settled already, are passed over."""
        was_full = self._unsettled.is_full
        deliveries = self._unsettled.take(ids)
        if command is amqp10.MessageAccept:
            self.settling.accept(deliveries)
        else:
            self.settling.reject(deliveries)
        if was_full:
            self._send_to(self._by_name.values())

    def _release(self, ids: SequenceSet | None, *, failed: bool) -> Steps:
        """``failed``: they are to be marked as redelivered, for the client has tried them."""
        was_full = self._unsettled.is_full
        deliveries = self._unsettled.take(ids)
        queues = {delivery.queue for delivery in deliveries}
        unseen: list[HeldTransfer] = []
        # Many may release what is nobody's.
        for subscription in list(self._by_name.values()) if queues else ():
            if subscription.queue in queues:
                if subscription.consumer is not None and self._link.subscribers.may_rest(subscription):
                    yield from self._consumers.end(subscription.consumer)
                    subscription.rest()
                unseen += self._take_held(subscription)
        self.settling.release(deliveries, unseen, failed=failed)
        if was_full:
            self._send_to(self._by_name.values())
        return None

    # To the client.

    @property
    def _is_full(self) -> bool:
        return self._unsettled.is_full or self._uncompleted.is_full or self.settling.waiting >= MOST_UNSETTLED

    def _may_send(self, subscription: Subscription, delivery: HeldTransfer) -> bool:
        return self._session is not None and not self._is_full and subscription.may_send(delivery)

    def _receive(
        self, subscription: Subscription, told: FromBroker | Answer, consumer: Consumer | None
    ) -> None:
        """A message of a consumer's, or one that was got."""
        self._place(subscription, told, self._take(subscription, told, consumer))

    def _take(
        self, subscription: Subscription, told: FromBroker | Answer, consumer: Consumer | None
    ) -> HeldTransfer:
        """A message, as soon as it is heard: `Settling` has them by their tags, in order."""
        delivery = delivery_of(
            told.method,
            told.header,
            told.body,
            subscription.queue,
            consumer,
            self._forms,
            is_for_jms=self._link.is_jms,
        )
        self.settling.delivered(delivery)
        return delivery

    def _place(self, subscription: Subscription, told: FromBroker | Answer, delivery: HeldTransfer) -> None:
        """Send it, hold it or shed it."""
        link, queue = self._link, subscription.queue
        is_exclusive = subscription.is_exclusive
        if link.no_local.is_marking and link.no_local.excludes(queue, told.header, is_exclusive=is_exclusive):
            self.settling.accept_sent(delivery)
            self._watch(subscription)
            return
        is_first = not subscription.held and not subscription.shed
        if is_first and self._may_send(subscription, delivery):
            self._send(subscription, delivery)
        elif subscription.shed or not self._may_hold(delivery.size):
            delivery.forget_content()
            subscription.shed.append(delivery)
        else:
            subscription.held.append(delivery)
            self._hold(delivery.size)
        self._watch(subscription)

    def _send_to(self, subscriptions: Iterable[Subscription]) -> None:
        """What waits and has credit."""
        for subscription in subscriptions:
            if subscription.is_ahead and subscription.credit.is_there:
                subscription.catch_up()
                if self.settling.is_immediate:
                    self.settling.give_back(self._take_held(subscription))
            held, shed = subscription.held, subscription.shed
            while held and self._may_send(subscription, held[0]):
                delivery = held.popleft()
                self._hold(-delivery.size)
                self._send(subscription, delivery)
            if shed and not held and self._may_send(subscription, shed[0]) and self.settling.is_immediate:
                self.settling.give_back(shed)
                shed.clear()
            self._watch(subscription)

    def _watch(self, subscription: Subscription) -> None:
        if subscription.is_gone and subscription.credit.is_there:
            raise ProtocolViolation(
                408, f"queue {subscription.queue!r} can be consumed no more: it is deleted, moved, or denied"
            )
        if subscription.needs_consumer:
            self.restless[subscription] = None

    def _send(self, subscription: Subscription, delivery: HeldTransfer) -> None:
        assert self._session is not None
        credit = subscription.credit
        is_explicit = subscription.is_explicit
        number = self._session.send_message(subscription.transfer, delivery.header, delivery.body)
        spent = credit.spend(delivery.size if credit.counts_bytes else 0)
        if spent is not None:
            self._uncompleted.add(number, (subscription, spent))
        delivery.forget_content()
        if is_explicit:
            self._unsettled.add(number, delivery)
        else:
            self.settling.accept_sent(delivery)

    def _may_hold(self, size: int) -> bool:
        return (not self._held or self._held + size <= MOST_HELD) and self._link.may_hold(size)

    def _hold(self, size: int) -> None:
        self._held += size
        if self._session is not None:
            self._link.hold(size)

    def _take_held(self, subscription: Subscription) -> list[HeldTransfer]:
        self._hold(-sum(delivery.size for delivery in subscription.held))
        return subscription.take_all()

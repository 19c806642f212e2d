"""Consumers and getters: prefetch, acks of one and of many, nacks, rejects, cancels, closes."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.simulation.client import Client, Session
from tests.simulation.entries import Lane, Transaction
from tests.simulation.ledger import Violation
from tests.simulation.talk import Content

#: Seconds until it is tried again while a transaction ends.
_SOON = 0.1


class Consumer(Client):
    """One that consumes."""

    def make(self) -> ConsumerSession:
        return ConsumerSession(self)

    def has_more(self) -> bool:
        return True


class ConsumerSession(Session):
    """One connection of it."""

    def begin(self) -> None:
        #: Consumer tag -> its queue, by channel.
        self.tags: dict[int, dict[str, str]] = {}
        self.silent: dict[int, bool] = {}
        #: Channels whose transaction ends soon.
        self.committing: set[int] = set()
        #: Channels that have asked for their limit, and those whose limit is in force.
        self.asked: set[int] = set()
        self.limited: set[int] = set()
        #: Channels that have settled something in their transaction before that; and those that have rolled
        #: it back: how much of it they hold nobody knows then who has not seen it all.
        self.settled_early: set[int] = set()
        self.unsure: set[int] = set()
        self.gets: dict[int, str] = {}
        self.until = self.clock.now + self.random.expovariate(1 / self.client.plan.stay)
        for channel in range(1, self.client.plan.channels + 1):
            self._open(channel)

    def _open(self, channel: int) -> None:
        plan = self.client.plan

        def opened(lane: Lane) -> None:
            if not self.silent[channel] and self.random.random() < plan.transactions:
                self.ask(channel, amqp.TxSelect(), (amqp.TxSelectOk,), lambda _: transacts(lane))
            else:
                limit(lane)

        def transacts(lane: Lane) -> None:
            lane.transacts = True
            limit(lane)

        def limit(lane: Lane) -> None:
            # By 0-8 and 0-9 a limit is the channel's, and holds for consumers that are there.
            if self.talk.version.is_old and plan.kind == "consumer" and self.random.random() < 0.5:
                declare(lane)
            else:
                self._limit(channel, lambda: declare(lane))

        def declare(lane: Lane) -> None:
            queue = self.random.choice(plan.queues)
            method = amqp.QueueDeclare(queue=queue, durable=True)
            self.ask(channel, method, (amqp.QueueDeclareOk,), lambda _: consume(lane, queue))

        def consume(lane: Lane, queue: str) -> None:
            if plan.kind == "getter":
                self._get(channel, lane, queue)
            else:
                self._consume(channel, lane, queue)

        self.tags[channel] = {}
        for channels in (self.asked, self.limited, self.settled_early, self.unsure):
            channels.discard(channel)
        self.committing.discard(channel)
        # Without acks what is on its way to a client that dies is gone.
        self.silent[channel] = self.random.random() < plan.silent
        self.open(channel, opened)

    def _consume(self, channel: int, lane: Lane, queue: str) -> None:
        tag = f"c{self.random.getrandbits(32):x}" if self.random.random() < 0.8 else ""

        def consuming(method: Method) -> None:
            assert isinstance(method, amqp.BasicConsumeOk)
            if tag and method.consumer_tag != tag:
                raise Violation(f"{self.name} is consumer {method.consumer_tag!r}, and asked for {tag!r}")
            self.tags[channel][method.consumer_tag] = queue
            if channel in self.limited:
                self._turn(channel, lane)
            else:
                self._limit(channel, lambda: self._turn(channel, lane))

        method = amqp.BasicConsume(queue=queue, consumer_tag=tag, no_ack=self.silent[channel])
        self.ask(channel, method, (amqp.BasicConsumeOk,), consuming)

    def _limit(self, channel: int, then: Callable[[], None]) -> None:
        """Ask for the channel's prefetch, and go on once it is in force."""

        def limited(_: Method) -> None:
            self.limited.add(channel)
            then()

        self.asked.add(channel)
        self.ask(channel, amqp.BasicQos(0, self.client.plan.prefetch, False), (amqp.BasicQosOk,), limited)

    def _turn(self, channel: int, lane: Lane) -> None:
        """Now and then something else than deliveries happens."""
        plan = self.client.plan
        if plan.fickle:
            self.later(self.random.expovariate(1 / plan.fickle), lambda: self._change(channel, lane))

    def _change(self, channel: int, lane: Lane) -> None:
        if self.lanes.get(channel) is not lane:
            return
        if channel in self.waits:
            if lane.transacts:
                self._turn(channel, lane)
            return
        random = self.random
        if self.world.is_ending:
            return
        if self.clock.now > self.until:
            self.leave_politely()
            return
        if random.random() < 0.4:
            self.close_channel(channel, lambda: self._open(channel))
            return
        tag = random.choice(list(self.tags[channel]))
        queue = self.tags[channel][tag]

        def cancelled(_: Method) -> None:
            del self.tags[channel][tag]
            self._consume(channel, lane, queue)

        if self.talk.version.is_old:
            lane.cancelled.add(tag)
        self.ask(channel, amqp.BasicCancel(consumer_tag=tag), (amqp.BasicCancelOk,), cancelled)

    def _get(self, channel: int, lane: Lane, queue: str) -> None:
        if self.lanes.get(channel) is not lane:
            return
        if channel in self.waits:
            if self._is_committing(channel):
                self.later(_SOON, lambda: self._get(channel, lane, queue))
            return
        self.gets[channel] = queue
        silent = self.silent[channel]

        def empty(_: Method) -> None:
            self.later(
                self.random.expovariate(1 / self.client.plan.rest), lambda: self._get(channel, lane, queue)
            )

        self.ask(channel, amqp.BasicGet(queue=queue, no_ack=silent), (amqp.BasicGetEmpty,), empty)

    def lost(self, channel: int, lane: Lane) -> None:
        self.later(self.random.uniform(0.1, 5), lambda: self._open(channel))

    def heard(self, channel: int, lane: Lane, method: Method, content: Content | None) -> None:
        if isinstance(method, amqp.BasicDeliver):
            tag, queue = method.consumer_tag, self.tags[channel].get(method.consumer_tag)
            if queue is None:
                raise Violation(
                    f"{self.name} got a delivery of {tag!r} on channel {channel}, which does not consume"
                )
        elif isinstance(method, amqp.BasicGetOk):
            tag, queue = "", self.gets[channel]
            del self.waits[channel]
            rest = self.random.expovariate(1 / self.client.plan.rest)
            self.later(rest, lambda: self._get(channel, lane, queue))
        else:
            raise Violation(f"{self.name} heard {method} on channel {channel}")
        assert content is not None
        delivery = self.ledger.hear(lane, tag, queue, method.delivery_tag, method.redelivered, content)
        if (method.exchange, method.routing_key) != (delivery.message.exchange, delivery.message.key):
            raise Violation(f"{self.name} got delivery {delivery.number} for {method.routing_key!r}")
        if delivery.no_ack:
            return
        prefetch = self.client.plan.prefetch
        held = sum(one.source is delivery.source for one in lane.held.values())
        if tag and channel in self.limited - self.unsure and held > prefetch:
            raise Violation(
                f"{self.name} holds {held} deliveries of {tag!r} on channel {channel}, not {prefetch}"
            )
        work = self.random.expovariate(1 / self.client.plan.work)
        self.later(work, lambda: self._answer(channel, lane, method.delivery_tag))

    def _answer(self, channel: int, lane: Lane, tag: int) -> None:
        # While a close is asked for nothing else is said on the channel.
        waits = self.waits.get(channel)
        if (
            self.lanes.get(channel) is not lane
            or tag not in lane.held
            or (waits and waits.what == "channel.close")
        ):
            return
        if self._is_committing(channel):
            self.later(_SOON, lambda: self._answer(channel, lane, tag))
            return
        if lane.transacts and channel not in self.committing:
            self.committing.add(channel)
            self.later(self.random.uniform(0, 1), lambda: self._commit(channel, lane))
        if lane.transacts and self.talk.version.is_old and channel not in self.asked:
            self.settled_early.add(channel)
        random = self.random.random()
        calm = self.world.is_ending
        if random < 0.55 or calm:
            multiple = self.random.random() < 0.4
            self.ledger.answer(lane, tag, "ack", multiple=multiple)
            self.say(channel, amqp.BasicAck(tag, multiple))
        elif random < 0.75:
            self.ledger.answer(lane, tag, "ack", multiple=False)
            self.say(channel, amqp.BasicAck(tag, False))
        elif random < 0.95 and self.talk.version.is_old:
            # They have no basic.nack.
            requeue = random < 0.85
            self.ledger.answer(lane, tag, "requeue" if requeue else "discard", multiple=False)
            self.say(channel, amqp.BasicReject(tag, requeue))
        elif random < 0.85:
            multiple = self.random.random() < 0.3
            self.ledger.answer(lane, tag, "requeue", multiple=multiple)
            self.say(channel, amqp.BasicNack(tag, multiple, True))
        elif random < 0.95:
            self.ledger.answer(lane, tag, "discard", multiple=False)
            self.say(channel, amqp.BasicNack(tag, False, False))
        else:
            requeue = self.random.random() < 0.5
            self.ledger.answer(lane, tag, "requeue" if requeue else "discard", multiple=False)
            self.say(channel, amqp.BasicReject(tag, requeue))

    def _is_committing(self, channel: int) -> bool:
        waits = self.waits.get(channel)
        return waits is not None and waits.what in (amqp.TxCommit.NAME, amqp.TxRollback.NAME)

    def _commit(self, channel: int, lane: Lane) -> None:
        """End the transaction; what is rolled back is answered again."""
        if self.lanes.get(channel) is not lane:
            return
        if channel in self.waits:
            self.later(_SOON, lambda: self._commit(channel, lane))
            return

        def ended(transaction: Transaction) -> None:
            if channel in self.settled_early:
                self.settled_early.discard(channel)
                if not transaction.is_commit:
                    self.unsure.add(channel)
            for tag in [] if transaction.is_commit else transaction.answered:
                work = self.random.expovariate(1 / self.client.plan.work)
                self.later(work, lambda tag=tag: self._answer(channel, lane, tag))  # type: ignore[misc]

        self.committing.discard(channel)
        self.end_transaction(channel, lane, ended)

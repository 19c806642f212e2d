"""Publishers: bursts and pauses, on channels with and without confirms, mandatory or denied."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.simulation.client import Client, Session
from tests.simulation.entries import Lane
from tests.simulation.ledger import Violation
from tests.simulation.talk import Content, woven

#: Sizes of bodies: none, a few bytes, about a frame, several frames.
SIZES = (0, 1, 30, 500, 4000, 4088, 4089, 9000, 30_000, 140_000)


class Publisher(Client):
    """One that publishes."""

    def make(self) -> PublisherSession:
        return PublisherSession(self)

    def finish(self) -> None:
        session = self.session
        if isinstance(session, PublisherSession):
            for channel, lane in list(session.lanes.items()):
                session.finish(channel, lane)


class PublisherSession(Session):
    """One connection of it."""

    client: Publisher

    def __init__(self, client: Publisher) -> None:
        super().__init__(client)
        #: When the oldest confirm that is waited for was asked for, by channel.
        self.since: dict[int, float] = {}

    def begin(self) -> None:
        plan = self.client.plan
        self.until = self.clock.now + self.random.expovariate(1 / plan.stay)
        for channel in range(1, plan.channels + 1):
            self._open(channel)

    def _open(self, channel: int) -> None:
        def opened(lane: Lane) -> None:
            if self.random.random() < self.client.plan.confirms:
                self.ask(channel, amqp.ConfirmSelect(), (amqp.ConfirmSelectOk,), lambda _: selected(lane))
            elif self.random.random() < self.client.plan.transactions:
                self.ask(channel, amqp.TxSelect(), (amqp.TxSelectOk,), lambda _: transacts(lane))
            else:
                self._soon(channel, lane)

        def selected(lane: Lane) -> None:
            lane.confirms = True
            self._soon(channel, lane)

        def transacts(lane: Lane) -> None:
            lane.transacts = True
            self._soon(channel, lane)

        self.open(channel, opened)

    def _soon(self, channel: int, lane: Lane) -> None:
        rest = self.random.expovariate(1 / self.client.plan.rest)
        # A channel that is opened when the end has begun is closed at once.
        self.later(0.0 if self.world.is_ending else rest, lambda: self._burst(channel, lane))

    def _burst(self, channel: int, lane: Lane) -> None:
        if self.lanes.get(channel) is not lane or channel in self.waits:
            return
        random, plan = self.random, self.client.plan
        if self.world.is_ending or self.clock.now > self.until:
            self.finish(channel, lane)
            return
        messages = [self._publish(channel, lane) for _ in range(random.randint(1, plan.burst))]
        beside = self._beside(channel) if plan.weaves and random.random() < plan.weaves else None
        if beside is not None:
            messages[0] = woven(random, messages[0], self._publish(*beside))
        assert self.connection is not None
        for message in messages:
            self.connection.send(message)
        if lane.transacts and random.random() < 0.9:
            self.end_transaction(channel, lane, lambda _: self._soon(channel, lane))
        elif random.random() < 0.1:
            # What is unconfirmed by then stays so.
            self.since.pop(channel, None)
            self.close_channel(channel, lambda: self._open(channel))
        else:
            self._soon(channel, lane)

    def _beside(self, channel: int) -> tuple[int, Lane] | None:
        """Another channel that a message may begin on now, if there is one."""
        free = [
            (number, lane)
            for number, lane in self.lanes.items()
            if number != channel and number not in self.waits
        ]
        return self.random.choice(free) if free else None

    def _publish(self, channel: int, lane: Lane) -> bytes:
        """A message's frames, which are to be said at once."""
        random, plan, world = self.random, self.client.plan, self.world
        queue = random.choice(plan.queues) if random.random() < 0.95 else "nowhere"
        kind = "secret" if random.random() < plan.secret else "open"
        key = f"{kind}.{queue}"
        size = SIZES[int(plan.sizes * random.random() ** 2)]
        mandatory = random.random() < 0.2
        denied = world.denies(plan.user, key)
        message = self.ledger.publish(lane, "x", key, size, mandatory=mandatory, denied=denied)
        if lane.confirms:
            self.since.setdefault(channel, self.clock.now)
        method = amqp.BasicPublish(exchange="x", routing_key=key, mandatory=mandatory)
        return self.talk.content(channel, method, message.content)

    def finish(self, channel: int, lane: Lane) -> None:
        """Wait for what is unconfirmed, and close."""
        if self.lanes.get(channel) is not lane or self.is_leaving:
            return
        if lane.unsettled or channel in self.waits:
            self.later(1.0, lambda: self.finish(channel, lane))
        else:
            self.close_channel(channel, self._leave)

    def _leave(self) -> None:
        if not self.lanes and 0 not in self.waits:
            self.leave_politely()

    def lost(self, channel: int, lane: Lane) -> None:
        self.since.pop(channel, None)
        if self.world.is_ending or self.clock.now > self.until:
            self._leave()
        else:
            self.later(self.random.uniform(0.1, 5), lambda: self._open(channel))

    def heard(self, channel: int, lane: Lane, method: Method, content: Content | None) -> None:
        match method:
            case amqp.BasicAck(delivery_tag=tag, multiple=multiple):
                self.ledger.confirm(lane, tag, "ack", multiple=multiple)
                self._told(channel, lane)
            case amqp.BasicNack(delivery_tag=tag, multiple=multiple):
                self.ledger.confirm(lane, tag, "nack", multiple=multiple)
                self._told(channel, lane)
            case amqp.BasicReturn(reply_code=code):
                assert content is not None
                self.ledger.come_back(lane, code, content)
            case _:
                raise Violation(f"{self.name} heard {method} on channel {channel}")

    def _told(self, channel: int, lane: Lane) -> None:
        if channel in self.waits:
            return  # it is about to be closed
        if lane.unsettled:
            self.since[channel] = self.clock.now
        else:
            self.since.pop(channel, None)

    def oldest(self) -> tuple[float, str]:
        waits = super().oldest()
        confirms = [(since, self._unconfirmed(channel)) for channel, since in self.since.items()]
        return min([waits, *confirms])

    def _unconfirmed(self, channel: int) -> str:
        lane = self.lanes[channel]
        message = next(iter(lane.unsettled.values()))
        broker = f"at broker {message.arrived}" if message.arrived else "at no broker"
        return (
            f"a confirm on channel {channel}: publish {message.place} of {len(lane.messages)}, "
            f"message {message.number}, {broker}, which said {message.confirmed or 'nothing'}; "
            f"policies say {message.denied or 'nothing'}"
        )

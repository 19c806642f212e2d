"""Publishers and consumers of AMQP 0-10."""

from __future__ import annotations

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.structs import Struct, Unknown
from tests.simulation.client import Client
from tests.simulation.ledger import Violation
from tests.simulation.messages_0_10 import content_of, structs_of
from tests.simulation.publisher import SIZES
from tests.simulation.session_0_10 import Session010

_INFINITE = 0xFFFFFFFF
_EXPLICIT, _NONE = 0, 1
_WINDOW = 1
_MESSAGES, _BYTES = 0, 1


class Publisher010(Client):
    """One that publishes."""

    def make(self) -> PublisherSession010:
        return PublisherSession010(self)

    def finish(self) -> None:
        if isinstance(self.session, PublisherSession010):
            self.session.finish()


class PublisherSession010(Session010):
    """One connection of it. What is complete is confirmed."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.until = self.clock.now + self.random.expovariate(1 / client.plan.stay)
        #: The places of what is not complete, by the ids of commands; since when something is waited for.
        self.places: dict[int, int] = {}
        self.since = float("inf")

    def attach(self) -> None:
        super().attach()
        if self.lane is not None:
            # It may publish before it has heard that the session is there.
            self.lane.confirms = True

    def begin(self) -> None:
        self._soon()

    def _soon(self) -> None:
        self.clock.after(self.random.expovariate(1 / self.client.plan.rest), self._burst)

    def _burst(self) -> None:
        random, plan = self.random, self.client.plan
        if not self.is_working:
            return
        if self.world.is_ending or self.clock.now > self.until:
            self.finish()
            return
        count = random.randint(1, plan.burst)
        for number in range(count):
            self._publish(is_last=number == count - 1)
        self.since = min(self.since, self.clock.now)
        self.flush()
        if random.random() < 0.1:
            self.finish()
        else:
            self._soon()

    def _publish(self, *, is_last: bool) -> None:
        random, plan, lane = self.random, self.client.plan, self.lane
        assert self.session is not None
        assert lane is not None
        kind = "secret" if random.random() < plan.secret else "open"
        key = f"{kind}.{random.choice(plan.queues)}"
        size = SIZES[int(plan.sizes * random.random() ** 2)]
        denied = self.world.denies(plan.user, key)
        message = self.ledger.publish(lane, "x", key, size, mandatory=False, denied=denied)
        transfer = amqp.MessageTransfer(destination=b"x", accept_mode=_NONE, acquire_mode=0)
        structs = structs_of(key, message.content)
        self.places[self.session.send(transfer, structs, message.content.body, sync=is_last)] = message.place

    def completed(self, number: int) -> None:
        place = self.places.pop(number, None)
        if place is not None and self.lane is not None:
            self.ledger.confirm(self.lane, place, "ack", multiple=False)
            self.since = self.clock.now if self.places else float("inf")

    def finish(self) -> None:
        """Wait for what is not complete, and end the session."""
        if not self.is_working:
            return
        if self.places:
            self.clock.after(1.0, self.finish)
        else:
            self.detach()

    def lost(self) -> None:
        self.places.clear()
        self.since = float("inf")
        if self.world.is_ending or self.clock.now > self.until:
            self.part()
        else:
            self.clock.after(self.random.uniform(0.1, 5), self.attach)

    def oldest(self) -> tuple[float, str]:
        return min(super().oldest(), (self.since, "completion"))


class Consumer010(Client):
    """One that consumes."""

    def make(self) -> ConsumerSession010:
        return ConsumerSession010(self)

    def has_more(self) -> bool:
        return True


class ConsumerSession010(Session010):
    """One connection of it."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.until = self.clock.now + self.random.expovariate(1 / client.plan.stay)
        #: Queues by subscription; the ids of messages that are held by tag, and whose they are.
        self.queues: dict[str, str] = {}
        self.held: dict[int, tuple[int, str]] = {}
        self.is_silent = False

    def begin(self) -> None:
        plan, session = self.client.plan, self.session
        assert session is not None
        self.queues.clear()
        self.held.clear()
        assert self.lane is not None
        self.is_silent = self.lane.is_silent = self.random.random() < plan.silent
        for number, queue in enumerate(self.random.sample(plan.queues, min(len(plan.queues), plan.channels))):
            name = f"s{number}".encode()
            self.queues[name.decode()] = queue
            session.send(amqp.QueueDeclare(queue=queue.encode(), durable=True))
            accept = _NONE if self.is_silent else _EXPLICIT
            session.send(
                amqp.MessageSubscribe(
                    queue=queue.encode(), destination=name, accept_mode=accept, acquire_mode=0
                )
            )
            session.send(amqp.MessageSetFlowMode(destination=name, flow_mode=_WINDOW))
            session.send(amqp.MessageFlow(destination=name, unit=_BYTES, value=_INFINITE))
            credit = amqp.MessageFlow(destination=name, unit=_MESSAGES, value=plan.prefetch)
            last = session.send(credit, sync=True)
            self.waits[f"subscription {last}"] = self.clock.now
        self.flush()
        if plan.fickle:
            self.clock.after(self.random.expovariate(1 / plan.fickle), self._change)

    def completed(self, number: int) -> None:
        self.waits.pop(f"subscription {number}", None)

    def _change(self) -> None:
        if self.is_working and not self.world.is_ending:
            self.detach()

    def lost(self) -> None:
        for what in [what for what in self.waits if what.startswith("subscription")]:
            del self.waits[what]
        if self.clock.now > self.until and not self.world.is_ending:
            self.part()
        else:
            self.clock.after(self.random.uniform(0.1, 5), self.attach)

    def heard(
        self, number: int, transfer: amqp.MessageTransfer, structs: tuple[Struct | Unknown, ...], body: bytes
    ) -> None:
        lane, name = self.lane, (transfer.destination or b"").decode()
        if lane is None or name not in self.queues:
            raise Violation(f"{self.name} got a message for {name!r}, which is no subscription")
        properties, content = content_of(structs, body)
        tag = lane.last_tag + 1
        redelivered = bool(properties.redelivered)
        delivery = self.ledger.hear(lane, name, self.queues[name], tag, redelivered, content)
        told = (properties.exchange or b"").decode(), (properties.routing_key or b"").decode()
        if told != (delivery.message.exchange, delivery.message.key):
            raise Violation(f"{self.name} got delivery {delivery.number} for {told}")
        self.held[tag] = number, name
        held = sum(whose == name for _, whose in self.held.values())
        if held > self.client.plan.prefetch:
            raise Violation(f"{self.name} holds {held} of {name!r}, not {self.client.plan.prefetch}")
        self.clock.after(self.random.expovariate(1 / self.client.plan.work), lambda: self._answer(lane, tag))

    def _answer(self, lane: object, tag: int) -> None:
        session = self.session
        if not self.is_working or lane is not self.lane or tag not in self.held:
            return
        assert self.lane is not None
        assert session is not None
        chance = self.random.random()
        several = chance < 0.3 and not self.is_silent
        tags = [one for one in self.held if one <= tag] if several else [tag]
        ids = ids_of(self.held.pop(one)[0] for one in tags)
        if not self.is_silent:
            others = "requeue" if chance < 0.85 else "discard"
            answer = "ack" if chance < 0.7 or self.world.is_ending else others
            for one in tags:
                self.ledger.answer(self.lane, one, answer, multiple=False)
            if answer == "ack":
                session.send(amqp.MessageAccept(transfers=ids))
            elif answer == "requeue":
                session.send(amqp.MessageRelease(transfers=ids, set_redelivered=self.random.random() < 0.5))
            else:
                session.send(amqp.MessageReject(transfers=ids))
        for lower, upper in ids.ranges:
            session.finish(lower, upper, tell=True)
        self.flush()

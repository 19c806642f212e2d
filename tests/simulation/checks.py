"""What is looked at all the time: nobody waits for ever, memory is bounded; at the end, nothing is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from amqpgate.datapath.budgets import CHUNK, OWN_WORDS
from amqpgate.gateway.limits.token_buckets import LOCAL_RATE, local_burst
from tests.simulation.client import PATIENCE
from tests.simulation.ledger import Violation

if TYPE_CHECKING:
    from tests.simulation.entries import Delivery
    from tests.simulation.life import Life
    from tests.simulation.world import World

#: The user of hostile clients, whose messages are in no ledger.
HOSTILE = "eve"
#: Seconds between looks.
EVERY = 20.0


class Checks:
    """Of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: Broker and queue -> since when nothing has moved, and what it was.
        self._still: dict[tuple[str, str], tuple[float, int, int]] = {}
        #: Since when brokers wait for the settlement of deliveries that no client has any more, by number.
        self._unheard: dict[int, float] = {}
        self.ends_by = float("inf")
        #: The fewest messages that waited at the end.
        self.least_work = 0

    def begin(self) -> None:
        self.world.clock.after(EVERY, self._look)

    def _look(self) -> None:
        world = self.world
        now = world.clock.now
        for client in world.clients:
            if client.session is not None:
                since, what = client.session.oldest()
                if now - since > PATIENCE:
                    raise Violation(f"{client.session.name} waits for {what} since {now - since:g} s")
        self._queues(now)
        self._answers(now)
        self._memory()
        if world.is_ending and not world.is_over:
            self._ending(now)
        if not world.is_over:
            world.clock.after(EVERY, self._look)

    def _queues(self, now: float) -> None:
        """Where messages wait for somebody who takes them, some are taken."""
        for broker in self.world.brokers.values():
            for queue, waiting in broker.queues.items():
                place = broker.name, queue
                if not waiting or not broker.consumers[queue]:
                    self._still.pop(place, None)
                    continue
                state = len(waiting), broker.consumed
                still = self._still.get(place)
                if still is None or still[1:] != state:
                    self._still[place] = now, *state
                elif now - still[0] > PATIENCE:
                    raise Violation(
                        f"{len(waiting)} messages of {queue} wait at broker {broker.name} since "
                        f"{now - still[0]:g} s, and its consumers get nothing"
                    )

    def _answers(self, now: float) -> None:
        """What a client has said of a delivery its broker hears, or the end of its channel."""
        unheard = {
            delivery.number: self._unheard.get(delivery.number, now)
            for delivery in self._held_by_nobody()
            if delivery.lane is not None
        }
        for number, since in unheard.items():
            if now - since > PATIENCE:
                raise Violation(
                    f"a broker waits for the settlement of delivery {number} since {now - since:g} s"
                )
        self._unheard = unheard

    def _held_by_nobody(self) -> Iterator[Delivery]:
        """What brokers hold to be unacknowledged, and no client."""
        for broker in self.world.brokers.values():
            for end in broker.ends:
                for channel in end.channels.values():
                    for delivery, _ in channel.held.values():
                        lane = delivery.lane
                        if lane is None or delivery.answer or lane.is_over or lane.is_silent:
                            yield delivery

    def _memory(self) -> None:
        """What waits in the data path is within its limits."""
        life = self.world.life
        if life is None or life.end is not None:
            return
        high = self.world.story.setup.buffer_high
        most = high + CHUNK + OWN_WORDS + 8 * 1024 * 1024
        for session in life.gateway.sessions.values():
            for endpoint in session.relay.endpoints:
                link = endpoint.link if endpoint.is_pooled else None
                waiting = max(endpoint.waiting, 0 if link is None else link.endpoint.waiting)
                if waiting > most:
                    raise Violation(f"{waiting} bytes wait at one socket of the gateway, {most} are allowed")

    def _ending(self, now: float) -> None:
        world = self.world
        publishers = [one for one in world.clients if one.plan.kind == "publisher"]
        left = [one.name for one in publishers if one.session is not None]
        queues = {
            f"{broker.name}/{name}": len(waiting)
            for broker in world.brokers.values()
            for name, waiting in broker.queues.items()
            if waiting and broker.consumers[name]
        }
        held = sum(len(lane.held) for lane in world.ledger.lanes if not lane.is_over)
        # What the gateway keeps, deliveries or what was said of them, the broker has again some time.
        kept = sum(1 for _ in self._held_by_nobody())
        work = sum(queues.values()) + held + kept
        if self.ends_by == float("inf") or work < self.least_work:
            # A consumer may be slow. Who makes no way is not.
            self.ends_by, self.least_work = now + 3 * PATIENCE, work
        if not left and not queues and not held and not kept:
            world.tell("all is done")
            world.is_over = True
        elif now > self.ends_by:
            what = f"publishers {left}, queues {queues}, {held} deliveries held, {kept} held by nobody"
            raise Violation(f"not over in time: {what}")

    # -- at the end --------------------------------------------------------------------------------

    def buried(self, life: Life, sockets: int) -> None:
        """A gateway has ended, however it has; so many ``sockets`` of its are open."""
        gateway = life.gateway
        left = {
            "sessions": len(gateway.sessions),
            "connections": gateway.acceptor.connections.count,
            "relays": gateway.pump.counters.relays,
            "fibers": len(gateway.registry.fibers),
            "sockets": sockets,
            "failures of the data path": gateway.pump.counters.failures,
        }
        if any(left.values()):
            raise Violation(f"the gateway has ended, and has left {left}")

    def last(self) -> None:
        """All is over: what was said adds up."""
        ledger = self.world.ledger
        for message in ledger.messages:
            lane = message.lane
            if not lane.is_over and not message.arrived and not message.denied:
                raise Violation(f"message {message.number} of {lane.name} never came, and nobody was told")

        if self.world.story.setup.audit:
            self._audit()
        if self.world.story.setup.shared == "closed":
            self._shared()

    def _shared(self) -> None:
        """What has passed was granted, but for what a local bucket may owe and gains by itself."""
        world = self.world
        users, rate = len({client.plan.user for client in world.clients}), world.story.setup.rate
        owed = users * (world.lives * (1 + local_burst(rate)) + LOCAL_RATE * rate * (world.clock.now - 1000))
        passed = sum(bool(message.arrived) for message in world.ledger.messages)
        if passed > world.redis.granted + owed:
            raise Violation(f"{passed} messages have passed, and {world.redis.granted:g} were granted")

    def _audit(self) -> None:
        """What was written down lies between what was said and what was heard; without faults all is one."""
        honest = self.world.ledger.messages
        passed, denied, arrived, told = 0, 0, 0, 0
        for message in honest:
            if message.denied:
                denied += 1
                told += bool(message.told or message.told_return)
            else:
                passed += 1
                arrived += bool(message.arrived)
        if not self.world.story.faults:
            # Nothing was lost on the way.
            passed = arrived
        self._between("publishes that passed", arrived, self._audited("basic.publish", "allow"), passed)
        self._between("publishes that were denied", told, self._audited("basic.publish", "deny"), denied)
        heard = sum(delivery.lane is not None for delivery in self.world.ledger.deliveries)
        audited = self._audited("basic.deliver", "allow") + self._audited("basic.get-ok", "allow")
        self._between("deliveries", heard, audited, len(self.world.ledger.deliveries))
        returned = sum(message.returned for message in honest)
        self._between("returns", 0, self._audited("basic.return", "allow"), returned)

    def _audited(self, operation: str, verdict: str) -> int:
        messages = self.world.audited.messages
        return sum(
            number
            for (user, what, how), number in messages.items()
            if user != HOSTILE and what == operation and (how or "allow") == verdict
        )

    def _between(self, what: str, least: int, audited: int, most: int) -> None:
        if not least <= audited <= most:
            raise Violation(f"audit records have {audited} {what}; {least} were heard, {most} were said")

    def figures(self) -> Counter[str]:
        world, ledger = self.world, self.world.ledger
        return Counter(
            messages=len(ledger.messages),
            deliveries=len(ledger.deliveries),
            confirms=ledger.confirms,
            settlements=ledger.settlements,
            returns=ledger.returns,
            commits=ledger.commits,
            rollbacks=ledger.rollbacks,
            sessions=sum(client.sessions for client in world.clients),
            lives=world.lives,
            pieces=world.network.pieces,
            bytes=world.network.bytes,
        )

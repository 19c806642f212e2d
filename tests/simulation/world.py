"""One world: clock, network, brokers, clients, and one gateway after the other; what happens in it."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from amqpgate.config import parse
from amqpgate.gateway.limits import distributed
from amqpgate.policy.loader import load_folder
from tests.simulation import audit, faults, seams
from tests.simulation.broker import Broker
from tests.simulation.checks import Checks
from tests.simulation.client import Client
from tests.simulation.clients_0_10 import Consumer010, Publisher010
from tests.simulation.clock import Clock
from tests.simulation.consumer import Consumer
from tests.simulation.entries import Lane
from tests.simulation.hostile import Hostile
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.life import Life
from tests.simulation.logged import Logged
from tests.simulation.network import Network
from tests.simulation.publisher import Publisher
from tests.simulation.redis import Redis
from tests.simulation.settings import ADDED, EXCHANGES, PREFIX, policies_of, settings_of
from tests.simulation.story import ClientPlan, Story
from tests.simulation.tls import Papers

LISTENER = ("10.9.0.1", 5672)
BROKERS = {"a": ("10.8.0.1", 5672), "b": ("10.8.0.2", 5672)}
KINDS: dict[str, type[Client]] = {
    "publisher": Publisher, "consumer": Consumer, "getter": Consumer, "hostile": Hostile,
}  # fmt: skip

#: Those that speak 0-10.
KINDS_0_10: dict[str, type[Client]] = {"publisher": Publisher010, "consumer": Consumer010}

#: Turns within a millisecond after which somebody is going round in circles.
_CIRCLES = 200_000
#: Lines of what happened last that are kept.
_LINES = 400
#: Seconds after which a broker has heard what a pool has said.
_LATER = 60.0
#: Seconds in which a connection that leads nowhere is found to be lost.
_LOST = 400.0


def _kind(plan: ClientPlan) -> type[Client]:
    return KINDS_0_10[plan.kind] if plan.version == "0-10" else KINDS[plan.kind]


class World:
    """See the module."""

    listener = LISTENER

    def __init__(self, story: Story, *, aloud: bool = False) -> None:
        self.story, self.aloud = story, aloud
        setup = story.setup
        is_renamed = setup.transform in ("names", "both")
        self.clock = Clock()
        self.ledger = Ledger(
            ADDED if setup.transform in ("headers", "both") else {}, EXCHANGES if is_renamed else {}
        )
        self.network = Network(
            self.clock, story.seed, latency=setup.latency, cutting=setup.cutting, buffers=setup.buffers
        )
        self.redis = Redis(self.clock, setup.latency)
        seams.enter(self.clock, story.seed, self.network, setup.looks, setup.lag_looks)
        distributed.client_of = self.redis.connected  # type: ignore[assignment]
        self.audited, self.logged = audit.enter(), Logged()
        self.brokers: dict[str, Broker] = {}
        for name in "ab"[: setup.brokers]:
            prefix = PREFIX if is_renamed else ""
            broker = self.brokers[name] = Broker(
                self, name, f"{story.seed}/broker {name}", prefix, setup.version
            )
            self.network.servers[BROKERS[name]] = broker.accept
            self.network.names[BROKERS[name]] = name
        self.clients = [_kind(plan)(self, plan) for plan in story.clients]
        self.is_ending = self.is_over = False
        self.lines: list[str] = []
        self.life: Life | None = None
        self.lives = 0
        #: Until when connections to brokers may still be lost of what has befallen them.
        self.trouble = 0.0
        self.happened: Counter[str] = Counter()
        self.checks = Checks(self)
        with tempfile.TemporaryDirectory() as folder:
            text = policies_of(setup)
            Path(folder, "policies.yaml").write_text(text)
            self.policies = load_folder(Path(folder))
        addresses = [BROKERS[name] for name in self.brokers]
        #: With TLS: of a folder that is there as long as the world is.
        self.papers: Papers | None = None
        self._folder = tempfile.TemporaryDirectory() if setup.tls else None
        if self._folder is not None:
            self.papers = self.network.papers = Papers(
                Path(self._folder.name), [host for host, _ in addresses]
            )
            self.network.tls_clients = setup.tls in ("clients", "both")
            self.network.tls_brokers = setup.tls in ("brokers", "both")
        self.settings = parse(settings_of(setup, LISTENER, addresses, self.papers), {})

    # -- what the models ask -----------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """Something worth a line."""
        line = f"{self.clock.now - 1000:12.6f}  {text}"
        if self.aloud:
            print(line)
        self.lines.append(line)
        if len(self.lines) > 2 * _LINES:
            del self.lines[:_LINES]

    def denies(self, user: str, key: str) -> str:
        if self.story.setup.on_deny and user == "mallory" and key.startswith("secret."):
            return self.story.setup.on_deny
        return ""

    def closed(self, lane: Lane) -> None:
        if self.story.setup.connections == "own" and not lane.is_session:
            self.ledger.closed(lane, by_broker=True)
        elif self.clock.now > self.trouble:
            # A pool answers for the broker, and a translator of 0-10 ahead of it: it has heard all some time
            # later, unless its connection is lost.
            until = self.clock.now + _LATER
            self.clock.at(
                until,
                lambda: self.ledger.closed(lane, by_broker=True) if self.trouble < until - _LATER else None,
            )

    def may_deny(self, user: str, code: int) -> bool:
        if code == 403:
            return bool(self.story.setup.on_deny) and user == "mallory"
        return True

    def in_trouble(self, seconds: float) -> None:
        """For so long, and a while after that, connections to brokers may be lost."""
        self.trouble = max(self.trouble, self.clock.now + seconds + _LOST)

    # -- the gateway -------------------------------------------------------------------------------

    def start_gateway(self) -> None:
        if self.papers is not None and self.papers.shown is None:
            # It would say so, and end.
            self.clock.after(1.0, self.start_gateway)
        elif self.life is None and not self.is_over:
            self.lives += 1
            self.tell(f"the gateway starts, life {self.lives}")
            self.life = Life(self.settings, self.policies, self.clock)

    def kill_gateway(self) -> None:
        if self.life is not None:
            self.network.die()
            self.life.kill()

    # -- all of it ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave no files."""
        if self._folder is not None:
            self._folder.cleanup()

    def run(self) -> None:
        """Play it to its end. Raises `Violation`, and whatever the gateway raises."""
        self.start_gateway()
        for client in self.clients:
            client.start()
        for fault in self.story.faults:
            self.clock.at(1000 + fault.at, lambda fault=fault: faults.happen(self, fault))
        self.clock.at(1000 + self.story.seconds, self._end)
        self.checks.begin()
        self._until(lambda: self.is_over)
        life = self.life
        if life is not None and life.end is None:
            life.gateway.drain()
            self._until(lambda: self.life is None)
        self.checks.last()

    def _end(self) -> None:
        self.tell("the end begins: no more faults, no new work")
        self.is_ending = True
        faults.heal(self)
        self.start_gateway()
        for client in self.clients:
            client.finish()

    def _until(self, done: Callable[[], bool]) -> None:
        clock, network = self.clock, self.network
        turns, since = 0, clock.now
        # Whether anything was done since sockets were looked at.
        is_new = True
        # Whether the gateway's descriptors may tell of something, and the network's.
        may_hear = may_move = True
        while not done():
            busy = clock.fire()
            if network.was_touched() | clock.rang():
                may_hear = may_move = True
            life = self.life
            if life is not None and life.turn(clock.now, may_have_heard=may_hear):
                busy = may_hear = may_move = True
                if life.end is not None:
                    self._buried(life)
                if self.logged.failure:
                    raise Violation(self.logged.failure)
            else:
                may_hear = False
            if busy or is_new:
                is_new = busy
                if may_move:
                    may_move = network.poll()
                    busy |= may_move
            if busy:
                turns += 1
                if turns > _CIRCLES:
                    raise Violation(
                        f"{turns} turns in {clock.now - since:g} s: somebody goes round in circles"
                    )
            else:
                if clock.now - since > 0.001:
                    turns, since = 0, clock.now
                if not clock.jump(math.inf if life is None else life.due):
                    raise Violation("everybody waits for ever")

    def _buried(self, life: Life) -> None:
        assert life.end is not None
        self.life = None
        life.end.unwrap()
        self.checks.buried(life, len(self.network.open_ends()))
        self.tell("the gateway has ended")
        # Who was not told by then is so by the kernel.
        self.network.die()
        if not self.is_over:
            self.clock.after(2.0, self.start_gateway)

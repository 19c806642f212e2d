"""Plays one set-up: its clients, faults one after the other, and the judgement."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from tests.support.processes import Child

from . import outcome as said
from .checker import Checker
from .faults import FAULTS, faults_of
from .history import Kind, read
from .outcome import FaultRun, Outcome
from .setups import Setup, World, playing

#: Seconds until all clients have got on after a fault; without the queues getting emptier.
PATIENCE, EMPTYING = 90.0, 120.0

#: Seconds between two faults, when all clients have got on again.
REST = 3.0

Say = Callable[[str], None]


@attrs.frozen
class Order:
    """What is to be played."""

    seconds: float
    seed: int
    faults: tuple[str, ...] = ()
    rate: float = 0


@attrs.define(eq=False)
class Stage:
    """A set-up while it is played."""

    world: World
    order: Order
    child: Child
    outcome: Outcome
    say: Say

    def status(self) -> dict[str, object]:
        path = self.world.folder / "clients/status.json"
        told: dict[str, object] = json.loads(path.read_text()) if path.exists() else {"clients": {}}
        return told

    def clients(self) -> dict[str, list[float]]:
        told: dict[str, list[float]] = self.status()["clients"]  # type: ignore[assignment]
        return told

    def confirmed(self) -> int:
        return int(sum(one[1] for one in self.clients().values()))

    def late(self, since: float) -> list[str]:
        """Clients that have not got on since then."""
        clients = self.clients()
        return [name for name, one in clients.items() if one[3] <= since] if clients else ["nobody"]

    def wait(self, since: float, patience: float) -> None:
        """Until all clients have got on since then; a problem where one does not."""
        deadline = time.monotonic() + patience
        while late := self.late(since):
            if time.monotonic() > deadline or not self.child.running:
                problem = f"after {patience:.0f} s no progress of {', '.join(late)}"
                self.outcome.problems.append(problem)
                self.say(f"STUCK: {problem}")
                return
            time.sleep(0.25)

    def play(self) -> None:
        begin = time.monotonic()
        dice = random.Random(self.order.seed)
        # The first second belongs to logins.
        self.wait(time.time(), PATIENCE)
        time.sleep(REST)
        for count, name in enumerate(schedule(self.order.faults or faults_of(self.world), dice)):
            # Those that were asked for by name are all played.
            is_late = time.monotonic() - begin > self.order.seconds and count >= len(self.order.faults)
            if is_late or self.outcome.problems:
                break
            self._fault(name, dice)
            time.sleep(REST)

    def _fault(self, name: str, dice: random.Random) -> None:
        run = FaultRun(name, time.time())
        self.outcome.faults.append(run)
        before = self.confirmed()
        try:
            run.detail = FAULTS[name].act(self.world, dice)
        except Exception as error:
            run.problem = f"{type(error).__name__}: {error}"[:2000]
            self.outcome.problems.append(f"{name}: {run.problem}")
        run.end = time.time()
        self.wait(run.end, PATIENCE)
        since = time.time() - run.begin
        count = self.confirmed()
        self.say(
            f"{time.time() - self.outcome.begin:5.0f} s {name:16} {run.end - run.begin:5.1f} s, all on after "
            f"{since:5.1f} s; {count:,} confirmed (+{count - before:,}) {run.detail}"
        )

    def end(self) -> None:
        """Publishers stop, queues are emptied, consumers stop."""
        self.child.signal(signal.SIGTERM)
        least, deadline = float("inf"), time.monotonic() + EMPTYING
        while self.child.running:
            left = self.world.left()
            if not self.status().get("publishing", True) and left == 0:
                break
            if left < least:
                least, deadline = left, time.monotonic() + EMPTYING
            if time.monotonic() > deadline:
                self.outcome.problems.append(f"{left} messages are left, or publishers go on")
                break
            time.sleep(1)
        if self.child.running:
            self.child.signal(signal.SIGINT)
        try:
            self.child.wait(60)
        except Exception as error:
            self.outcome.problems.append(f"clients do not end: {error}")
            self.child.kill()
        failures = self.status().get("failures")
        if failures:
            self.outcome.problems.append(f"clients failed: {failures}")


def schedule(names: Sequence[str], dice: random.Random) -> Iterator[str]:
    """All of them in one order, then all in another one, and so on."""
    while names:
        yield from dice.sample(list(names), len(names))


def play(
    setup: Setup, order: Order, folder: Path, say: Say, act: Callable[[Stage], None] = Stage.play
) -> Outcome:
    """One set-up, from the start of its brokers to the verdict. ``act`` is what happens meanwhile."""
    outcome = Outcome(f"{setup.name}@{setup.broker}", time.time(), order.seed)
    with playing(setup, folder) as world:
        plan = folder / "clients/plan.json"
        world.plan(order.seed, order.rate).write(plan)
        command = [sys.executable, "-m", "tests.chaos.clients", str(plan)]
        child = Child(command, log=folder / "clients.log", cwd=Path(__file__).parents[2])
        outcome.begin = time.time()
        stage = Stage(world, order, child, outcome, say)
        try:
            act(stage)
            stage.end()
        finally:
            child.kill()
        outcome.end = time.time()
    for number, log in enumerate(world.logs):
        (folder / f"gateway-{number}.log").write_text(log)
        at = log.find("Traceback")
        if at >= 0:
            outcome.problems.append(f"a gateway logged: {log[max(0, at - 300) : at + 3000]}")
    judged(outcome, folder / "clients", world.revived)
    return outcome


def judged(outcome: Outcome, folder: Path, kills: Sequence[float]) -> None:
    """Read what clients recorded, and judge it."""
    checker = Checker(kills)
    confirms, deliveries = [], []
    for path in sorted(folder.glob("publisher-*.events")):
        events = list(read(path))
        checker.published(events)
        confirms.append(said.times_of(events, said.CONFIRMS))
        said.per_second(events, said.CONFIRMS, outcome.begin, outcome.confirms)
        outcome.ends.update(event.first for event in events if event.kind is Kind.GONE)
    for path in sorted(folder.glob("consumer-*.events")):
        events = list(read(path))
        checker.consumed(events)
        deliveries.append(said.times_of(events, said.DELIVERIES))
        said.per_second(events, said.DELIVERIES, outcome.begin, outcome.deliveries)
        outcome.ends.update(event.first for event in events if event.kind is Kind.GONE)
    outcome.verdict = checker.end()
    said.stalls(outcome.faults, confirms, deliveries)
    first = outcome.faults[0].begin if outcome.faults else outcome.end
    start = min((times[0] for times in (*confirms, *deliveries) if times), default=first)
    outcome.quiet = (
        max((said.longest(times, start, first) for times in confirms), default=0.0),
        max((said.longest(times, start, first) for times in deliveries), default=0.0),
    )

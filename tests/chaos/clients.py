"""Publishers and consumers of one set-up, a thread each, which come back whenever they are cut off.

    python -m tests.chaos.clients PLAN

SIGTERM ends the publishers, SIGINT then the consumers. `status.json` beside the plan says twice a second how
far each of them is.
"""

from __future__ import annotations

import json
import os
import random
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from amqpgate.errors import ProtocolViolation
from tests.support.client_0_10 import Closed, Refused
from tests.support.client_0_10 import Gone as Gone010
from tests.support.talker import Gone, Unexpected

from .history import Kind, Recorder
from .line import Left
from .plan import BACKLOG, Plan

#: What a client meets while others are killed.
CUT_OFF = (Gone, Gone010, Unexpected, Closed, Refused, OSError, ProtocolViolation)


@attrs.define(eq=False)
class Crew:
    """All clients of a process, and what they know of each other."""

    plan: Plan
    publishing: threading.Event = attrs.field(factory=threading.Event)
    consuming: threading.Event = attrs.field(factory=threading.Event)
    members: list[Client] = attrs.field(factory=list)
    failures: list[str] = attrs.field(factory=list)

    @property
    def run_id(self) -> int:
        return self.plan.seed & 0xFFFFFFFF

    @property
    def has_room(self) -> bool:
        """Whether consumers keep up."""
        confirmed = sum(one.confirmed for one in self.members)
        return confirmed - sum(one.delivered for one in self.members) < BACKLOG

    def status(self) -> dict[str, object]:
        return {
            "clients": {one.name: [one.number, one.confirmed, one.delivered, one.at] for one in self.members},
            "gone": sum(one.ends for one in self.members),
            "failures": self.failures[:5],
            "publishing": any(one.is_alive() for one in self.members if one.role == "publisher"),
        }


class Client(threading.Thread):
    """One that connects again and again until it is told to stop."""

    role = ""

    def __init__(self, crew: Crew, number: int, queue: int = 0) -> None:
        super().__init__(name=f"{self.role}-{number}", daemon=True)
        self.crew, self.plan, self.number, self.queue = crew, crew.plan, number, queue
        folder = Path(crew.plan.folder)
        self.recorder = Recorder(folder / f"{self.role}-{number}.events", number)
        self.dice = random.Random(crew.plan.seed * 1000 + number)
        self.confirmed = self.delivered = self.ends = 0
        #: When it last got on: a confirm, a delivery.
        self.at = 0.0
        self.epoch = -1
        self._tls: ssl.SSLContext | None = crew.plan.tls()

    @property
    def is_wanted(self) -> bool:
        return (self.crew.publishing if self.role == "publisher" else self.crew.consuming).is_set()

    def run(self) -> None:
        try:
            while self.is_wanted:
                self.epoch += 1
                try:
                    self.live()
                except CUT_OFF as error:
                    self.ends += 1
                    code = error.code if isinstance(error, Left) else 0
                    self.recorder.add(Kind.GONE, 0, code)
                    time.sleep(self.dice.uniform(0.05, 0.3))
        except BaseException as error:
            self.crew.failures.append(f"{self.name}: {error!r}")
            raise
        finally:
            self.recorder.close()

    def live(self) -> None:
        """One connection's life."""
        raise NotImplementedError

    def got_on(self, kind: Kind, lane: int, first: int, last: int) -> None:
        """Record messages that were confirmed or delivered."""
        self.recorder.add(kind, lane, first, last)
        self.at = time.time()
        if kind in (Kind.DELIVERED, Kind.REDELIVERED):
            self.delivered += last - first + 1
        else:
            self.confirmed += last - first + 1


class Pace:
    """At most so many messages a second; 0: any."""

    def __init__(self, rate: float) -> None:
        self._rate, self._due = rate, time.monotonic()

    def has_come(self) -> bool:
        return not self._rate or time.monotonic() >= self._due

    def took(self, count: int) -> None:
        if self._rate:
            self._due = max(self._due, time.monotonic() - 1) + count / self._rate


def hire(crew: Crew) -> None:
    """All clients of the plan."""
    # Here, since they are made of `Client`.
    from .clients_0_10 import Consumer010, Publisher010
    from .consumer import Consumer
    from .publishers import Publisher, TxPublisher

    plan = crew.plan
    kinds: tuple[Callable[..., Client], ...] = (Publisher, TxPublisher, Consumer)
    if plan.version == "0-10":
        kinds = (Publisher010, Publisher010, Consumer010)
    for number in range(plan.publishers):
        crew.members.append(kinds[0](crew, number + 1))
    for number in range(plan.transactions if plan.tx_queues else 0):
        crew.members.append(kinds[1](crew, plan.publishers + number + 1))
    for queue in range(len(plan.queues)):
        for number in range(plan.consumers):
            crew.members.append(kinds[2](crew, 100 + queue * plan.consumers + number, queue))


def main(path: Path) -> None:
    crew = Crew(Plan.load(path))
    crew.publishing.set()
    crew.consuming.set()
    signal.signal(signal.SIGTERM, lambda *_: crew.publishing.clear())
    signal.signal(signal.SIGINT, lambda *_: crew.consuming.clear())
    sys.setswitchinterval(0.02)
    hire(crew)
    for member in crew.members:
        member.start()
    status, new = path.with_name("status.json"), path.with_name("status.new")
    while any(member.is_alive() for member in crew.members):
        new.write_text(json.dumps(crew.status()))
        os.replace(new, status)
        time.sleep(0.5)
    new.write_text(json.dumps(crew.status()))
    os.replace(new, status)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

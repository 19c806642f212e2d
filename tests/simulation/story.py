"""A story: what a world has in it and what befalls it, as data. A seed makes one; JSON keeps one."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs


@attrs.frozen
class Setup:
    """Of the gateway, the brokers and the network."""

    #: "compiled", or "plain"; what the process that plays it has.
    engine: str = "plain"
    connections: str = "own"
    shared_consumers: bool = False
    brokers: int = 1
    health: bool = False
    #: Seconds between two checks of a broker's health.
    checks: float = 5.0
    #: What becomes of publishes that policies deny: "close", "nack", "drop", "return"; "": none is.
    on_deny: str = ""
    #: Whether they are told by their headers.
    by_header: bool = False
    #: Messages a second of one connection; 0: any.
    rate: int = 0
    audit: bool = False
    #: What policies change: "headers", "names" of exchanges and queues, "both"; "": nothing.
    transform: str = ""
    #: Seconds between the gateway's looks at its sessions and pools.
    looks: float = 1.0
    #: Of those looks, between two at how late it is.
    lag_looks: float = 0.25
    latency: float = 0.002
    cutting: float = 0.1
    buffers: int = 200_000
    buffer_high: int = 256 * 1024
    #: Of AMQP, by the brokers: "0-9-1", "0-10"; and whether the gateway has to find out.
    version: str = "0-9-1"
    is_found_out: bool = False
    #: Who speaks TLS: "clients", "brokers", "both"; "": nobody does.
    tls: str = ""
    #: The rate is a user's, counted by a Redis; what holds while that is away: "local", "closed"; "": not so.
    shared: str = ""


@attrs.frozen
class ClientPlan:
    """One client."""

    name: str
    kind: str
    seed: str
    user: str
    source: str
    queues: list[str]
    channels: int = 1
    frame_max: int = 131_072
    heartbeat: int = 30
    #: Seconds that a connection stays, that it rests between bursts, and before it connects again; about.
    stay: float = 600.0
    rest: float = 10.0
    pause: float = 20.0
    burst: int = 5
    sizes: int = 8
    confirms: float = 0.8
    #: Of channels without confirms, those with transactions.
    transactions: float = 0.0
    secret: float = 0.0
    prefetch: int = 10
    #: Seconds that a delivery takes, and between changes of mind; about.
    work: float = 0.5
    fickle: float = 120.0
    silent: float = 0.2
    #: Of AMQP.
    version: str = "0-9-1"
    #: Of bursts, those whose first message has frames of another channel's between its own; of a hostile
    #: one's logins, those that break off amid a message.
    weaves: float = 0.0


@attrs.frozen
class Fault:
    """Something that happens."""

    at: float
    kind: str
    #: A client's or a broker's name, or nobody's.
    target: str = ""
    seconds: float = 0.0


@attrs.frozen
class Story:
    """All of it."""

    seed: str
    seconds: float
    setup: Setup
    clients: list[ClientPlan]
    faults: list[Fault]

    def to_json(self) -> str:
        return json.dumps(attrs.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Story:
        told: dict[str, Any] = json.loads(text)
        return cls(
            told["seed"],
            told["seconds"],
            Setup(**told["setup"]),
            [ClientPlan(**one) for one in told["clients"]],
            [Fault(**one) for one in told["faults"]],
        )

    @classmethod
    def load(cls, path: Path) -> Story:
        return cls.from_json(path.read_text())

    def lines(self) -> list[str]:
        """For people."""
        differs = [
            f"{field.name} {getattr(self.setup, field.name)}"
            for field in attrs.fields(Setup)
            if getattr(self.setup, field.name) != field.default
        ]
        return [
            f"seed {self.seed}, {self.seconds:g} s; {', '.join(differs) or 'as by default'}",
            *(
                f"  {one.name}: user {one.user}, {one.channels} channels, queues {' '.join(one.queues)}"
                + (f", AMQP {one.version}" if one.version != "0-9-1" else "")
                for one in self.clients
            ),
            *(
                f"  {one.at:10.3f} s  {one.kind} {one.target}"
                + (f" for {one.seconds:g} s" if one.seconds else "")
                for one in self.faults
            ),
        ]


#: Kinds of faults: how often each is drawn, and of whom: a client, a broker, nobody.
FAULTS: dict[str, tuple[int, str]] = {
    "reset": (6, "client"),
    "stall": (6, "client"),
    "half open in": (2, "client"),
    "half open out": (2, "client"),
    "black hole": (2, "client"),
    "reset broker": (4, "broker"),
    "stall broker": (4, "broker"),
    "black hole broker": (2, "broker"),
    "restart broker": (3, "broker"),
    "unreachable broker": (2, "broker"),
    "slow broker": (3, "broker"),
    "nacking broker": (2, "broker"),
    "kill gateway": (1, ""),
    "drain gateway": (2, ""),
    "pause": (2, ""),
    "reload": (3, ""),
    # Drawn apart, where there is TLS.
    "certificates": (0, ""),
    # Where limits are shared.
    "restart redis": (0, ""),
}


@attrs.frozen
class Pace:
    """How busy a story is."""

    seconds: float
    #: By how much longer rests are than in a busy one, and stays.
    rests: float
    stays: float
    #: `Setup.looks`.
    looks: float
    #: No client asks for heartbeats that come more often, in seconds.
    heartbeat: int = 0
    #: `Setup.checks`, each as often.
    checks: tuple[float, ...] = (5,)


#: A day costs no more than six hours: what an idle one costs is heartbeats, looks, and checks, each of them a
#: handshake where brokers speak TLS.
PACES = (
    Pace(120, 1, 1, 1),
    Pace(1200, 10, 4, 1),
    Pace(6 * 3600, 300, 40, 10, checks=(5, 30)),
    Pace(24 * 3600, 1200, 160, 30, heartbeat=120, checks=(60, 240)),
)


def _pace(random: Random, seconds: float | None) -> Pace:
    """One by chance, or that of stories of this length."""
    drawn = random.choice(PACES)
    if seconds is None:
        return drawn
    return next((pace for pace in reversed(PACES) if pace.seconds <= seconds), PACES[0])


def story_of(seed: str, seconds: float | None = None, engine: str = "plain") -> Story:
    """The story of a seed, for so long or for as long as it says itself."""
    random = Random(f"{seed}/story")
    pace = _pace(random, seconds)
    seconds = seconds or pace.seconds
    pooled = random.random() < 0.4
    setup = Setup(
        engine=engine,
        connections="pooled" if pooled else "own",
        shared_consumers=pooled and random.random() < 0.5,
        brokers=random.choice((1, 1, 2)),
        health=random.random() < 0.3,
        checks=Random(f"{seed}/checks").choice(pace.checks),
        on_deny=random.choice(("", "close", "nack", "drop", "return")),
        by_header=random.random() < 0.4,
        rate=random.choice((0, 0, 20, 200)),
        audit=random.random() < 0.4,
        transform=random.choice(("", "", "", "headers", "names", "both")),
        looks=pace.looks,
        # Nobody is ever late: time stands still while somebody works.
        lag_looks=30.0,
        latency=random.choice((0.0002, 0.002, 0.02, 0.15)),
        cutting=random.choice((0.0, 0.1, 0.6)),
        buffers=random.choice((5_000, 20_000, 200_000)),
        buffer_high=random.choice((32 * 1024, 256 * 1024)),
    )
    queues = [f"q{number}" for number in range(random.randint(1, 4))]
    clients = [_client(seed, number, random, queues, pace) for number in range(random.randint(3, 9))]
    # Somebody takes from each queue.
    last = _client(seed, len(clients), random, queues, pace)
    last = attrs.evolve(last, name=f"consumer{len(clients)}", kind="consumer", user="alice", queues=queues)
    if last.version == "0-10":
        last = attrs.evolve(last, version="0-9-1")
    clients.append(attrs.evolve(last, channels=2 * len(queues), heartbeat=max(30, pace.heartbeat)))
    names = {"client": [one.name for one in clients], "broker": "ab"[: setup.brokers], "": [""]}
    every = seconds / random.choice((1, 4, 15, 60))
    faults, at = [], 0.0
    while (at := at + random.expovariate(1 / every)) < 0.9 * seconds:
        kind = random.choices(list(FAULTS), [weight for weight, _ in FAULTS.values()])[0]
        target = random.choice(names[FAULTS[kind][1]])
        faults.append(
            Fault(round(at, 6), kind, target, round(random.choice((0.5, 5, 20, 70)) * random.random(), 3))
        )
    story = Story(seed, seconds, setup, clients, faults)
    return _with_redis(_with_tls(_with_breaks(_with_denials(story, pace), pace)))


def _with_denials(story: Story, pace: Pace) -> Story:
    """Where something is denied, somebody tries it, and mostly hears of confirms."""
    if not story.setup.on_deny:
        return story
    random = Random(f"{story.seed}/denials")
    client = attrs.evolve(
        _one_more(story, random, "publisher", "mallory", pace),
        confirms=random.choice((0.5, 1.0)),
        secret=random.choice((0.1, 0.4)),
    )
    return attrs.evolve(story, clients=[*story.clients, client])


def _with_breaks(story: Story, pace: Pace) -> Story:
    """Where connections are shared, somebody breaks off amid messages: none of them is for a broker."""
    if story.setup.connections == "own":
        return story
    random = Random(f"{story.seed}/breaks")
    client = attrs.evolve(
        _one_more(story, random, "hostile", "eve", pace),
        pause=random.choice((2, 20)) * pace.stays,
        weaves=1.0,
    )
    return attrs.evolve(story, clients=[*story.clients, client])


def _one_more(story: Story, random: Random, kind: str, user: str, pace: Pace) -> ClientPlan:
    number = len(story.clients)
    client = _client(story.seed, number, random, story.clients[-1].queues, pace)
    return attrs.evolve(client, name=f"{kind}{number}", kind=kind, user=user, version="0-9-1")


def _with_tls(story: Story) -> Story:
    """With TLS, or as it is: what else is in it is the same."""
    random = Random(f"{story.seed}/tls")
    tls = random.choice(("", "", "", "clients", "brokers", "both"))
    faults = list(story.faults)
    if tls in ("clients", "both") and random.random() < 0.5:
        for _ in range(random.randint(1, 4)):
            at = round(0.9 * story.seconds * random.random(), 6)
            faults.append(Fault(at, "certificates", "", random.choice((0.0, 0.5, 5.0))))
    setup = attrs.evolve(story.setup, tls=tls)
    return attrs.evolve(story, setup=setup, faults=sorted(faults, key=lambda fault: fault.at))


def _with_redis(story: Story) -> Story:
    """With shared limits, or as it is."""
    random = Random(f"{story.seed}/redis")
    if not story.setup.rate or random.random() < 0.5:
        return story
    faults = [
        *story.faults,
        *(
            Fault(
                round(0.9 * story.seconds * random.random(), 6),
                "restart redis",
                random.choice(("", "forgets")),
                round(random.choice((0.5, 5, 70)) * random.random(), 3),
            )
            for _ in range(random.randint(0, 4))
        ),
    ]
    setup = attrs.evolve(story.setup, shared=random.choice(("local", "closed")))
    return attrs.evolve(story, setup=setup, faults=sorted(faults, key=lambda fault: fault.at))


#: Versions of AMQP that have the methods of 0-9-1, as often as each is drawn.
_OLD = ("0-9-1",) * 6 + ("0-9", "0-8")


def on_0_10(story: Story) -> Story:
    """The same story with brokers of AMQP 0-10, as far as it can be."""
    random = Random(f"{story.seed}/0-10")
    setup = attrs.evolve(
        story.setup,
        connections="own",
        shared_consumers=False,
        version="0-10",
        is_found_out=random.random() < 0.3,
    )
    # What is rejected in a transaction is so at once there.
    clients = [
        one if one.kind == "publisher" else attrs.evolve(one, transactions=0.0) for one in story.clients
    ]
    return attrs.evolve(story, setup=setup, clients=clients)


def _client(seed: str, number: int, random: Random, queues: list[str], pace: Pace) -> ClientPlan:
    kind = random.choices(("publisher", "consumer", "getter", "hostile"), (5, 4, 1, 1))[0]
    versions = {"hostile": ("0-9-1",), "getter": _OLD}.get(kind, (*_OLD, "0-10", "0-10"))
    version = random.choice(versions)
    return ClientPlan(
        name=f"{kind}{number}",
        kind=kind,
        seed=f"{seed}/client{number}",
        user="eve" if kind == "hostile" else random.choice(("alice", "bob", "mallory")),
        source=f"10.0.0.{number + 1}",
        queues=random.sample(queues, random.randint(1, len(queues))),
        channels=random.choice((1, 1, 2, 5)),
        frame_max=random.choice((4096, 16_384, 131_072)),
        heartbeat=max(random.choice((20, 60, 120)), pace.heartbeat),
        stay=random.choice((20, 100, 1000)) * pace.stays,
        rest=random.choice((0.3, 2, 10)) * pace.rests,
        pause=random.choice((2, 20, 100)) * pace.stays,
        burst=random.choice((1, 4, 12, 40)),
        sizes=random.choice((3, 6, 9, 10)),
        # Publisher confirms came with 0-9-1.
        confirms=random.choice((0.0, 0.7, 1.0)) if version == "0-9-1" else 0.0,
        transactions=random.choice((0.0, 0.0, 0.3, 1.0)),
        secret=random.choice((0.0, 0.1, 0.4)),
        prefetch=random.choice((1, 3, 20, 200)),
        work=random.choice((0.001, 0.05, 1.0)),
        fickle=random.choice((10, 60, 600)) * pace.stays,
        silent=random.choice((0.0, 0.0, 0.5)),
        version=version,
        # By a chance of its own: all else is the same without it.
        weaves=Random(f"{seed}/client{number}/weaves").choice((0.0, 0.3, 1.0)),
    )


def engine_of(words: Sequence[str]) -> str:
    """The engine that a command asks for: by its name, or by its story. Before amqpgate is imported."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--engine", default="compiled")
    parser.add_argument("--story", type=Path)
    told, _ = parser.parse_known_args(words)
    return Story.load(told.story).setup.engine if told.story else str(told.engine)

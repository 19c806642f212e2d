"""The cases, one row each, and the marks that amqpgate is to reach in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs

from .targets import Way

#: What a mark compares, each time with the figure of the same round.
Measure: TypeAlias = Literal[
    "cpu",
    "cpu-of-case",
    "per-core",
    "p50",
    "p99",
    "throughput",
    "memory",
    "cpu-one-by-one",
    "p99-quiet",
    "seconds",
]


@attrs.frozen
class Mark:
    """A figure of amqpgate, what it is compared with, and how much it may be.

    ==============  ==========================================================  ===========
    measure         figure                                                      limit
    ==============  ==========================================================  ===========
    cpu             CPU per message / that of target ``against``                at most
    cpu-of-case     CPU per message / its own in case ``against``               at most
    per-core        messages that a second of CPU time is enough for            at least
    p50             median latency - that of target ``against``, in us          at most
    p99             99th percentile of latency / that of target ``against``     at most
    throughput      messages per second / those of target ``against``           at least
    memory          PSS per connection at ``against`` connections, in KiB       at most
    cpu-one-by-one  CPU per login in a storm / the same, one after the other    at most
    p99-quiet       99th percentile of who stays, in a storm / before it        at most
    seconds         from start to the first answer                              at most
    ==============  ==========================================================  ===========
    """

    measure: Measure
    against: str
    limit: float

    @property
    def at_least(self) -> bool:
        """Whether more is better."""
        return self.measure in ("throughput", "per-core")


@attrs.frozen
class Scale:
    """How long a run measures."""

    rounds: int
    seconds: float
    #: Of the open loop, whose 99.9th percentile needs 20,000 messages or more.
    open_loop: float
    #: Of RabbitMQ's cases, which vary more.
    rabbitmq: float
    warmup: float
    #: Connections: some, and many.
    idle: tuple[int, int]
    #: Before memory is read, and while idle CPU is watched.
    settle: float
    watch: float
    #: Before a storm, while those are watched who stay: their 99th percentile needs 1,000 messages or more.
    quiet: float


FULL = Scale(
    rounds=7,
    seconds=1.5,
    open_loop=3.0,
    rabbitmq=3.0,
    warmup=0.2,
    idle=(1000, 5000),
    settle=0.3,
    watch=1.0,
    quiet=3.0,
)
QUICK = Scale(
    rounds=2,
    seconds=0.2,
    open_loop=0.4,
    rabbitmq=0.4,
    warmup=0.05,
    idle=(50, 200),
    settle=0.1,
    watch=0.2,
    quiet=0.4,
)

RATE = 200
CROWD = 50
KEYS = 2000
WINDOW = 1000


@attrs.frozen
class Case:
    """One row of the table."""

    name: str
    title: str
    way: Way
    #: The load tool's mode, and its options but for time.
    mode: str
    options: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    #: Seconds that the measured phase lasts.
    lasts: Callable[[Scale], float] = lambda scale: scale.seconds
    #: More than so many say no more, and take long; None: all that there are.
    rounds: int | None = None

    @property
    def per_message(self) -> bool:
        """Whether its CPU time is that of single messages or connections that pass."""
        return self.mode not in ("idle", "start")


_SIZES = {"16": 16, "256": 256, "4k": 4 << 10, "64k": 64 << 10}
_CPU_MARKS = {"16": 1.3, "256": 0.95, "4k": 0.7, "64k": 0.7}
_LATENCY = (Mark("p50", "direct", 25), Mark("p99", "haproxy", 1.0))


def _size_name(key: str) -> str:
    return f"{key.removesuffix('k')} {'KiB' if key.endswith('k') else 'B'}"


CASES: tuple[Case, ...] = (
    *(
        Case(
            f"{mode}-{key}",
            f"{mode}, {_size_name(key)}",
            "sink",
            mode,
            ("--size", str(size)),
            (Mark("cpu", "haproxy", _CPU_MARKS[key]),),
        )
        for mode in ("publish", "deliver")
        for key, size in _SIZES.items()
    ),
    Case(
        f"keys-{KEYS}",
        f"publish, 16 B, {KEYS:,} routing keys",
        "sink",
        "publish",
        ("--size", "16", "--keys", str(KEYS)),
        (Mark("cpu-of-case", "publish-16", 2.0),),
    ),
    Case(
        "publish-16-0-8",
        "publish by a client of AMQP 0-8, 16 B",
        "bridge",
        "publish",
        ("--size", "16", "--0-8"),
        (Mark("cpu-of-case", "publish-16", 1.1),),
    ),
    Case(
        "publish-256-pooled",
        "publish by a shared connection, 256 B",
        "pooled",
        "publish",
        ("--size", "256"),
        (Mark("cpu-of-case", "publish-256", 1.5),),
    ),
    *(
        Case(
            f"{mode}-16-audited",
            f"{mode}, 16 B, with audit records",
            "audited",
            mode,
            ("--size", "16"),
            (Mark("cpu-of-case", f"{mode}-16", 1.03),),
        )
        for mode in ("publish", "deliver")
    ),
    *(
        Case(
            f"{mode}-16-profile",
            f"{mode}, 16 B, with a compatibility policy",
            "profile",
            mode,
            ("--size", "16"),
            (Mark("cpu-of-case", f"{mode}-16", 1.2),),
        )
        for mode in ("publish", "deliver")
    ),
    *(
        Case(
            f"{mode}-16-headers{'-profile' if way == 'profile' else ''}",
            f"{mode}, 16 B, with three headers{', with a compatibility policy' if way == 'profile' else ''}",
            way,
            mode,
            ("--size", "16", "--headers"),
            (Mark("cpu-of-case", f"{mode}-16-headers", 1.5),) if way == "profile" else (),
            lasts=lambda scale: scale.seconds / 3,
        )
        for mode in ("publish", "deliver")
        for way in ("own", "profile")
    ),
    Case(
        "pingpong",
        "confirm, one in flight, 16 B",
        "sink",
        "confirm",
        ("--size", "16", "--window", "1"),
        (Mark("cpu", "haproxy", 1.0), *_LATENCY),
    ),
    Case(
        "openloop",
        f"{CROWD} connections at {RATE}/s each, confirmed, 16 B",
        "sink",
        "openloop",
        ("--size", "16", "--connections", str(CROWD), "--rate", str(RATE)),
        (Mark("cpu", "haproxy", 1.0), *_LATENCY),
        lasts=lambda scale: scale.open_loop,
    ),
    Case(
        "pingpong-50",
        f"{CROWD} connections, each confirmed with one in flight, 16 B",
        "sink",
        "confirm",
        ("--size", "16", "--window", "1", "--connections", str(CROWD)),
        (Mark("p99", "haproxy", 1.0),),
    ),
    Case(
        "churn",
        "connect, log in, publish one, close",
        "sink",
        "churn",
        ("--size", "16"),
        (Mark("cpu", "haproxy", 3.0), Mark("per-core", "", 1600)),
    ),
    Case(
        "churn-tls",
        "the same over TLS, a full handshake each",
        "tls",
        "churn",
        ("--size", "16"),
        (Mark("cpu", "haproxy", 1.5),),
    ),
    Case(
        "churn-tls-resumed",
        "the same over TLS, with the session before",
        "tls",
        "churn",
        ("--size", "16", "--resume"),
        (Mark("cpu", "haproxy", 1.5),),
    ),
    Case(
        "storm",
        "clients that all come back at once, a login each",
        "sink",
        "storm",
        (),
        (Mark("cpu-one-by-one", "", 1.3), Mark("p99-quiet", "", 1.5)),
        rounds=3,
    ),
    Case(
        "start",
        "from the start of the process to the first answer",
        "sink",
        "start",
        (),
        (Mark("seconds", "", 0.5),),
    ),
    Case(
        "tls-publish-4k",
        "publish over TLS, 4 KiB",
        "tls",
        "publish",
        ("--size", "4096"),
        (Mark("cpu", "haproxy", 1.3),),
    ),
    Case(
        "tls-deliver-4k",
        "deliver over TLS, 4 KiB",
        "tls",
        "deliver",
        ("--size", "4096"),
        (Mark("cpu", "haproxy", 1.3),),
    ),
    Case(
        "idle",
        "idle connections, one channel each",
        "sink",
        "idle",
        (),
        tuple(Mark("memory", str(count), 3.0) for count in FULL.idle),
        rounds=3,
    ),
    Case(
        "rabbitmq-e2e",
        "RabbitMQ, 16 B, publisher to consumer",
        "rabbitmq",
        "e2e",
        ("--size", "16", "--window", "5000", "--declare"),
        (Mark("throughput", "direct", 0.95),),
        lasts=lambda scale: scale.rabbitmq,
    ),
    Case(
        "rabbitmq-confirm",
        f"RabbitMQ, 16 B, confirms, window {WINDOW}",
        "rabbitmq",
        "confirm",
        ("--size", "16", "--window", str(WINDOW), "--declare"),
        (Mark("throughput", "direct", 0.95),),
        lasts=lambda scale: scale.rabbitmq,
    ),
)

BY_NAME = {case.name: case for case in CASES}

"""Whether a gateway stays level while clients come and go: memory, descriptors, tasks, as slopes with errors.

No faults but these: connections are reset in the middle of their work, others come, say something and leave,
or leave in the middle of a word. Visitors that make no pause bring within minutes what a day brings: whether
memory goes with connections or with time is seen by both slopes.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from struct import Struct

import attrs

from tests.support.client_0_10 import Client010

from .clients import CUT_OFF
from .line import Line
from .outcome import Growth, Level
from .setups import World
from .stage import PATIENCE, REST, Stage

#: Seconds between looks, and between resets, of which each takes this share of connections.
LOOK, PAUSE, SHARE = 2.0, 1.0, 0.2
#: Seconds between the visits of the one that makes pauses.
LEISURE = 0.1
#: The part of a run in which caches fill up: it is not judged.
WARM = 0.2
#: Means of so many blocks are the points of a slope: what is near in time is not independent.
BLOCKS = 10

#: Of connections, for the slope by them.
MANY = 100_000

_COUNT = Struct("<q")
#: What maps the ring of an hour, beside the counts of shared limits.
_RING = "memfd:amqpgate-limits"
_PROBE = Path(__file__).with_name("probe")
_FIRST_BYTES = b"AMQP\0\0\x09\x01"


@attrs.frozen
class Sample:
    """Of all processes of a gateway together."""

    at: float
    #: MiB, without the ring.
    memory: float
    #: MiB of the rings of an hour, which are full after an hour.
    ring: float
    descriptors: int
    tasks: int
    #: That have come until then.
    connections: int = 0


def levels(samples: Sequence[Sample]) -> list[Level]:
    """Without the beginning. Empty where there is too little."""
    samples = samples[int(WARM * len(samples)) :]
    if len(samples) < 2 * BLOCKS:
        return []
    hours = [(sample.at - samples[0].at) / 3600 for sample in samples]
    return [
        Level(what, statistics.fmean(values), *slope(hours, values), means(values, 4))
        for what, values in (
            ("memory, MiB", [sample.memory for sample in samples]),
            ("descriptors", [float(sample.descriptors) for sample in samples]),
            ("tasks", [float(sample.tasks) for sample in samples]),
        )
    ]


def growths(samples: Sequence[Sample]) -> list[Growth]:
    """Of memory by connections: of the first half, the last half, the last quarter. What fills up goes to
    nothing, what leaks stays.
    """
    found = []
    for part, begin, end in (("first half", 0.0, 0.5), ("last half", 0.5, 1.0), ("last quarter", 0.75, 1.0)):
        some = samples[round(begin * len(samples)) : round(end * len(samples))]
        many = [sample.connections / MANY for sample in some]
        if len(some) >= 2 * BLOCKS and many[-1] > many[0]:
            kibibytes = [1024 * sample.memory for sample in some]
            count = some[-1].connections - some[0].connections
            found.append(Growth(part, count, *slope(many, kibibytes)))
    return found


def slope(at: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """By least squares over the means of `BLOCKS` blocks, and its standard error."""
    x, y = means(at, BLOCKS), means(values, BLOCKS)
    rises, begins = statistics.linear_regression(x, y)
    left = sum((one - begins - rises * when) ** 2 for when, one in zip(x, y, strict=True))
    mean = statistics.fmean(x)
    spread = sum((when - mean) ** 2 for when in x)
    return rises, (left / (BLOCKS - 2) / spread) ** 0.5


def means(values: Sequence[float], count: int) -> list[float]:
    """Of so many blocks, which are about equally long."""
    cuts = [round(block * len(values) / count) for block in range(count + 1)]
    return [statistics.fmean(values[a:b]) for a, b in pairwise(cuts)]


def processes(pid: int) -> Iterator[int]:
    """A process, and all below it."""
    yield pid
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from processes(int(child))


def look(pid: int, tasks: Path, connections: int = 0) -> Sample:
    """At a gateway now. What has just ended counts for nothing."""
    memory, ring, descriptors, living = 0, 0, 0, 0
    for one in processes(pid):
        with contextlib.suppress(OSError):
            of_all, of_ring = _private(one)
            memory += of_all - of_ring
            ring += of_ring
            descriptors += len(os.listdir(f"/proc/{one}/fd"))
        with contextlib.suppress(OSError):
            living += _COUNT.unpack((tasks / str(one)).read_bytes())[0]
    return Sample(time.time(), memory / 1024, ring / 1024, descriptors, living, connections)


def _private(pid: int) -> tuple[int, int]:
    """KiB that are its alone, and those of the ring among them: what workers share would be counted twice."""
    found, of_ring, is_ring = 0, 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        word = line.split(maxsplit=1)[0]
        if not word.endswith(":"):
            is_ring = _RING in line
        elif word.startswith("Private_"):
            count = int(line.split()[1])
            found += count
            of_ring += count * is_ring
    return found, of_ring


@contextlib.contextmanager
def probed(folder: Path) -> Iterator[Path]:
    """Gateways that are started inside count their tasks in files of this folder."""
    folder.mkdir(parents=True)
    before = os.environ.get("PYTHONPATH")
    places = os.pathsep.join([str(_PROBE), *([before] if before else [])])
    os.environ |= {"PYTHONPATH": places, "AMQPGATE_TASKS": str(folder)}
    try:
        yield folder
    finally:
        del os.environ["AMQPGATE_TASKS"]
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def churn(tasks: Path, visitors: int = 0) -> Callable[[Stage], None]:
    """What is played in the place of faults. ``visitors``: so many at once that make no pause; 0: one, which
    does.
    """

    def play(stage: Stage) -> None:
        world, order, outcome = stage.world, stage.order, stage.outcome
        dice = random.Random(order.seed)
        stage.wait(time.time(), PATIENCE)
        time.sleep(REST)
        over = threading.Event()
        visits = [
            Visits(world, random.Random(dice.random()), over, 0 if visitors else LEISURE)
            for _ in range(visitors or 1)
        ]
        for one in visits:
            one.start()
        samples: list[Sample] = []
        resets = 0
        end = time.monotonic() + order.seconds
        looked = 0.0
        while time.monotonic() < end and stage.child.running:
            resets += world.wires.reset(world.fronts, SHARE, dice)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                came = resets + sum(one.count for one in visits)
                samples.append(look(world.gateway.pid, tasks, came))
            time.sleep(PAUSE)
        over.set()
        for one in visits:
            one.join()
        stage.wait(time.time(), PATIENCE)
        outcome.levels = levels(samples)
        outcome.growths = growths(samples) if visitors else []
        minutes = (samples[-1].at - samples[0].at) / 60 if samples else 0.0
        came = sum(one.count for one in visits)
        stage.say(
            f"{minutes:.1f} minutes: {resets:,} connections reset, {came:,} visits, "
            f"{stage.confirmed():,} confirmed"
        )
        for level in outcome.levels:
            stage.say(f"  {level}")
            if not level.is_level:
                outcome.problems.append(f"{level.what} rises by {level.slope:.2f} an hour")
        for growth in outcome.growths:
            stage.say(f"  {growth}")
        if samples:
            rings = f"{samples[0].ring:.2f} to {samples[-1].ring:.2f}"
            stage.say(f"  rings of an hour, MiB, which is not in the memory above: {rings}")

    return play


class Visits(threading.Thread):
    """Clients that come, do a little, and go: in order, with a reset, amid a word, without a word."""

    def __init__(self, world: World, dice: random.Random, over: threading.Event, pause: float) -> None:
        super().__init__(name="visits", daemon=True)
        self.port, self.tls = world.gateway.port, world.plan(0, 0).tls()
        self.version = world.setup.version
        self.dice, self.over, self.pause = dice, over, pause
        self.count = 0

    def run(self) -> None:
        acts = (self._orderly, self._orderly, self._half, self._wordless, self._cut)
        while not self.over.wait(self.pause):
            with contextlib.suppress(*CUT_OFF):
                self.dice.choice(acts)()
            self.count += 1

    def _orderly(self) -> None:
        with self._arrived() as client:
            if isinstance(client, Client010):
                client.end()
            else:
                client.leave()

    def _cut(self) -> None:
        with self._arrived() as client:
            _reset_at_close(client.sock)

    def _arrived(self) -> Client010 | Line:
        """One that has logged in, in the version of the set-up, and published a message that goes nowhere."""
        if self.version == "0-10":
            client = Client010.opened(self.port)
            client.session().publish(b"a visit", "nowhere", sync=False)
            return client
        line = Line.opened(self.port, self.version, tls=self.tls)
        line.publish(b"a visit", "nowhere")
        return line

    def _half(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
            sock.send(_FIRST_BYTES[: self.dice.randint(1, 8)])

    def _wordless(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
            sock.send(_FIRST_BYTES)
            if self.tls is None:
                sock.recv(1)
            _reset_at_close(sock)


def _reset_at_close(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

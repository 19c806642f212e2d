"""Whether a gateway stays level while clients come and go: memory, descriptors, tasks, as slopes with errors.

No faults but these: connections are reset in the middle of their work, others come, say something and leave,
or leave in the middle of a word.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import ssl
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from struct import Struct

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Gone, Unexpected

from .line import Line
from .outcome import Level
from .stage import PATIENCE, REST, Stage

#: Seconds between looks, and between resets, of which each takes this share of connections.
LOOK, PAUSE, SHARE = 2.0, 1.0, 0.2
#: The part of a run in which caches fill up: it is not judged.
WARM = 0.2
#: Means of so many blocks are the points of a slope: what is near in time is not independent.
BLOCKS = 10

_COUNT = Struct("<q")
_PROBE = Path(__file__).with_name("probe")
_FIRST_BYTES = b"AMQP\0\0\x09\x01"


@attrs.frozen
class Sample:
    """Of all processes of a gateway together."""

    at: float
    #: MiB.
    memory: float
    descriptors: int
    tasks: int


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


def look(pid: int, tasks: Path) -> Sample:
    """At a gateway now. What has just ended counts for nothing."""
    memory, descriptors, living = 0.0, 0, 0
    for one in processes(pid):
        with contextlib.suppress(OSError):
            memory += _private(one)
            descriptors += len(os.listdir(f"/proc/{one}/fd"))
        with contextlib.suppress(OSError):
            living += _COUNT.unpack((tasks / str(one)).read_bytes())[0]
    return Sample(time.time(), memory, descriptors, living)


def _private(pid: int) -> float:
    """MiB that are its alone: what workers share would be counted twice."""
    found = 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_"):
            found += int(line.split()[1])
    return found / 1024


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


def churn(tasks: Path) -> Callable[[Stage], None]:
    """What is played in the place of faults."""

    def play(stage: Stage) -> None:
        world, order, outcome = stage.world, stage.order, stage.outcome
        dice = random.Random(order.seed)
        stage.wait(time.time(), PATIENCE)
        time.sleep(REST)
        over = threading.Event()
        visits = Visits(world.gateway.port, world.plan(0, 0).tls(), dice, over)
        visits.start()
        samples: list[Sample] = []
        resets = 0
        end = time.monotonic() + order.seconds
        looked = 0.0
        while time.monotonic() < end and stage.child.running:
            resets += world.wires.reset(world.fronts, SHARE, dice)
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                samples.append(look(world.gateway.pid, tasks))
            time.sleep(PAUSE)
        over.set()
        visits.join()
        stage.wait(time.time(), PATIENCE)
        outcome.levels = levels(samples)
        minutes = (samples[-1].at - samples[0].at) / 60 if samples else 0.0
        stage.say(
            f"{minutes:.1f} minutes: {resets:,} connections reset, {visits.count:,} visits, "
            f"{stage.confirmed():,} confirmed"
        )
        for level in outcome.levels:
            judged = "level" if level.is_level else "RISES"
            rise = f"{level.slope:+.2f} an hour, error {level.error:.2f}"
            means = ", ".join(f"{mean:.1f}" for mean in level.quarters)
            stage.say(f"  {level.what}: {means} by quarters, {rise}: {judged}")
            if not level.is_level:
                outcome.problems.append(f"{level.what} rises by {level.slope:.2f} an hour")

    return play


class Visits(threading.Thread):
    """Clients that come, do a little, and go: in order, in the middle of a word, without a word."""

    def __init__(
        self, port: int, tls: ssl.SSLContext | None, dice: random.Random, over: threading.Event
    ) -> None:
        super().__init__(name="visits", daemon=True)
        self.port, self.tls, self.dice, self.over = port, tls, random.Random(dice.random()), over
        self.count = 0

    def run(self) -> None:
        acts = (self._orderly, self._orderly, self._half, self._wordless)
        while not self.over.wait(0.1):
            with contextlib.suppress(OSError, Gone, Unexpected):
                self.dice.choice(acts)()
            self.count += 1

    def _orderly(self) -> None:
        with Line.opened(self.port, "0-9-1", tls=self.tls) as line:
            line.publish(b"a visit", "nowhere")
            line.ask(amqp.ConnectionClose(200, "bye"), amqp.ConnectionCloseOk)

    def _half(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
            sock.send(_FIRST_BYTES[: self.dice.randint(1, 8)])

    def _wordless(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
            sock.send(_FIRST_BYTES)
            if self.tls is None:
                sock.recv(1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

"""What looking at many sessions costs the relay: ``python -m tests.bench.admin [--sessions 5000]``.

Rounds without and with an operator who asks for ``/sessions`` once a second take turns, while 50 other
connections publish 200 messages a second each, confirmed. Told are the latencies of both, the ratio of each
pair, and how long an answer takes. Then how long the event loop is held at most by one step of a task, in CPU
time, in which other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import attrs
import trio

from amqpgate.app import wiring
from amqpgate.config import load as load_settings
from tests.support.ports import free_port

from .build import build
from .run import _raise_file_limit
from .targets import HERE, LOOPBACK, Amqpgate, Certificates, Surroundings
from .tools import Sink, load

#: What an operator's page asks for, and the longest answer there is.
PATHS = ("/sessions?sort=-published_rate", "/sessions?limit=1000")


@attrs.define
class Operator:
    """Asks once a second while it is entered."""

    port: int
    path: str
    took: list[float] = attrs.field(factory=list)
    _over: threading.Event = attrs.field(factory=threading.Event)
    _thread: threading.Thread | None = None

    def ask(self) -> None:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
        began = time.perf_counter()
        connection.request("GET", self.path)
        answer = connection.getresponse()
        answer.read()
        self.took.append(time.perf_counter() - began)
        assert answer.status == 200
        connection.close()

    def run(self) -> None:
        while True:
            began = time.monotonic()
            self.ask()
            if self._over.wait(max(0.0, 1 - (time.monotonic() - began))):
                return

    def __enter__(self) -> Operator:
        self._thread = threading.Thread(target=self.run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._over.set()
        self._thread.join()


class Steps(trio.abc.Instrument):
    """The longest steps of tasks, in seconds of CPU, by the task's name."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}
        self._began = time.thread_time()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        spent = time.thread_time() - self._began
        self.longest[task.name] = max(spent, self.longest.get(task.name, 0.0))


def stages(sessions: int) -> list[int]:
    """Numbers of connections on the way there: a machine with other work is given time."""
    return [*range(500, sessions, 500), sessions]


def latency(load_tool: Path, address: str, seconds: float) -> dict[str, float]:
    options = ["--size", "16", "--connections", "50", "--rate", "200", "--warmup", "0.5"]
    with load(load_tool, "openloop", address, *options, "--seconds", str(seconds)) as tool:
        assert tool.hear() == "ready"
        tool.say("go")
        told = tool.hear_json()["latency"]
        tool.finish()
    assert isinstance(told, dict)
    return told


def rounds(target: Amqpgate, load_tool: Path, count: int, seconds: float) -> None:
    address = target.address("sink")
    assert address is not None
    for path in PATHS:
        pairs, took = [], []
        for number in range(count):
            found = {}
            for asks in (False, True) if number % 2 else (True, False):
                if asks:
                    with Operator(target._ports["admin"], path) as operator:
                        found[asks] = latency(load_tool, address, seconds)
                    took += operator.took
                else:
                    found[asks] = latency(load_tool, address, seconds)
            pairs.append((found[False], found[True]))
        print(
            f"{path}: {len(took)} answers, median {statistics.median(took):.3f} s, longest {max(took):.3f} s"
        )
        for name in ("p50", "p99", "p999"):
            ratios = sorted(asked[name] / alone[name] for alone, asked in pairs)
            alone, asked = (statistics.median(pair[side][name] for pair in pairs) for side in (0, 1))
            print(
                f"  {name}: {alone:.0f} us alone, {asked:.0f} us asked; "
                f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            )


async def held(file: Path, port: int, admin: int, load_tool: Path, sessions: int) -> dict[str, float]:
    """The longest steps while somebody asks, of a gateway in this process."""
    steps = Steps()
    async with trio.open_nursery() as nursery:
        started = trio.Event()
        nursery.start_soon(lambda: wiring.serve(load_settings(file, {}), on_started=lambda _: started.set()))
        await started.wait()
        with load(load_tool, "idle", f"{LOOPBACK}:{port}", "--connections", str(sessions)) as tool:
            await trio.to_thread.run_sync(tool.hear)
            for opened in stages(sessions):
                tool.say(f"open {opened}")
                await trio.to_thread.run_sync(tool.hear_json)
            for path in PATHS:
                await trio.to_thread.run_sync(Operator(admin, path).ask)
            trio.lowlevel.add_instrument(steps)
            for _ in range(3):
                await trio.sleep(1)
                for path in PATHS:
                    await trio.to_thread.run_sync(Operator(admin, path).ask)
            trio.lowlevel.remove_instrument(steps)
        nursery.cancel_scope.cancel()
    return steps.longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5.0)
    told = parser.parse_args()
    _raise_file_limit()
    tools = build()
    with (
        tempfile.TemporaryDirectory(prefix="amqpgate-bench-") as scratch,
        Sink(tools.sink, free_port()) as sink,
    ):
        folder = Path(scratch)
        around = Surroundings(
            calm=sink.address,
            folder=folder,
            sink=f"{LOOPBACK}:{sink.port}",
            rabbitmq=f"{LOOPBACK}:1",
            certificates=Certificates.make(folder),
            policies=HERE / "policies",
            load=tools.load,
            max_connections=10_000,
        )
        config = folder / "base.yaml"
        # Neither the load tool nor the sink sends heartbeats while it does nothing.
        text = (HERE / "amqpgate.yaml").read_text()
        text = text.replace("upstream: sink}", "upstream: sink, heartbeat: 0}")
        config.write_text(text.replace('{sink_address}"}', '{sink_address}", heartbeat: 0}'))
        target = Amqpgate(around, "amqpgate", (sys.executable, "-m", "amqpgate"), config)
        target.start()
        try:
            address = target.address("sink")
            assert address is not None
            with load(tools.load, "idle", address, "--connections", str(told.sessions)) as tool:
                tool.hear()
                for opened in stages(told.sessions):
                    tool.say(f"open {opened}")
                    tool.hear_json()
                rounds(target, tools.load, told.rounds, told.seconds)
        finally:
            target.stop()
        port, admin = free_port(), free_port()
        file = folder / "in-process.yaml"
        file.write_text(
            f"listeners: [{{name: main, bind: '{LOOPBACK}:{port}', heartbeat: 0}}]\n"
            f"upstreams: [{{name: sink, url: 'amqp://{LOOPBACK}:{sink.port}', heartbeat: 0}}]\n"
            f"admin: {{bind: '{LOOPBACK}:{admin}'}}\n"
        )
        longest = trio.run(held, file, port, admin, tools.load, told.sessions)
        print("longest steps of tasks, ms of CPU:")
        for name, seconds in sorted(longest.items(), key=lambda one: -one[1])[:6]:
            print(f"  {seconds * 1e3:6.2f}  {name}")


if __name__ == "__main__":
    main()

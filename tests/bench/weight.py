"""What a process weighs, and what its start takes: ``python -m tests.bench.weight [--rounds 3]``.

For each kind of process a new one is started with `policies` in force, and with bytecode that was compiled
before, as an image has it. Its start is over when the listener accepts the first connection: seconds by the
clock, and of CPU. Then a session publishes through it, ``/readyz`` and ``/metrics`` are asked as a kubelet
and Prometheus ask them, and its memory is read from ``/proc/PID/smaps_rollup`` in MiB: resident; of that what
is its own (anonymous) and what is of files, most of which other processes share; and proportional, where each
shared page is divided among those who share it. Medians over the rounds.

``--also before='/elsewhere/.venv/bin/python -m amqpgate'`` compares versions, in turn.
"""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.support.embedded import embedded_broker
from tests.support.ports import free_port
from tests.support.processes import Child
from tests.support.talker import Talker

from .accounting import cpu_ns, tree

HERE = Path(__file__).resolve().parent
BYTECODE = HERE.parent.parent / ".cache" / "bytecode"
SETTINGS = """
listeners: [{{name: main, bind: "127.0.0.1:{port}"}}]
upstreams: [{{name: broker, host: {host}, port: {broker}}}]
policies: "{policies}"
admin: {{bind: "127.0.0.1:{admin}"}}
log: {{level: warning, format: json}}
"""
#: Added to the settings of each kind of process; records are written once a second.
KINDS = {
    "plain": "",
    "audit as JSON": "audit: {format: json, window: 1s}\n",
    "audit as Parquet": 'audit: {format: parquet, folder: "FOLDER", window: 1s, rollInterval: 1s}\n',
    "supervisor": "workers: 2\n",
}
_MIB = 1 << 20
#: Seconds that the records of a window may take to be written.
_SETTLE = 2.5


@attrs.frozen
class Weight:
    """One process, once. MiB, and seconds."""

    resident: float
    own: float
    file: float
    proportional: float
    start: float
    start_cpu: float

    @classmethod
    def read(cls, pid: int, start: float, start_cpu: float) -> Weight:
        """Of a process that runs."""
        sizes = {}
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, size = line.split()[:2]
            sizes[name] = int(size) * 1024 / _MIB
        own = sizes["Anonymous:"]
        return cls(sizes["Rss:"], own, sizes["Rss:"] - own, sizes["Pss:"], start, start_cpu)


@contextmanager
def running(
    command: Sequence[str], settings: str, port: int, folder: Path
) -> Iterator[tuple[Child, float, float]]:
    """A process that accepts connections, and what that took: seconds, and those of CPU."""
    file = folder / "amqpgate.yaml"
    file.write_text(settings)
    began = time.monotonic()
    child = Child([*command, "run", "--config", file], log=folder / "log", env=environment())
    try:
        child.wait_until(lambda: accepts(port), timeout=60, what=shlex.join(command))
        yield child, time.monotonic() - began, cpu_ns(child.pid) / 1e9
    finally:
        child.stop(20)


def environment() -> dict[str, str]:
    """That of a process whose bytecode is kept, in a place of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(BYTECODE)}


def accepts(port: int) -> bool:
    """Whether somebody listens, within the next twentieth of a second."""
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except ConnectionRefusedError:
            time.sleep(0.001)
        else:
            return True
    return False


def serve(port: int, admin: int) -> None:
    """One session, and what machines ask."""
    with Talker.dial(port) as client:
        client.open()
        for _ in range(100):
            client.publish(b"x" * 100, "bench.key")
        client.bye()
    for path in ("/readyz", "/metrics"):
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}{path}", timeout=20) as answer:
            answer.read()


def weigh(command: Sequence[str], kind: str, broker: tuple[str, int]) -> dict[str, Weight]:
    """The process, and where it has workers one of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        port, admin = free_port(), free_port()
        text = SETTINGS.format(
            port=port, admin=admin, host=broker[0], broker=broker[1], policies=HERE / "policies"
        ) + KINDS[kind].replace("FOLDER", name)
        with running(command, text, port, folder) as (child, seconds, cpu):
            serve(port, admin)
            time.sleep(_SETTLE)
            found = {kind: Weight.read(child.pid, seconds, cpu)}
            workers = [pid for pid in tree(child.pid) if pid != child.pid]
            if workers:
                found["a worker of it"] = Weight.read(workers[0], seconds, cpu)
        return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--also", action="append", default=[], metavar="NAME=COMMAND")
    chosen = parser.parse_args()
    commands = {"amqpgate": [sys.executable, "-m", "amqpgate"]}
    for also in chosen.also:
        name, _, command = also.partition("=")
        commands[name] = shlex.split(command)
    found: dict[tuple[str, str], list[Weight]] = {}
    with embedded_broker() as broker:
        # The first round compiles what has changed.
        for number in range(chosen.rounds + 1):
            for kind in chosen.kinds:
                for name, command in commands.items():
                    weights = weigh(command, kind, broker)
                    for what, weight in weights.items() if number else ():
                        found.setdefault((what, name), []).append(weight)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, medians of {chosen.rounds}\n")
    print("| process | | resident | own | of files | proportional | start, s | of CPU |")
    print("|---|---|---|---|---|---|---|---|")
    for (what, name), weights in found.items():
        middle = [
            statistics.median(getattr(weight, field.name) for weight in weights)
            for field in attrs.fields(Weight)
        ]
        sizes = " | ".join(f"{value:.1f}" for value in middle[:4])
        print(f"| {what} | {name} | {sizes} | {middle[4]:.2f} | {middle[5]:.2f} |")


if __name__ == "__main__":
    main()

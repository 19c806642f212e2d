"""What a login costs beneath CPU time: instructions, system calls and calls of functions, counted.

    python -m tests.bench.logins [--lives 100] [--tls | --resume] [--by instructions,system,calls]

A *life* is: connect, log in, open a channel, publish one message, close; one after the other, as in the case
``churn``. The gateway has the benchmark's configuration and policies. ``instructions`` counts those of user
space (callgrind): all of them, and those of the data path and what it calls, where what is done each second
is left out, of which there is the more the slower the machine is. ``system`` counts the system calls
(``strace -c -f``), ``calls`` those of Python's functions and of C's that Python calls. ``--keep`` leaves
callgrind's files there, for ``callgrind_annotate``, strace's table and that of the calls.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import attrs

from tests.support.ports import free_port

from .build import build
from .targets import HERE, Amqpgate, Certificates, Surroundings
from .tools import Sink, load

#: Lives before it counts: what is made once has been made then.
_BEFORE = "3"


@attrs.frozen
class Lives:
    """Whose lives are counted."""

    program: Path
    certificates: Certificates
    lives: int
    options: tuple[str, ...]

    @contextmanager
    def lived(self, gateway: Amqpgate) -> Iterator[Callable[[], None]]:
        """Some have been; what is given has the others live."""
        is_tls = bool(self.options)
        address = gateway.address("tls" if is_tls else "sink")
        assert address is not None
        said = [*self.options, "--messages", str(self.lives), "--seconds", "600", "--warmup", _BEFORE]
        with load(self.program, "churn", address, *said) as tool:
            assert tool.hear(600) == "ready"

            def live() -> None:
                tool.say("go")
                result = tool.hear_json(600)
                assert result["messages"] == self.lives, result
                # Its last connection's end may still be on its way.
                time.sleep(0.3)

            yield live
            tool.finish()


def instructions(lives: Lives, gateway: Amqpgate, folder: Path) -> str:
    """Of user space, by callgrind."""
    gateway.command = [
        "valgrind", "--tool=callgrind", "--instr-atstart=no",
        f"--callgrind-out-file={folder}/callgrind.out.%p", *gateway.command,
    ]  # fmt: skip
    dumps = 0

    def control(command: str) -> None:
        nonlocal dumps
        subprocess.run(["callgrind_control", command, str(gateway.pid)], check=True, capture_output=True)

    # Strings have the same hashes in each run.
    gateway.environment = {**os.environ, "PYTHONHASHSEED": "0"}
    gateway.launch()
    _await(gateway)
    with lives.lived(gateway) as live:
        control("--instr=on")
        control("--dump")
        live()
        control("--dump")
    (file,) = folder.glob(f"callgrind.out.{gateway.pid}.2")
    counted = int(re.findall(r"^totals: (\d+)", file.read_text(), re.MULTILINE)[-1])
    annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(file)]
    table = subprocess.run(annotate, check=True, capture_output=True, text=True).stdout
    handled = re.findall(r"^\s*([\d,]+) .*_4Pump_handle ", table, re.MULTILINE)
    each = counted / lives.lives / 1e6
    own = sum(int(count.replace(",", "")) for count in handled[:1]) / lives.lives / 1e6
    return f"{each:.3f} million instructions, {own:.3f} of the data path and what it calls"


def system(lives: Lives, gateway: Amqpgate, folder: Path) -> str:
    """Calls of the system."""
    gateway.launch()
    _await(gateway)
    table = folder / "strace"
    with lives.lived(gateway) as live:
        tracer = subprocess.Popen(
            ["strace", "-c", "-f", "-U", "calls,errors,name", "-o", str(table), "-p", str(gateway.pid)],
            stderr=subprocess.PIPE,
        )
        assert tracer.stderr is not None
        tracer.stderr.readline()
        live()
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
    rows = re.findall(r"^\s*(\d+)\s+(?:\d+\s+)?(\w+)$", table.read_text(), re.MULTILINE)
    counts = {name: int(calls) for calls, name in rows}
    every = counts.pop("total")
    most = sorted(counts.items(), key=lambda item: -item[1])
    told = ", ".join(f"{name} {calls / lives.lives:.1f}" for name, calls in most if calls >= lives.lives / 10)
    return f"{every / lives.lives:.1f} system calls: {told}"


def calls(lives: Lives, gateway: Amqpgate, folder: Path) -> str:
    """Calls of functions, by the interpreter's own hook."""
    table = folder / "calls"
    gateway.command = [sys.executable, "-m", __spec__.name, "--profiled", str(table)]
    gateway.launch()
    _await(gateway)
    assert gateway.pid is not None
    with lives.lived(gateway) as live:
        os.kill(gateway.pid, signal.SIGUSR2)
        time.sleep(0.3)
        live()
        os.kill(gateway.pid, signal.SIGUSR2)
        while not table.exists():
            time.sleep(0.05)
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    python = sum(int(count) for count, kind, _ in rows if kind == "call") / lives.lives
    c = sum(int(count) for count, kind, _ in rows if kind == "c_call") / lives.lives
    return f"{python:.1f} calls of Python functions, {c:.1f} of C functions"


def _profiled(table: Path, arguments: list[str]) -> None:
    """A gateway that counts its calls from one SIGUSR2 to the next."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            counts[event, f"{code.co_filename.rpartition('site-packages/')[2]}:{code.co_qualname}"] += 1
        elif event == "c_call":
            counts[event, str(getattr(argument, "__qualname__", argument))] += 1

    def turn(number: int, frame: FrameType | None) -> None:
        if not counts:
            sys.setprofile(note)
            return
        sys.setprofile(None)
        found = "".join(f"{count}\t{kind}\t{name}\n" for (kind, name), count in counts.most_common())
        part = table.with_suffix(".part")
        part.write_text(found)
        part.rename(table)

    signal.signal(signal.SIGUSR2, turn)
    sys.argv = ["amqpgate", *arguments]
    runpy.run_module("amqpgate", run_name="__main__", alter_sys=True)


def _await(gateway: Amqpgate) -> None:
    while not gateway.is_ready():
        time.sleep(0.1)


WAYS = {"instructions": instructions, "system": system, "calls": calls}


def main() -> None:
    """Print a line for each way of counting."""
    if sys.argv[1:2] == ["--profiled"]:
        _profiled(Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lives", type=int, default=100)
    parser.add_argument("--tls", action="store_true", help="over TLS, by a full handshake each")
    parser.add_argument("--resume", action="store_true", help="over TLS, each with the session before")
    parser.add_argument("--by", default=",".join(WAYS))
    parser.add_argument("--keep", type=Path, metavar="DIR")
    parser.add_argument("--command", default=f"{sys.executable} -m amqpgate", help="of another version")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="amqpgate-bench-")
        folder = chosen.keep or Path(stack.enter_context(made))
        folder.mkdir(parents=True, exist_ok=True)
        tools = build()
        sink = stack.enter_context(Sink(tools.sink, free_port()))
        certificates = Certificates.make(folder)
        options: tuple[str, ...] = ()
        if chosen.tls or chosen.resume:
            options = ("--tls-ca", str(certificates.ca), *(["--resume"] if chosen.resume else []))
        lives = Lives(tools.load, certificates, chosen.lives, options)
        place, policies = sink.address, HERE / "policies"
        around = Surroundings(folder, place, place, place, certificates, policies, tools.load, 1000)
        for name in chosen.by.split(","):
            gateway = Amqpgate(around, "amqpgate", shlex.split(chosen.command), HERE / "amqpgate.yaml")
            try:
                print(WAYS[name](lives, gateway, folder), flush=True)
            finally:
                gateway.stop()


if __name__ == "__main__":
    main()
